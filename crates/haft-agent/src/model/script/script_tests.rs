//! Scripts.

use std::sync::Arc;

use futures_util::StreamExt;
use haft_core::chat::MessageRole;
use serde_json::json;

use super::{Script, Scripted};
use crate::model::{
    ContentPart, FinishReason, Model, ModelErrorKind, ModelEvent, ModelMessage, ModelRequest, ToolDefinition,
    ToolResult, collect, complete,
};

fn scripted(text: &str) -> Scripted {
    Scripted::new("s", Arc::new(Script::parse("s.yaml", text).unwrap()))
}

fn result(name: &str, text: &str) -> ModelMessage {
    let (id, name, text) = ("c".to_owned(), name.to_owned(), text.to_owned());
    ModelMessage::results([ToolResult { id, name, text, ..ToolResult::default() }])
}

#[tokio::test]
async fn a_conversation_with_a_tool() {
    let model = scripted(
        r#"
turns:
  - when: {user: 'weather in (?<city>\w+)'}
    reasoning: A tool knows.
    text: One moment.
    calls:
      - tool: weather
        arguments: {city: "{{match.city}}", days: 2, note: "for {{user}}"}
  - when: {tool: weather}
    text: "It is {{result.temperature}} degrees in {{results.weather.city}}."
    usage: {input: 10, output: 5, cached: 3}
  - text: What?
"#,
    );
    let mut request = ModelRequest::user("What is the Weather in Oslo?");
    let answer = complete(&model, &request).await.unwrap();
    assert_eq!(answer.model, "s");
    assert_eq!((answer.reasoning().as_str(), answer.text().as_str()), ("A tool knows.", "One moment."));
    assert_eq!(answer.finish, FinishReason::ToolCalls);
    let call = answer.tool_calls().next().unwrap().clone();
    assert_eq!((call.id.as_str(), call.name.as_str()), ("call_0_0", "weather"));
    assert_eq!(
        call.arguments,
        json!({"city": "Oslo", "days": 2, "note": "for What is the Weather in Oslo?"})
    );
    request.messages.push(answer.into_message());
    request.messages.push(result("weather", r#"{"temperature": -3, "city": "Oslo"}"#));
    let answer = complete(&model, &request).await.unwrap();
    assert_eq!(answer.text(), "It is -3 degrees in Oslo.");
    assert_eq!((answer.usage.input, answer.usage.cached, answer.finish), (10, 3, FinishReason::Stop));
    request.messages.push(answer.into_message());
    request.messages.push(ModelMessage::user("Thanks"));
    assert_eq!(complete(&model, &request).await.unwrap().text(), "What?");
}

#[tokio::test]
async fn turns_without_conditions_follow_each_other() {
    let model = scripted("turns: [{text: one}, {text: two, repeat: 2}, {text: last}]");
    let mut request = ModelRequest::user("go");
    let mut said = Vec::new();
    for _ in 0..6 {
        let answer = complete(&model, &request).await.unwrap();
        said.push(answer.text());
        request.messages.push(answer.into_message());
        request.messages.push(ModelMessage::user("next"));
    }
    assert_eq!(said, ["one", "two", "two", "last", "last", "last"]);
}

#[tokio::test]
async fn errors_end_what_was_said() {
    let model = scripted(
        "turns: [{when: {user: half}, text: Half an, error: broken_stream}, \
         {error: {kind: rate_limited, message: slow down, retry_after: 7s}}]",
    );
    let events: Vec<_> = model.stream(&ModelRequest::user("half")).collect().await;
    let texts: Vec<String> = events
        .iter()
        .map(|event| match event {
            Ok(ModelEvent::TextDelta { text }) => text.clone(),
            Ok(other) => format!("{other:?}"),
            Err(error) => error.to_string(),
        })
        .collect();
    assert_eq!(texts, ["Start { model: \"s\" }", "Half ", "an", "s: the answer was cut off"]);
    let error = collect(model.stream(&ModelRequest::user("x"))).await.unwrap_err();
    let wait = std::time::Duration::from_secs(7);
    assert_eq!(error.kind, ModelErrorKind::RateLimited { retry_after: Some(wait) });
    assert_eq!(error.to_string(), "s: the rate limit of the provider is exceeded; retry in 7s: slow down");
}

#[tokio::test]
async fn odd_answers_can_be_scripted() {
    let model = scripted(
        r#"
- when: {user: nothing}
  text: ""
- when: {user: broken}
  calls: [{tool: a, raw_arguments: '{"x": 1'}]
- when: {user: twins}
  calls: [{tool: a, id: same}, {tool: b, id: same}]
- when: {user: image}
  image: data:image/png;base64,AAAA
"#,
    );
    let answer = |text: &str| {
        let events = model.stream(&ModelRequest::user(text));
        async move { collect(events).await.unwrap() }
    };
    assert!(answer("nothing").await.is_empty());
    assert_eq!(answer("broken").await.tool_calls().next().unwrap().arguments, json!(r#"{"x": 1"#));
    let twins = answer("twins").await;
    let ids: Vec<_> = twins.tool_calls().map(|call| call.id.clone()).collect();
    assert_eq!(ids[0], "same");
    assert_ne!(ids[0], ids[1]);
    assert!(matches!(answer("image").await.content[..], [ContentPart::Image { .. }]));
    let error = collect(model.stream(&ModelRequest::user("else"))).await.unwrap_err();
    assert_eq!(error.to_string(), "s: no turn of the script matches: the last message is `else`");
}

#[tokio::test(start_paused = true)]
async fn delays_pass_before_words() {
    let model = scripted("turns: [{text: a b c, delay: 2s, pace: 100ms}]");
    let before = tokio::time::Instant::now();
    complete(&model, &ModelRequest::user("x")).await.unwrap();
    assert_eq!(before.elapsed(), std::time::Duration::from_millis(2300));
}

#[tokio::test]
async fn the_demo_works_without_a_key() {
    let model = Scripted::new("demo", Arc::new(Script::demo()));
    let mut request = ModelRequest::user("hello");
    assert!(complete(&model, &request).await.unwrap().text().starts_with("Hello! I am a scripted model"));
    request.messages = vec![ModelMessage::user("What time is it?")];
    // Without the tool there is no call.
    assert_eq!(complete(&model, &request).await.unwrap().finish, FinishReason::Stop);
    request.tools = vec![ToolDefinition {
        name: "datetime_utils".to_owned(),
        description: String::new(),
        input_schema: json!({}),
    }];
    let answer = complete(&model, &request).await.unwrap();
    assert_eq!(answer.tool_calls().next().unwrap().arguments, json!({"operation": "now", "timezone": "UTC"}));
    request.messages.push(answer.into_message());
    request.messages.push(result("datetime_utils", "2026-11-15T12:00:00Z"));
    let answer = complete(&model, &request).await.unwrap();
    assert_eq!(answer.text(), "The tool `datetime_utils` returned: 2026-11-15T12:00:00Z");
    assert_eq!(request.messages[1].role, MessageRole::Assistant);
}

#[test]
fn invalid_scripts_name_the_line_and_the_field() {
    let error = |text: &str| Script::parse("s.yaml", text).unwrap_err().to_string();
    let mut wrong = Vec::new();
    for (text, expected) in [
        ("turns: []", "s.yaml: line 1, column 1: `turns`: expected at least one turn"),
        ("hello", "s.yaml: expected a map with `turns`, found a string"),
        (
            "turns:\n  - text: a\n    cals: []\n",
            "s.yaml: line 3, column 5: `turns[0].cals`: unknown field; did you mean `calls`?",
        ),
        ("turns:\n  - calls: [{arguments: {}}]\n", "`turns[0].calls[0].tool`"),
        ("turns:\n  - when: {user: '('}\n    text: a\n", "`turns[0].when.user`: not a regular expression"),
        ("turns:\n  - text: '{{usr}}'\n", "`turns[0].text`"),
        ("turns:\n  - text: '${KEY}'\n", "a script has no secrets"),
        ("turns:\n  - text: a\n    repeat: 0\n", "`turns[0].repeat`: expected 1 to 10000"),
        ("turns:\n  - error: overload\n", "`turns[0].error`"),
        ("turns:\n  - delay: 1s\n", "an answer: `text`, `calls`, `image` or `error`"),
    ] {
        let message = error(text);
        if !message.contains(expected) {
            wrong.push((text, message));
        }
    }
    assert_eq!(wrong, []);
}
