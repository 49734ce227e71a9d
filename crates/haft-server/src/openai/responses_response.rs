//! The object of a response, and its items.

use haft_core::id::RunId;
use haft_core::run::{RunStatus, RunUsage};
use serde_json::{Value, json};
use uuid::Uuid;

use super::answer::AnswerEnd;
use super::chat_response::failure;
use super::responses_request::ID_PREFIX;

/// What a response says besides its output.
#[derive(Debug, Clone)]
pub(super) struct ResponseHead {
    pub(super) run: RunId,
    /// The slug of the agent.
    pub(super) model: String,
    /// In seconds.
    pub(super) created: i64,
    pub(super) instructions: Option<String>,
    pub(super) previous: Option<RunId>,
    pub(super) metadata: Value,
    pub(super) max_tokens: Option<u32>,
    pub(super) temperature: Option<f64>,
    /// The format of the text, as the client requested it.
    pub(super) format: Value,
}

/// Returns the id of a response.
pub(super) fn response_id(run: RunId) -> String {
    format!("{ID_PREFIX}{}", run.0.simple())
}

impl ResponseHead {
    /// Returns a response that is being written.
    pub(super) fn in_progress(&self) -> Value {
        self.body("in_progress", &[])
    }

    fn body(&self, status: &str, output: &[Value]) -> Value {
        json!({
            "id": response_id(self.run),
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": false,
            "error": null,
            "incomplete_details": null,
            "instructions": self.instructions,
            "max_output_tokens": self.max_tokens,
            "metadata": self.metadata,
            "model": self.model,
            "output": output,
            "parallel_tool_calls": true,
            "previous_response_id": self.previous.map(response_id),
            "reasoning": {"effort": null, "summary": null},
            "store": true,
            "temperature": self.temperature,
            "text": {"format": self.format},
            "tool_choice": "auto",
            "tools": [],
            "top_p": null,
            "truncation": "disabled",
            "usage": null,
            "user": null,
        })
    }

    /// Returns the complete response, and the name of its event.
    pub(super) fn ended(&self, output: &[Value], end: &AnswerEnd) -> (&'static str, Value) {
        let (status, event) = match (end.status, end.finish_reason.as_str()) {
            _ if end.is_refused() => ("incomplete", "response.incomplete"),
            (RunStatus::Success | RunStatus::AwaitingApproval, "length" | "content_filter") => {
                ("incomplete", "response.incomplete")
            }
            (RunStatus::Success | RunStatus::AwaitingApproval, _) => ("completed", "response.completed"),
            (RunStatus::Error | RunStatus::Cancelled | RunStatus::Pending | RunStatus::Running, _) => {
                ("failed", "response.failed")
            }
        };
        let mut body = self.body(status, output);
        if let Value::Object(map) = &mut body {
            if status == "incomplete" {
                let reason =
                    if end.finish_reason == "length" { "max_output_tokens" } else { "content_filter" };
                map.insert("incomplete_details".to_owned(), json!({"reason": reason}));
            }
            if let Some(error) = failure(end) {
                map.insert("error".to_owned(), json!({"code": error.code, "message": error.message}));
            }
            map.insert("usage".to_owned(), usage(&end.usage));
            map.insert("x_haft".to_owned(), end.extension());
        }
        (event, body)
    }
}

fn usage(usage: &RunUsage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        // haft counts them as part of the output.
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.tokens(),
    })
}

/// The kind of an item of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Message,
    Reasoning,
}

/// An item that is being written.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) kind: ItemKind,
    pub(super) id: String,
    pub(super) text: String,
}

impl Item {
    /// Creates an empty item.
    pub(super) fn new(kind: ItemKind, run: RunId, index: usize) -> Self {
        let prefix = match kind {
            ItemKind::Message => "msg",
            ItemKind::Reasoning => "rs",
        };
        // Unique, and the same for every request about the same run.
        let id = format!("{prefix}_{}{index:04}", Uuid::simple(run.0));
        Self { kind, id, text: String::new() }
    }

    /// Returns the part with the text so far.
    pub(super) fn part(&self, text: &str) -> Value {
        match self.kind {
            ItemKind::Message => {
                json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
            }
            ItemKind::Reasoning => json!({"type": "reasoning_text", "text": text}),
        }
    }

    /// Returns the item without content.
    pub(super) fn empty(&self) -> Value {
        self.body("in_progress", &[])
    }

    /// Returns the complete item.
    pub(super) fn complete(&self) -> Value {
        self.body("completed", &[self.part(&self.text)])
    }

    fn body(&self, status: &str, content: &[Value]) -> Value {
        match self.kind {
            ItemKind::Message => json!({
                "id": self.id, "type": "message", "status": status, "role": "assistant", "content": content,
            }),
            ItemKind::Reasoning => json!({
                "id": self.id, "type": "reasoning", "status": status, "summary": [], "content": content,
            }),
        }
    }
}
