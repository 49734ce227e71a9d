//! The request of OpenAI's Responses API.

use haft_core::chat::MessageRole;
use serde_json::{Map, Value, json};

use super::format::Target;
use super::parts::{own_proof, text_arguments, wire_id};
use crate::model::image::ImageSource;
use crate::model::name::is_openai_reasoning;
use crate::model::provider::Provider;
use crate::model::request::{ContentPart, ModelMessage, ModelRequest, ToolChoice, ToolResult};

/// Writes a request. The provider stores nothing: the whole conversation is sent each time.
pub(super) fn body(target: Target<'_>, request: &ModelRequest) -> Value {
    let mut input = Vec::new();
    for message in &request.messages {
        write_message(message, &mut input);
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(target.model));
    if let Some(system) = &request.system {
        body.insert("instructions".to_owned(), json!(system));
    }
    body.insert("input".to_owned(), Value::Array(input));
    body.insert("store".to_owned(), Value::Bool(false));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.input_schema,
                "strict": false,
            })
        });
        body.insert("tools".to_owned(), tools.collect());
        body.insert("tool_choice".to_owned(), choice(&request.tool_choice));
    }
    if let Some(output) = &request.output_schema {
        let format = json!({
            "type": "json_schema", "name": output.name, "schema": output.schema, "strict": output.strict,
        });
        body.insert("text".to_owned(), json!({ "format": format }));
    }
    if let Some(limit) = request.max_tokens {
        body.insert("max_output_tokens".to_owned(), json!(limit));
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if request.reasoning.is_some() || is_openai_reasoning(target.model) {
        let mut reasoning = json!({"summary": "auto"});
        if let (Some(effort), Some(map)) = (request.reasoning, reasoning.as_object_mut()) {
            map.insert("effort".to_owned(), json!(effort.as_str()));
        }
        body.insert("reasoning".to_owned(), reasoning);
        // What is not stored must be sent back, so that reasoning goes on after tool calls.
        body.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
    }
    if target.streaming {
        body.insert("stream".to_owned(), Value::Bool(true));
    }
    Value::Object(body)
}

fn choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => json!({"type": "function", "name": name}),
    }
}

fn write_message(message: &ModelMessage, input: &mut Vec<Value>) {
    let is_assistant = message.role == MessageRole::Assistant;
    let role = match message.role {
        MessageRole::Assistant => "assistant",
        MessageRole::System => "system",
        MessageRole::User | MessageRole::Tool => "user",
    };
    let mut content = Vec::new();
    for part in &message.content {
        match part {
            ContentPart::Text { text } if is_assistant => {
                content.push(json!({"type": "output_text", "text": text}));
            }
            ContentPart::Text { text } => content.push(json!({"type": "input_text", "text": text})),
            // The API takes no images of the model; it made them itself.
            ContentPart::Image { .. } if is_assistant => {}
            ContentPart::Image { source } => content.push(image(source)),
            ContentPart::ToolCall(_) | ContentPart::ToolResult(_) | ContentPart::Reasoning { .. } => {
                flush(role, &mut content, input);
                input.extend(item(part));
            }
        }
    }
    flush(role, &mut content, input);
}

fn flush(role: &str, content: &mut Vec<Value>, input: &mut Vec<Value>) {
    if !content.is_empty() {
        input.push(json!({"role": role, "content": std::mem::take(content)}));
    }
}

/// Writes a part that is an item of its own.
fn item(part: &ContentPart) -> Option<Value> {
    match part {
        ContentPart::ToolCall(call) => Some(json!({
            "type": "function_call",
            "call_id": wire_id(&call.id),
            "name": call.name,
            "arguments": text_arguments(&call.arguments),
        })),
        ContentPart::ToolResult(result) => Some(json!({
            "type": "function_call_output",
            "call_id": wire_id(&result.id),
            "output": output(result),
        })),
        ContentPart::Reasoning { text, proof } => {
            let proof = own_proof(proof.as_ref(), Provider::OpenAi)?;
            let summary = if text.is_empty() {
                Vec::new()
            } else {
                vec![json!({"type": "summary_text", "text": text})]
            };
            Some(json!({
                "type": "reasoning",
                "id": proof.id,
                "summary": summary,
                "encrypted_content": proof.data,
            }))
        }
        ContentPart::Text { .. } | ContentPart::Image { .. } => None,
    }
}

fn output(result: &ToolResult) -> Value {
    if result.images.is_empty() {
        return json!(result.text);
    }
    let text = json!({"type": "input_text", "text": result.text});
    std::iter::once(text).chain(result.images.iter().map(image)).collect()
}

fn image(source: &ImageSource) -> Value {
    json!({"type": "input_image", "image_url": source.to_url(), "detail": "auto"})
}
