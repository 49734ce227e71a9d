//! The events of a run as server-sent events.

use axum::response::Response;
use axum::response::sse::Event;
use futures_util::{Stream, StreamExt as _};
use serde_json::Value;

use crate::sse;
use haft_platform::runs::NumberedEvent;
use haft_platform::stream_limit::StreamPermit;

/// Streams events until `ended` completes; `first` are sent before them.
pub(crate) fn run_events(
    first: Vec<Event>,
    events: impl Stream<Item = NumberedEvent> + Send + 'static,
    ended: impl Future<Output = ()> + Send + 'static,
    permit: StreamPermit,
) -> Response {
    let first = futures_util::stream::iter(first);
    sse::response(first.chain(events.map(|event| run_event(&event))), ended, permit)
}

/// Returns one event: its type, its JSON, and the number of the step that is complete with it.
fn run_event(NumberedEvent { event, step }: &NumberedEvent) -> Event {
    let data = serde_json::to_value(event).unwrap_or(Value::Null);
    let name = data.get("type").and_then(Value::as_str).unwrap_or("event");
    let sent = sse::event(name, &data);
    match step {
        Some(step) => sent.id(step.to_string()),
        None => sent,
    }
}

#[cfg(test)]
mod tests {
    use haft_agent::run::RunEvent;
    use haft_core::Timestamp;
    use haft_core::call::CallStatus;
    use haft_core::id::{ApprovalId, CallId, RunId};
    use haft_core::run::{RunStatus, RunUsage, StepError};
    use serde_json::json;
    use uuid::Uuid;

    #[test]
    fn clients_read_every_event() {
        let (run_id, approval_id, call_id) =
            (RunId(Uuid::nil()), ApprovalId(Uuid::nil()), CallId(Uuid::nil()));
        let text = || "text".to_owned();
        let error = || Some(StepError { code: text(), message: text() });
        let events = [
            RunEvent::Start { run_id, agent: text() },
            RunEvent::TextDelta { text: text() },
            RunEvent::ReasoningDelta { text: text() },
            RunEvent::Answer {
                step: 1,
                model: text(),
                text: text(),
                reasoning: text(),
                usage: RunUsage::default(),
            },
            RunEvent::ToolUse {
                answer: 1,
                index: 2,
                id: text(),
                name: text(),
                tool: Some(text()),
                args: json!({"a": 1}),
                status: CallStatus::Success,
                call_id: Some(call_id),
                output: Some(json!([1])),
                error: error(),
                duration_ms: Some(1.5),
            },
            RunEvent::ApprovalRequest {
                approval_id,
                call_id,
                id: text(),
                tool: text(),
                args: json!({}),
                expires_at: Some(Timestamp::UNIX_EPOCH),
            },
            RunEvent::ApprovalDecided { approval_id, call_id, approved: true },
            RunEvent::Shortened { results: 2, summarised: true },
            RunEvent::Correction { text: text() },
            RunEvent::End {
                run_id,
                status: RunStatus::Error,
                output: Some(json!("x")),
                error: error(),
                usage: RunUsage::default(),
            },
        ];
        for event in events {
            let sent = json!(event);
            assert!(haft_api::run_event::RunEvent::NAMES.contains(&sent["type"].as_str().unwrap()));
            let read: haft_api::run_event::RunEvent = serde_json::from_value(sent.clone()).unwrap();
            assert_eq!(json!(read), sent);
        }
    }
}
