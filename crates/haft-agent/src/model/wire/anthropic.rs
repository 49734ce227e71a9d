//! Anthropic's Messages API.

use haft_core::secret::Secret;
use serde_json::Value;

use super::anthropic_request;
use super::format::{Decoder, Target, Wire};
use super::parts::{count, list, parse_event, text};
use crate::model::answer::Answer;
use crate::model::error::{Failure, ModelErrorKind};
use crate::model::event::{FinishReason, Usage};
use crate::model::provider::Provider;
use crate::model::provider_error;
use crate::model::request::{ModelRequest, ReasoningProof};
use crate::model::sse::SseEvent;

/// The version of the API.
const VERSION: &str = "2023-06-01";

/// The Messages API.
pub(in crate::model) struct Anthropic {
    /// Whether the request is marked for the cache.
    pub(in crate::model) caching: bool,
}

impl Wire for Anthropic {
    fn path(&self, _target: Target<'_>) -> String {
        "messages".to_owned()
    }

    fn headers(&self, key: Option<&Secret>) -> Vec<(&'static str, Secret)> {
        let mut headers = vec![("anthropic-version", Secret::new(VERSION.to_owned()))];
        headers.extend(key.map(|key| ("x-api-key", key.clone())));
        headers
    }

    fn body(&self, target: Target<'_>, request: &ModelRequest) -> Result<Value, Failure> {
        Ok(anthropic_request::body(target, request, self.caching))
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(MessagesDecoder::default())
    }
}

#[derive(Default)]
struct MessagesDecoder {
    /// The kind of the open block.
    block: Block,
}

/// An open block of content.
#[derive(Default)]
enum Block {
    #[default]
    Other,
    Thinking {
        signature: String,
    },
    ToolUse,
}

impl Decoder for MessagesDecoder {
    fn event(&mut self, event: &SseEvent, answer: &mut Answer) -> Result<(), Failure> {
        let data = parse_event(&event.data)?;
        let key = count(&data, &["index"]);
        match text(&data, "type").unwrap_or(&event.name) {
            "message_start" => {
                let usage = data.get("message").and_then(|message| message.get("usage"));
                add_usage(usage, answer);
                Ok(())
            }
            "content_block_start" => {
                self.block_start(key, data.get("content_block").unwrap_or(&Value::Null), answer)
            }
            "content_block_delta" => self.block_delta(key, data.get("delta").unwrap_or(&Value::Null), answer),
            "content_block_stop" => self.block_stop(key, answer),
            "message_delta" => {
                let delta = data.get("delta").unwrap_or(&Value::Null);
                set_reason(delta, answer);
                add_usage(data.get("usage"), answer);
                Ok(())
            }
            "message_stop" => answer.finish(),
            "error" => Err(provider_error::from_event(&data)),
            // `ping`, and events that a later version adds.
            _ => Ok(()),
        }
    }

    fn whole(&mut self, body: &Value, answer: &mut Answer) -> Result<(), Failure> {
        if text(body, "type") == Some("error") {
            return Err(provider_error::from_event(body));
        }
        if !body.get("content").is_some_and(Value::is_array) {
            return Err(Failure::invalid("no `content`"));
        }
        for (key, block) in (0_u64..).zip(list(body, "content")) {
            self.block_start(key, block, answer)?;
            self.block_stop(key, answer)?;
        }
        add_usage(body.get("usage"), answer);
        set_reason(body, answer);
        answer.finish()
    }

    fn end(&mut self, answer: &mut Answer) -> Result<(), Failure> {
        if answer.has_reason() {
            return answer.finish();
        }
        Err(Failure::new(ModelErrorKind::BrokenStream, "no `message_stop`"))
    }
}

impl MessagesDecoder {
    fn block_start(&mut self, key: u64, block: &Value, answer: &mut Answer) -> Result<(), Failure> {
        self.block = Block::Other;
        match text(block, "type") {
            Some("text") => answer.text(text(block, "text").unwrap_or_default()),
            Some("thinking") => {
                answer.reasoning(text(block, "thinking").unwrap_or_default());
                let signature = text(block, "signature").unwrap_or_default().to_owned();
                self.block = Block::Thinking { signature };
            }
            Some("redacted_thinking") => {
                let data = text(block, "data").unwrap_or_default().to_owned();
                answer.reasoning_end(Some(proof(data, true)));
            }
            Some("tool_use") => {
                answer.call_start(key, text(block, "id"), text(block, "name").unwrap_or_default())?;
                // A stream starts with an empty object and sends the arguments after it.
                let input =
                    block.get("input").filter(|input| input.as_object().is_none_or(|map| !map.is_empty()));
                if let Some(input) = input {
                    answer.call_replace(key, input)?;
                }
                self.block = Block::ToolUse;
            }
            // Tools that the provider runs itself are not used.
            _ => {}
        }
        Ok(())
    }

    fn block_delta(&mut self, key: u64, delta: &Value, answer: &mut Answer) -> Result<(), Failure> {
        match text(delta, "type") {
            Some("text_delta") => answer.text(text(delta, "text").unwrap_or_default()),
            Some("thinking_delta") => answer.reasoning(text(delta, "thinking").unwrap_or_default()),
            Some("signature_delta") => {
                if let Block::Thinking { signature } = &mut self.block {
                    signature.push_str(text(delta, "signature").unwrap_or_default());
                }
            }
            Some("input_json_delta") if answer.has_call(key) => {
                answer.call_arguments(key, text(delta, "partial_json").unwrap_or_default())?;
            }
            _ => {}
        }
        Ok(())
    }

    fn block_stop(&mut self, key: u64, answer: &mut Answer) -> Result<(), Failure> {
        match std::mem::take(&mut self.block) {
            Block::Thinking { signature } => {
                answer.reasoning_end((!signature.is_empty()).then(|| proof(signature, false)));
                Ok(())
            }
            Block::ToolUse => answer.call_end(key),
            Block::Other => Ok(()),
        }
    }
}

fn proof(data: String, redacted: bool) -> ReasoningProof {
    ReasoningProof { provider: Provider::Anthropic, id: None, data, redacted }
}

fn set_reason(message: &Value, answer: &mut Answer) {
    if let Some(reason) = text(message, "stop_reason") {
        answer.reason(match reason {
            "tool_use" => FinishReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "refusal" => FinishReason::Refusal,
            _ => FinishReason::Stop,
        });
    }
}

/// Takes over usage: the start has the input, the end the output.
fn add_usage(usage: Option<&Value>, answer: &mut Answer) {
    let Some(usage) = usage.filter(|usage| usage.is_object()) else { return };
    let (cached, cache_written) =
        (count(usage, &["cache_read_input_tokens"]), count(usage, &["cache_creation_input_tokens"]));
    let before = answer.usage_so_far();
    answer.usage(Usage {
        input: (count(usage, &["input_tokens"]) + cached + cache_written).max(before.input),
        output: count(usage, &["output_tokens"]).max(before.output),
        cached: cached.max(before.cached),
        cache_written: cache_written.max(before.cache_written),
        reasoning: count(usage, &["output_tokens_details", "thinking_tokens"]).max(before.reasoning),
    });
}
