//! Collects the events of an answer into one value.

use futures_util::StreamExt;
use haft_core::chat::MessageRole;
use serde::{Deserialize, Serialize};

use super::error::{ModelError, ModelErrorKind};
use super::event::{FinishReason, ModelEvent, Usage};
use super::price::Cost;
use super::request::{ContentPart, ModelMessage, ModelRequest, ToolCall, join_texts};
use super::stream::{EventStream, Model};

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelResponse {
    /// The name of the model that answered.
    pub model: String,
    /// The parts of the answer, in order.
    pub content: Vec<ContentPart>,
    /// The tokens.
    pub usage: Usage,
    /// The cost, if prices are configured.
    pub cost: Option<Cost>,
    /// Why the answer ended.
    pub finish: FinishReason,
}

impl ModelResponse {
    /// Returns the texts, joined by line breaks.
    pub fn text(&self) -> String {
        join_texts(&self.content)
    }

    /// Returns the reasoning, joined by line breaks.
    pub fn reasoning(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match part {
            ContentPart::Reasoning { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns the tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            ContentPart::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns whether it has neither text nor images nor calls.
    pub fn is_empty(&self) -> bool {
        self.content.iter().all(|part| match part {
            ContentPart::Text { text } => text.trim().is_empty(),
            ContentPart::Reasoning { .. } => true,
            ContentPart::Image { .. } | ContentPart::ToolCall(_) | ContentPart::ToolResult(_) => false,
        })
    }

    /// Returns the message for the next request.
    pub fn into_message(self) -> ModelMessage {
        ModelMessage { role: MessageRole::Assistant, content: self.content }
    }
}

/// Collects events while someone else watches them.
#[derive(Debug, Default)]
pub struct ResponseCollector {
    model: String,
    content: Vec<ContentPart>,
    /// Whether the last part is text or reasoning that goes on.
    open: bool,
    usage: Usage,
    cost: Option<Cost>,
    finish: Option<FinishReason>,
}

impl ResponseCollector {
    /// Adds an event.
    pub fn push(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Start { model } => self.model.clone_from(model),
            ModelEvent::TextDelta { text } => self.push_text(text),
            ModelEvent::ReasoningDelta { text } => self.push_reasoning(text),
            ModelEvent::ReasoningEnd { proof } => {
                if !self.open || !matches!(self.content.last(), Some(ContentPart::Reasoning { .. })) {
                    self.content.push(ContentPart::Reasoning { text: String::new(), proof: None });
                }
                if let Some(ContentPart::Reasoning { proof: own, .. }) = self.content.last_mut() {
                    own.clone_from(proof);
                }
                self.open = false;
            }
            ModelEvent::ToolCallStart { .. } | ModelEvent::ToolCallDelta { .. } => {}
            ModelEvent::ToolCallEnd { call, .. } => self.push_part(ContentPart::ToolCall(call.clone())),
            ModelEvent::Image { source } => self.push_part(ContentPart::Image { source: source.clone() }),
            ModelEvent::Usage { usage, cost } => {
                self.usage = *usage;
                self.cost.clone_from(cost);
            }
            ModelEvent::Finish { reason } => self.finish = Some(*reason),
        }
    }

    fn push_text(&mut self, more: &str) {
        match self.content.last_mut() {
            Some(ContentPart::Text { text }) if self.open => text.push_str(more),
            _ => self.content.push(ContentPart::Text { text: more.to_owned() }),
        }
        self.open = true;
    }

    fn push_reasoning(&mut self, more: &str) {
        match self.content.last_mut() {
            Some(ContentPart::Reasoning { text, .. }) if self.open => text.push_str(more),
            _ => self.content.push(ContentPart::Reasoning { text: more.to_owned(), proof: None }),
        }
        self.open = true;
    }

    fn push_part(&mut self, part: ContentPart) {
        self.content.push(part);
        self.open = false;
    }

    /// Returns what was collected so far, for an answer that was cut off.
    pub fn content(&self) -> &[ContentPart] {
        &self.content
    }

    /// Returns the answer; without a `finish` event it is incomplete.
    pub fn finish(self) -> Result<ModelResponse, ModelError> {
        let Self { model, content, usage, cost, finish, .. } = self;
        match finish {
            Some(finish) => Ok(ModelResponse { model, content, usage, cost, finish }),
            None => Err(ModelError::new(ModelErrorKind::BrokenStream, model, "")),
        }
    }
}

/// Collects all events of a stream.
pub async fn collect(mut events: EventStream) -> Result<ModelResponse, ModelError> {
    let mut collector = ResponseCollector::default();
    while let Some(event) = events.next().await {
        collector.push(&event?);
    }
    collector.finish()
}

/// Sends a request and waits for the complete answer.
pub async fn complete(model: &dyn Model, request: &ModelRequest) -> Result<ModelResponse, ModelError> {
    collect(model.stream(request)).await
}
