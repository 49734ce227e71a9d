//! What clients send, and what is rejected with which field.

use haft_agent::model::ContentPart;
use haft_core::agent::{AgentDefinition, AgentModel};
use haft_core::name::AgentSlug;
use serde_json::{Value, json};

use super::chat_request::ChatRequest;
use super::error::OpenAiError;
use super::responses_request::ResponsesRequest;

fn chat(mut body: Value) -> Result<ChatRequest, OpenAiError> {
    if body.get("model").is_none() {
        body["model"] = json!("assistant");
    }
    ChatRequest::read(&body)
}

/// Returns the roles and texts of the messages.
fn shown(messages: &[haft_agent::model::ModelMessage]) -> Vec<String> {
    messages
        .iter()
        .map(|message| {
            let parts = message.content.iter().map(|part| match part {
                ContentPart::Text { text } => text.clone(),
                ContentPart::Image { source } => format!("image {}", source.to_url()),
                ContentPart::ToolCall(call) => format!("call {} {}", call.name, call.arguments),
                ContentPart::ToolResult(result) => format!("result {} {}", result.name, result.text),
                ContentPart::Reasoning { .. } => "reasoning".to_owned(),
            });
            format!("{}: {}", message.role.as_str(), parts.collect::<Vec<_>>().join(" | "))
        })
        .collect()
}

#[test]
fn a_conversation_with_every_kind_of_message_is_read() {
    let request = chat(json!({
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
            {"role": "user", "name": "ada", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0K", "detail": "low"}},
            ]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}},
                {"id": "c2", "type": "function", "function": {"name": "see", "arguments": ""}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "nothing"}]},
            {"role": "assistant", "content": ""},
            {"role": "assistant", "content": "A cat."},
            {"role": "user", "content": "Sure?"},
        ],
        "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.5, "max_tokens": 10,
        "n": 1, "tools": [], "tool_choice": null, "some_new_field": {"x": 1}, "seed": 4, "user": "ada",
    }))
    .unwrap();
    assert_eq!(
        shown(&request.messages),
        [
            "system: Be brief.",
            "user: What is this? | image data:image/png;base64,iVBORw0K",
            "assistant: call look {\"at\":1} | call see {}",
            "tool: result look a cat | result see nothing",
            "assistant: A cat.",
            "user: Sure?",
        ]
    );
    assert!(request.stream && request.include_usage);
    assert_eq!((request.overrides.temperature, request.overrides.max_tokens), (Some(0.5), Some(10)));
}

#[test]
fn wrong_fields_of_a_chat_completion_are_named() {
    let message = json!({"role": "user", "content": "x"});
    for (body, param, text) in [
        (json!({}), "messages", "missing required parameter"),
        (json!({"model": 1}), "model", "expected a string, not the number `1`"),
        (json!({"messages": "x"}), "messages", "expected an array, not the string `x`"),
        (json!({"messages": []}), "messages", "at least one message"),
        (json!({"messages": [1]}), "messages[0]", "expected an object"),
        (json!({"messages": [{"content": "x"}]}), "messages[0].role", "missing"),
        (json!({"messages": [{"role": "robot"}]}), "messages[0].role", "unknown role `robot`"),
        (json!({"messages": [{"role": "user"}]}), "messages[0].content", "missing"),
        (
            json!({"messages": [{"role": "user", "content": 1}]}),
            "messages[0].content",
            "a string or an array",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}),
            "messages[0].content[0].type",
            "`input_audio` are not supported",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "ftp://x"}}]}]}),
            "messages[0].content[0].image_url.url",
            "expected an `https` address",
        ),
        (
            json!({"messages": [message, {"role": "tool", "tool_call_id": "c9", "content": "x"}]}),
            "messages[1].tool_call_id",
            "no earlier message has a tool call with the id `c9`",
        ),
        (json!({"messages": [message], "stream": "yes"}), "stream", "expected a boolean"),
        (json!({"messages": [message], "n": 2}), "n", "one answer"),
        (json!({"messages": [message], "tools": [{"type": "function"}]}), "tools", "tools of the client"),
        (json!({"messages": [message], "functions": [{}]}), "functions", "tools of the client"),
        (json!({"messages": [message], "temperature": 3}), "temperature", "from 0 to 2"),
        (json!({"messages": [message], "max_tokens": 0}), "max_tokens", "above 0"),
        (json!({"messages": [message], "max_tokens": -1}), "max_tokens", "a whole number"),
        (
            json!({"messages": [message], "response_format": {"type": "xml"}}),
            "response_format.type",
            "unknown format",
        ),
        (
            json!({"messages": [message], "response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}),
            "response_format.json_schema.schema",
            "missing",
        ),
        (
            json!({"messages": [message], "response_format":
                {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "strin"}}}}),
            "response_format.json_schema.schema",
            "invalid JSON Schema",
        ),
    ] {
        let error = chat(body.clone()).unwrap_err();
        assert_eq!(error.param.as_deref(), Some(param), "{body}: {}", error.message);
        assert!(error.message.contains(text), "{body}: {}", error.message);
        assert_eq!(error.status, 400);
    }
    assert!(ChatRequest::read(&json!([])).unwrap_err().message.contains("must be a JSON object"));
}

