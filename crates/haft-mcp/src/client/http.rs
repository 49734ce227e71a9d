//! The HTTP client of a server: every request passes the egress guard, and the size of every response is limited.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use haft_core::secret::Secret;
use haft_executors::egress::{Egress, OutgoingRequest, SendError};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use rmcp::transport::common::http_header::{HEADER_LAST_EVENT_ID, HEADER_SESSION_ID};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use serde::Deserialize;
use sse_stream::{Sse, SseStream};
use url::Url;

use super::config::Scrubber;
use super::handler::NotificationHandler;
use super::oauth::{Auth, Challenge};
use super::rate_limit::RateLimiter;

/// How many characters of an invalid response are shown.
const MAX_EXCERPT: usize = 200;

/// The key of the missing scope in the data of an error.
pub(super) const REQUIRED_SCOPE: &str = "required_scope";

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    /// The egress guard denied the request.
    #[error("{0}")]
    Denied(String),
    /// The request did not reach the server.
    #[error("{0}")]
    NotSent(String),
    /// The server may have received the request.
    #[error("{0}")]
    Failed(String),
    /// The response is not a message of the protocol.
    #[error("HTTP status {status} without an MCP message{}{excerpt}", if excerpt.is_empty() { "" } else { ": " })]
    Response {
        /// The status of the response.
        status: StatusCode,
        /// The beginning of its body.
        excerpt: String,
    },
}

type Error = StreamableHttpError<HttpError>;

fn failed(message: impl Into<String>) -> Error {
    StreamableHttpError::Client(HttpError::Failed(message.into()))
}

/// Sends messages to one server through the egress guard.
#[derive(Clone)]
pub(super) struct EgressClient {
    pub(super) egress: Egress,
    /// The URL of the server; the one that rmcp passes with every request is ignored.
    pub(super) url: Url,
    /// Headers from the configuration.
    pub(super) headers: HeaderMap,
    /// Provides access tokens; `None` where the configuration has an `Authorization` header.
    pub(super) auth: Option<Arc<Auth>>,
    pub(super) scrubber: Scrubber,
    /// The size limit of a message.
    pub(super) max_message_bytes: usize,
    pub(super) handler: NotificationHandler,
}

/// The session, token and further headers of a request.
#[derive(Clone)]
struct RequestHeaders {
    session: Option<Arc<str>>,
    auth: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
}

impl EgressClient {
    /// Sends a request with a valid token; if the server rejects it, retries once with a renewed one.
    async fn send(
        &self,
        method: Method,
        parts: RequestHeaders,
        more: &[(HeaderName, String)],
        body: Option<Bytes>,
    ) -> Result<reqwest::Response, Error> {
        let Some(auth) = &self.auth else { return self.send_once(method, parts, more, body).await };
        let no_token = |error: super::oauth::OAuthError| failed(format!("no access token: {error}"));
        let used = auth.token().await.map_err(no_token)?;
        let with = |token: Option<&Secret>| {
            if let Some(token) = token {
                self.scrubber.add(token);
            }
            RequestHeaders { auth: token.map(|token| token.expose().to_owned()), ..parts.clone() }
        };
        let response = self.send_once(method.clone(), with(used.as_ref()), more, body.clone()).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        auth.set_challenge(challenge(&response));
        let Some(fresh) = auth.renew(used.as_ref()).await.map_err(no_token)? else {
            auth.rejected.notify_one();
            return Ok(response);
        };
        let response = self.send_once(method, with(Some(&fresh)), more, body).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            auth.set_challenge(challenge(&response));
            auth.rejected.notify_one();
        }
        Ok(response)
    }

    async fn send_once(
        &self,
        method: Method,
        parts: RequestHeaders,
        more: &[(HeaderName, String)],
        body: Option<Bytes>,
    ) -> Result<reqwest::Response, Error> {
        let mut headers = self.headers.clone();
        headers.extend(parts.headers);
        let mut put = |name: HeaderName, value: &str| {
            let mut value =
                HeaderValue::from_str(value).map_err(|_| failed("invalid characters in a header"))?;
            value.set_sensitive(name == AUTHORIZATION);
            headers.insert(name, value);
            Ok::<_, Error>(())
        };
        if let Some(session) = &parts.session {
            put(
                HeaderName::from_bytes(HEADER_SESSION_ID.as_bytes()).map_err(|e| failed(e.to_string()))?,
                session,
            )?;
        }
        if let Some(auth) = &parts.auth {
            put(AUTHORIZATION, &format!("Bearer {auth}"))?;
        }
        for (name, value) in more {
            put(name.clone(), value)?;
        }
        let request =
            OutgoingRequest { method, url: self.url.clone(), headers, body, accepted_statuses: Vec::new() };
        self.egress.send(request).await.map_err(|error| {
            let message = send_error(&error);
            StreamableHttpError::Client(match error {
                SendError::Denied(_) => HttpError::Denied(message),
                SendError::Connect(_) => HttpError::NotSent(message),
                SendError::Disconnected(_) | SendError::Redirect(_) => HttpError::Failed(message),
            })
        })
    }
}

