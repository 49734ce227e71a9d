//! Estimates how much of the context window a conversation takes.

use haft_core::run::StepBody;
use haft_definition::export::estimate_tokens;
use serde_json::Value;

use super::host::BoundTool;
use crate::model::{ContentPart, ModelMessage};

/// The number of bytes of a token, on the low side for JSON.
const BYTES_PER_TOKEN: u64 = 4;
/// What the frame of a message or part takes.
const FRAME: u64 = 4;
/// What the words before a summary take.
const NOTE: u64 = 20;
/// What an image takes, about that of a large one.
pub(super) const IMAGE: u64 = 1500;

/// Estimates the tokens of a text. Counting bytes is enough: the limit has a margin, and a text may have megabytes.
pub(super) fn of_text(text: &str) -> u64 {
    text.len() as u64 / BYTES_PER_TOKEN
}

/// Estimates the tokens of messages.
pub(super) fn of_messages(messages: &[ModelMessage]) -> u64 {
    messages.iter().map(of_message).sum()
}

/// Estimates the tokens of a message.
pub(super) fn of_message(message: &ModelMessage) -> u64 {
    FRAME + message.content.iter().map(of_part).sum::<u64>()
}

fn of_part(part: &ContentPart) -> u64 {
    let size = match part {
        ContentPart::Text { text } => of_text(text),
        ContentPart::Image { .. } => IMAGE,
        ContentPart::ToolCall(call) => of_text(&call.name) + of_text(&call.arguments.to_string()),
        ContentPart::ToolResult(result) => of_text(&result.text) + IMAGE * result.images.len() as u64,
        ContentPart::Reasoning { text, proof } => {
            of_text(text) + proof.as_ref().map_or(0, |proof| of_text(&proof.data))
        }
    };
    FRAME + size
}

/// Estimates the tokens of the definitions of tools.
pub(super) fn of_tools(tools: &[BoundTool]) -> u64 {
    let of_tool = |tool: &BoundTool| {
        let definition = &tool.definition;
        FRAME
            + of_text(&definition.name)
            + of_text(&definition.description)
            + estimate_tokens(&definition.input_schema) as u64
    };
    tools.iter().map(of_tool).sum()
}

/// Returns an upper limit for the tokens that a step adds to the conversation, by the same measure.
pub(super) fn at_most(body: &StepBody) -> u64 {
    match body {
        // The names of the fields are longer than the frames.
        StepBody::Answer(answer) => {
            FRAME + of_text(&answer.content.to_string()) + IMAGE * images(&answer.content)
        }
        StepBody::Result(result) => 3 * FRAME + of_text(&result.text) + IMAGE * result.images.len() as u64,
        StepBody::Correction { text } => 2 * FRAME + of_text(text),
        StepBody::Shortened(shortened) => {
            2 * FRAME + shortened.summary.as_deref().map_or(0, |text| NOTE + of_text(text))
        }
        StepBody::Waiting(_) | StepBody::Decided(_) => 0,
    }
}

fn images(content: &Value) -> u64 {
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter(|part| part.get("type").is_some_and(|kind| kind == "image")).count() as u64
}

#[cfg(test)]
mod tests {
    use haft_core::run::{AnswerStep, RunStep, RunUsage};
    use serde_json::json;

    use super::*;
    use crate::run::transcript;

    #[test]
    fn the_upper_limit_of_a_step_is_not_below_its_estimate() {
        let answer = AnswerStep {
            model: "m".to_owned(),
            content: json!([
                {"type": "reasoning", "text": "a"},
                {"type": "text", "text": "b"},
                {"type": "image", "source": {"type": "url", "url": "u"}},
            ]),
            finish_reason: "stop".to_owned(),
            usage: RunUsage::default(),
        };
        for body in [StepBody::Answer(answer), StepBody::Correction { text: "no".to_owned() }] {
            let limit = at_most(&body);
            let step =
                RunStep { number: 1, body, started_at: haft_core::Timestamp::UNIX_EPOCH, duration_ms: 0.0 };
            let estimate = of_messages(&transcript(&[step]));
            assert!(estimate > 0 && limit >= estimate, "{limit} < {estimate}");
        }
    }
}
