//! The prompts.

use haft_server::{ExtensionError, ExtensionResult};
use serde_json::{Value, json};

use super::inputs::{form, input_required};
use super::{PNG, text};

/// Lists the prompts.
pub(crate) fn list() -> Value {
    let prompt = |name: &str, arguments: &[&str]| {
        let arguments: Vec<Value> = arguments
            .iter()
            .map(|name| json!({"name": name, "description": name, "required": true}))
            .collect();
        json!({"name": name, "description": format!("Test prompt: {name}"), "arguments": arguments})
    };
    json!({"prompts": [
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ]})
}

/// Returns a prompt.
pub(crate) fn get(params: &Value) -> ExtensionResult {
    let argument = |name: &str| {
        let value = params.get("arguments").and_then(|arguments| arguments.get(name)?.as_str());
        value.ok_or_else(|| ExtensionError::invalid_params(format!("missing required argument `{name}`")))
    };
    let text_block = |text: &str| json!({"type": "text", "text": text});
    let contents = match text(params, "name") {
        "test_simple_prompt" => vec![text_block("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1")?, argument("arg2")?);
            vec![text_block(&format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
        }
        "test_prompt_with_embedded_resource" => vec![
            json!({"type": "resource", "resource": {"uri": argument("resourceUri")?, "mimeType": "text/plain",
                "text": "Embedded resource content for testing."}}),
            text_block("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![
            json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
            text_block("Please analyze the image above."),
        ],
        "test_input_required_result_prompt" => {
            let context = params.pointer("/inputResponses/user_context/content/context");
            let Some(context) = context.and_then(Value::as_str) else {
                let requests =
                    json!({"user_context": form("What context should the prompt use?", "context")});
                return Ok(input_required(&requests, None));
            };
            vec![text_block(&format!("Prompt with context: {context}"))]
        }
        name => return Err(ExtensionError::invalid_params(format!("prompt `{name}` not found"))),
    };
    let messages: Vec<Value> =
        contents.into_iter().map(|content| json!({"role": "user", "content": content})).collect();
    Ok(json!({"messages": messages}))
}
