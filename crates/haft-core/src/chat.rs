//! Chats: trees of messages.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;
use crate::id::{ChatId, ManifestId, MessageId, RunId};

/// The longest title, in characters.
pub const MAX_TITLE: usize = 200;

/// A conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Chat {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
    pub id: ChatId,
    /// The title.
    #[cfg_attr(feature = "openapi", schema(example = "Quarterly report"))]
    pub title: String,
    /// Whom it belongs to: the `owner_id` of their session.
    #[serde(rename = "owner_id")]
    #[cfg_attr(feature = "openapi", schema(example = "local"))]
    pub owner: String,
    /// The name of that principal.
    pub owner_name: String,
    /// The slug of the agent that answers, if any.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub agent: Option<String>,
    /// The last message of the branch that is shown.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<uuid::Uuid>, required))]
    pub active_leaf: Option<MessageId>,
    /// Whether everybody in the tenant may read it.
    pub shared: bool,
    /// When it was created.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When it last changed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub modified_at: Timestamp,
}

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    /// A person.
    User,
    /// A model.
    Assistant,
    /// A tool.
    Tool,
    /// Nobody: a note, such as that the conversation was shortened.
    System,
}

impl MessageRole {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::User, Self::Assistant, Self::Tool, Self::System];

    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::System => "system",
        }
    }

    /// Parses the name that [`MessageRole::as_str`] returns.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// One message of a chat. Messages with the same parent are branches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ChatMessage))]
pub struct Message {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
    pub id: MessageId,
    /// The message before it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<uuid::Uuid>, required))]
    pub parent_id: Option<MessageId>,
    /// Who wrote it.
    pub role: MessageRole,
    /// What it says: a text, or an array of content blocks.
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub content: Value,
    /// The state of the workspace after it; `null`: that of the nearest message before it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<uuid::Uuid>, required))]
    pub manifest_id: Option<ManifestId>,
    /// The run that wrote it, if an agent did.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<uuid::Uuid>, required))]
    pub run_id: Option<RunId>,
    /// When it was written.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
}
