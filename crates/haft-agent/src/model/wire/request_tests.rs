//! One conversation with everything in it, in the request of every format.

use haft_core::chat::MessageRole;
use serde_json::{Value, json};

use super::{Anthropic, Chat, Gemini, Responses, Target, Wire};
use crate::model::provider::Provider;
use crate::model::{
    ContentPart, ImageSource, ModelMessage, ModelRequest, OutputSchema, ReasoningEffort, ReasoningProof,
    ToolCall, ToolChoice, ToolDefinition, ToolResult,
};

fn image() -> ImageSource {
    ImageSource::Base64 { media_type: "image/png".to_owned(), data: "AAAA".to_owned() }
}

/// Reasoning, tool calls and results whose proofs `provider` issued.
fn conversation(provider: Provider) -> ModelRequest {
    let proof = |data: &str| {
        Some(ReasoningProof { provider, id: Some("rs_1".to_owned()), data: data.to_owned(), redacted: false })
    };
    let call = |id: &str, arguments: Value| {
        ContentPart::ToolCall(ToolCall {
            id: id.to_owned(),
            name: "look".to_owned(),
            arguments,
            proof: proof("call-proof"),
        })
    };
    let result = |id: &str, text: &str, images: Vec<ImageSource>, is_error: bool| ToolResult {
        id: id.to_owned(),
        name: "look".to_owned(),
        text: text.to_owned(),
        images,
        is_error,
    };
    let text = |text: &str| ContentPart::Text { text: text.to_owned() };
    ModelRequest {
        system: Some("Be short.".to_owned()),
        messages: vec![
            ModelMessage {
                role: MessageRole::User,
                content: vec![text("What is this?"), ContentPart::Image { source: image() }],
            },
            ModelMessage {
                role: MessageRole::Assistant,
                content: vec![
                    ContentPart::Reasoning { text: "Hm.".to_owned(), proof: proof("proof") },
                    text("Let me look."),
                    call("c1", json!({"n": 1})),
                    call("c2", json!("{broken")),
                ],
            },
            ModelMessage::results([
                result("c1", "a dot", vec![image()], false),
                result("c2", "invalid arguments", Vec::new(), true),
            ]),
            ModelMessage::new(MessageRole::System, "The conversation was shortened."),
            ModelMessage::user("And now?"),
        ],
        tools: vec![ToolDefinition {
            name: "look".to_owned(),
            description: "Looks".to_owned(),
            input_schema: json!({"type": "object"}),
        }],
        tool_choice: ToolChoice::Tool("look".to_owned()),
        output_schema: Some(OutputSchema {
            name: "answer".to_owned(),
            schema: json!({"type": "object"}),
            strict: true,
        }),
        max_tokens: Some(1000),
        temperature: Some(0.25),
        reasoning: Some(ReasoningEffort::Low),
    }
}

fn body(wire: &dyn Wire, provider: Provider) -> Value {
    let target = Target { model: "m-5", streaming: true };
    wire.body(target, &conversation(provider)).unwrap()
}

#[test]
fn chat_completions() {
    let function = |arguments: &str| json!({"name": "look", "arguments": arguments});
    assert_eq!(
        body(&Chat { provider: Provider::OpenAiChat }, Provider::OpenAiChat),
        json!({
            "model": "m-5",
            "messages": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                ]},
                {"role": "assistant", "content": "Let me look.", "tool_calls": [
                    {"id": "c1", "type": "function", "function": function("{\"n\":1}")},
                    {"id": "c2", "type": "function", "function": function("{\"invalid_arguments\":\"{broken\"}")},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "a dot"},
                {"role": "tool", "tool_call_id": "c2", "content": "invalid arguments"},
                {"role": "user", "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                ]},
                {"role": "system", "content": "The conversation was shortened."},
                {"role": "user", "content": "And now?"},
            ],
            "tools": [{
                "type": "function",
                "function": {"name": "look", "description": "Looks", "parameters": {"type": "object"}},
            }],
            "tool_choice": {"type": "function", "function": {"name": "look"}},
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": true},
            },
            "max_completion_tokens": 1000,
            "temperature": 0.25,
            "reasoning_effort": "low",
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
}

#[test]
fn responses() {
    assert_eq!(
        body(&Responses, Provider::OpenAi),
        json!({
            "model": "m-5",
            "instructions": "Be short.",
            "input": [
                {"role": "user", "content": [
                    {"type": "input_text", "text": "What is this?"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
                ]},
                {
                    "type": "reasoning",
                    "id": "rs_1",
                    "summary": [{"type": "summary_text", "text": "Hm."}],
                    "encrypted_content": "proof",
                },
                {"role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
                {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{\"n\":1}"},
                {
                    "type": "function_call",
                    "call_id": "c2",
                    "name": "look",
                    "arguments": "{\"invalid_arguments\":\"{broken\"}",
                },
                {"type": "function_call_output", "call_id": "c1", "output": [
                    {"type": "input_text", "text": "a dot"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
                ]},
                {"type": "function_call_output", "call_id": "c2", "output": "invalid arguments"},
                {"role": "system", "content": [
                    {"type": "input_text", "text": "The conversation was shortened."},
                ]},
                {"role": "user", "content": [{"type": "input_text", "text": "And now?"}]},
            ],
            "store": false,
            "tools": [{
                "type": "function",
                "name": "look",
                "description": "Looks",
                "parameters": {"type": "object"},
                "strict": false,
            }],
            "tool_choice": {"type": "function", "name": "look"},
            "text": {
                "format": {
                    "type": "json_schema", "name": "answer", "schema": {"type": "object"}, "strict": true,
                },
            },
            "max_output_tokens": 1000,
            "temperature": 0.25,
            "reasoning": {"summary": "auto", "effort": "low"},
            "include": ["reasoning.encrypted_content"],
            "stream": true,
        })
    );
}

#[test]
fn messages_with_marks_for_the_cache() {
    let mark = json!({"type": "ephemeral"});
    let image = json!({
        "type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
    });
    let expected = json!({
        "model": "m-5",
        "thinking": {"type": "adaptive", "display": "summarized"},
        "max_tokens": 1000,
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        "system": [{"type": "text", "text": "Be short.", "cache_control": mark}],
        "tools": [{
            "name": "look", "description": "Looks", "input_schema": {"type": "object"}, "cache_control": mark,
        }],
        "tool_choice": {"type": "tool", "name": "look"},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "proof"},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"n": 1}},
                {"type": "tool_use", "id": "c2", "name": "look", "input": {"invalid_arguments": "{broken"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [
                    {"type": "text", "text": "a dot"}, image,
                ]},
                {
                    "type": "tool_result",
                    "tool_use_id": "c2",
                    "content": [{"type": "text", "text": "invalid arguments"}],
                    "is_error": true,
                },
                {"type": "text", "text": "The conversation was shortened."},
                {"type": "text", "text": "And now?", "cache_control": mark},
            ]},
        ],
        "temperature": 0.25,
        "stream": true,
    });
    assert_eq!(body(&Anthropic { caching: true }, Provider::Anthropic), expected);
    let unmarked = body(&Anthropic { caching: false }, Provider::Anthropic).to_string();
    assert!(!unmarked.contains("cache_control"));
    let older = Target { model: "claude-sonnet-4-5", streaming: true };
    let older = Anthropic { caching: true }.body(older, &conversation(Provider::Anthropic)).unwrap();
    assert_eq!(older["thinking"], json!({"type": "enabled", "budget_tokens": 2048}));
    assert_eq!(older["max_tokens"], 3048);
}

