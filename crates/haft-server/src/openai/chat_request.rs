//! Reads the body of `POST /v1/chat/completions`.

use std::collections::HashMap;

use haft_agent::model::{ContentPart, ModelMessage, ToolCall, ToolResult, parse_arguments};
use haft_core::chat::MessageRole;
use haft_core::problem::excerpt;
use serde_json::Value;

use super::content;
use super::error::OpenAiError;
use super::fields::Fields;
use super::overrides::{Format, Overrides};

/// The most messages of one request.
pub(super) const MAX_MESSAGES: usize = 10_000;

/// Why the tools of a client are rejected.
pub(super) const NO_CLIENT_TOOLS: &str = "tools of the client are not supported: an agent calls its own tools, inside haft. \
                                          Leave the field out, and add the tools to the agent";

/// A request for a chat completion.
#[derive(Debug)]
pub(super) struct ChatRequest {
    /// The slug of the agent.
    pub(super) model: String,
    pub(super) messages: Vec<ModelMessage>,
    pub(super) stream: bool,
    /// Whether a stream ends with the usage.
    pub(super) include_usage: bool,
    pub(super) overrides: Overrides,
}

impl ChatRequest {
    /// Reads a body. Unknown fields are ignored.
    pub(super) fn read(body: &Value) -> Result<Self, OpenAiError> {
        let fields = Fields::of_body(body)?;
        let model = fields.required_text("model")?.to_owned();
        reject_unsupported(&fields)?;
        let mut overrides = Overrides::read(&fields)?;
        overrides.set_max_tokens(&fields, &["max_completion_tokens", "max_tokens"])?;
        if let Some(format) = fields.object("response_format")? {
            overrides.format = Format::read(&format)?;
        }
        let include_usage = match fields.object("stream_options")? {
            Some(options) => options.flag("include_usage")?,
            None => false,
        };
        let listed = fields.list("messages")?.ok_or_else(|| fields.missing("messages"))?;
        let messages = messages(listed)?;
        Ok(Self { model, messages, stream: fields.flag("stream")?, include_usage, overrides })
    }
}

/// Rejects what would be silently wrong if it were ignored.
fn reject_unsupported(fields: &Fields<'_>) -> Result<(), OpenAiError> {
    for name in ["tools", "functions"] {
        if fields.list(name)?.is_some_and(|list| !list.is_empty()) {
            return Err(OpenAiError::unsupported(name, NO_CLIENT_TOOLS));
        }
    }
    if fields.count("n")?.is_some_and(|n| n != 1) {
        let message = "haft returns one answer; leave `n` out, or send several requests";
        return Err(OpenAiError::unsupported("n", message));
    }
    let modalities = fields.list("modalities")?.unwrap_or_default();
    if fields.get("audio").is_some() || modalities.iter().any(|modality| modality == "audio") {
        return Err(OpenAiError::unsupported("modalities", "audio is not supported"));
    }
    Ok(())
}

fn messages(listed: &[Value]) -> Result<Vec<ModelMessage>, OpenAiError> {
    if listed.is_empty() {
        return Err(OpenAiError::invalid("messages", "expected at least one message"));
    }
    if listed.len() > MAX_MESSAGES {
        let message = format!("{} messages exceed the limit of {MAX_MESSAGES}", listed.len());
        return Err(OpenAiError::invalid("messages", message));
    }
    let mut conversation = Conversation::default();
    for (index, value) in listed.iter().enumerate() {
        conversation.read(value, &format!("messages[{index}]"))?;
    }
    Ok(conversation.messages)
}

/// The messages so far, and the calls whose results may follow.
#[derive(Default)]
pub(super) struct Conversation {
    pub(super) messages: Vec<ModelMessage>,
    /// The names of the tools, by the ids of the calls.
    calls: HashMap<String, String>,
}

impl Conversation {
    fn read(&mut self, value: &Value, path: &str) -> Result<(), OpenAiError> {
        let fields = Fields::of(value, path)?;
        let role = fields.required_text("role")?;
        let (content, at) = (fields.get("content"), fields.path("content"));
        match role {
            "system" | "developer" => self.push(MessageRole::System, vec![text_part(content, &at)?]),
            "user" => {
                let parts = content::parts(content, &at)?;
                if parts.is_empty() {
                    return Err(fields.missing("content"));
                }
                self.push(MessageRole::User, parts);
            }
            "assistant" => {
                let mut parts = content::parts(content, &at)?;
                if let Some(refusal) = fields.text("refusal")? {
                    parts.push(ContentPart::Text { text: refusal.to_owned() });
                }
                for (index, call) in fields.list("tool_calls")?.unwrap_or_default().iter().enumerate() {
                    let at = format!("{}[{index}]", fields.path("tool_calls"));
                    parts.push(self.tool_call(call, &at)?);
                }
                // An empty text says nothing to a model, and some providers reject it.
                parts.retain(|part| !matches!(part, ContentPart::Text { text } if text.is_empty()));
                if !parts.is_empty() {
                    self.push(MessageRole::Assistant, parts);
                }
            }
            "tool" => {
                let id = fields.required_text("tool_call_id")?;
                self.add_result(id, content::text(content, &at)?, &fields.path("tool_call_id"))?;
            }
            other => {
                let message = format!(
                    "unknown role `{}`; expected `system`, `developer`, `user`, `assistant` or `tool`",
                    excerpt(other, 40)
                );
                return Err(OpenAiError::invalid(fields.path("role"), message));
            }
        }
        Ok(())
    }

    /// Adds a message.
    pub(super) fn push(&mut self, role: MessageRole, content: Vec<ContentPart>) {
        self.messages.push(ModelMessage { role, content });
    }

    fn tool_call(&mut self, value: &Value, path: &str) -> Result<ContentPart, OpenAiError> {
        let fields = Fields::of(value, path)?;
        let function = fields.object("function")?.ok_or_else(|| fields.missing("function"))?;
        let arguments = function.text("arguments")?.unwrap_or_default();
        Ok(self.call(fields.required_text("id")?, function.required_text("name")?, arguments))
    }

    /// Notes a call of the history.
    pub(super) fn call(&mut self, id: &str, name: &str, arguments: &str) -> ContentPart {
        self.calls.insert(id.to_owned(), name.to_owned());
        let (id, name) = (id.to_owned(), name.to_owned());
        ContentPart::ToolCall(ToolCall { id, name, arguments: parse_arguments(arguments), proof: None })
    }

    /// Adds the result of a call of the history; results that follow each other are one message.
    pub(super) fn add_result(&mut self, id: &str, text: String, path: &str) -> Result<(), OpenAiError> {
        let Some(name) = self.calls.get(id).cloned() else {
            let message = format!("no earlier message has a tool call with the id `{}`", excerpt(id, 80));
            return Err(OpenAiError::invalid(path, message));
        };
        let result = ToolResult { id: id.to_owned(), name, text, ..ToolResult::default() };
        match self.messages.last_mut() {
            Some(last) if last.role == MessageRole::Tool => {
                last.content.push(ContentPart::ToolResult(result));
            }
            _ => self.messages.push(ModelMessage::results([result])),
        }
        Ok(())
    }
}

/// Reads instructions.
fn text_part(content: Option<&Value>, path: &str) -> Result<ContentPart, OpenAiError> {
    Ok(ContentPart::Text { text: content::text(content, path)? })
}
