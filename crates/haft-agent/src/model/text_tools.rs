//! Tool calling for models that have none: tools are described in the instructions, and calls are read from the text.

use std::sync::Arc;

use futures_util::StreamExt;
use haft_core::chat::MessageRole;
use serde_json::json;

use super::answer::Answer;
use super::error::{Failure, ModelError};
use super::event::{FinishReason, ModelEvent};
use super::request::{ContentPart, ModelMessage, ModelRequest, ToolChoice};
use super::stream::{EventSource, EventStream, Model, stream_of};
use super::text_calls::find_text_calls;

/// Wraps a model without tool calling.
pub struct TextTools {
    model: Arc<dyn Model>,
}

impl TextTools {
    /// Wraps a model.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self { model }
    }
}

impl Model for TextTools {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn stream(&self, request: &ModelRequest) -> EventStream {
        let tools: Vec<String> = match request.tool_choice {
            ToolChoice::None => Vec::new(),
            _ => request.tools.iter().map(|tool| tool.name.clone()).collect(),
        };
        let events = self.model.stream(&as_text(request));
        if tools.is_empty() {
            return events;
        }
        let model = self.model.name().to_owned();
        stream_of(Reader {
            events,
            tools,
            model,
            held: String::new(),
            is_holding: false,
            answer: Answer::default(),
        })
    }
}

/// Writes the tools, the calls and their results of a request as text.
pub(super) fn as_text(request: &ModelRequest) -> ModelRequest {
    let mut plain = request.clone();
    plain.tools = Vec::new();
    plain.tool_choice = ToolChoice::Auto;
    plain.messages = request.messages.iter().map(message_as_text).collect();
    if !request.tools.is_empty() && request.tool_choice != ToolChoice::None {
        let system = request.system.as_deref().unwrap_or_default();
        plain.system = Some(format!("{system}\n\n{}", describe(request)).trim().to_owned());
    }
    plain
}

fn describe(request: &ModelRequest) -> String {
    let mut text =
        "You can call tools. To call one, reply with only this JSON object, and nothing after it:\n\
        {\"tool_name\": \"NAME\", \"parameters\": {}}\n\
        The result arrives in the next message as {\"tool_result\": …}. Never write a result yourself.\n\
        If no tool is needed, reply with plain text.\n"
            .to_owned();
    match &request.tool_choice {
        ToolChoice::Required => text.push_str("You must call a tool now.\n"),
        ToolChoice::Tool(name) => {
            text.push_str("You must call this tool now: ");
            text.push_str(name);
            text.push('\n');
        }
        ToolChoice::Auto | ToolChoice::None => {}
    }
    text.push_str("\nThe tools, one per line:\n");
    for tool in &request.tools {
        let line = json!({
            "name": tool.name, "description": tool.description, "parameters": tool.input_schema,
        });
        text.push_str(&line.to_string());
        text.push('\n');
    }
    text
}

fn message_as_text(message: &ModelMessage) -> ModelMessage {
    let mut content = Vec::with_capacity(message.content.len());
    for part in &message.content {
        match part {
            ContentPart::ToolCall(call) => {
                let text = json!({"tool_name": call.name, "parameters": call.arguments}).to_string();
                content.push(ContentPart::Text { text });
            }
            ContentPart::ToolResult(result) => {
                let key = if result.is_error { "error" } else { "result" };
                let inner = json!({"tool_name": result.name, "call": result.id, key: result.text});
                content.push(ContentPart::Text { text: json!({ "tool_result": inner }).to_string() });
                let images = result.images.iter().cloned();
                content.extend(images.map(|source| ContentPart::Image { source }));
            }
            ContentPart::Reasoning { .. } => {}
            ContentPart::Text { .. } | ContentPart::Image { .. } => content.push(part.clone()),
        }
    }
    let role = if message.role == MessageRole::Tool { MessageRole::User } else { message.role };
    ModelMessage { role, content }
}

/// Passes text on until it may be a call, and reads the rest at the end.
struct Reader {
    events: EventStream,
    tools: Vec<String>,
    model: String,
    held: String,
    is_holding: bool,
    answer: Answer,
}

impl Reader {
    fn text(&mut self, text: &str) -> Option<ModelEvent> {
        self.held.push_str(text);
        if self.is_holding {
            return None;
        }
        let start = call_start(&self.held);
        self.is_holding = start.is_some_and(|(_, certain)| certain);
        let kept = start.map_or(String::new(), |(at, _)| self.held.split_off(at));
        let ready = std::mem::replace(&mut self.held, kept);
        (!ready.is_empty()).then_some(ModelEvent::TextDelta { text: ready })
    }

    /// Reads the held text when the answer ends.
    fn finish(&mut self, reason: FinishReason) -> Result<(), Failure> {
        let held = std::mem::take(&mut self.held);
        let found = find_text_calls(&held, self.tools.iter().map(String::as_str));
        self.answer.text(&found.text);
        for call in &found.calls {
            self.answer.whole_call(Some(&call.id), &call.name, &call.arguments, None)?;
        }
        self.answer.reason(reason);
        self.answer.finish()
    }
}

/// Returns where a call may start, and whether it is more than a guess about an incomplete marker.
fn call_start(text: &str) -> Option<(usize, bool)> {
    let json = text.find(['{', '[']);
    let fence = text.find("```").into_iter().chain(text.find("<tool_call>")).min();
    if let Some(at) = json.into_iter().chain(fence).min() {
        return Some((at, true));
    }
    let marker = ["```", "<tool_call>"].into_iter().filter_map(|marker| partial_end(text, marker)).min();
    marker.map(|at| (at, false))
}

/// Returns where the text ends with the beginning of a marker.
fn partial_end(text: &str, marker: &str) -> Option<usize> {
    (1..marker.len())
        .rev()
        .filter_map(|length| marker.get(..length))
        .find(|start| text.ends_with(start))
        .map(|start| text.len() - start.len())
}

impl EventSource for Reader {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.answer.pop() {
                return Some(Ok(event));
            }
            match self.events.next().await? {
                Ok(ModelEvent::TextDelta { text }) => {
                    if let Some(event) = self.text(&text) {
                        return Some(Ok(event));
                    }
                }
                Ok(ModelEvent::Usage { usage, cost }) => return Some(Ok(ModelEvent::Usage { usage, cost })),
                Ok(ModelEvent::Finish { reason }) => {
                    if let Err(failure) = self.finish(reason) {
                        return Some(Err(failure.of_model(&self.model, &[])));
                    }
                }
                other => return Some(other),
            }
        }
    }
}
