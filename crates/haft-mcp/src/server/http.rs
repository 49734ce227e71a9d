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

use super::batch::Answers;
use super::handler::McpServer;
use super::peek::{self, Peek};
use super::plain;
use super::seat::{self, ClientContext};
use super::sessions::Sessions;

const SESSION: &str = "mcp-session-id";
/// How long a client may take to send a message.
const BODY_TIME: Duration = Duration::from_mins(1);

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
    pub async fn answer<B>(
        &self,
        seat: ClientContext,
        request: Request<B>,
    ) -> Response<BoxBody<Bytes, Infallible>>
    where
        B: http_body::Body + Send + 'static,
        B::Error: std::error::Error + Send + Sync,
    {
        let is_plain = plain::is_promised(request.method(), request.headers());
        if request.method() != Method::POST {
            return self.at_length(seat, request).await;
        }
        let (head, body) = request.into_parts();
        let collecting = Limited::new(body, self.max_body_bytes).collect();
        let body = match tokio::time::timeout(BODY_TIME, collecting).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return self.too_large(),
            // Most of those who break off do not wait for an answer; some do.
            Ok(Err(_)) => return no_message("the body ended before all of it had arrived; send it again"),
            Err(_) => return no_message("the body took longer than a minute to arrive"),
        };
        if is_plain
            && !head.headers.contains_key(SESSION)
            && let Some(call) = plain::read(&head.headers, &body)
            && let Some(answer) = self.server.answer_plain(&seat, call).await
        {
            return answer;
        }
        if peek::is_batch(&body) {
            return self.answer_batch(seat, head, &body).await;
        }
        self.answer_one(seat, head, body).await
    }

    /// Answers one message.
    async fn answer_one(
        &self,
        seat: ClientContext,
        head: Parts,
        body: Bytes,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        if let Some(peek) = Peek::of(&body) {
            if let Some(why) = peek.mismatch(&head.headers) {
                return refusal(StatusCode::BAD_REQUEST, peek.id.as_ref(), &why);
            }
            if let Some(why) = peek.removed(&head.headers) {
                return refusal(StatusCode::NOT_FOUND, peek.id.as_ref(), &why);
            }
            if let Some(why) = peek.fault() {
                return refusal(StatusCode::OK, peek.id.as_ref(), &why);
            }
        }
        self.at_length(seat, Request::from_parts(head, Full::new(body))).await
    }

    /// Answers a batch in a session of a version that has them.
    async fn answer_batch(
        &self,
        seat: ClientContext,
        head: Parts,
        body: &[u8],
    ) -> Response<BoxBody<Bytes, Infallible>> {
        let session = head.headers.get(SESSION).and_then(|id| id.to_str().ok());
        let version = match session {
            Some(id) if !self.sessions.touch(id, &seat.owner()) => return unknown_session(),
            Some(id) => self.sessions.version(id),
            None => None,
        };
        let messages = match peek::batch(body, version.as_deref()) {
            Ok(messages) => messages,
            Err(why) => return refusal(StatusCode::BAD_REQUEST, None, &why),
        };
        let mut answers = Answers::default();
        for message in messages {
            let text = message.to_string();
            let id = Peek::of(text.as_bytes()).and_then(|peek| peek.id);
            let answer = self.answer_one(seat.clone(), head.clone(), text.into()).await;
            answers.add(id, answer).await;
        }
        answers.response()
    }

    async fn at_length<B>(
        &self,
        seat: ClientContext,
        mut request: Request<B>,
    ) -> Response<BoxBody<Bytes, Infallible>>
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
            return no_message("the body is not JSON, or not a message of JSON-RPC 2.0");
        }
        if waits { response.map(|body| self.until_stopped(body)) } else { response }
    }

    /// Refuses a message that is too large.
    pub fn too_large(&self) -> Response<BoxBody<Bytes, Infallible>> {
        let why = format!(
            "the message has more than the {} bytes that `server.max_body_bytes` allows",
            self.max_body_bytes
        );
        refusal(StatusCode::PAYLOAD_TOO_LARGE, None, &ErrorData::invalid_request(why, None))
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
fn no_message(why: &'static str) -> Response<BoxBody<Bytes, Infallible>> {
    refusal(StatusCode::BAD_REQUEST, None, &ErrorData::parse_error(why, None))
}

fn refusal(
    status: StatusCode,
    id: Option<&RequestId>,
    why: &ErrorData,
) -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = Response::new(Full::from(peek::error(id, why).to_string()).boxed());
    *response.status_mut() = status;
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