#[test]
fn gemini() {
    let image = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
    assert_eq!(
        body(&Gemini, Provider::Gemini),
        json!({
            "systemInstruction": {"parts": [{"text": "Be short."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "What is this?"}, image]},
                {"role": "model", "parts": [
                    {"text": "Hm.", "thought": true, "thoughtSignature": "proof"},
                    {"text": "Let me look."},
                    {
                        "functionCall": {"id": "c1", "name": "look", "args": {"n": 1}},
                        "thoughtSignature": "call-proof",
                    },
                    {
                        "functionCall": {
                            "id": "c2", "name": "look", "args": {"invalid_arguments": "{broken"},
                        },
                        "thoughtSignature": "call-proof",
                    },
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "c1", "name": "look", "response": {"result": "a dot"}}},
                    image,
                    {"functionResponse": {
                        "id": "c2", "name": "look", "response": {"error": "invalid arguments"},
                    }},
                    {"text": "The conversation was shortened."},
                    {"text": "And now?"},
                ]},
            ],
            "tools": [{"functionDeclarations": [{
                "name": "look", "description": "Looks", "parametersJsonSchema": {"type": "object"},
            }]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}},
            "generationConfig": {
                "maxOutputTokens": 1000,
                "temperature": 0.25,
                "responseMimeType": "application/json",
                "responseJsonSchema": {"type": "object"},
                "thinkingConfig": {"includeThoughts": true, "thinkingBudget": 2048},
            },
        })
    );
}

/// Proofs go only to the provider that issued them.
#[test]
fn foreign_proofs_are_left_out() {
    let wires: [(Provider, Box<dyn Wire>); 3] = [
        (Provider::OpenAi, Box::new(Responses)),
        (Provider::Anthropic, Box::new(Anthropic { caching: true })),
        (Provider::Gemini, Box::new(Gemini)),
    ];
    for (provider, wire) in &wires {
        for issuer in [Provider::OpenAi, Provider::Anthropic, Provider::Gemini] {
            let has_proof = body(wire.as_ref(), issuer).to_string().contains("\"proof\"");
            assert_eq!(has_proof, issuer == *provider, "{provider} {issuer}");
        }
    }
}

#[test]
fn ids_of_one_provider_are_accepted_by_another() {
    let long = "x".repeat(300);
    for id in ["toolu_01", "call 1", "functions.look:0", "", long.as_str()] {
        let mut request = conversation(Provider::OpenAi);
        request.messages.truncate(3);
        for part in request.messages.iter_mut().flat_map(|message| &mut message.content) {
            match part {
                ContentPart::ToolCall(call) => id.clone_into(&mut call.id),
                ContentPart::ToolResult(result) => id.clone_into(&mut result.id),
                _ => {}
            }
        }
        let target = Target { model: "m", streaming: true };
        let body = Anthropic { caching: false }.body(target, &request).unwrap();
        let call = body["messages"][1]["content"][1]["id"].as_str().unwrap().to_owned();
        assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], call.as_str());
        assert!(!call.is_empty() && call.len() <= 40, "{call}");
        assert!(call.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{call}");
    }
}

#[test]
fn gemini_fetches_no_images() {
    let mut request = ModelRequest::user("x");
    let source = ImageSource::Url { url: "https://example.com/a.png".to_owned() };
    request.messages[0].content.push(ContentPart::Image { source });
    let failure = Gemini.body(Target { model: "m", streaming: true }, &request).unwrap_err();
    assert_eq!(failure.kind.as_str(), "unsupported");
}
