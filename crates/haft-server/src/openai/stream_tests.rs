//! From the events of a run to what clients read.

use haft_agent::run::RunEvent;
use haft_core::call::CallStatus;
use haft_core::id::{ApprovalId, CallId, RunId};
use haft_core::run::{RunStatus, RunUsage, StepError};
use serde_json::{Value, json};
use uuid::Uuid;

use super::answer::{AnswerReader, Piece, TextMode};
use super::chat_response::{ChunkWriter, CompletionHead, WholeCompletion};
use super::responses_response::ResponseHead;
use super::responses_stream::EventWriter;

fn run() -> RunId {
    RunId(Uuid::from_u128(1))
}

fn delta(text: &str) -> RunEvent {
    RunEvent::TextDelta { text: text.to_owned() }
}

fn answer(step: u32, text: &str) -> RunEvent {
    let (model, text, reasoning) = ("m".to_owned(), text.to_owned(), String::new());
    RunEvent::Answer { step, model, text, reasoning, usage: RunUsage::default() }
}

fn tool_use(status: CallStatus) -> RunEvent {
    RunEvent::ToolUse {
        answer: 1,
        index: 0,
        id: "c1".to_owned(),
        name: "look".to_owned(),
        tool: Some("user-created:look@1.0.0".to_owned()),
        args: json!({}),
        status,
        call_id: None,
        output: None,
        error: None,
        duration_ms: Some(1.5),
    }
}

fn end(status: RunStatus, output: Value) -> RunEvent {
    let usage = RunUsage { input_tokens: 7, output_tokens: 3, cached_tokens: 2, ..RunUsage::default() };
    let error = (status == RunStatus::Error)
        .then(|| StepError { code: "network".to_owned(), message: "the model is unreachable".to_owned() });
    RunEvent::End { run_id: run(), status, output: Some(output).filter(|o| !o.is_null()), error, usage }
}

/// A run with a tool call between two answers; the deltas of the first answer were missed in part.
fn events() -> Vec<RunEvent> {
    vec![
        RunEvent::Start { run_id: run(), agent: "assistant".to_owned() },
        RunEvent::ReasoningDelta { text: "Hm.".to_owned() },
        delta("Let me "),
        answer(1, "Let me look."),
        tool_use(CallStatus::Running),
        tool_use(CallStatus::Success),
        answer(3, "A cat."),
        // A watcher that joined again sees it twice.
        answer(3, "A cat."),
        end(RunStatus::Success, json!("A cat.")),
    ]
}

fn pieces(mode: TextMode, events: Vec<RunEvent>) -> Vec<Piece> {
    let mut reader = AnswerReader::new(mode);
    events.into_iter().flat_map(|event| reader.read(event)).collect()
}

fn head() -> CompletionHead {
    CompletionHead { run: run(), model: "assistant".to_owned(), created: 1_700_000_000 }
}

fn completion(mode: TextMode, events: Vec<RunEvent>) -> Value {
    let mut whole = WholeCompletion::default();
    let end = pieces(mode, events).into_iter().find_map(|piece| whole.add(piece)).unwrap();
    whole.body(&head(), &end)
}

#[test]
fn a_whole_completion_has_the_text_of_all_answers() {
    let body = completion(TextMode::Live, events());
    assert_eq!(
        body,
        json!({
            "id": "chatcmpl-00000000000000000000000000000001", "object": "chat.completion",
            "created": 1_700_000_000, "model": "assistant", "system_fingerprint": null,
            "choices": [{
                "index": 0, "logprobs": null, "finish_reason": "stop",
                "message": {
                    "role": "assistant", "content": "Let me look.\n\nA cat.", "refusal": null,
                    "reasoning_content": "Hm.",
                },
            }],
            "usage": {
                "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10,
                "prompt_tokens_details": {"cached_tokens": 2},
            },
            "x_haft": {"run_id": run(), "status": "success", "tool_calls": [{
                "id": "c1", "name": "look", "tool": "user-created:look@1.0.0", "status": "success",
                "call_id": null, "duration_ms": 1.5,
            }]},
        })
    );
}

#[test]
fn the_chunks_of_a_stream_have_the_same_text() {
    let mut writer = ChunkWriter::new(head(), true);
    let mut chunks = vec![writer.first()];
    for piece in pieces(TextMode::Live, events()) {
        chunks.extend(writer.write(piece));
    }
    let deltas: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    assert_eq!(deltas[0], &json!({"role": "assistant", "content": "", "refusal": null}));
    assert_eq!(deltas[1], &json!({"reasoning_content": "Hm."}));
    let text: String = deltas.iter().filter_map(|delta| delta["content"].as_str()).collect();
    assert_eq!(text, "Let me look.\n\nA cat.");
    let reasons: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["finish_reason"]).collect();
    assert_eq!(reasons[chunks.len() - 2], "stop");
    assert!(reasons[..chunks.len() - 2].iter().all(|reason| reason.is_null()));
    let last = chunks.last().unwrap();
    assert_eq!((&last["choices"], &last["usage"]["total_tokens"]), (&json!([]), &json!(10)));
}

