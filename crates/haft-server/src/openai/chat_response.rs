//! Chat completions: the whole answer, and the chunks of a stream.

use haft_core::id::RunId;
use haft_core::run::{RunStatus, RunUsage};
use serde_json::{Map, Value, json};

use super::answer::{AnswerEnd, Piece};
use super::error::OpenAiError;

/// The separator between two answers of one run.
pub(super) const SEPARATOR: &str = "\n\n";

/// What all chunks of one completion share.
#[derive(Debug, Clone)]
pub(super) struct CompletionHead {
    pub(super) run: RunId,
    /// The slug of the agent.
    pub(super) model: String,
    /// In seconds.
    pub(super) created: i64,
}

impl CompletionHead {
    /// Returns a body without choices.
    fn body(&self, object: &str) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("id".to_owned(), json!(format!("chatcmpl-{}", self.run.0.simple())));
        body.insert("object".to_owned(), json!(object));
        body.insert("created".to_owned(), json!(self.created));
        body.insert("model".to_owned(), json!(self.model));
        body.insert("system_fingerprint".to_owned(), Value::Null);
        body
    }
}

/// Collects a whole completion.
#[derive(Debug, Default)]
pub(super) struct WholeCompletion {
    text: String,
    reasoning: String,
    /// Whether an answer has ended since the last text.
    is_between: bool,
}

impl WholeCompletion {
    /// Adds a piece; the last one completes the answer.
    pub(super) fn add(&mut self, piece: Piece) -> Option<Box<AnswerEnd>> {
        match piece {
            Piece::Text(text) => {
                if std::mem::take(&mut self.is_between) && !self.text.is_empty() {
                    self.text.push_str(SEPARATOR);
                }
                self.text.push_str(&text);
            }
            Piece::Reasoning(text) => self.reasoning.push_str(&text),
            Piece::AnswerEnd => self.is_between = true,
            Piece::End(end) => return Some(end),
        }
        None
    }

    /// Returns the body of the response.
    pub(super) fn body(self, head: &CompletionHead, end: &AnswerEnd) -> Value {
        let mut message = if end.is_refused() {
            json!({"role": "assistant", "content": null, "refusal": self.text})
        } else {
            json!({"role": "assistant", "content": self.text, "refusal": null})
        };
        if let Value::Object(map) = &mut message
            && !self.reasoning.is_empty()
        {
            map.insert("reasoning_content".to_owned(), json!(self.reasoning));
        }
        let mut body = head.body("chat.completion");
        let choice = json!({
            "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(end),
        });
        body.insert("choices".to_owned(), json!([choice]));
        body.insert("usage".to_owned(), usage(&end.usage));
        body.insert("x_haft".to_owned(), end.extension());
        Value::Object(body)
    }
}

/// Writes the chunks of a stream.
#[derive(Debug)]
pub(super) struct ChunkWriter {
    head: CompletionHead,
    include_usage: bool,
    has_text: bool,
    is_between: bool,
}

impl ChunkWriter {
    /// Creates a writer.
    pub(super) fn new(head: CompletionHead, include_usage: bool) -> Self {
        Self { head, include_usage, has_text: false, is_between: false }
    }

    /// Returns the first chunk, which has the role.
    pub(super) fn first(&self) -> Value {
        self.chunk(&json!({"role": "assistant", "content": "", "refusal": null}), None)
    }

    /// Returns the chunks of a piece.
    pub(super) fn write(&mut self, piece: Piece) -> Vec<Value> {
        match piece {
            Piece::Text(text) => {
                let is_next = std::mem::take(&mut self.is_between) && self.has_text;
                self.has_text = true;
                let text = if is_next { format!("{SEPARATOR}{text}") } else { text };
                vec![self.chunk(&json!({"content": text}), None)]
            }
            Piece::Reasoning(text) => vec![self.chunk(&json!({"reasoning_content": text}), None)],
            Piece::AnswerEnd => {
                self.is_between = true;
                Vec::new()
            }
            Piece::End(end) => self.last(&end),
        }
    }

    fn last(&self, end: &AnswerEnd) -> Vec<Value> {
        if let Some(error) = failure(end) {
            // The clients raise an error for a chunk that has one.
            return vec![error.body()];
        }
        let mut last = self.chunk(&json!({}), Some(finish_reason(end)));
        if let Value::Object(map) = &mut last {
            map.insert("x_haft".to_owned(), end.extension());
        }
        let mut chunks = vec![last];
        if self.include_usage {
            let mut body = self.head.body("chat.completion.chunk");
            body.insert("choices".to_owned(), json!([]));
            body.insert("usage".to_owned(), usage(&end.usage));
            chunks.push(Value::Object(body));
        }
        chunks
    }

    fn chunk(&self, delta: &Value, finish_reason: Option<&str>) -> Value {
        let mut body = self.head.body("chat.completion.chunk");
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason});
        body.insert("choices".to_owned(), json!([choice]));
        if self.include_usage {
            body.insert("usage".to_owned(), Value::Null);
        }
        Value::Object(body)
    }
}

/// Returns the error of a run that ended without an answer.
pub(super) fn failure(end: &AnswerEnd) -> Option<OpenAiError> {
    if end.is_refused() {
        return None;
    }
    match end.status {
        RunStatus::Success | RunStatus::AwaitingApproval => None,
        RunStatus::Error | RunStatus::Cancelled | RunStatus::Pending | RunStatus::Running => {
            let error = end.error.clone().unwrap_or_else(|| {
                let message = format!("the run `{}` was stopped before its answer was complete", end.run);
                haft_core::run::StepError { code: "cancelled".to_owned(), message }
            });
            Some(OpenAiError::failed_run(&error))
        }
    }
}

/// Returns why the answer ended. A run that waits for an approval has ended for the client.
fn finish_reason(end: &AnswerEnd) -> &'static str {
    match end.finish_reason.as_str() {
        "length" => "length",
        "content_filter" | "refusal" => "content_filter",
        _ => "stop",
    }
}

fn usage(usage: &RunUsage) -> Value {
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.tokens(),
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    })
}
