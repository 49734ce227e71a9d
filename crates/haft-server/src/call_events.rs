//! The events of a call as a stream, from whatever node runs it.
//!
//! On the node that runs the call, events arrive as they happen. On another node they are read from the store, where
//! the running node puts them several times a second. Events are numbered, so that a client can continue after the last
//! one it has seen.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::Event;
use futures_util::Stream;
use futures_util::stream;
use haft_core::call::{CallRecord, CallStatus};
use haft_core::executor::CallEvent;
use haft_core::ledger::{CallQueue as _, NumberedEvent};
use haft_runtime::event_log::{LogEntry, LogReader};
use serde_json::{Value, json};

use crate::sse;
use haft_api::call::CallErrorView;
use haft_platform::Installation;

/// How often a call on another node is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Streams the events of a call after a number; the last event carries the outcome.
pub(crate) fn stream(
    app: Arc<Installation>,
    record: CallRecord,
    after: u64,
) -> impl Stream<Item = Event> + Send {
    let reader =
        Reader { app, record, after, announced: None, ready: VecDeque::new(), live: None, ended: false };
    stream::unfold(reader, async |mut reader| reader.next().await.map(|event| (event, reader)))
}

/// Reads the events of one call.
struct Reader {
    app: Arc<Installation>,
    record: CallRecord,
    /// The number of the last event that was sent.
    after: u64,
    /// The last status that was sent.
    announced: Option<CallStatus>,
    ready: VecDeque<NumberedEvent>,
    live: Option<LogReader<CallEvent>>,
    ended: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                if event.number <= self.after {
                    continue;
                }
                self.after = event.number;
                return Some(call_event(&event));
            }
            if self.ended {
                return None;
            }
            if self.announced != Some(self.record.status) {
                self.announced = Some(self.record.status);
                self.ended = self.record.status.is_final();
                return Some(status_event(&self.record));
            }
            self.wait().await?;
        }
    }

    /// Waits for further events or another status; `None` if the call is gone.
    async fn wait(&mut self) -> Option<()> {
        if let Some(live) = &mut self.live {
            let batch = live.read(usize::MAX).await;
            if batch.closed {
                self.live = None;
            }
            if batch.missed {
                // Missed events are in the store, as far as they are kept.
                self.read_stored().await;
            }
            let numbered = |LogEntry { number, event }| NumberedEvent { number, event };
            self.ready.extend(batch.entries.into_iter().map(numbered));
            return Some(());
        }
        let (tenant, id) = (self.record.tenant().clone(), self.record.id());
        if let Some(running) = self.app.pipeline().background().get(&tenant, id) {
            self.live = Some(running.events(self.after));
            self.record.status = CallStatus::Running;
            return Some(());
        }
        self.read_stored().await;
        if self.ready.is_empty() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        self.record = self.app.ledger().call(&tenant, id).await.ok().flatten()?;
        if self.record.status.is_final() {
            // What was written between the last look and the end.
            self.read_stored().await;
        }
        Some(())
    }

    async fn read_stored(&mut self) {
        let after = self.ready.back().map_or(self.after, |event| event.number);
        match self.app.store().calls().events(self.record.id(), after).await {
            Ok(events) => self.ready.extend(events),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot read the events of a call");
            }
        }
    }
}

fn call_event(event: &NumberedEvent) -> Event {
    let sent = match &event.event {
        CallEvent::Output(line) => sse::event("output", &json!({"line": line, "stream": "stderr"})),
        CallEvent::Printed(line) | CallEvent::Value(line) => {
            sse::event("output", &json!({"line": line, "stream": "stdout"}))
        }
        CallEvent::Progress(progress, message) => {
            sse::event("progress", &json!({"progress": progress, "message": message}))
        }
    };
    sent.id(event.number.to_string())
}

fn status_event(record: &CallRecord) -> Event {
    let mut data = json!({"status": record.status, "duration_ms": record.duration_ms});
    if !record.status.is_final() {
        return sse::event("status", &json!({"status": record.status}));
    }
    match (&record.error, data.as_object_mut()) {
        (Some(error), Some(map)) => {
            map.insert("error".to_owned(), json!(CallErrorView::from(error)));
        }
        (None, Some(map)) => {
            map.insert("value".to_owned(), record.value.clone().unwrap_or(Value::Null));
        }
        (_, None) => {}
    }
    if let (false, Some(map)) = (record.content.is_empty(), data.as_object_mut()) {
        map.insert("content".to_owned(), json!(record.content));
    }
    sse::event("status", &data)
}
