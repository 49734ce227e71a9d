//! What a model reads about a call that has ended. It is bounded, and has no values with sensitive names.

use std::fmt::Write as _;

use haft_core::call::CallStatus;
use haft_core::id::CallId;
use haft_core::large_result::ResultHandle;
use haft_core::outcome::{CallError, model_text};
use serde_json::Value;

use super::host::EndedCall;
use super::mask::mask_sensitive;

/// The maximum length of a result for the model, in characters: about 10,000 tokens.
const RESULT_TEXT_LIMIT: usize = 40_000;

/// Returns the text of a call that has ended.
pub(super) fn result_text(ended: &EndedCall) -> String {
    match &ended.error {
        Some(error) => error_text(error, ended.status),
        None => value_text(ended.value.as_ref().unwrap_or(&Value::Null), ended),
    }
}

/// Returns the text of a call that failed, and what the model should know before it repeats it.
pub(super) fn error_text(error: &CallError, status: CallStatus) -> String {
    let mut text = error.model_text();
    if status == CallStatus::Interrupted {
        text.push_str(". Whether it took effect is unknown: check before you repeat it.");
    }
    text
}

/// Returns the text of a call that nobody knows the error of.
pub(super) fn status_text(status: CallStatus) -> String {
    model_text(match status {
        CallStatus::Denied => "a person denied the call",
        CallStatus::Expired => "the approval expired; the call did not run",
        CallStatus::Cancelled => "the call was cancelled",
        CallStatus::Interrupted => {
            "the call was interrupted; whether it took effect is unknown: check before you repeat it"
        }
        _ => "no reason was recorded",
    })
}

fn value_text(value: &Value, ended: &EndedCall) -> String {
    if ended.status != CallStatus::Success {
        return status_text(ended.status);
    }
    let text = match value {
        Value::Null if ended.images.is_empty() => "(no output)".to_owned(),
        Value::Null => "(see the image)".to_owned(),
        Value::String(text) if text.is_empty() => "(no output)".to_owned(),
        Value::String(text) => text.clone(),
        other => {
            let mut shown = other.clone();
            mask_sensitive(&mut shown);
            shown.to_string()
        }
    };
    bounded(text, ended.call_id)
}

/// Cuts a text that is too long, and says how to use the rest.
fn bounded(mut text: String, call: Option<CallId>) -> String {
    let Some((at, _)) = text.char_indices().nth(RESULT_TEXT_LIMIT) else { return text };
    let left_out = text.get(at..).map_or(0, |rest| rest.chars().count());
    text.truncate(at);
    let _ = write!(text, "… [{left_out} more characters are not shown.");
    if let Some(call) = call {
        let handle = ResultHandle::whole(call);
        let note = format!(
            " Pass `{handle}` as an argument of another tool to hand on the whole result, or a part of it by a JSON pointer, such as `{handle}#/0`."
        );
        text.push_str(&note);
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use haft_core::outcome::ErrorCode;
    use haft_core::run::RunUsage;
    use serde_json::json;

    use super::*;

    fn ended(status: CallStatus, value: Option<Value>, error: Option<CallError>) -> EndedCall {
        let call_id = Some("018faf50-b7b6-7a01-9a05-a22a6e0af101".parse().unwrap());
        EndedCall { call_id, status, value, images: Vec::new(), error, usage: RunUsage::default() }
    }

    #[test]
    fn values_are_written_for_the_model() {
        for (value, expected) in [
            (json!("hi"), "hi"),
            (json!({"n": 1, "password": "x"}), r#"{"n":1,"password":"***"}"#),
            (json!(null), "(no output)"),
            (json!([1, 2]), "[1,2]"),
        ] {
            assert_eq!(result_text(&ended(CallStatus::Success, Some(value), None)), expected);
        }
        let long = result_text(&ended(CallStatus::Success, Some(json!("ä".repeat(50_000))), None));
        assert!(long.chars().count() < RESULT_TEXT_LIMIT + 400);
        assert!(long.contains("… [10000 more characters are not shown. Pass `$result:018faf50-"), "{long}");
    }

    #[test]
    fn failures_are_words() {
        let denied = CallError::new(ErrorCode::ApprovalDenied, "`boss` denied")
            .for_model("a person denied the call: no");
        assert_eq!(
            result_text(&ended(CallStatus::Denied, None, Some(denied))),
            "Tool call failed: a person denied the call: no"
        );
        let interrupted = CallError::new(ErrorCode::Interrupted, "the node stopped");
        assert!(
            result_text(&ended(CallStatus::Interrupted, None, Some(interrupted))).ends_with(
                "the node stopped. Whether it took effect is unknown: check before you repeat it."
            )
        );
        assert_eq!(
            result_text(&ended(CallStatus::Expired, None, None)),
            "Tool call failed: the approval expired; the call did not run"
        );
    }
}