impl StreamableHttpClient for EgressClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let in_session = session_id.is_some();
        let parts = RequestHeaders { session: session_id, auth: auth_header, headers: custom_headers };
        let more = [
            (ACCEPT, "application/json, text/event-stream".to_owned()),
            (CONTENT_TYPE, "application/json".to_owned()),
        ];
        let body = serde_json::to_vec(&message)?;
        let response = self.send(Method::POST, parts, &more, Some(body.into())).await?;
        let status = response.status();
        unauthorized(&response)?;
        if let Some(response) = self.insufficient_scope(&message, &response) {
            return Ok(response);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = header(&response, HEADER_SESSION_ID);
        if is_type(&response, "text/event-stream") && status.is_success() {
            return Ok(StreamableHttpPostResponse::Sse(events(response, self.max_message_bytes), session));
        }
        let body = read_body(response, self.max_message_bytes).await?;
        if in_session && rejects_session(&message, status, &body) {
            // rmcp opens another session and sends the message again; the list of tools may have changed.
            self.handler.list_changed.notify_one();
            return Err(StreamableHttpError::SessionExpired);
        }
        let expects_response = matches!(message, ClientJsonRpcMessage::Request(_));
        if status.is_success() && body.is_empty() && !expects_response {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let parsed = match parse_call_result(&message, &body) {
            Some(response) => Ok(response),
            None => serde_json::from_slice(&body),
        };
        match (status.is_success(), parsed) {
            // Some older servers respond to unknown methods with an empty result.
            (true, Ok(response)) if is_discover(&message) && !is_discover_result(&response) => {
                rejected(&message, None, status, &body)
            }
            (true, Ok(response)) => Ok(StreamableHttpPostResponse::Json(response, session)),
            (false, parsed) if !in_session && status.is_client_error() => {
                let error = match parsed {
                    Ok(JsonRpcMessage::Error(error)) => Some(error.error),
                    _ => None,
                };
                rejected(&message, error, status, &body)
            }
            (false, Ok(response @ JsonRpcMessage::Error(_))) => {
                Ok(StreamableHttpPostResponse::Json(response, session))
            }
            _ => Err(unexpected(status, &body)),
        }
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        let parts = RequestHeaders { session: Some(session_id), auth: auth_header, headers: custom_headers };
        self.send(Method::DELETE, parts, &[], None).await.map(drop)
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        let parts = RequestHeaders { session: session_id, auth: auth_header, headers: custom_headers };
        let mut more = vec![(ACCEPT, "text/event-stream".to_owned())];
        if let Some(id) = last_event_id {
            let name = HeaderName::from_bytes(HEADER_LAST_EVENT_ID.as_bytes());
            more.push((name.map_err(|error| failed(error.to_string()))?, id));
        }
        let response = self.send(Method::GET, parts, &more, None).await?;
        unauthorized(&response)?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => {
                self.handler.is_silent.store(true, Ordering::Relaxed);
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            status if status.is_success() && is_type(&response, "text/event-stream") => {
                Ok(events(response, self.max_message_bytes))
            }
            status => Err(unexpected(status, &[])),
        }
    }
}

/// Returns whether a server no longer knows the session of a message, which it then has not processed. The protocol
/// requires the status 404; some servers return 400 and an error that does not refer to the request.
fn rejects_session(message: &ClientJsonRpcMessage, status: StatusCode, body: &[u8]) -> bool {
    match status {
        StatusCode::NOT_FOUND => true,
        StatusCode::BAD_REQUEST => {
            let ClientJsonRpcMessage::Request(request) = message else { return true };
            let error = serde_json::from_slice::<ErrorResponse>(body).unwrap_or_default();
            error.id.as_ref() != Some(&request.id)
                || error.error.message.to_ascii_lowercase().contains("session")
        }
        _ => false,
    }
}

/// The parts of an error response that tell which request it refers to.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorResponse {
    id: Option<RequestId>,
    error: ErrorMessage,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorMessage {
    message: String,
}

/// The usual response to a call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallResponse {
    jsonrpc: String,
    id: RequestId,
    result: CallToolResult,
}

/// Parses the response to a call directly: rmcp would try each kind of message in turn.
fn parse_call_result(message: &ClientJsonRpcMessage, body: &[u8]) -> Option<ServerJsonRpcMessage> {
    let is_call = matches!(message, JsonRpcMessage::Request(request) if matches!(request.request, ClientRequest::CallToolRequest(_)));
    let CallResponse { jsonrpc, id, result } = serde_json::from_slice(body).ok().filter(|_| is_call)?;
    (jsonrpc == "2.0").then(|| ServerJsonRpcMessage::response(ServerResult::CallToolResult(result), id))
}

/// Handles a client error outside of a session. An older server rejects `server/discover` in its own way; rmcp needs a
/// JSON-RPC error to fall back to `initialize`.
fn rejected(
    message: &ClientJsonRpcMessage,
    error: Option<ErrorData>,
    status: StatusCode,
    body: &[u8],
) -> Result<StreamableHttpPostResponse, Error> {
    let ClientJsonRpcMessage::Request(request) = message else { return Err(unexpected(status, body)) };
    let error = match error {
        Some(error) => error,
        None if is_discover(message) => ErrorData::invalid_request(format!("HTTP status {status}"), None),
        None => return Err(unexpected(status, body)),
    };
    let response = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
    Ok(StreamableHttpPostResponse::Json(response, None))
}

