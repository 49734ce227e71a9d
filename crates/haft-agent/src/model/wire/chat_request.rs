//! The request of chat completions.

use haft_core::chat::MessageRole;
use serde_json::{Map, Value, json};

use super::format::Target;
use super::parts::{text_arguments, wire_id};
use crate::model::image::ImageSource;
use crate::model::provider::Provider;
use crate::model::request::{
    ContentPart, ModelMessage, ModelRequest, ToolChoice, ToolDefinition, join_texts,
};

/// Writes a request.
pub(super) fn body(provider: Provider, target: Target<'_>, request: &ModelRequest) -> Value {
    let mut messages = Vec::new();
    if let Some(system) = &request.system {
        messages.push(json!({"role": "system", "content": system}));
    }
    for message in &request.messages {
        write_message(message, &mut messages);
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(target.model));
    body.insert("messages".to_owned(), Value::Array(messages));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(write_tool).collect());
        body.insert("tool_choice".to_owned(), choice(&request.tool_choice));
    }
    if let Some(output) = &request.output_schema {
        let schema = json!({"name": output.name, "schema": output.schema, "strict": output.strict});
        body.insert("response_format".to_owned(), json!({"type": "json_schema", "json_schema": schema}));
    }
    if let Some(limit) = request.max_tokens {
        // OpenAI renamed it; other servers know only the old name.
        let key = if provider == Provider::OpenAiChat { "max_completion_tokens" } else { "max_tokens" };
        body.insert(key.to_owned(), json!(limit));
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(effort) = request.reasoning {
        body.insert("reasoning_effort".to_owned(), json!(effort.as_str()));
    }
    if target.streaming {
        body.insert("stream".to_owned(), Value::Bool(true));
        // Mistral always sends the usage, and rejects fields that it does not know.
        if provider != Provider::Mistral {
            body.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
    }
    Value::Object(body)
}

fn write_tool(tool: &ToolDefinition) -> Value {
    json!({
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
    })
}

fn choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
    }
}

fn write_message(message: &ModelMessage, out: &mut Vec<Value>) {
    match message.role {
        MessageRole::System => out.push(json!({"role": "system", "content": message.text()})),
        MessageRole::Assistant => out.push(write_assistant(message)),
        MessageRole::User | MessageRole::Tool => {
            let mut shown = Vec::new();
            for result in message.tool_results() {
                let id = wire_id(&result.id);
                out.push(json!({"role": "tool", "tool_call_id": id, "content": result.text}));
                // A result has only text here, so its images follow in a message of their own.
                shown.extend(result.images.iter().map(write_image));
            }
            write_user(message, shown, out);
        }
    }
}

fn write_user(message: &ModelMessage, mut parts: Vec<Value>, out: &mut Vec<Value>) {
    let has_images = message.content.iter().any(|part| matches!(part, ContentPart::Image { .. }));
    if !has_images && parts.is_empty() {
        let text = join_texts(&message.content);
        if !text.is_empty() || message.role == MessageRole::User {
            out.push(json!({"role": "user", "content": text}));
        }
        return;
    }
    parts.extend(message.content.iter().filter_map(|part| match part {
        ContentPart::Text { text } => Some(json!({"type": "text", "text": text})),
        ContentPart::Image { source } => Some(write_image(source)),
        ContentPart::ToolCall(_) | ContentPart::ToolResult(_) | ContentPart::Reasoning { .. } => None,
    }));
    out.push(json!({"role": "user", "content": parts}));
}

fn write_image(source: &ImageSource) -> Value {
    json!({"type": "image_url", "image_url": {"url": source.to_url()}})
}

fn write_assistant(message: &ModelMessage) -> Value {
    let calls: Vec<Value> = message
        .tool_calls()
        .map(|call| {
            let function = json!({"name": call.name, "arguments": text_arguments(&call.arguments)});
            json!({"id": wire_id(&call.id), "type": "function", "function": function})
        })
        .collect();
    let text = message.text();
    if calls.is_empty() {
        return json!({"role": "assistant", "content": text});
    }
    let content = if text.is_empty() { Value::Null } else { Value::String(text) };
    json!({"role": "assistant", "content": content, "tool_calls": calls})
}