#[test]
fn an_answer_with_a_schema_is_the_output_alone() {
    let mut events = events();
    *events.last_mut().unwrap() = end(RunStatus::Success, json!({"animal": "cat"}));
    let body = completion(TextMode::FinalOnly, events);
    assert_eq!(body["choices"][0]["message"]["content"], "{\"animal\":\"cat\"}");
}

#[test]
fn a_run_that_waits_explains_which_approval() {
    let (approval_id, call_id) = (ApprovalId(Uuid::from_u128(5)), CallId(Uuid::from_u128(6)));
    let body = completion(
        TextMode::FinalOnly,
        vec![
            answer(1, "Let me deploy."),
            RunEvent::ApprovalRequest {
                approval_id,
                call_id,
                id: "c1".to_owned(),
                tool: "user-created:deploy@1.0.0".to_owned(),
                args: json!({"to": "production"}),
                expires_at: None,
            },
            end(RunStatus::AwaitingApproval, Value::Null),
        ],
    );
    let text = body["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.contains("`user-created:deploy@1.0.0` needs approval"), "{text}");
    assert!(text.contains(&format!("POST /api/approvals/{approval_id}/approve")), "{text}");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["x_haft"]["approvals"][0]["approval_id"], json!(approval_id));
    assert_eq!(body["x_haft"]["status"], "awaiting_approval");
}

#[test]
fn a_refusal_is_no_content() {
    for reason in ["refusal", "content_filter"] {
        let mut whole = WholeCompletion::default();
        let events = vec![delta("I cannot"), end(RunStatus::Error, Value::Null)];
        let mut end = pieces(TextMode::Live, events).into_iter().find_map(|piece| whole.add(piece)).unwrap();
        reason.clone_into(&mut end.finish_reason);
        assert!(super::chat_response::failure(&end).is_none());
        let choice = &whole.body(&head(), &end)["choices"][0];
        assert_eq!(choice["finish_reason"], "content_filter");
        assert_eq!(choice["message"], json!({"role": "assistant", "content": null, "refusal": "I cannot"}));
    }
}

#[test]
fn a_failed_run_is_an_error_in_the_stream() {
    let mut writer = ChunkWriter::new(head(), false);
    let failed = vec![delta("Let"), end(RunStatus::Error, Value::Null)];
    let chunks: Vec<Value> =
        pieces(TextMode::Live, failed).into_iter().flat_map(|piece| writer.write(piece)).collect();
    assert_eq!(
        chunks.last().unwrap(),
        &json!({"error": {
            "message": "the model is unreachable", "type": "server_error", "param": null, "code": "network",
        }})
    );
}

fn response_events(mode: TextMode, events: Vec<RunEvent>) -> Vec<Value> {
    let mut writer = EventWriter::new(ResponseHead {
        run: run(),
        model: "assistant".to_owned(),
        created: 1_700_000_000,
        instructions: None,
        previous: None,
        metadata: json!({}),
        max_tokens: None,
        temperature: None,
        format: json!({"type": "text"}),
    });
    let mut written = writer.first();
    for piece in pieces(mode, events) {
        written.extend(writer.write(piece));
    }
    written
}

#[test]
fn the_events_of_a_response_come_in_order() {
    let written = response_events(TextMode::Live, events());
    let names: Vec<&str> = written.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.reasoning_text.delta",
            "response.reasoning_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let numbers: Vec<u64> = written.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..22).collect::<Vec<_>>());
    let response = &written.last().unwrap()["response"];
    let texts: Vec<&str> = response["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["content"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["Hm.", "Let me look.", "A cat."]);
    assert_eq!((&response["status"], &response["usage"]["total_tokens"]), (&json!("completed"), &json!(10)));
    let ids: Vec<&Value> = response["output"].as_array().unwrap().iter().map(|item| &item["id"]).collect();
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
}

#[test]
fn a_failed_response_says_why() {
    let written = response_events(TextMode::Live, vec![delta("Let"), end(RunStatus::Error, Value::Null)]);
    let last = written.last().unwrap();
    assert_eq!(last["type"], "response.failed");
    assert_eq!(last["response"]["status"], "failed");
    assert_eq!(last["response"]["error"], json!({"code": "network", "message": "the model is unreachable"}));
    // What was written before the end is kept.
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], "Let");
}
