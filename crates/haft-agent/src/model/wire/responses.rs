//! OpenAI's Responses API.

use haft_core::secret::Secret;
use serde_json::Value;

use super::chat::bearer;
use super::format::{Decoder, Target, Wire};
use super::parts::{count, list, parse_event, text};
use super::responses_request;
use crate::model::answer::Answer;
use crate::model::error::{Failure, ModelErrorKind};
use crate::model::event::{FinishReason, Usage};
use crate::model::image::ImageSource;
use crate::model::provider::Provider;
use crate::model::provider_error;
use crate::model::request::{ModelRequest, ReasoningProof};
use crate::model::sse::SseEvent;

/// The Responses API.
pub(in crate::model) struct Responses;

impl Wire for Responses {
    fn path(&self, _target: Target<'_>) -> String {
        "responses".to_owned()
    }

    fn headers(&self, key: Option<&Secret>) -> Vec<(&'static str, Secret)> {
        key.map(|key| ("authorization", bearer(key))).into_iter().collect()
    }

    fn body(&self, target: Target<'_>, request: &ModelRequest) -> Result<Value, Failure> {
        Ok(responses_request::body(target, request))
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(ResponsesDecoder)
    }
}

struct ResponsesDecoder;

impl Decoder for ResponsesDecoder {
    fn event(&mut self, event: &SseEvent, answer: &mut Answer) -> Result<(), Failure> {
        if event.data.trim() == "[DONE]" {
            return Ok(());
        }
        let data = parse_event(&event.data)?;
        let key = count(&data, &["output_index"]);
        let delta = text(&data, "delta").unwrap_or_default();
        match text(&data, "type").unwrap_or(&event.name) {
            "response.output_text.delta" => answer.text(delta),
            "response.refusal.delta" => answer.refusal(delta),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                answer.reasoning(delta);
            }
            "response.reasoning_summary_part.added" if count(&data, &["summary_index"]) > 0 => {
                answer.reasoning("\n\n");
            }
            "response.output_item.added" => {
                let item = data.get("item").unwrap_or(&Value::Null);
                if text(item, "type") == Some("function_call") {
                    answer.call_start(key, text(item, "call_id"), text(item, "name").unwrap_or_default())?;
                }
            }
            "response.function_call_arguments.delta" => answer.call_arguments(key, delta)?,
            "response.output_item.done" => {
                item_done(key, data.get("item").unwrap_or(&Value::Null), answer)?;
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                ended(data.get("response").unwrap_or(&Value::Null), answer)?;
            }
            "error" => return Err(provider_error::from_event(&data)),
            // Events about parts whose content arrives in others.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &Value, answer: &mut Answer) -> Result<(), Failure> {
        if text(body, "status") != Some("failed") && !body.get("output").is_some_and(Value::is_array) {
            if body.get("error").is_some_and(|error| !error.is_null()) {
                return Err(provider_error::from_event(body));
            }
            return Err(Failure::invalid("no `output`"));
        }
        for (key, item) in (0_u64..).zip(list(body, "output")) {
            whole_item(key, item, answer)?;
        }
        ended(body, answer)
    }

    fn end(&mut self, _answer: &mut Answer) -> Result<(), Failure> {
        Err(Failure::new(ModelErrorKind::BrokenStream, "no `response.completed`"))
    }
}

/// Reads an item whose pieces arrived before.
fn item_done(key: u64, item: &Value, answer: &mut Answer) -> Result<(), Failure> {
    match text(item, "type") {
        Some("function_call") => {
            if !answer.has_call(key) {
                answer.call_start(key, text(item, "call_id"), text(item, "name").unwrap_or_default())?;
            }
            answer.call_replace(key, item.get("arguments").unwrap_or(&Value::Null))?;
            answer.call_end(key)
        }
        Some("reasoning") => {
            let data = text(item, "encrypted_content");
            answer.reasoning_end(data.map(|data| ReasoningProof {
                provider: Provider::OpenAi,
                id: text(item, "id").map(str::to_owned),
                data: data.to_owned(),
                redacted: false,
            }));
            Ok(())
        }
        Some("image_generation_call") => {
            if let Some(data) = text(item, "result") {
                let format = text(item, "output_format").unwrap_or("png");
                let media_type = format!("image/{format}");
                answer.image(ImageSource::Base64 { media_type, data: data.to_owned() });
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Reads an item of a response that arrived in one piece.
fn whole_item(key: u64, item: &Value, answer: &mut Answer) -> Result<(), Failure> {
    match text(item, "type") {
        Some("message") => {
            for part in list(item, "content") {
                answer.text(text(part, "text").unwrap_or_default());
                answer.refusal(text(part, "refusal").unwrap_or_default());
            }
            Ok(())
        }
        Some("reasoning") => {
            let summaries = list(item, "summary").iter().chain(list(item, "content"));
            for (index, part) in summaries.enumerate() {
                answer.reasoning(if index > 0 { "\n\n" } else { "" });
                answer.reasoning(text(part, "text").unwrap_or_default());
            }
            item_done(key, item, answer)
        }
        _ => item_done(key, item, answer),
    }
}

/// Reads the end of a response.
fn ended(response: &Value, answer: &mut Answer) -> Result<(), Failure> {
    if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
        answer.usage(Usage {
            input: count(usage, &["input_tokens"]),
            output: count(usage, &["output_tokens"]),
            cached: count(usage, &["input_tokens_details", "cached_tokens"]),
            cache_written: count(usage, &["input_tokens_details", "cache_write_tokens"]),
            reasoning: count(usage, &["output_tokens_details", "reasoning_tokens"]),
        });
    }
    match text(response, "status") {
        Some("failed") => return Err(provider_error::from_event(response)),
        Some("incomplete") => {
            let details = response.get("incomplete_details").unwrap_or(&Value::Null);
            answer.reason(match text(details, "reason") {
                Some("content_filter") => FinishReason::ContentFilter,
                _ => FinishReason::Length,
            });
        }
        _ => answer.reason(FinishReason::Stop),
    }
    answer.finish()
}
