//! Reads the result of a server as the outcome of a call.

use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::excerpt;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use serde_json::Value;

use crate::blocks::blocks;

/// How much of a structured error is shown, in characters.
const MAX_EXCERPT: usize = 500;

/// Returns the outcome of a response, and further content blocks as attachments.
pub(super) fn outcome(response: CallToolResponse) -> (Outcome, Vec<Value>) {
    match response {
        CallToolResponse::Complete(result) if result.is_error == Some(true) => failure(result),
        CallToolResponse::Complete(result) => {
            let (value, attachments) = value(result);
            (Ok(value), attachments)
        }
        CallToolResponse::InputRequired(_) => (
            Err(CallError::new(
                ErrorCode::ExecutionFailed,
                "the MCP server requested input from a person, which haft does not support",
            )),
            Vec::new(),
        ),
        _ => (
            Err(CallError::new(
                ErrorCode::InvalidResponse,
                "the MCP server returned a task, which was not requested",
            )),
            Vec::new(),
        ),
    }
}

/// Reads a failure: text is the message, the structured value the details, other blocks are attachments.
fn failure(result: CallToolResult) -> (Outcome, Vec<Value>) {
    let mut message = text(&result.content);
    if message.trim().is_empty() {
        message = match &result.structured_content {
            Some(structured) => excerpt(&structured.to_string(), MAX_EXCERPT),
            None => "the tool reported an error without a message".to_owned(),
        };
    }
    let mut error = CallError::new(ErrorCode::ExecutionFailed, message);
    error.details = result.structured_content.map(Box::new);
    let attachments = result.content.into_iter().filter(|block| !matches!(block, ContentBlock::Text(_)));
    (Err(error), to_values(attachments))
}

/// Reads a success: the structured value, or the text (parsed if it is a JSON document), or the blocks. All blocks
/// besides a structured value are attachments, unless they only repeat it.
fn value(result: CallToolResult) -> (Value, Vec<Value>) {
    if let Some(structured) = result.structured_content {
        let repeats = |block: &ContentBlock| match block {
            ContentBlock::Text(text) => {
                serde_json::from_str::<Value>(&text.text).is_ok_and(|value| value == structured)
            }
            _ => false,
        };
        let attachments = if result.content.iter().all(repeats) { Vec::new() } else { result.content };
        return (structured, to_values(attachments.into_iter()));
    }
    let value = match result.content.as_slice() {
        [] => Value::Null,
        [ContentBlock::Text(only)] => {
            let text = only.text.trim();
            let document = text.starts_with(['{', '[']).then(|| serde_json::from_str(text).ok()).flatten();
            // Text that looks like content blocks stays text, so that foreign data cannot become an image.
            let document = document.filter(|document| blocks(document).is_none());
            document.unwrap_or_else(|| Value::String(only.text.clone()))
        }
        blocks => serde_json::to_value(blocks).unwrap_or_default(),
    };
    (value, Vec::new())
}

fn to_values(blocks: impl Iterator<Item = ContentBlock>) -> Vec<Value> {
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
        check_attachments(result, expected, &json!([]));
    }

    fn check_attachments(result: Value, expected: Result<Value, &str>, expected_attachments: &Value) {
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        let (outcome, attachments) = outcome(CallToolResponse::Complete(result));
        assert_eq!(outcome.map_err(|error| error.message), expected.map_err(str::to_owned));
        assert_eq!(Value::Array(attachments), *expected_attachments);
    }

    #[test]
    fn results_become_values() {
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        check(text("plain"), Ok(json!("plain")));
        check(text("{\"a\": 1}"), Ok(json!({"a": 1})));
        check(text("12"), Ok(json!("12")));
        check(text("{broken"), Ok(json!("{broken")));
        check(json!({"content": []}), Ok(Value::Null));
        let caption = json!({"type": "text", "text": "see"});
        check_attachments(
            json!({"content": [caption], "structuredContent": {"x": 1}}),
            Ok(json!({"x": 1})),
            &json!([caption]),
        );
        check(
            json!({"content": [{"type": "text", "text": "{ \"x\": 1 }"}], "structuredContent": {"x": 1}}),
            Ok(json!({"x": 1})),
        );
        let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        check(json!({"content": [image]}), Ok(json!([image])));
        let both = json!({"content": [image], "structuredContent": {"n": 1}});
        check_attachments(both, Ok(json!({"n": 1})), &json!([image]));
        let repeated = json!({"type": "text", "text": "{\"n\": 1}"});
        let content = json!([repeated, image]);
        let both = json!({"content": content, "structuredContent": {"n": 1}});
        check_attachments(both, Ok(json!({"n": 1})), &content);
        check(text(&image.to_string()), Ok(json!(image.to_string())));
        check(text(&json!([image]).to_string()), Ok(json!(json!([image]).to_string())));
        check(json!({"content": [{"type": "text", "text": "no"}], "isError": true}), Err("no"));
        check(json!({"content": [], "isError": true}), Err("the tool reported an error without a message"));
        let failed = json!({"content": [image, caption], "structuredContent": {"n": 1}, "isError": true});
        check_attachments(failed.clone(), Err("see"), &json!([image]));
        let result: CallToolResult = serde_json::from_value(failed).unwrap();
        let (outcome, _) = outcome(CallToolResponse::Complete(result));
        assert_eq!(outcome.unwrap_err().details.as_deref(), Some(&json!({"n": 1})));
        let bare = json!({"content": [], "structuredContent": {"n": 1}, "isError": true});
        check(bare, Err("{\"n\":1}"));
    }
}
