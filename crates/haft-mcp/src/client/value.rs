//! A server's result as the outcome of a call.

use haft_core::outcome::{CallError, ErrorCode, Outcome};
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use serde_json::Value;

/// Makes the outcome of what a server answered.
pub(super) fn outcome(answer: CallToolResponse) -> Outcome {
    match answer {
        CallToolResponse::Complete(result) if result.is_error == Some(true) => {
            let text = text(&result.content);
            let message = if text.trim().is_empty() { "the tool gave no reason".to_owned() } else { text };
            Err(CallError::new(ErrorCode::ExecutionFailed, message))
        }
        CallToolResponse::Complete(result) => Ok(value(result)),
        CallToolResponse::InputRequired(_) => Err(CallError::new(
            ErrorCode::ExecutionFailed,
            "the MCP server asks for input from a person, which cannot be given here",
        )),
        _ => Err(CallError::new(
            ErrorCode::InvalidResponse,
            "the MCP server answered with a task, which was not asked for",
        )),
    }
}

/// The structured value where there is one; else the text, as JSON where it is a document; else the blocks.
fn value(result: CallToolResult) -> Value {
    if let Some(structured) = result.structured_content {
        return structured;
    }
    match result.content.as_slice() {
        [] => Value::Null,
        [ContentBlock::Text(only)] => {
            let text = only.text.trim();
            let document = text.starts_with(['{', '[']).then(|| serde_json::from_str(text).ok()).flatten();
            document.unwrap_or_else(|| Value::String(only.text.clone()))
        }
        blocks => serde_json::to_value(blocks).unwrap_or_default(),
    }
}

fn text(blocks: &[ContentBlock]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(result: Value, expected: Result<Value, &str>) {
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        let outcome = outcome(CallToolResponse::Complete(result));
        assert_eq!(outcome.map_err(|error| error.message), expected.map_err(str::to_owned));
    }

    #[test]
    fn results_become_values() {
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        check(text("plain"), Ok(json!("plain")));
        check(text("{\"a\": 1}"), Ok(json!({"a": 1})));
        check(text("12"), Ok(json!("12")));
        check(text("{broken"), Ok(json!("{broken")));
        check(json!({"content": []}), Ok(Value::Null));
        check(
            json!({"content": [{"type": "text", "text": "x"}], "structuredContent": {"x": 1}}),
            Ok(json!({"x": 1})),
        );
        let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        check(json!({"content": [image]}), Ok(json!([image])));
        check(json!({"content": [{"type": "text", "text": "no"}], "isError": true}), Err("no"));
        check(json!({"content": [], "isError": true}), Err("the tool gave no reason"));
    }
}
