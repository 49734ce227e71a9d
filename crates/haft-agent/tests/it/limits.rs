//! Answers that are too large, too many, or too slow.

use std::time::{Duration, Instant};

use haft_agent::model::{
    MAX_ARGUMENTS_BYTES, MAX_EVENT_BYTES, MAX_RESPONSE_BYTES, ModelErrorKind, Provider, Timeouts, collect,
};
use haft_testkit::upstream::{Upstream, read_head};
use tokio::io::AsyncWriteExt as _;

use crate::harness::{Canned, connected, play, request, settings};

async fn fail(provider: Provider, response: Canned) -> ModelErrorKind {
    play(provider, response).await.unwrap_err().kind
}

/// An event with pieces of tool calls.
fn call_event(calls: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{calls}]}}}}]}}\n\n")
}

#[tokio::test]
async fn ten_thousand_calls_are_refused() {
    let call = |index: usize| {
        format!(
            r#"{{"index":{index},"id":"c{index}","function":{{"name":"get_weather","arguments":"{{}}"}}}}"#
        )
    };
    let calls: Vec<String> = (0..10_000).map(call).collect();
    let one_event = call_event(&calls.join(","));
    assert_eq!(fail(Provider::OpenAiChat, Canned::stream(one_event)).await, ModelErrorKind::TooManyToolCalls);
    let many_events = calls.iter().map(|call| call_event(call)).collect::<Vec<_>>().concat();
    assert_eq!(
        fail(Provider::OpenAiChat, Canned::stream(many_events)).await,
        ModelErrorKind::TooManyToolCalls
    );
    let block = r#"{"type":"tool_use","id":"a","name":"b","input":{}}"#;
    let whole = format!(r#"{{"content":[{}],"stop_reason":"tool_use"}}"#, vec![block; 10_000].join(","));
    let response = Canned::new(200, "application/json", whole);
    assert_eq!(fail(Provider::Anthropic, response).await, ModelErrorKind::TooManyToolCalls);
}

#[tokio::test]
async fn huge_answers_are_refused() {
    let piece = "x".repeat(64 * 1024);
    let event = |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let endless = event(&piece).repeat(MAX_RESPONSE_BYTES / piece.len() + 2);
    let kind = fail(Provider::OpenAiChat, Canned::stream(endless)).await;
    assert_eq!(kind, ModelErrorKind::TooLarge { part: "response", limit: MAX_RESPONSE_BYTES });
    let large = event(&"x".repeat(MAX_EVENT_BYTES));
    let kind = fail(Provider::OpenAiChat, Canned::stream(large)).await;
    assert_eq!(kind, ModelErrorKind::TooLarge { part: "event of the answer", limit: MAX_EVENT_BYTES });
    let start = r#"{"index":0,"id":"c","function":{"name":"a","arguments":"{"}}"#;
    let more = format!(r#"{{"index":0,"function":{{"arguments":"{piece}"}}}}"#);
    let arguments = format!("{}{}", call_event(start), call_event(&more).repeat(20));
    let kind = fail(Provider::OpenAiChat, Canned::stream(arguments)).await;
    assert_eq!(
        kind,
        ModelErrorKind::TooLarge { part: "arguments of a tool call", limit: MAX_ARGUMENTS_BYTES }
    );
}

/// A server that sends a start and then nothing, or a comment again and again.
async fn slow(start: &'static str, again: &'static str) -> Upstream {
    Upstream::raw(move |mut stream| async move {
        read_head(&mut stream).await;
        if start.is_empty() {
            tokio::time::sleep(Duration::from_mins(1)).await;
            return;
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        let _ = stream.write_all(format!("{head}{start}").as_bytes()).await;
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if !again.is_empty() && stream.write_all(again.as_bytes()).await.is_err() {
                return;
            }
        }
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn stalls_end_within_their_limits() {
    let ms = Duration::from_millis;
    let timeouts = Timeouts { first_byte: ms(300), idle: ms(200), total: ms(900) };
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";
    for (start, again, expected) in [
        ("", "", ModelErrorKind::Stalled { limit: ms(300) }),
        (event, "", ModelErrorKind::Stalled { limit: ms(200) }),
        (event, ": ping\n\n", ModelErrorKind::Timeout { limit: ms(900) }),
    ] {
        let server = slow(start, again).await;
        let mut settings = settings(&server, Provider::Ollama);
        settings.timeouts = timeouts;
        let before = Instant::now();
        let error = collect(connected(&server, &settings).stream(&request())).await.unwrap_err();
        assert_eq!(error.kind, expected, "{error}");
        assert!(before.elapsed() < Duration::from_secs(5));
    }
}

/// The connection stays open after a complete answer without `[DONE]`.
#[tokio::test]
async fn silence_after_a_complete_answer_is_its_end() {
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let server = slow(event, "").await;
    let mut settings = settings(&server, Provider::Ollama);
    settings.timeouts.idle = Duration::from_millis(200);
    let answer = collect(connected(&server, &settings).stream(&request())).await.unwrap();
    assert_eq!(answer.text(), "Hi");
}
