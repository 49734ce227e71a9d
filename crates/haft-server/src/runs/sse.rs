//! The events of a run as server-sent events.

use std::convert::Infallible;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _};
use haft_agent::run::RunEvent;
use serde_json::Value;

/// Streams events until `ended` completes; `first` are sent before them.
pub(crate) fn run_events(
    first: Vec<Event>,
    events: impl Stream<Item = RunEvent> + Send + 'static,
    ended: impl Future<Output = ()> + Send + 'static,
) -> Response {
    let first = futures_util::stream::iter(first);
    let events = first.chain(events.map(|event| run_event(&event))).take_until(ended);
    Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(KeepAlive::default()).into_response()
}

/// Returns one event: its type, its JSON, and the number of its step where there is one.
fn run_event(event: &RunEvent) -> Event {
    let data = serde_json::to_value(event).unwrap_or(Value::Null);
    let name = data.get("type").and_then(Value::as_str).unwrap_or("event").to_owned();
    let sent = Event::default().event(name).data(data.to_string());
    match event {
        RunEvent::Answer { step, .. } => sent.id(step.to_string()),
        _ => sent,
    }
}
