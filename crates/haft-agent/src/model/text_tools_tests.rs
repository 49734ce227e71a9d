//! Calls in text.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    ContentPart, FinishReason, MAX_TOOL_CALLS, ModelMessage, ModelRequest, Script, Scripted, TextTools,
    ToolCall, ToolDefinition, ToolResult, complete, find_text_calls, text_tools,
};

fn found(text: &str) -> (Vec<(String, Value)>, String) {
    let found = find_text_calls(text, ["weather", "search"]);
    (found.calls.into_iter().map(|call| (call.name, call.arguments)).collect(), found.text)
}

#[test]
fn calls_in_every_form() {
    let oslo = ("weather".to_owned(), json!({"city": "Oslo"}));
    for (text, rest) in [
        (r#"{"tool_name": "weather", "parameters": {"city": "Oslo"}}"#, ""),
        (r#"{"name": "weather", "arguments": {"city": "Oslo"}}"#, ""),
        (r#"{"name": "weather", "arguments": "{\"city\": \"Oslo\"}"}"#, ""),
        (r#"{"tool": "weather", "args": {"city": "Oslo"}}"#, ""),
        (r#"{"type": "function", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}"#, ""),
        (r#"{"tool_calls": [{"name": "weather", "arguments": {"city": "Oslo"}}]}"#, ""),
        (
            "Let me look.\n```json\n{\"tool_name\": \"weather\", \"parameters\": {\"city\": \"Oslo\"}}\n```\n",
            "Let me look.",
        ),
        ("```\n[{\"tool_name\": \"weather\", \"parameters\": {\"city\": \"Oslo\"}}]\n```", ""),
        ("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>", ""),
        (
            "First {a}, then {\"tool_name\": \"weather\", \"parameters\": {\"city\": \"Oslo\"}}",
            "First {a}, then",
        ),
    ] {
        assert_eq!(found(text), (vec![oslo.clone()], rest.to_owned()), "{text}");
    }
}

#[test]
fn other_text_stays() {
    for text in [
        "It is sunny.",
        r#"{"tool_name": "unknown", "parameters": {}}"#,
        r#"{"tool_result": {"tool_name": "weather", "result": "sunny"}}"#,
        r#"{"tool_name": "weather", "result": "sunny"}"#,
        r#"{"city": "Oslo"}"#,
        r#"{"tool_name": "weather", "parameters": {"city": "Os"#,
        "```json\n{\"a\": 1}\n```",
        "a [list] of {things}",
        "",
    ] {
        assert_eq!(found(text), (Vec::new(), text.to_owned()), "{text}");
    }
}

#[test]
fn two_calls_have_two_ids_and_ten_thousand_are_capped() {
    let one = r#"{"tool_name": "weather", "parameters": {}}"#;
    let two = find_text_calls(&format!("{one}\n{one}"), ["weather"]).calls;
    assert_eq!(two.len(), 2);
    assert_ne!(two[0].id, two[1].id);
    assert_eq!(find_text_calls(&one.repeat(10_000), ["weather"]).calls.len(), MAX_TOOL_CALLS);
    // Hostile texts do not take long.
    find_text_calls(&"[".repeat(1_000_000), ["weather"]);
    find_text_calls(&"{\"a\":".repeat(200_000), ["weather"]);
}

fn weather() -> ToolDefinition {
    ToolDefinition {
        name: "weather".to_owned(),
        description: "Current weather".to_owned(),
        input_schema: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
    }
}

#[test]
fn requests_carry_no_tools() {
    let call = ToolCall {
        id: "c1".to_owned(),
        name: "weather".to_owned(),
        arguments: json!({"city": "Oslo"}),
        proof: None,
    };
    let result = ToolResult {
        id: "c1".to_owned(),
        name: "weather".to_owned(),
        text: "sunny".to_owned(),
        ..ToolResult::default()
    };
    let mut request = ModelRequest::user("Weather?");
    request.system = Some("Be short.".to_owned());
    request.tools = vec![weather()];
    request.messages.push(ModelMessage {
        role: haft_core::chat::MessageRole::Assistant,
        content: vec![ContentPart::ToolCall(call)],
    });
    request.messages.push(ModelMessage::results([result]));
    let plain = text_tools::as_text(&request);
    assert_eq!(plain.tools, Vec::new());
    let system = plain.system.unwrap();
    assert!(system.starts_with("Be short.\n\nYou can call tools."), "{system}");
    assert!(system.contains("{\"name\":\"weather\",\"description\":\"Current weather\""), "{system}");
    let texts: Vec<String> = plain
        .messages
        .iter()
        .map(|message| format!("{}: {}", message.role.as_str(), message.text()))
        .collect();
    assert_eq!(
        texts,
        [
            "user: Weather?",
            r#"assistant: {"tool_name":"weather","parameters":{"city":"Oslo"}}"#,
            r#"user: {"tool_result":{"tool_name":"weather","call":"c1","result":"sunny"}}"#,
        ]
    );
}

#[tokio::test]
async fn answers_stream_until_a_call_starts() {
    let script = r#"
turns:
  - when: {user: call}
    text: 'Wait a moment. {"tool_name": "weather", "parameters": {"city": "Oslo"}}'
  - text: "A `code` answer, not ``` a call {nor} JSON."
"#;
    let script = Arc::new(Script::parse("s.yaml", script).unwrap());
    let model = TextTools::new(Arc::new(Scripted::new("s", script)));
    let mut request = ModelRequest::user("please call");
    request.tools = vec![weather()];
    let answer = complete(&model, &request).await.unwrap();
    assert_eq!((answer.text().trim(), answer.finish), ("Wait a moment.", FinishReason::ToolCalls));
    let calls: Vec<_> =
        answer.tool_calls().map(|call| (call.name.as_str(), call.arguments.clone())).collect();
    assert_eq!(calls, [("weather", json!({"city": "Oslo"}))]);

    request.messages = vec![ModelMessage::user("hello")];
    let answer = complete(&model, &request).await.unwrap();
    assert_eq!(answer.text(), "A `code` answer, not ``` a call {nor} JSON.");
    assert_eq!(answer.finish, FinishReason::Stop);
}
