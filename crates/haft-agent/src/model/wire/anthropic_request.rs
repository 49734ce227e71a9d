//! The request of Anthropic's Messages API.

use haft_core::chat::MessageRole;
use serde_json::{Map, Value, json};

use super::format::Target;
use super::parts::{object_arguments, own_proof, wire_id};
use crate::model::image::ImageSource;
use crate::model::provider::Provider;
use crate::model::request::{ContentPart, ModelMessage, ModelRequest, ToolChoice, ToolResult};

/// The maximum number of tokens if the request has none: the API requires one.
const DEFAULT_MAX_TOKENS: u32 = 8192;

/// Writes a request. With `caching`, the ends of the tools, the instructions and the conversation are marked for the
/// provider's cache.
pub(super) fn body(target: Target<'_>, request: &ModelRequest, caching: bool) -> Value {
    let mut messages = messages(&request.messages);
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(target.model));
    let mut limit = request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
    let mut output = Map::new();
    if let Some(effort) = request.reasoning {
        if thinks_by_budget(target.model) {
            let budget = effort.tokens();
            limit = limit.saturating_add(budget);
            body.insert("thinking".to_owned(), json!({"type": "enabled", "budget_tokens": budget}));
        } else {
            body.insert("thinking".to_owned(), json!({"type": "adaptive", "display": "summarized"}));
            output.insert("effort".to_owned(), json!(effort.as_str()));
        }
    }
    body.insert("max_tokens".to_owned(), json!(limit));
    if let Some(schema) = &request.output_schema {
        output.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema.schema}));
    }
    if !output.is_empty() {
        body.insert("output_config".to_owned(), Value::Object(output));
    }
    if let Some(system) = request.system.as_ref().filter(|system| !system.trim().is_empty()) {
        let mut block = json!({"type": "text", "text": system});
        mark(&mut block, caching);
        body.insert("system".to_owned(), json!([block]));
    }
    if !request.tools.is_empty() {
        let mut tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema})
            })
            .collect();
        if let Some(last) = tools.last_mut() {
            mark(last, caching);
        }
        body.insert("tools".to_owned(), Value::Array(tools));
        body.insert("tool_choice".to_owned(), choice(&request.tool_choice));
    }
    if let Some(last) = messages.last_mut().and_then(|message| message.1.last_mut()) {
        // Reasoning cannot be marked.
        let markable =
            last.get("type").and_then(Value::as_str).is_some_and(|kind| !kind.contains("thinking"));
        mark(last, caching && markable);
    }
    let messages = messages.into_iter().map(|(role, content)| json!({"role": role, "content": content}));
    body.insert("messages".to_owned(), messages.collect());
    if let Some(temperature) = request.temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if target.streaming {
        body.insert("stream".to_owned(), Value::Bool(true));
    }
    Value::Object(body)
}

/// Returns whether a model is older than adaptive reasoning.
fn thinks_by_budget(model: &str) -> bool {
    ["-3-", "-4-0", "-4-1", "-4-2025", "-4-5"].iter().any(|version| model.contains(version))
}

fn mark(block: &mut Value, caching: bool) {
    if let Some(block) = block.as_object_mut().filter(|_| caching) {
        block.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
    }
}

fn choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::None => json!({"type": "none"}),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Tool(name) => json!({"type": "tool", "name": name}),
    }
}

/// Writes the conversation. Messages of one side are joined: the API wants the sides to alternate.
fn messages(messages: &[ModelMessage]) -> Vec<(&'static str, Vec<Value>)> {
    let mut written: Vec<(&'static str, Vec<Value>)> = Vec::new();
    for message in messages {
        let role = if message.role == MessageRole::Assistant { "assistant" } else { "user" };
        // An empty text is an error.
        let blocks: Vec<Value> = message.content.iter().filter_map(block).collect();
        match written.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => written.push((role, blocks)),
        }
    }
    written
}

fn block(part: &ContentPart) -> Option<Value> {
    Some(match part {
        ContentPart::Text { text } if text.trim().is_empty() => return None,
        ContentPart::Text { text } => json!({"type": "text", "text": text}),
        ContentPart::Image { source } => image(source),
        ContentPart::ToolCall(call) => json!({
            "type": "tool_use",
            "id": wire_id(&call.id),
            "name": call.name,
            "input": object_arguments(&call.arguments),
        }),
        ContentPart::ToolResult(result) => tool_result(result),
        ContentPart::Reasoning { text, proof } => {
            // Without its own signature the API rejects reasoning.
            let proof = own_proof(proof.as_ref(), Provider::Anthropic)?;
            if proof.redacted {
                json!({"type": "redacted_thinking", "data": proof.data})
            } else {
                json!({"type": "thinking", "thinking": text, "signature": proof.data})
            }
        }
    })
}

fn image(source: &ImageSource) -> Value {
    let source = match source {
        ImageSource::Base64 { media_type, data } => {
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
        ImageSource::Url { url } => json!({"type": "url", "url": url}),
    };
    json!({"type": "image", "source": source})
}

fn tool_result(result: &ToolResult) -> Value {
    let mut content = Vec::new();
    if !result.text.is_empty() {
        content.push(json!({"type": "text", "text": result.text}));
    }
    content.extend(result.images.iter().map(image));
    let mut block = json!({"type": "tool_result", "tool_use_id": wire_id(&result.id), "content": content});
    if let Some(block) = block.as_object_mut().filter(|_| result.is_error) {
        block.insert("is_error".to_owned(), Value::Bool(true));
    }
    block
}
