//! Batches: parsing them, and collecting the responses of a batch over HTTP into one event stream.

use std::convert::Infallible;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use rmcp::model::{ErrorData, ProtocolVersion, RequestId};
use serde_json::Value;
use serde_json::value::RawValue;

use super::envelope::{self, Envelope};

type EventStream = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + Sync>>;

const EVENT_STREAM: &str = "text/event-stream";
/// How many messages a batch can have.
const MAX_MESSAGES: usize = 100;

/// Returns whether a message is a batch.
pub(super) fn is_batch(message: &[u8]) -> bool {
    message.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// Splits a batch in a session of `version` into messages; without a session there are no batches.
///
/// Version 2025-06-18 removed batches.
pub(super) fn parse<'a>(message: &'a [u8], version: Option<&str>) -> Result<Vec<&'a RawValue>, ErrorData> {
    let last = ProtocolVersion::V_2025_03_26;
    if version.is_none_or(|version| version > last.as_str()) {
        let reason = version.map_or_else(
            || "no session is open".to_owned(),
            |version| format!("this session uses {version}; send the messages one by one"),
        );
        let message = format!("batches require a session of protocol version {last} or older: {reason}");
        return Err(ErrorData::invalid_request(message, None));
    }
    let messages: Vec<&RawValue> = serde_json::from_slice(message)
        .map_err(|error| ErrorData::parse_error(format!("batch is not valid JSON: {error}"), None))?;
    if messages.is_empty() {
        return Err(ErrorData::invalid_request("empty batch", None));
    }
    if messages.len() > MAX_MESSAGES {
        let message = format!("batch limit ({MAX_MESSAGES} messages) exceeded: got {}", messages.len());
        return Err(ErrorData::invalid_request(message, None));
    }
    let is_initialize = |message: &&RawValue| {
        let envelope = Envelope::parse(message.get().as_bytes());
        envelope.is_some_and(|envelope| envelope.method.as_deref() == Some("initialize"))
    };
    if messages.iter().any(is_initialize) {
        return Err(ErrorData::invalid_request("`initialize` cannot be part of a batch", None));
    }
    Ok(messages)
}

/// The responses to the messages of a batch, sent as they become ready.
#[derive(Default)]
pub(super) struct BatchResponses {
    streams: Vec<EventStream>,
}

impl BatchResponses {
    /// Adds the response to one message.
    pub(super) async fn add(
        &mut self,
        id: Option<RequestId>,
        response: Response<BoxBody<Bytes, Infallible>>,
    ) {
        if response.status() == StatusCode::ACCEPTED {
            return;
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.starts_with(EVENT_STREAM));
        let status = response.status();
        let body = response.into_body();
        if is_stream {
            return self.streams.push(Box::pin(BodyStream::new(body)));
        }
        let Ok(body) = body.collect().await;
        let body = body.to_bytes();
        let message = serde_json::from_slice(&body).unwrap_or_else(|_| {
            let message = format!("{status}: {}", String::from_utf8_lossy(&body));
            envelope::error(id.as_ref(), &ErrorData::invalid_request(message, None))
        });
        self.add_message(&message);
    }

    fn add_message(&mut self, message: &Value) {
        let event = Frame::data(Bytes::from(format!("data: {message}\n\n")));
        self.streams.push(Box::pin(stream::iter([Ok(event)])));
    }

    /// Returns the HTTP response; a batch of notifications has no body.
    pub(super) fn into_response(self) -> Response<BoxBody<Bytes, Infallible>> {
        if self.streams.is_empty() {
            let mut response = Response::new(Full::default().boxed());
            *response.status_mut() = StatusCode::ACCEPTED;
            return response;
        }
        let body = StreamBody::new(stream::select_all(self.streams).fuse());
        let mut response = Response::new(BoxBody::new(body));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_need_an_older_version_and_are_limited() {
        let check = |text: &str, version: Option<&str>, expected: Result<usize, &str>| {
            let read = parse(text.as_bytes(), version);
            let read = read.as_ref().map(Vec::len).map_err(|error| &*error.message);
            assert_eq!(read, expected, "{text} {version:?}");
        };
        let rule = "batches require a session of protocol version 2025-03-26 or older: ";
        check("[1, {}]", Some("2025-03-26"), Ok(2));
        check("[1]", Some("2024-11-05"), Ok(1));
        let later = format!("{rule}this session uses 2025-06-18; send the messages one by one");
        check("[1]", Some("2025-06-18"), Err(&later));
        check("[1]", None, Err(&format!("{rule}no session is open")));
        check("[]", Some("2025-03-26"), Err("empty batch"));
        let many = format!("[{}1]", "1,".repeat(100));
        check(&many, Some("2025-03-26"), Err("batch limit (100 messages) exceeded: got 101"));
        let initialize = r#"[{"method": "initialize"}]"#;
        check(initialize, Some("2025-03-26"), Err("`initialize` cannot be part of a batch"));
        assert!(is_batch(b" \n[") && !is_batch(b"{\"a\": []}") && !is_batch(b""));
    }
}
