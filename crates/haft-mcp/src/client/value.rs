//! A server's result as the outcome of a call.

use haft_core::outcome::{CallError, ErrorCode, Outcome};
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use serde_json::Value;

use crate::blocks::blocks;

/// Makes the outcome of what a server answered; a tool that declares its values has no others.
pub(super) fn outcome(answer: CallToolResponse, declares: bool) -> Outcome {
    match answer {
        CallToolResponse::Complete(result) if result.is_error == Some(true) => {
            let text = text(&result.content);
            let message = if text.trim().is_empty() { "the tool gave no reason".to_owned() } else { text };
            Err(CallError::new(ErrorCode::ExecutionFailed, message))
        }
        CallToolResponse::Complete(result) => Ok(value(result, declares)),
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

/// The structured value where there is one; else the text, as JSON where it is a document; else the blocks. Images and
/// files beside a structured value are kept, with that as a text, where the tool does not declare what it returns.
fn value(result: CallToolResult, declares: bool) -> Value {
    if let Some(structured) = result.structured_content {
        let is_text = |block: &ContentBlock| matches!(block, ContentBlock::Text(_));
        if declares || result.content.iter().all(is_text) {
            return structured;
        }
        let mut blocks = result.content;
        if !blocks.iter().any(is_text) {
            blocks.insert(0, ContentBlock::text(structured.to_string()));
        }
        return serde_json::to_value(blocks).unwrap_or_default();
    }
    match result.content.as_slice() {
        [] => Value::Null,
        [ContentBlock::Text(only)] => {
            let text = only.text.trim();
            let document = text.starts_with(['{', '[']).then(|| serde_json::from_str(text).ok()).flatten();
            // What only reads as blocks is a text that a tool came across, and must not become an image of ours.
            let document = document.filter(|document| blocks(document).is_none());
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
        check_declared(false, result, expected);
    }

    fn check_declared(declares: bool, result: Value, expected: Result<Value, &str>) {
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        let outcome = outcome(CallToolResponse::Complete(result), declares);
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
        let both = json!({"content": [image], "structuredContent": {"n": 1}});
        check(both.clone(), Ok(json!([{"type": "text", "text": "{\"n\":1}"}, image])));
        check_declared(true, both, Ok(json!({"n": 1})));
        check(text(&image.to_string()), Ok(json!(image.to_string())));
        check(text(&json!([image]).to_string()), Ok(json!(json!([image]).to_string())));
        check(json!({"content": [{"type": "text", "text": "no"}], "isError": true}), Err("no"));
        check(json!({"content": [], "isError": true}), Err("the tool gave no reason"));
    }
}
