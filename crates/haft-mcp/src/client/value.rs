//! A server's result as the outcome of a call.

use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::excerpt;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use serde_json::Value;

use crate::blocks::blocks;

/// How much of a structured value is shown where it is the only reason.
const SHOWN: usize = 500;

/// Makes the outcome of what a server answered, with what came beside it.
pub(super) fn outcome(answer: CallToolResponse) -> (Outcome, Vec<Value>) {
    match answer {
        CallToolResponse::Complete(result) if result.is_error == Some(true) => failure(result),
        CallToolResponse::Complete(result) => {
            let (value, beside) = value(result);
            (Ok(value), beside)
        }
        CallToolResponse::InputRequired(_) => (
            Err(CallError::new(
                ErrorCode::ExecutionFailed,
                "the MCP server asks for input from a person, which cannot be given here",
            )),
            Vec::new(),
        ),
        _ => (
            Err(CallError::new(
                ErrorCode::InvalidResponse,
                "the MCP server answered with a task, which was not asked for",
            )),
            Vec::new(),
        ),
    }
}

/// The texts say why; the structured value are the details, and all else is kept beside.
fn failure(result: CallToolResult) -> (Outcome, Vec<Value>) {
    let mut message = text(&result.content);
    if message.trim().is_empty() {
        message = match &result.structured_content {
            Some(structured) => excerpt(&structured.to_string(), SHOWN),
            None => "the tool gave no reason".to_owned(),
        };
    }
    let mut error = CallError::new(ErrorCode::ExecutionFailed, message);
    error.details = result.structured_content.map(Box::new);
    let beside = result.content.into_iter().filter(|block| !matches!(block, ContentBlock::Text(_)));
    (Err(error), written(beside))
}

/// The structured value where there is one; else the text, as JSON where it is a document; else the blocks. What a server
/// says beside a structured value is kept beside it, unless it is the same once more.
fn value(result: CallToolResult) -> (Value, Vec<Value>) {
    if let Some(structured) = result.structured_content {
        let repeats = |block: &ContentBlock| match block {
            ContentBlock::Text(text) => {
                serde_json::from_str::<Value>(&text.text).is_ok_and(|value| value == structured)
            }
            _ => false,
        };
        let beside = result.content.into_iter().filter(|block| !repeats(block)).collect::<Vec<_>>();
        return (structured, written(beside.into_iter()));
    }
    let value = match result.content.as_slice() {
        [] => Value::Null,
        [ContentBlock::Text(only)] => {
            let text = only.text.trim();
            let document = text.starts_with(['{', '[']).then(|| serde_json::from_str(text).ok()).flatten();
            // What only reads as blocks is a text that a tool came across, and must not become an image of ours.
            let document = document.filter(|document| blocks(document).is_none());
            document.unwrap_or_else(|| Value::String(only.text.clone()))
        }
        blocks => serde_json::to_value(blocks).unwrap_or_default(),
    };
    (value, Vec::new())
}

fn written(blocks: impl Iterator<Item = ContentBlock>) -> Vec<Value> {
    blocks.filter_map(|block| serde_json::to_value(block).ok()).collect()
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
        check_beside(result, expected, &json!([]));
    }

    fn check_beside(result: Value, expected: Result<Value, &str>, expected_beside: &Value) {
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        let (outcome, beside) = outcome(CallToolResponse::Complete(result));
        assert_eq!(outcome.map_err(|error| error.message), expected.map_err(str::to_owned));
        assert_eq!(Value::Array(beside), *expected_beside);
    }

    #[test]
    fn results_become_values() {
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        check(text("plain"), Ok(json!("plain")));
        check(text("{\"a\": 1}"), Ok(json!({"a": 1})));
        check(text("12"), Ok(json!("12")));
        check(text("{broken"), Ok(json!("{broken")));
        check(json!({"content": []}), Ok(Value::Null));
        let words = json!({"type": "text", "text": "see"});
        check_beside(
            json!({"content": [words], "structuredContent": {"x": 1}}),
            Ok(json!({"x": 1})),
            &json!([words]),
        );
        check(
            json!({"content": [{"type": "text", "text": "{ \"x\": 1 }"}], "structuredContent": {"x": 1}}),
            Ok(json!({"x": 1})),
        );
        let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        check(json!({"content": [image]}), Ok(json!([image])));
        let both = json!({"content": [image], "structuredContent": {"n": 1}});
        check_beside(both, Ok(json!({"n": 1})), &json!([image]));
        check(text(&image.to_string()), Ok(json!(image.to_string())));
        check(text(&json!([image]).to_string()), Ok(json!(json!([image]).to_string())));
        check(json!({"content": [{"type": "text", "text": "no"}], "isError": true}), Err("no"));
        check(json!({"content": [], "isError": true}), Err("the tool gave no reason"));
        let failed = json!({"content": [image, words], "structuredContent": {"n": 1}, "isError": true});
        check_beside(failed.clone(), Err("see"), &json!([image]));
        let result: CallToolResult = serde_json::from_value(failed).unwrap();
        let (outcome, _) = outcome(CallToolResponse::Complete(result));
        assert_eq!(outcome.unwrap_err().details.as_deref(), Some(&json!({"n": 1})));
        let bare = json!({"content": [], "structuredContent": {"n": 1}, "isError": true});
        check(bare, Err("{\"n\":1}"));
    }
}
