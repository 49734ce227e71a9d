//! OpenAI's chat completions, and the servers that imitate them.
//!
//! Tolerated differences: calls without ids or indexes, several calls with one index, ids and names repeated with every
//! piece, arguments as an object, arguments sent twice, usage in any event, a missing `[DONE]`, reasoning as
//! `reasoning_content` or `reasoning`, content as a list of parts, images beside the content.

use haft_core::secret::Secret;
use serde_json::Value;

use super::chat_request;
use super::format::{Decoder, Target, Wire};
use super::parts::{count, list, parse_event, text};
use crate::model::answer::Answer;
use crate::model::error::{Failure, ModelErrorKind};
use crate::model::event::{FinishReason, Usage};
use crate::model::image::ImageSource;
use crate::model::provider::Provider;
use crate::model::provider_error;
use crate::model::request::ModelRequest;
use crate::model::sse::SseEvent;

/// Chat completions of a provider.
pub(in crate::model) struct Chat {
    pub(in crate::model) provider: Provider,
}

impl Wire for Chat {
    fn path(&self, _target: Target<'_>) -> String {
        "chat/completions".to_owned()
    }

    fn headers(&self, key: Option<&Secret>) -> Vec<(&'static str, Secret)> {
        key.map(|key| ("authorization", bearer(key))).into_iter().collect()
    }

    fn body(&self, target: Target<'_>, request: &ModelRequest) -> Result<Value, Failure> {
        Ok(chat_request::body(self.provider, target, request))
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(ChatDecoder::default())
    }
}

/// Returns the value of an `Authorization` header.
pub(super) fn bearer(key: &Secret) -> Secret {
    Secret::new(format!("Bearer {}", key.expose()))
}

#[derive(Default)]
struct ChatDecoder {
    /// The calls so far: the index and the id that the server gave them. Their position is their key.
    calls: Vec<(Option<u64>, String)>,
    done: bool,
}

impl Decoder for ChatDecoder {
    fn event(&mut self, event: &SseEvent, answer: &mut Answer) -> Result<(), Failure> {
        if event.data.trim() == "[DONE]" {
            self.done = true;
            return answer.finish();
        }
        self.chunk(&parse_event(&event.data)?, "delta", answer)
    }

    fn whole(&mut self, body: &Value, answer: &mut Answer) -> Result<(), Failure> {
        self.chunk(body, "message", answer)?;
        if list(body, "choices").is_empty() {
            return Err(Failure::invalid("no `choices`"));
        }
        answer.finish()
    }

    fn end(&mut self, answer: &mut Answer) -> Result<(), Failure> {
        if self.done || answer.has_reason() {
            return answer.finish();
        }
        Err(Failure::new(ModelErrorKind::BrokenStream, "neither a `finish_reason` nor `[DONE]`"))
    }
}

impl ChatDecoder {
    fn chunk(&mut self, chunk: &Value, key: &str, answer: &mut Answer) -> Result<(), Failure> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(provider_error::from_event(chunk));
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            answer.usage(read_usage(usage));
        }
        let Some(choice) = list(chunk, "choices").first() else { return Ok(()) };
        if let Some(error) = choice.get("error").filter(|error| !error.is_null()) {
            return Err(provider_error::from_event(error));
        }
        let other = if key == "delta" { "message" } else { "delta" };
        if let Some(delta) = choice.get(key).or_else(|| choice.get(other)) {
            self.delta(delta, answer)?;
        }
        if let Some(reason) = text(choice, "finish_reason").filter(|reason| !reason.is_empty()) {
            answer.reason(match reason {
                "length" | "max_tokens" => FinishReason::Length,
                "tool_calls" | "function_call" => FinishReason::ToolCalls,
                "content_filter" => FinishReason::ContentFilter,
                _ => FinishReason::Stop,
            });
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, answer: &mut Answer) -> Result<(), Failure> {
        let reasoning = text(delta, "reasoning_content").or_else(|| text(delta, "reasoning"));
        answer.reasoning(reasoning.unwrap_or_default());
        match delta.get("content") {
            Some(Value::String(content)) => answer.text(content),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| read_part(part, answer)),
            _ => {}
        }
        if let Some(refusal) = text(delta, "refusal") {
            answer.refusal(refusal);
        }
        for image in list(delta, "images") {
            read_part(image, answer);
        }
        for call in list(delta, "tool_calls") {
            self.call(call, answer)?;
        }
        Ok(())
    }

    fn call(&mut self, call: &Value, answer: &mut Answer) -> Result<(), Failure> {
        let function = call.get("function").unwrap_or(call);
        let id = text(call, "id").unwrap_or_default();
        let name = text(function, "name").unwrap_or_default();
        let index = call.get("index").and_then(Value::as_u64);
        // A name after whole arguments starts another call, even if the server gives it the same index and no id.
        let repeats = |key| id.is_empty() && !name.is_empty() && answer.is_call_whole(key);
        let key = if let Some(key) = self.find(index, id, name).filter(|key| !repeats(*key)) {
            key
        } else {
            let key = self.calls.len() as u64;
            self.calls.push((index, id.to_owned()));
            answer.call_start(key, Some(id), name)?;
            key
        };
        match function.get("arguments") {
            Some(Value::String(more)) => answer.call_arguments(key, more),
            Some(whole @ Value::Object(_)) => answer.call_replace(key, whole),
            _ => Ok(()),
        }
    }

    /// Finds the call that a piece belongs to; `None` if it starts a new one.
    fn find(&self, index: Option<u64>, id: &str, name: &str) -> Option<u64> {
        let position = match index {
            // Of several calls with one index the last one goes on.
            Some(_) => self.calls.iter().rposition(|(own, _)| *own == index)?,
            None if id.is_empty() => self.calls.len().checked_sub(1)?,
            None => self.calls.iter().rposition(|(_, own)| own == id)?,
        };
        let (_, own) = self.calls.get(position)?;
        let is_other = !id.is_empty() && !own.is_empty() && id != own;
        let is_unnamed_repeat = index.is_none() && id.is_empty() && !name.is_empty();
        (!is_other && !is_unnamed_repeat).then_some(position as u64)
    }
}

fn read_part(part: &Value, answer: &mut Answer) {
    match text(part, "type") {
        Some("image_url") => {
            let url = part.get("image_url");
            let url = url.and_then(|url| url.as_str().or_else(|| text(url, "url")));
            if let Some(url) = url {
                answer.image(ImageSource::from_url(url));
            }
        }
        Some("thinking" | "reasoning") => {
            let thinking = text(part, "thinking").or_else(|| text(part, "text"));
            answer.reasoning(thinking.unwrap_or_default());
            for inner in list(part, "thinking") {
                answer.reasoning(text(inner, "text").unwrap_or_default());
            }
        }
        _ => answer.text(text(part, "text").unwrap_or_default()),
    }
}

fn read_usage(usage: &Value) -> Usage {
    Usage {
        input: count(usage, &["prompt_tokens"]),
        output: count(usage, &["completion_tokens"]),
        cached: count(usage, &["prompt_tokens_details", "cached_tokens"])
            .max(count(usage, &["prompt_cache_hit_tokens"])),
        cache_written: count(usage, &["prompt_tokens_details", "cache_write_tokens"]),
        reasoning: count(usage, &["completion_tokens_details", "reasoning_tokens"]),
    }
}