#[test]
fn the_input_of_a_response_is_a_text_or_items() {
    let request = ResponsesRequest::read(&json!({
        "model": "assistant", "instructions": "Be brief.", "metadata": {"a": "b"},
        "previous_response_id": "resp_018faf50b7b67a019a05a22a6e0af101",
        "input": [
            {"role": "user", "content": "Hi"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "a cat"},
            {"role": "user", "content": [
                {"type": "input_text", "text": "And this?"},
                {"type": "input_image", "image_url": "https://example.com/a.png"},
            ]},
        ],
    }))
    .unwrap();
    assert_eq!(
        shown(&request.input),
        [
            "user: Hi",
            "assistant: Hello",
            "assistant: call look {}",
            "tool: result look a cat",
            "user: And this? | image https://example.com/a.png",
        ]
    );
    assert!(request.previous.is_some() && request.instructions.as_deref() == Some("Be brief."));
    let text = ResponsesRequest::read(&json!({"model": "a", "input": "Hi"})).unwrap();
    assert_eq!(shown(&text.input), ["user: Hi"]);
}

#[test]
fn wrong_fields_of_a_response_are_named() {
    for (mut body, param) in [
        (json!({}), "input"),
        (json!({"input": 1}), "input"),
        (json!({"input": []}), "input"),
        (json!({"input": [{"type": "item_reference", "id": "x"}]}), "input[0].type"),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}),
            "input[0].content[0].type",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}),
            "input[0].content[0].file_id",
        ),
        (json!({"input": "x", "tools": [{"type": "web_search"}]}), "tools"),
        (json!({"input": "x", "background": true}), "background"),
        (json!({"input": "x", "conversation": "conv_1"}), "conversation"),
        (json!({"input": "x", "previous_response_id": "resp_1"}), "previous_response_id"),
        (json!({"input": "x", "metadata": 1}), "metadata"),
        (json!({"input": "x", "text": {"format": {"type": "json_schema"}}}), "text.format.schema"),
    ] {
        body["model"] = json!("assistant");
        let error = ResponsesRequest::read(&body).unwrap_err();
        assert_eq!(error.param.as_deref(), Some(param), "{body}: {}", error.message);
    }
}

#[test]
fn what_the_agent_sets_comes_first() {
    let schema = json!({"type": "object", "required": ["a"]});
    let request = chat(json!({
        "messages": [{"role": "user", "content": "x"}], "temperature": 0.9, "max_completion_tokens": 100,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    }))
    .unwrap();
    let mut agent = AgentDefinition::new(AgentSlug::new("a").unwrap(), AgentModel::new("m"));
    let resolved = request.overrides.resolve(&agent).unwrap();
    assert_eq!((resolved.temperature, resolved.max_tokens), (Some(0.9), Some(100)));
    assert_eq!(resolved.output_schema, Some(schema.clone()));

    agent.model.temperature = Some(0.1);
    agent.model.max_tokens = Some(50);
    agent.output_schema = Some(schema);
    let resolved = request.overrides.resolve(&agent).unwrap();
    assert_eq!((resolved.temperature, resolved.max_tokens, resolved.output_schema), (None, Some(50), None));

    agent.output_schema = Some(json!({"type": "object"}));
    let error = request.overrides.resolve(&agent).unwrap_err();
    assert_eq!(error.param.as_deref(), Some("response_format.json_schema.schema"));
}
