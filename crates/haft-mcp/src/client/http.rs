//! Servers that are addresses: every request passes the egress guard, and every answer is bounded.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use haft_core::secret::Secret;
use haft_runtime::egress::{Egress, OutgoingRequest, SendError};
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
use tokio::sync::Notify;
use url::Url;

use super::filled::Scrubber;
use super::oauth::{Auth, Challenge};
use super::pace::Pace;
use super::stdio::MAX_MESSAGE;

/// The longest text that is shown of an answer that is no message.
const SHOWN: usize = 200;

/// Says why a request came to nothing.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub(super) struct Failed {
    why: String,
    /// Whether the server may have got the request.
    pub(super) sent: bool,
}

type Error = StreamableHttpError<Failed>;

fn failed(why: impl Into<String>) -> Error {
    StreamableHttpError::Client(Failed { why: why.into(), sent: true })
}

/// Sends the messages of one server through the guard.
#[derive(Clone)]
pub(super) struct Guarded {
    pub(super) egress: Egress,
    /// Where the server is. rmcp says it anew with every request.
    pub(super) url: Url,
    /// What the configuration adds to every request.
    pub(super) headers: HeaderMap,
    /// Who gets the tokens; nobody where the configuration says a token itself.
    pub(super) auth: Option<Arc<Auth>>,
    pub(super) scrubber: Scrubber,
    /// Says that the list may be another one.
    pub(super) news: Arc<Notify>,
}

/// What every kind of request has.
#[derive(Clone)]
struct Asked {
    session: Option<Arc<str>>,
    auth: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
}

impl Guarded {
    /// Sends a request with a good token, and once more with another one where the server does not take it.
    async fn send(
        &self,
        method: Method,
        asked: Asked,
        more: &[(HeaderName, String)],
        body: Option<Bytes>,
    ) -> Result<reqwest::Response, Error> {
        let Some(auth) = &self.auth else { return self.once(method, asked, more, body).await };
        let no_token = |error: super::oauth::OAuthError| failed(format!("no token: {error}"));
        let used = auth.token().await.map_err(no_token)?;
        let with = |token: Option<&Secret>| {
            if let Some(token) = token {
                self.scrubber.add(token);
            }
            Asked { auth: token.map(|token| token.expose().to_owned()), ..asked.clone() }
        };
        let response = self.once(method.clone(), with(used.as_ref()), more, body.clone()).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        auth.wants(challenge(&response));
        let Some(fresh) = auth.renew(used.as_ref()).await.map_err(no_token)? else {
            auth.refused.notify_one();
            return Ok(response);
        };
        let response = self.once(method, with(Some(&fresh)), more, body).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            auth.wants(challenge(&response));
            auth.refused.notify_one();
        }
        Ok(response)
    }

    async fn once(
        &self,
        method: Method,
        asked: Asked,
        more: &[(HeaderName, String)],
        body: Option<Bytes>,
    ) -> Result<reqwest::Response, Error> {
        let mut headers = self.headers.clone();
        headers.extend(asked.headers);
        let mut put = |name: HeaderName, value: &str| {
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| failed("a header has characters that HTTP does not allow"))?;
            value.set_sensitive(name == AUTHORIZATION);
            headers.insert(name, value);
            Ok::<_, Error>(())
        };
        if let Some(session) = &asked.session {
            put(
                HeaderName::from_bytes(HEADER_SESSION_ID.as_bytes()).map_err(|e| failed(e.to_string()))?,
                session,
            )?;
        }
        if let Some(auth) = &asked.auth {
            put(AUTHORIZATION, &format!("Bearer {auth}"))?;
        }
        for (name, value) in more {
            put(name.clone(), value)?;
        }
        let request =
            OutgoingRequest { method, url: self.url.clone(), headers, body, accepted_statuses: Vec::new() };
        self.egress.send(request).await.map_err(|error| {
            let sent = !matches!(error, SendError::Denied(_) | SendError::Connect(_));
            let why = match error {
                SendError::Denied(refused) => refused.to_string(),
                SendError::Connect(why) => format!("no connection: {why}"),
                SendError::Disconnected(why) => format!("the connection broke: {why}"),
                SendError::Redirect(why) => why,
            };
            StreamableHttpError::Client(Failed { why, sent })
        })
    }
}

