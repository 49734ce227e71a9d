//! The events of a run as server-sent events.

use std::convert::Infallible;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _};
use serde_json::Value;

use haft_platform::runs::NumberedEvent;

/// Streams events until `ended` completes; `first` are sent before them.
pub(crate) fn run_events(
    first: Vec<Event>,
    events: impl Stream<Item = NumberedEvent> + Send + 'static,
    ended: impl Future<Output = ()> + Send + 'static,
) -> Response {
    let first = futures_util::stream::iter(first);
    let events = first.chain(events.map(|event| run_event(&event))).take_until(ended);
    Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(KeepAlive::default()).into_response()
}

/// Returns one event: its type, its JSON, and the number of the step that is complete with it.
fn run_event(NumberedEvent { event, step }: &NumberedEvent) -> Event {
    let data = serde_json::to_value(event).unwrap_or(Value::Null);
    let name = data.get("type").and_then(Value::as_str).unwrap_or("event").to_owned();
    let sent = Event::default().event(name).data(data.to_string());
    match step {
        Some(step) => sent.id(step.to_string()),
        None => sent,
    }
}
