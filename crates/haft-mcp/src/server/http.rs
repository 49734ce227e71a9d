//! The streamable HTTP transport.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::handler::McpServer;
use super::plain;
use super::seat::{self, Seat};
use super::sessions::Sessions;

const SESSION: &str = "mcp-session-id";

/// Answers HTTP requests. That a request may come at all (token, host, origin) is decided before.
pub struct HttpService {
    inner: StreamableHttpService<McpServer, Sessions>,
    server: McpServer,
    max_body_bytes: usize,
    sessions: Arc<Sessions>,
    stopping: CancellationToken,
}

impl McpServer {
    /// Returns the service of this server; a message may have so many bytes.
    pub fn http(&self, max_body_bytes: usize) -> HttpService {
        let (server, own) = (self.clone(), self.clone());
        let sessions = Arc::new(Sessions::default());
        // The token of its own would end calls that still have their grace time: it is never cancelled.
        let config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            // Sessions begin their streams by themselves, as their version has it.
            .with_sse_retry(None)
            .with_max_request_body_bytes(max_body_bytes)
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let make = move || Ok(server.connection());
        let inner = StreamableHttpService::new(make, Arc::clone(&sessions), config);
        HttpService { inner, server: own, max_body_bytes, sessions, stopping: self.stopping().clone() }
    }
}

impl HttpService {
    /// Answers a request of whoever sits there.
    pub async fn answer<B>(&self, seat: Seat, request: Request<B>) -> Response<BoxBody<Bytes, Infallible>>
    where
        B: http_body::Body + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let promised = plain::promised(request.method(), request.headers());
        if request.headers().contains_key(SESSION) || promised.is_none_or(|size| size > self.max_body_bytes) {
            return self.at_length(seat, request).await;
        }
        let (head, body) = request.into_parts();
        // Where the body breaks off, nobody waits for an answer.
        let Ok(body) = body.collect().await else { return no_message() };
        let body = body.to_bytes();
        if let Some(call) = plain::read(&head.headers, &body)
            && let Some(answer) = self.server.answer_plain(&seat, call).await
        {
            return answer;
        }
        self.at_length(seat, Request::from_parts(head, Full::new(body))).await
    }

    async fn at_length<B>(&self, seat: Seat, mut request: Request<B>) -> Response<BoxBody<Bytes, Infallible>>
    where
        B: http_body::Body + Send + 'static,
        B::Error: std::fmt::Display,
    {
        if let Some(id) = request.headers().get(SESSION)
            && !id.to_str().is_ok_and(|id| self.sessions.touch(id, &seat.owner()))
        {
            return unknown_session();
        }
        request.extensions_mut().insert(seat.clone());
        let waits = request.method() == Method::GET;
        let says_json = is_json(&request);
        let response = seat::with(seat, Box::pin(self.inner.handle(request))).await;
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && says_json {
            return no_message();
        }
        if waits { response.map(|body| self.until_stopped(body)) } else { response }
    }

    /// A stream that waits for news would hold up the end of the server.
    fn until_stopped(&self, body: BoxBody<Bytes, Infallible>) -> BoxBody<Bytes, Infallible> {
        let stopped = self.stopping.clone().cancelled_owned();
        BoxBody::new(StreamBody::new(BodyStream::new(body).take_until(stopped)))
    }
}

fn is_json<B>(request: &Request<B>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// What a client hears of a body that is JSON by its header alone, or no message: JSON-RPC has an error for that.
fn no_message() -> Response<BoxBody<Bytes, Infallible>> {
    let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the body is not JSON, or not a message of JSON-RPC 2.0"}}"#;
    let mut response = Response::new(Full::from(text).boxed());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// What a client hears of a session that is over, was never there, or is someone else's: open another.
fn unknown_session() -> Response<BoxBody<Bytes, Infallible>> {
    let text = "there is no such session for this token; send `initialize` to open one";
    let mut response = Response::new(Full::from(text).boxed());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
