//! Batches over HTTP: each message goes its own way, and the answers come in one stream, as they are ready.

use std::convert::Infallible;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use rmcp::model::{ErrorData, RequestId};
use serde_json::Value;

use super::peek;

type Events = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + Sync>>;

const EVENTS: &str = "text/event-stream";

/// Collects the answers to the messages of a batch.
#[derive(Default)]
pub(super) struct Answers {
    streams: Vec<Events>,
}

impl Answers {
    /// Adds the answer to one message.
    pub(super) async fn add(
        &mut self,
        id: Option<RequestId>,
        response: Response<BoxBody<Bytes, Infallible>>,
    ) {
        if response.status() == StatusCode::ACCEPTED {
            return;
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.starts_with(EVENTS));
        let status = response.status();
        let body = response.into_body();
        if is_stream {
            return self.streams.push(Box::pin(BodyStream::new(body)));
        }
        let Ok(body) = body.collect().await;
        let body = body.to_bytes();
        let message = serde_json::from_slice(&body).unwrap_or_else(|_| {
            let why = format!("{status}: {}", String::from_utf8_lossy(&body));
            peek::error(id.as_ref(), &ErrorData::invalid_request(why, None))
        });
        self.add_message(&message);
    }

    /// Adds an answer that is ready.
    pub(super) fn add_message(&mut self, message: &Value) {
        let event = Frame::data(Bytes::from(format!("data: {message}\n\n")));
        self.streams.push(Box::pin(stream::iter([Ok(event)])));
    }

    /// Returns all of them; only notifications have none.
    pub(super) fn response(self) -> Response<BoxBody<Bytes, Infallible>> {
        if self.streams.is_empty() {
            let mut response = Response::new(Full::default().boxed());
            *response.status_mut() = StatusCode::ACCEPTED;
            return response;
        }
        let body = StreamBody::new(stream::select_all(self.streams).fuse());
        let mut response = Response::new(BoxBody::new(body));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }
}