impl StreamableHttpClient for Guarded {
    type Error = Failed;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let in_session = session_id.is_some();
        let asked = Asked { session: session_id, auth: auth_header, headers: custom_headers };
        let more = [
            (ACCEPT, "application/json, text/event-stream".to_owned()),
            (CONTENT_TYPE, "application/json".to_owned()),
        ];
        let body = serde_json::to_vec(&message)?;
        let response = self.send(Method::POST, asked, &more, Some(body.into())).await?;
        let status = response.status();
        unauthorised(&response)?;
        if let Some(answer) = self.wants_more(&message, &response) {
            return Ok(answer);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && in_session {
            // rmcp opens another one, with what may be another list.
            self.news.notify_one();
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = header(&response, HEADER_SESSION_ID);
        if is_type(&response, "text/event-stream") && status.is_success() {
            return Ok(StreamableHttpPostResponse::Sse(events(response), session));
        }
        let body = whole(response).await?;
        let expects_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        if status.is_success() && body.is_empty() && !expects_answer {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let parsed = match called(&message, &body) {
            Some(answer) => Ok(answer),
            None => serde_json::from_slice(&body),
        };
        match (status.is_success(), parsed) {
            // Some servers of the older kind answer everything that they do not know with an empty result.
            (true, Ok(answer)) if discovers(&message) && !describes(&answer) => {
                refused(&message, None, status, &body)
            }
            (true, Ok(answer)) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            (false, parsed) if !in_session && status.is_client_error() => {
                let error = match parsed {
                    Ok(JsonRpcMessage::Error(error)) => Some(error.error),
                    _ => None,
                };
                refused(&message, error, status, &body)
            }
            (false, Ok(answer @ JsonRpcMessage::Error(_))) => {
                Ok(StreamableHttpPostResponse::Json(answer, session))
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
        let asked = Asked { session: Some(session_id), auth: auth_header, headers: custom_headers };
        self.send(Method::DELETE, asked, &[], None).await.map(drop)
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        let asked = Asked { session: session_id, auth: auth_header, headers: custom_headers };
        let mut more = vec![(ACCEPT, "text/event-stream".to_owned())];
        if let Some(id) = last_event_id {
            let name = HeaderName::from_bytes(HEADER_LAST_EVENT_ID.as_bytes());
            more.push((name.map_err(|error| failed(error.to_string()))?, id));
        }
        let response = self.send(Method::GET, asked, &more, None).await?;
        unauthorised(&response)?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if status.is_success() && is_type(&response, "text/event-stream") => Ok(events(response)),
            status => Err(unexpected(status, &[])),
        }
    }
}

/// An answer to a call, as nearly all of them are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Called {
    jsonrpc: String,
    id: RequestId,
    result: CallToolResult,
}

/// Reads the result of a call as that alone: tried as each kind of message in turn, it would be read many times over.
fn called(message: &ClientJsonRpcMessage, body: &[u8]) -> Option<ServerJsonRpcMessage> {
    let is_call = matches!(message, JsonRpcMessage::Request(request) if matches!(request.request, ClientRequest::CallToolRequest(_)));
    let Called { jsonrpc, id, result } = serde_json::from_slice(body).ok().filter(|_| is_call)?;
    (jsonrpc == "2.0").then(|| ServerJsonRpcMessage::response(ServerResult::CallToolResult(result), id))
}

/// A server of the older kind does not know how the newer kind begins, and says so in its own way: whoever asks
/// then begins in the older way.
fn refused(
    message: &ClientJsonRpcMessage,
    error: Option<ErrorData>,
    status: StatusCode,
    body: &[u8],
) -> Result<StreamableHttpPostResponse, Error> {
    let ClientJsonRpcMessage::Request(request) = message else { return Err(unexpected(status, body)) };
    let error = match error {
        Some(error) => error,
        None if discovers(message) => ErrorData::invalid_request(format!("HTTP status {status}"), None),
        None => return Err(unexpected(status, body)),
    };
    let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
    Ok(StreamableHttpPostResponse::Json(answer, None))
}

fn discovers(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(request) if matches!(request.request, ClientRequest::DiscoverRequest(_)))
}

/// Tells whether an answer is what a server of the newer kind says of itself, or why it does not.
fn describes(answer: &ServerJsonRpcMessage) -> bool {
    match answer {
        JsonRpcMessage::Response(response) => matches!(response.result, ServerResult::DiscoverResult(_)),
        _ => true,
    }
}

impl Guarded {
    /// A server that takes the token, but wants another one for this, fails the call alone.
    fn wants_more(
        &self,
        message: &ClientJsonRpcMessage,
        response: &reqwest::Response,
    ) -> Option<StreamableHttpPostResponse> {
        let (auth, ClientJsonRpcMessage::Request(request)) = (self.auth.as_ref()?, message) else {
            return None;
        };
        let challenge = challenge(response);
        if response.status() != StatusCode::FORBIDDEN || !challenge.wants_more() {
            return None;
        }
        let scope = haft_core::problem::excerpt(challenge.scope.as_deref().unwrap_or("more"), SHOWN);
        auth.wants(challenge);
        let why = format!("the server wants a login that covers `{scope}`: log in to it again");
        let answer =
            ServerJsonRpcMessage::error(ErrorData::invalid_request(why, None), Some(request.id.clone()));
        Some(StreamableHttpPostResponse::Json(answer, None))
    }
}

fn challenge(response: &reqwest::Response) -> Challenge {
    let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let texts: Vec<_> = values.filter_map(|value| value.to_str().ok()).collect();
    Challenge::parse(&texts.join(", "))
}

fn unauthorised(response: &reqwest::Response) -> Result<(), Error> {
    if response.status() != StatusCode::UNAUTHORIZED {
        return Ok(());
    }
    let challenge = header(response, WWW_AUTHENTICATE.as_str()).unwrap_or_default();
    Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
}

fn header(response: &reqwest::Response, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

fn is_type(response: &reqwest::Response, wanted: &str) -> bool {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with(wanted))
}

fn unexpected(status: StatusCode, body: &[u8]) -> Error {
    let shown = haft_core::problem::excerpt(&String::from_utf8_lossy(body), SHOWN);
    let message = if shown.is_empty() {
        format!("HTTP status {status}, and no message of the protocol")
    } else {
        format!("HTTP status {status}, and no message of the protocol: {shown}")
    };
    StreamableHttpError::UnexpectedServerResponse(message.into())
}

fn too_large() -> std::io::Error {
    std::io::Error::other(format!("the server sent a message of more than {MAX_MESSAGE} bytes"))
}

/// Reads a body, as far as one message may go.
async fn whole(response: reqwest::Response) -> Result<Vec<u8>, Error> {
    let mut stream = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk =
            chunk.map_err(|error| failed(format!("the answer broke off: {}", error.without_url())))?;
        if body.len() + chunk.len() > MAX_MESSAGE {
            return Err(too_large().into());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn events(response: reqwest::Response) -> BoxStream<'static, Result<Sse, SseError>> {
    let bytes = response.bytes_stream().map_err(std::io::Error::other);
    SseStream::from_bytes_stream(bounded(bytes)).boxed()
}

/// Ends a stream with an error where one event has no end: events are told apart by an empty line. Those that come
/// without end are read slowly.
fn bounded(
    stream: impl Stream<Item = std::io::Result<Bytes>> + Send + 'static,
) -> impl Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    let begin = (Box::pin(stream), Pace::default(), Events::default());
    futures_util::stream::unfold(begin, async |(mut stream, mut pace, mut events)| {
        let chunk = match stream.next().await? {
            Ok(chunk) => chunk,
            Err(error) => return Some((Err(error), (stream, pace, events))),
        };
        let ended = events.count(&chunk);
        // The last event of a stream is mostly the answer: only what comes behind it has to wait.
        pace.spend(ended, chunk.len() as u64).await;
        let chunk = if events.since > MAX_MESSAGE { Err(too_large()) } else { Ok(chunk) };
        Some((chunk, (stream, pace, events)))
    })
}

/// Where in a stream of events its end is.
#[derive(Default)]
struct Events {
    since: usize,
    after_line: bool,
}

impl Events {
    /// Returns how many events end in a piece.
    fn count(&mut self, chunk: &[u8]) -> u64 {
        let mut ended = 0;
        for byte in chunk {
            match byte {
                b'\n' if self.after_line => {
                    self.since = 0;
                    ended += 1;
                }
                b'\n' => self.after_line = true,
                b'\r' => {}
                _ => self.after_line = false,
            }
            self.since += 1;
        }
        ended
    }
}
