//! The request of the Gemini API.

use haft_core::chat::MessageRole;
use serde_json::{Map, Value, json};

use super::parts::{inline_image, object_arguments, own_proof, wire_id};
use crate::model::error::Failure;
use crate::model::image::ImageSource;
use crate::model::provider::Provider;
use crate::model::request::{
    ContentPart, ModelMessage, ModelRequest, ReasoningProof, ToolChoice, ToolResult,
};

/// Writes a request. The model and the manner of the answer are in the path.
pub(super) fn body(request: &ModelRequest) -> Result<Value, Failure> {
    let mut body = Map::new();
    if let Some(system) = request.system.as_ref().filter(|system| !system.trim().is_empty()) {
        body.insert("systemInstruction".to_owned(), json!({"parts": [{"text": system}]}));
    }
    body.insert("contents".to_owned(), contents(&request.messages)?);
    if !request.tools.is_empty() {
        let functions: Value = request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "parametersJsonSchema": tool.input_schema,
                })
            })
            .collect();
        body.insert("tools".to_owned(), json!([{ "functionDeclarations": functions }]));
        let calling = json!({ "functionCallingConfig": choice(&request.tool_choice) });
        body.insert("toolConfig".to_owned(), calling);
    }
    let config = generation_config(request);
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(config));
    }
    Ok(Value::Object(body))
}

fn generation_config(request: &ModelRequest) -> Map<String, Value> {
    let mut config = Map::new();
    if let Some(limit) = request.max_tokens {
        config.insert("maxOutputTokens".to_owned(), json!(limit));
    }
    if let Some(temperature) = request.temperature {
        config.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(output) = &request.output_schema {
        config.insert("responseMimeType".to_owned(), json!("application/json"));
        config.insert("responseJsonSchema".to_owned(), output.schema.clone());
    }
    if let Some(effort) = request.reasoning {
        let thinking = json!({"includeThoughts": true, "thinkingBudget": effort.tokens()});
        config.insert("thinkingConfig".to_owned(), thinking);
    }
    config
}

fn choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    }
}

/// Writes the conversation. Messages of one side are joined.
fn contents(messages: &[ModelMessage]) -> Result<Value, Failure> {
    let mut written: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let role = if message.role == MessageRole::Assistant { "model" } else { "user" };
        let mut parts = Vec::new();
        for part in &message.content {
            write_part(part, &mut parts)?;
        }
        match written.last_mut() {
            _ if parts.is_empty() => {}
            Some((last, own)) if *last == role => own.extend(parts),
            _ => written.push((role, parts)),
        }
    }
    Ok(written.into_iter().map(|(role, parts)| json!({"role": role, "parts": parts})).collect())
}

fn write_part(part: &ContentPart, parts: &mut Vec<Value>) -> Result<(), Failure> {
    match part {
        ContentPart::Text { text } if text.is_empty() => {}
        ContentPart::Text { text } => parts.push(json!({ "text": text })),
        ContentPart::Image { source } => parts.push(image(source)?),
        ContentPart::ToolCall(call) => {
            let arguments = object_arguments(&call.arguments);
            let function = json!({"id": wire_id(&call.id), "name": call.name, "args": arguments});
            parts.push(signed(json!({ "functionCall": function }), call.proof.as_ref()));
        }
        ContentPart::ToolResult(result) => write_result(result, parts)?,
        ContentPart::Reasoning { text, proof } => {
            if let Some(proof) = own_proof(proof.as_ref(), Provider::Gemini) {
                parts.push(signed(json!({"text": text, "thought": true}), Some(proof)));
            }
        }
    }
    Ok(())
}

fn write_result(result: &ToolResult, parts: &mut Vec<Value>) -> Result<(), Failure> {
    let response = if result.is_error { json!({"error": result.text}) } else { response(&result.text) };
    parts.push(json!({
        "functionResponse": {"id": wire_id(&result.id), "name": result.name, "response": response},
    }));
    for source in &result.images {
        parts.push(image(source)?);
    }
    Ok(())
}

/// Returns the result of a tool as the object that the API requires.
fn response(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => object,
        Ok(value @ Value::Array(_)) => json!({ "result": value }),
        _ => json!({ "result": text }),
    }
}

fn image(source: &ImageSource) -> Result<Value, Failure> {
    let (media_type, data) = inline_image(source)?;
    Ok(json!({"inlineData": {"mimeType": media_type, "data": data}}))
}

/// Adds the signature that the provider gave to a part.
fn signed(mut part: Value, proof: Option<&ReasoningProof>) -> Value {
    if let (Some(proof), Some(map)) = (own_proof(proof, Provider::Gemini), part.as_object_mut()) {
        map.insert("thoughtSignature".to_owned(), json!(proof.data));
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_are_objects_are_sent_as_objects() {
        for (text, expected) in [
            (r#"{"temperature": 7}"#, json!({"temperature": 7})),
            ("[1, 2]", json!({"result": [1, 2]})),
            ("42", json!({"result": "42"})),
            ("{broken", json!({"result": "{broken"})),
        ] {
            assert_eq!(response(text), expected, "{text}");
        }
    }
}
