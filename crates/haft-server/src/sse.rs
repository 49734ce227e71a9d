//! Writes all streams of server-sent events: the same headers and keep-alive, and the end of the stream when its client
//! loses access or the server stops. Routes define the events.

use std::convert::Infallible;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _};
use haft_platform::stream_limit::StreamPermit;
use serde::Serialize;

use crate::open_stream::with_permit;

/// The header with the id after which a reconnecting client continues.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The header that disables buffering in proxies.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Streams events until they end or `ended` completes. Holds the permit until then.
pub(crate) fn response(
    events: impl Stream<Item = Event> + Send + 'static,
    ended: impl Future<Output = ()> + Send + 'static,
    permit: StreamPermit,
) -> Response {
    let events = with_permit(events.take_until(ended), permit).map(Ok::<_, Infallible>);
    let mut response = Sse::new(events).keep_alive(KeepAlive::default()).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}

/// Returns an event with a name and JSON.
pub(crate) fn event(name: &str, data: &impl Serialize) -> Event {
    Event::default().event(name).data(json(data))
}

/// Returns an event of JSON alone.
pub(crate) fn unnamed(data: &impl Serialize) -> Event {
    Event::default().data(json(data))
}

fn json(data: &impl Serialize) -> String {
    serde_json::to_string(data).unwrap_or_default()
}

/// Returns the id of the last event that a client has seen; empty if it is not text.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(LAST_EVENT_ID).map(|id| id.to_str().unwrap_or_default())
}

/// Returns whether a client requests server-sent events.
pub(crate) fn is_accepted(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/event-stream"))
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use haft_platform::stream_limit::{StreamLimit, StreamLimits};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_stream_is_not_buffered_and_ends_with_its_access() {
        let (revoke, revoked) = tokio::sync::oneshot::channel::<()>();
        let first = event("output", &json!({"line": "a\nb"})).id("7");
        let events = stream::iter([first, unnamed(&json!([1]))]).chain(stream::pending());
        let limit = StreamLimit::new(StreamLimits { total: 1, per_principal: 1, per_address: None });
        let permit = limit.acquire(String::new(), None).unwrap();
        let ended = async {
            let _ = revoked.await;
        };
        let response = response(events, ended, permit);
        let headers: Vec<_> = ["content-type", "cache-control", "x-accel-buffering"]
            .map(|name| response.headers().get(name).unwrap().to_str().unwrap().to_owned())
            .into();
        assert_eq!(headers, ["text/event-stream", "no-cache", "no"]);
        let mut body = response.into_body().into_data_stream();
        let mut text = Vec::new();
        for _ in 0..2 {
            text.extend(body.next().await.unwrap().unwrap());
        }
        let expected = "event: output\ndata: {\"line\":\"a\\nb\"}\nid: 7\n\ndata: [1]\n\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
        assert!(limit.acquire(String::new(), None).is_err());
        revoke.send(()).unwrap();
        assert!(body.next().await.is_none());
        drop(body);
        assert!(limit.acquire(String::new(), None).is_ok());
    }
}
