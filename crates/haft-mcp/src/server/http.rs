//! The streamable HTTP transport.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, BodyStream, Full, LengthLimitError, Limited, StreamBody};
use rmcp::model::{ErrorData, RequestId};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::batch::{self, BatchResponses};
use super::client_context::{self, ClientContext};
use super::direct_response;
use super::envelope::{self, Envelope};
use super::handler::McpServer;
use super::sessions::Sessions;
use super::stateless;

/// The header of the session.
pub(super) const SESSION_ID: &str = "mcp-session-id";
/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);

/// Serves MCP over HTTP. The caller has checked token, host and origin of each request.
pub struct HttpService {
    inner: StreamableHttpService<McpServer, Sessions>,
    server: McpServer,
    max_body_bytes: usize,
    sessions: Arc<Sessions>,
    stopping: CancellationToken,
}

impl HttpService {
    /// Creates the service of a server; `max_body_bytes` limits each message.
    pub fn new(server: McpServer, max_body_bytes: usize) -> Self {
        let factory = server.clone();
        let sessions = Arc::new(Sessions::default());
        // rmcp's own cancellation token stays unused: it would end calls within the grace period of a shutdown.
        let config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            // `Sessions` decides by protocol version how a stream begins.
            .with_sse_retry(None)
            .with_max_request_body_bytes(max_body_bytes)
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let inner =
            StreamableHttpService::new(move || Ok(factory.connection()), Arc::clone(&sessions), config);
        let stopping = server.stopping().clone();
        Self { inner, server, max_body_bytes, sessions, stopping }
    }

