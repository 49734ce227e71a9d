//! The MCP server of an installation, and the connections that it holds.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use haft_core::name::{BundleSlug, TenantId};
use haft_core::outcome::ErrorCode;
use haft_core::token::{Caller, Role};
use haft_mcp::server::{ClientContext, HttpService, McpServer, ProtocolExtension, View};
use haft_runtime::pipeline::Pipeline;
use haft_runtime::registry::Registry;
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::body;
use crate::error::ApiError;
use crate::routes::mcp::PIPE;
use crate::settings::Settings;

/// How many clients may be connected line by line.
const MAX_PIPES: usize = 1000;

/// The MCP server.
pub(crate) struct Mcp {
    server: McpServer,
    http: HttpService,
    max_bytes: usize,
    pipes: Arc<Semaphore>,
    /// From here on nobody waits for news any more.
    stopping: CancellationToken,
    /// Now the last ones have to go.
    ended: CancellationToken,
}

impl Mcp {
    /// Makes the server of these tools.
    pub(crate) fn new(
        settings: &Settings,
        registry: &Arc<Registry>,
        pipeline: &Arc<Pipeline>,
        extension: Option<Arc<dyn ProtocolExtension>>,
    ) -> Self {
        let stopping = CancellationToken::new();
        let own = haft_mcp::server::Settings {
            compact_above: settings.mcp.compact_above,
            compact_above_tokens: settings.mcp.compact_above_tokens,
            extension,
            stopping: stopping.clone(),
        };
        let server = McpServer::new(Arc::clone(registry), Arc::clone(pipeline), own);
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

    /// Sends those home who wait for news; calls go on.
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
    }

    /// Ends what is left.
    pub(crate) fn end(&self) {
        self.ended.cancel();
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, seat: ClientContext, request: Request) -> Response {
        if body::claims_more(request.headers(), self.max_bytes) {
            body::discard(request).await;
            return self.http.too_large().map(Body::new);
        }
        self.http.handle(seat, request).await.map(Body::new)
    }

    /// Takes the connection of a request over, to carry messages line by line.
    pub(crate) fn pipe(&self, seat: ClientContext, mut request: Request) -> Response {
        let Ok(place) = Arc::clone(&self.pipes).try_acquire_owned() else {
            return ApiError::new(ErrorCode::Overloaded, "too many MCP clients are connected")
                .into_response();
        };
        let connection = hyper::upgrade::on(&mut request);
        let (server, max_bytes, ended) = (self.server.clone(), self.max_bytes, self.ended.child_token());
        tokio::spawn(async move {
            match connection.await {
                Ok(connection) => {
                    let pipe = tokio::io::split(TokioIo::new(connection));
                    haft_mcp::server::serve_lines(&server, seat, pipe, max_bytes, ended).await;
                }
                Err(error) => tracing::debug!(error = %error, "an MCP client went before it was connected"),
            }
            drop(place);
        });
        let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static(PIPE));
        response
    }

    /// Serves the one client at the standard input and output of this process.
    pub(crate) async fn serve_stdio(&self, seat: ClientContext) {
        let pipe = haft_mcp::server::stdio();
        let ended = self.ended.child_token();
        haft_mcp::server::serve_lines(&self.server, seat, pipe, self.max_bytes, ended).await;
    }
}

/// Who is at the standard input and output of this process: the owner of the home folder, or a program of theirs.
#[derive(Debug, Clone, Default)]
pub struct StdioClient {
    /// The bundle whose tools are offered; all, where there is none.
    pub bundle: Option<BundleSlug>,
    /// Whether tools that need an approval run directly.
    pub elevated: bool,
}

/// There is no such bundle.
#[derive(Debug, thiserror::Error)]
#[error("there is no bundle `{0}`")]
pub struct UnknownBundle(pub BundleSlug);

impl StdioClient {
    pub(crate) fn seat(self, app: &App) -> Result<ClientContext, UnknownBundle> {
        let tenant = TenantId::default_tenant();
        let view = match self.bundle {
            None => View::All,
            Some(slug) if has_bundle(app, &tenant, &slug) => View::Bundle(slug),
            Some(slug) => return Err(UnknownBundle(slug)),
        };
        Ok(ClientContext {
            tenant,
            token: "local".into(),
            caller: Caller { name: "local".into(), elevated: self.elevated, role: Role::Admin },
            may_call: true,
            mode: app.settings().mode,
            view,
            request_id: None,
        })
    }
}

/// Tells whether a bundle is there.
pub(crate) fn has_bundle(app: &App, tenant: &TenantId, slug: &BundleSlug) -> bool {
    app.registry().snapshot().bundles(tenant).any(|bundle| bundle.slug == *slug)
}