fn is_discover(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(request) if matches!(request.request, ClientRequest::DiscoverRequest(_)))
}

/// Returns whether a message is a valid response to `server/discover`.
fn is_discover_result(message: &ServerJsonRpcMessage) -> bool {
    match message {
        JsonRpcMessage::Response(response) => matches!(response.result, ServerResult::DiscoverResult(_)),
        _ => true,
    }
}

impl EgressClient {
    /// Returns the error for a request that needs a token with more scopes.
    fn insufficient_scope(
        &self,
        message: &ClientJsonRpcMessage,
        response: &reqwest::Response,
    ) -> Option<StreamableHttpPostResponse> {
        let (auth, ClientJsonRpcMessage::Request(request)) = (self.auth.as_ref()?, message) else {
            return None;
        };
        let challenge = challenge(response);
        if response.status() != StatusCode::FORBIDDEN || !challenge.is_insufficient_scope() {
            return None;
        }
        let scope = haft_core::problem::excerpt(challenge.scope.as_deref().unwrap_or("more"), MAX_EXCERPT);
        auth.set_challenge(challenge);
        let message = format!("insufficient scope: log in to the server again with the scope `{scope}`");
        let data = serde_json::json!({REQUIRED_SCOPE: scope});
        let error = ErrorData::invalid_request(message, Some(data));
        let response = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        Some(StreamableHttpPostResponse::Json(response, None))
    }
}

/// Describes a request that failed.
pub(super) fn send_error(error: &SendError) -> String {
    match error {
        SendError::Denied(refused) => refused.to_string(),
        SendError::Connect(why) => format!("cannot connect: {why}"),
        SendError::Disconnected(why) => format!("lost the connection: {why}"),
        SendError::Redirect(why) => why.clone(),
    }
}

fn challenge(response: &reqwest::Response) -> Challenge {
    let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let texts: Vec<_> = values.filter_map(|value| value.to_str().ok()).collect();
    Challenge::parse(&texts.join(", "))
}

fn unauthorized(response: &reqwest::Response) -> Result<(), Error> {
    if response.status() != StatusCode::UNAUTHORIZED {
        return Ok(());
    }
    let challenge = header(response, WWW_AUTHENTICATE.as_str()).unwrap_or_default();
    Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
}

fn header(response: &reqwest::Response, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

fn is_type(response: &reqwest::Response, media_type: &str) -> bool {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with(media_type))
}

fn unexpected(status: StatusCode, body: &[u8]) -> Error {
    let excerpt = haft_core::problem::excerpt(&String::from_utf8_lossy(body), MAX_EXCERPT);
    StreamableHttpError::Client(HttpError::Response { status, excerpt })
}

fn too_large(max: usize) -> std::io::Error {
    std::io::Error::other(format!("message size limit ({max} bytes) exceeded"))
}

/// Reads a body up to the size limit of a message.
async fn read_body(response: reqwest::Response, max: usize) -> Result<Vec<u8>, Error> {
    let mut stream = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| failed(format!("incomplete response: {}", error.without_url())))?;
        if body.len() + chunk.len() > max {
            return Err(too_large(max).into());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn events(response: reqwest::Response, max: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let bytes = response.bytes_stream().map_err(std::io::Error::other);
    SseStream::from_bytes_stream(limited(bytes, max)).boxed()
}

/// Limits the size of each event, which ends with an empty line, and the rate of events.
fn limited(
    stream: impl Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    max: usize,
) -> impl Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    let state = (
        Box::pin(stream),
        RateLimiter::default(),
        EventCounter { max_bytes: max, ..EventCounter::default() },
    );
    futures_util::stream::unfold(state, async |(mut stream, mut limiter, mut events)| {
        let chunk = match stream.next().await? {
            Ok(chunk) => chunk,
            Err(error) => return Some((Err(error), (stream, limiter, events))),
        };
        let ended = events.count(&chunk);
        // The last event of a stream is usually the response: only what follows has to wait.
        limiter.acquire(ended, chunk.len() as u64).await;
        let chunk =
            if events.event_bytes > events.max_bytes { Err(too_large(events.max_bytes)) } else { Ok(chunk) };
        Some((chunk, (stream, limiter, events)))
    })
}

/// Counts the events of a stream and the bytes of the current one.
#[derive(Default)]
struct EventCounter {
    max_bytes: usize,
    event_bytes: usize,
    after_line: bool,
}

impl EventCounter {
    /// Returns how many events end in a chunk.
    fn count(&mut self, chunk: &[u8]) -> u64 {
        let mut ended = 0;
        for byte in chunk {
            match byte {
                b'\n' if self.after_line => {
                    self.event_bytes = 0;
                    ended += 1;
                }
                b'\n' => self.after_line = true,
                b'\r' => {}
                _ => self.after_line = false,
            }
            self.event_bytes += 1;
        }
        ended
    }
}
