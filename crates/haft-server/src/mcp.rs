//! The MCP server of an installation, and its line connections.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use haft_core::name::{BundleSlug, TenantId};
use haft_core::outcome::ErrorCode;
use haft_core::principal::Principal;
use haft_core::token::Role;
use haft_mcp::server::{ClientContext, HttpService, McpServer, ProtocolExtension, View};
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::body;
use crate::error::ApiError;
use haft_platform::Installation;
use haft_platform::identity::Identity;
use haft_platform::stream_limit::StreamPermit;

/// The upgrade protocol with one message per line, in both directions.
pub(crate) const LINE_PROTOCOL: &str = "mcp-lines";
/// MCP headers that CORS must list.
pub(crate) const HEADERS: [&str; 5] =
    ["mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id"];

/// The most clients with a line connection.
const MAX_PIPES: usize = 1000;

/// The MCP server.
pub(crate) struct Mcp {
    server: McpServer,
    http: HttpService,
    max_bytes: usize,
    pipes: Arc<Semaphore>,
    /// Cancelled when the shutdown starts: streams of notifications end.
    stopping: CancellationToken,
    /// Cancelled when the shutdown ends: connections are closed.
    ended: CancellationToken,
}

impl Mcp {
    /// Creates the server.
    pub(crate) fn new(app: &Installation, extension: Option<Arc<dyn ProtocolExtension>>) -> Self {
        let stopping = CancellationToken::new();
        let settings = app.settings();
        let own = haft_mcp::server::Settings {
            compact_above: settings.mcp.compact_above,
            compact_above_tokens: settings.mcp.compact_above_tokens,
            approvals: Some(app.mcp_approvals()),
            connect_wait: settings.mcp.connect_wait,
            packages: Some(Arc::clone(app.mcp_packages()) as _),
            extension,
            stopping: stopping.clone(),
        };
        let server = McpServer::new(Arc::clone(app.registry()), Arc::clone(app.pipeline()), own);
        let max_bytes = settings.server.max_body_bytes;
        Self {
            http: HttpService::new(server.clone(), max_bytes),
            server,
            max_bytes,
            pipes: Arc::new(Semaphore::new(MAX_PIPES)),
            stopping,
            ended: CancellationToken::new(),
        }
    }

    /// Ends streams of notifications; running calls continue.
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
    }

    /// Closes the remaining connections.
    pub(crate) fn end(&self) {
        self.ended.cancel();
    }

    /// Handles a request.
    pub(crate) async fn handle(&self, client: ClientContext, request: Request) -> Response {
        if body::content_length_exceeds(request.headers(), self.max_bytes) {
            body::discard(request).await;
            return self.http.too_large().map(Body::new);
        }
        self.http.handle(client, request).await.map(Body::new)
    }

    /// Upgrades the connection of a request to one that carries a message per line. It ends when the token is revoked.
    pub(crate) fn pipe(
        &self,
        app: &Arc<Installation>,
        client: ClientContext,
        (identity, stream): (Identity, StreamPermit),
        mut request: Request,
    ) -> Response {
        let Ok(permit) = Arc::clone(&self.pipes).try_acquire_owned() else {
            let message = format!("connection limit ({MAX_PIPES}) of MCP clients exceeded; retry later");
            return ApiError::new(ErrorCode::Overloaded, message).into_response();
        };
        let connection = hyper::upgrade::on(&mut request);
        let (server, max_bytes, ended) = (self.server.clone(), self.max_bytes, self.ended.child_token());
        let app = Arc::clone(app);
        tokio::spawn(async move {
            match connection.await {
                Ok(connection) => {
                    let pipe = tokio::io::split(TokioIo::new(connection));
                    let serving =
                        haft_mcp::server::serve_lines(&server, client, pipe, max_bytes, ended.clone());
                    let revoked = async {
                        match identity.token() {
                            Some(token) => app.access().revoked(token, || app.now()).await,
                            None => std::future::pending().await,
                        }
                        ended.cancel();
                    };
                    tokio::join!(serving, async {
                        tokio::select! {
                            () = revoked => {}
                            () = ended.cancelled() => {}
                        }
                    });
                }
                Err(error) => {
                    tracing::debug!(error = %error, "an MCP client disconnected before the upgrade");
                }
            }
            drop((permit, stream));
        });
        let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static(LINE_PROTOCOL));
        response
    }

    /// Serves one client over the standard input and output of this process.
    pub(crate) async fn serve_stdio(&self, client: ClientContext) {
        let pipe = haft_mcp::server::stdio();
        let ended = self.ended.child_token();
        haft_mcp::server::serve_lines(&self.server, client, pipe, self.max_bytes, ended).await;
    }
}

/// The MCP client at the standard input and output of this process, started by the owner of the home folder.
#[derive(Debug, Clone, Default)]
pub struct StdioClient {
    /// The bundle whose tools are listed; `None` lists all tools.
    pub bundle: Option<BundleSlug>,
    /// Whether tools that need approval run without it.
    pub elevated: bool,
}

/// The bundle does not exist.
#[derive(Debug, thiserror::Error)]
#[error("bundle `{0}` not found")]
pub struct UnknownBundle(pub BundleSlug);

impl StdioClient {
    pub(crate) fn context(self, app: &Installation) -> Result<ClientContext, UnknownBundle> {
        let tenant = TenantId::default_tenant();
        let view = match self.bundle {
            None => View::All,
            Some(slug) if has_bundle(app, &tenant, &slug) => View::Bundle(slug),
            Some(slug) => return Err(UnknownBundle(slug)),
        };
        Ok(ClientContext {
            principal: Arc::new(Principal::new(tenant, "local", Role::Admin).elevated(self.elevated)),
            mode: app.settings().mode,
            view,
            request_id: None,
            session: Some(connection_session()),
            policy: Arc::clone(app.policy().handle()),
        })
    }
}

/// Returns the session of a client whose connection is its session.
pub(crate) fn connection_session() -> Arc<str> {
    format!("mcp-{}", Uuid::now_v7().simple()).into()
}

/// Returns whether a bundle exists.
pub(crate) fn has_bundle(app: &Installation, tenant: &TenantId, slug: &BundleSlug) -> bool {
    app.registry().snapshot().bundles(tenant).any(|bundle| bundle.slug == *slug)
}
