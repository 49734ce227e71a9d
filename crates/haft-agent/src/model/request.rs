//! A request to a model: the conversation, the tools, and how to answer.

use haft_core::chat::MessageRole;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::image::ImageSource;
use super::provider::Provider;

/// A request to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelRequest {
    /// The instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The conversation, oldest message first.
    pub messages: Vec<ModelMessage>,
    /// The tools that the model may call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolDefinition>,
    /// Whether the model calls a tool.
    #[serde(skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
    /// The schema of the answer, if it must be JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<OutputSchema>,
    /// The maximum number of tokens of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The sampling temperature; `None` is the default of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How much the model reasons before it answers; `None` is the default of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningEffort>,
}

impl ModelRequest {
    /// Creates a request with one message of a person.
    pub fn user(text: impl Into<String>) -> Self {
        Self { messages: vec![ModelMessage::user(text)], ..Self::default() }
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelMessage {
    /// Who wrote it. A `system` message inside the conversation is a note that no person wrote.
    pub role: MessageRole,
    /// Its parts, in order.
    pub content: Vec<ContentPart>,
}

impl ModelMessage {
    /// Creates a message with one text.
    pub fn new(role: MessageRole, text: impl Into<String>) -> Self {
        Self { role, content: vec![ContentPart::Text { text: text.into() }] }
    }

    /// Creates a message of a person.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(MessageRole::User, text)
    }

    /// Creates a message of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(MessageRole::Assistant, text)
    }

    /// Creates the message with the results of tool calls.
    pub fn results(results: impl IntoIterator<Item = ToolResult>) -> Self {
        let content = results.into_iter().map(ContentPart::ToolResult).collect();
        Self { role: MessageRole::Tool, content }
    }

    /// Returns its texts, joined by line breaks.
    pub fn text(&self) -> String {
        join_texts(&self.content)
    }

    /// Returns its tool calls.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            ContentPart::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns its tool results.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.content.iter().filter_map(|part| match part {
            ContentPart::ToolResult(result) => Some(result),
            _ => None,
        })
    }
}

/// Joins the texts of several parts by line breaks.
pub(super) fn join_texts(parts: &[ContentPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        ContentPart::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart {
    /// A text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Its bytes or its address.
        source: ImageSource,
    },
    /// A call that the model made.
    ToolCall(ToolCall),
    /// The result of a call.
    ToolResult(ToolResult),
    /// What the model reasoned before it answered. It is not part of the answer.
    Reasoning {
        /// The text; empty if the provider keeps it to itself.
        text: String,
        /// What the provider needs to accept it again.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        proof: Option<ReasoningProof>,
    },
}

/// What a provider attaches to reasoning, so that it accepts it in a later request. Other providers do not get it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReasoningProof {
    /// The provider that issued it.
    pub provider: Provider,
    /// The id of the reasoning, if the provider has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub id: Option<String>,
    /// The signature, or the encrypted reasoning.
    pub data: String,
    /// Whether `data` replaces the text.
    #[serde(default)]
    pub redacted: bool,
}

/// A call that a model made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// Its id, unique within one answer.
    pub id: String,
    /// The name of the tool, as the model wrote it.
    pub name: String,
    /// The arguments: an object, or a string with the text of the model if that is not valid JSON.
    pub arguments: Value,
    /// What the provider needs to accept the call again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub proof: Option<ReasoningProof>,
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The text for the model.
    pub text: String,
    /// Images of the result.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub images: Vec<ImageSource>,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolDefinition {
    /// The name for models: `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
}

/// Whether a model calls a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It calls none.
    None,
    /// It calls at least one.
    Required,
    /// It calls the tool of this name.
    Tool(String),
}

impl ToolChoice {
    /// Returns whether the model decides.
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// The schema of an answer in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputSchema {
    /// A name for the schema: `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// The JSON Schema.
    pub schema: Value,
    /// Whether the provider must enforce it. Strict schemas have restrictions that differ between providers.
    #[serde(default)]
    pub strict: bool,
}

/// How much a model reasons before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEffort {
    /// A little.
    Low,
    /// A moderate amount.
    Medium,
    /// As much as the problem needs.
    High,
}

impl ReasoningEffort {
    /// Returns the name that providers use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Returns a number of tokens, for providers that count them.
    pub(super) const fn tokens(self) -> u32 {
        match self {
            Self::Low => 2048,
            Self::Medium => 8192,
            Self::High => 24_576,
        }
    }
}
