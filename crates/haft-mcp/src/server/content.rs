//! Writes the outcome of a call as an MCP result.

use haft_core::outcome::{CallError, Outcome};
use rmcp::model::{CallToolResult, ContentBlock, ProtocolVersion};
use serde_json::Value;

use crate::blocks::blocks;

/// Writes the outcome of a call: as text, and as structured content where the tool declares an object. `attachments` are
/// the content blocks of an upstream server: beside a value they are all of its content, beside an error the rest of it.
pub(super) fn result(outcome: Outcome, attachments: &[Value], declares_object: bool) -> CallToolResult {
    let has_value = outcome.is_ok();
    let mut result = match outcome {
        Ok(value) => success(value, declares_object),
        Err(error) => failure(&error),
    };
    let blocks = attachments.iter().filter_map(|block| serde_json::from_value(block.clone()).ok());
    let blocks: Vec<ContentBlock> = blocks.collect();
    if has_value && !blocks.is_empty() {
        result.content = blocks;
    } else {
        result.content.extend(blocks);
    }
    result
}

/// Writes a failed call. It is a result, not a protocol error, so that the model can read it and correct the call.
pub(super) fn failure(error: &CallError) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error.model_text())])
}

fn success(value: Value, declares_object: bool) -> CallToolResult {
    if let Some(blocks) = blocks(&value) {
        return CallToolResult::success(blocks);
    }
    let text = match &value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    if declares_object || value.is_object() {
        result.structured_content = Some(value);
    }
    result
}

/// Replaces content blocks that the version of the client lacks with text: links exist since 2025-06-18, audio since
/// 2025-03-26.
pub(super) fn for_version(mut result: CallToolResult, version: Option<&ProtocolVersion>) -> CallToolResult {
    let is_before = |other: &ProtocolVersion| version.is_some_and(|own| own.as_str() < other.as_str());
    for block in &mut result.content {
        let text = match block {
            ContentBlock::ResourceLink(link) if is_before(&ProtocolVersion::V_2025_06_18) => {
                format!("[{}]({})", link.name, link.uri)
            }
            ContentBlock::Audio(audio) if is_before(&ProtocolVersion::V_2025_03_26) => {
                format!("[audio of type {}]", audio.mime_type)
            }
            _ => continue,
        };
        *block = ContentBlock::text(text);
    }
    result
}

#[cfg(test)]
mod tests {
    use haft_core::outcome::ErrorCode;
    use serde_json::json;

    use super::*;

    fn check(outcome: Outcome, declared: bool, expected: &Value) {
        let mut written = serde_json::to_value(result(outcome, &[], declared)).unwrap();
        written.as_object_mut().unwrap().remove("resultType");
        assert_eq!(written, *expected);
    }

    #[test]
    fn values_are_content() {
        check(
            Ok(json!("hello")),
            false,
            &json!({"content": [{"type": "text", "text": "hello"}], "isError": false}),
        );
        check(
            Ok(json!({"sum": 5})),
            true,
            &json!({"content": [{"type": "text", "text": "{\"sum\":5}"}],
                   "structuredContent": {"sum": 5}, "isError": false}),
        );
        check(
            Ok(json!([1, 2])),
            false,
            &json!({"content": [{"type": "text", "text": "[1,2]"}], "isError": false}),
        );
        let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        check(
            Ok(json!([{"type": "text", "text": "see"}, image])),
            false,
            &json!({"content": [{"type": "text", "text": "see"}, image], "isError": false}),
        );
        check(
            Ok(json!({"type": "text", "text": "x", "id": 7})),
            false,
            &json!({"content": [{"type": "text", "text": "{\"type\":\"text\",\"text\":\"x\",\"id\":7}"}],
                   "structuredContent": {"type": "text", "text": "x", "id": 7}, "isError": false}),
        );
    }

    #[test]
    fn attachments_are_content() {
        let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        let attachments = [image.clone(), json!({"type": "unknown"})];
        let shown =
            |outcome: Outcome| serde_json::to_value(result(outcome, &attachments, true).content).unwrap();
        assert_eq!(shown(Ok(json!({"n": 1}))), json!([image]), "the value is structured content");
        let failed = CallError::new(ErrorCode::ExecutionFailed, "no");
        assert_eq!(shown(Err(failed)), json!([{"type": "text", "text": "Tool call failed: no"}, image]));
    }

    #[test]
    fn failures_are_results_for_the_model() {
        check(
            Err(CallError::new(ErrorCode::Network, "host db-7 refused").for_model("the service is down")),
            true,
            &json!({"content": [{"type": "text", "text": "Tool call failed: the service is down"}],
                   "isError": true}),
        );
    }
}
