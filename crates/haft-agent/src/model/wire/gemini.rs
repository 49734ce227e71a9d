//! Google's Gemini API.

use haft_core::secret::Secret;
use serde_json::Value;

use super::format::{Decoder, Target, Wire};
use super::gemini_request;
use super::parts::{count, list, parse_event, text};
use crate::model::answer::Answer;
use crate::model::error::{Failure, ModelErrorKind};
use crate::model::event::{FinishReason, Usage};
use crate::model::image::ImageSource;
use crate::model::provider::Provider;
use crate::model::provider_error;
use crate::model::request::{ModelRequest, ReasoningProof};
use crate::model::sse::SseEvent;

/// The Gemini API.
pub(in crate::model) struct Gemini;

impl Wire for Gemini {
    fn path(&self, target: Target<'_>) -> String {
        let model = target.model.strip_prefix("models/").unwrap_or(target.model);
        if target.streaming {
            format!("models/{model}:streamGenerateContent?alt=sse")
        } else {
            format!("models/{model}:generateContent")
        }
    }

    fn headers(&self, key: Option<&Secret>) -> Vec<(&'static str, Secret)> {
        key.map(|key| ("x-goog-api-key", key.clone())).into_iter().collect()
    }

    fn body(&self, _target: Target<'_>, request: &ModelRequest) -> Result<Value, Failure> {
        gemini_request::body(request)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(GeminiDecoder)
    }
}

struct GeminiDecoder;

impl Decoder for GeminiDecoder {
    fn event(&mut self, event: &SseEvent, answer: &mut Answer) -> Result<(), Failure> {
        read(&parse_event(&event.data)?, answer)
    }

    fn whole(&mut self, body: &Value, answer: &mut Answer) -> Result<(), Failure> {
        // Without `alt=sse` a stream is a list of responses.
        match body {
            Value::Array(chunks) => chunks.iter().try_for_each(|chunk| read(chunk, answer))?,
            chunk => read(chunk, answer)?,
        }
        self.end(answer)
    }

    fn end(&mut self, answer: &mut Answer) -> Result<(), Failure> {
        if answer.has_reason() {
            return answer.finish();
        }
        Err(Failure::new(ModelErrorKind::BrokenStream, "no `finishReason`"))
    }
}

fn read(chunk: &Value, answer: &mut Answer) -> Result<(), Failure> {
    if chunk.get("error").is_some() {
        return Err(provider_error::from_event(chunk));
    }
    if let Some(block) = chunk.get("promptFeedback").and_then(|feedback| text(feedback, "blockReason")) {
        // A blocked prompt has no candidate: neither a finish reason nor a text.
        answer.refusal(&format!("the prompt was blocked: {block}"));
        answer.reason(FinishReason::Refusal);
    }
    if let Some(usage) = chunk.get("usageMetadata") {
        let reasoning = count(usage, &["thoughtsTokenCount"]);
        answer.usage(Usage {
            input: count(usage, &["promptTokenCount"]) + count(usage, &["toolUsePromptTokenCount"]),
            output: count(usage, &["candidatesTokenCount"]) + reasoning,
            cached: count(usage, &["cachedContentTokenCount"]),
            cache_written: 0,
            reasoning,
        });
    }
    let Some(candidate) = list(chunk, "candidates").first() else { return Ok(()) };
    for part in candidate.get("content").map_or(&[][..], |content| list(content, "parts")) {
        read_part(part, answer)?;
    }
    match text(candidate, "finishReason") {
        None | Some("FINISH_REASON_UNSPECIFIED") => Ok(()),
        Some(reason) => {
            answer.reason(match reason {
                "MAX_TOKENS" => FinishReason::Length,
                "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => FinishReason::MalformedCall,
                "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
                    FinishReason::ContentFilter
                }
                _ => FinishReason::Stop,
            });
            Ok(())
        }
    }
}

fn read_part(part: &Value, answer: &mut Answer) -> Result<(), Failure> {
    let proof = text(part, "thoughtSignature").map(|data| ReasoningProof {
        provider: Provider::Gemini,
        id: None,
        data: data.to_owned(),
        redacted: false,
    });
    if let Some(call) = part.get("functionCall") {
        let arguments = call.get("args").unwrap_or(&Value::Null);
        return answer.whole_call(text(call, "id"), text(call, "name").unwrap_or_default(), arguments, proof);
    }
    if let Some(data) = part.get("inlineData") {
        let media_type = text(data, "mimeType").unwrap_or("application/octet-stream").to_owned();
        let data = text(data, "data").unwrap_or_default().to_owned();
        answer.image(ImageSource::Base64 { media_type, data });
        return Ok(());
    }
    let words = text(part, "text").unwrap_or_default();
    if part.get("thought").and_then(Value::as_bool) == Some(true) {
        answer.reasoning(words);
        if proof.is_some() {
            answer.reasoning_end(proof);
        }
    } else {
        answer.text(words);
    }
    Ok(())
}