    /// Handles a request.
    pub async fn handle<B>(
        &self,
        client: ClientContext,
        request: Request<B>,
    ) -> Response<BoxBody<Bytes, Infallible>>
    where
        B: http_body::Body + Send + 'static,
        B::Error: std::error::Error + Send + Sync,
    {
        if request.method() != Method::POST {
            return self.forward(client, request).await;
        }
        let is_candidate = stateless::is_candidate(request.method(), request.headers());
        let (head, body) = request.into_parts();
        let collecting = Limited::new(body, self.max_body_bytes).collect();
        let body = match tokio::time::timeout(BODY_TIMEOUT, collecting).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return self.too_large(),
            // A client that shut down only its sending side can still read this.
            Ok(Err(_)) => return parse_error("incomplete request body"),
            Err(_) => return parse_error("request body timeout (60 s) exceeded"),
        };
        if is_candidate
            && !head.headers.contains_key(SESSION_ID)
            && let Some(call) = stateless::parse(&head.headers, &body)
            && let Some(response) = stateless::respond(&self.server, &client, call).await
        {
            return response;
        }
        if batch::is_batch(&body) {
            return self.handle_batch(client, head, &body).await;
        }
        self.handle_message(client, head, body).await
    }

    /// Handles a single message.
    async fn handle_message(
        &self,
        client: ClientContext,
        head: Parts,
        body: Bytes,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        if let Some(envelope) = Envelope::parse(&body) {
            let id = envelope.id.as_ref();
            if let Some(error) = envelope.header_mismatch(&head.headers) {
                return error_response(StatusCode::BAD_REQUEST, id, &error);
            }
            if let Some(error) = envelope.removed_method(&head.headers) {
                return error_response(StatusCode::NOT_FOUND, id, &error);
            }
            if let Some(error) = envelope.params_error() {
                return error_response(StatusCode::OK, id, &error);
            }
        } else if let Some(error) = envelope::duplicate_key_error(&body) {
            return error_response(StatusCode::BAD_REQUEST, None, &error);
        }
        self.forward(client, Request::from_parts(head, Full::new(body))).await
    }

    /// Handles a batch.
    async fn handle_batch(
        &self,
        client: ClientContext,
        head: Parts,
        body: &[u8],
    ) -> Response<BoxBody<Bytes, Infallible>> {
        let session = head.headers.get(SESSION_ID).and_then(|id| id.to_str().ok());
        let version = match session {
            Some(id) if !self.sessions.touch(id, &client.session_key()) => return unknown_session(),
            Some(id) => self.sessions.version(id),
            None => None,
        };
        let messages = match batch::parse(body, version.as_deref()) {
            Ok(messages) => messages,
            Err(error) => return error_response(StatusCode::BAD_REQUEST, None, &error),
        };
        let mut responses = BatchResponses::default();
        for message in messages {
            let text = Bytes::copy_from_slice(message.get().as_bytes());
            let id = Envelope::parse(&text).and_then(|envelope| envelope.id);
            let response = self.handle_message(client.clone(), head.clone(), text).await;
            responses.add(id, response).await;
        }
        responses.into_response()
    }

    /// Passes a request to rmcp.
    async fn forward<B>(
        &self,
        mut client: ClientContext,
        mut request: Request<B>,
    ) -> Response<BoxBody<Bytes, Infallible>>
    where
        B: http_body::Body + Send + 'static,
        B::Error: std::fmt::Display,
    {
        if let Some(id) = request.headers().get(SESSION_ID) {
            let Some(id) = id.to_str().ok().filter(|id| self.sessions.touch(id, &client.session_key()))
            else {
                return unknown_session();
            };
            client.session = Some(session_label(id));
        }
        request.extensions_mut().insert(client.clone());
        let (is_stream, is_delete) = (request.method() == Method::GET, request.method() == Method::DELETE);
        let declares_json = declares_json(&request);
        let response = client_context::with(client, Box::pin(self.inner.handle(request)));
        let (mut response, direct) = direct_response::collect(response).await;
        if let Some(message) = direct {
            return json_response(StatusCode::OK, message);
        }
        if is_delete && response.status() == StatusCode::ACCEPTED {
            // The session has ended; clients read 202 as a failure.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && declares_json {
            return parse_error("request body is not a valid JSON-RPC 2.0 message");
        }
        if is_stream { response.map(|body| self.until_stopped(body)) } else { response }
    }

    /// Returns the response to a message above the size limit.
    pub fn too_large(&self) -> Response<BoxBody<Bytes, Infallible>> {
        let message =
            format!("message size limit (`server.max_body_bytes`: {}) exceeded", self.max_body_bytes);
        error_response(StatusCode::PAYLOAD_TOO_LARGE, None, &ErrorData::invalid_request(message, None))
    }

    /// Ends a stream when the server stops; otherwise it would delay the shutdown.
    fn until_stopped(&self, body: BoxBody<Bytes, Infallible>) -> BoxBody<Bytes, Infallible> {
        let stopped = self.stopping.clone().cancelled_owned();
        BoxBody::new(StreamBody::new(BodyStream::new(body).take_until(stopped)))
    }
}

/// Returns the name of a session in records: not its id, which gives access to it.
fn session_label(id: &str) -> Arc<str> {
    let digest = haft_core::hash::of_bytes(id.as_bytes());
    format!("mcp-{}", digest.get(..16).unwrap_or(&digest)).into()
}

fn declares_json<B>(request: &Request<B>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn parse_error(message: &'static str) -> Response<BoxBody<Bytes, Infallible>> {
    error_response(StatusCode::BAD_REQUEST, None, &ErrorData::parse_error(message, None))
}

fn error_response(
    status: StatusCode,
    id: Option<&RequestId>,
    error: &ErrorData,
) -> Response<BoxBody<Bytes, Infallible>> {
    json_response(status, envelope::error(id, error).to_string())
}

fn json_response(status: StatusCode, body: String) -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = Response::new(Full::from(body).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Returns the response for a session that ended, never existed, or belongs to another token.
fn unknown_session() -> Response<BoxBody<Bytes, Infallible>> {
    let text = "session not found for this token; send `initialize` to open a new one";
    let mut response = Response::new(Full::from(text).boxed());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
