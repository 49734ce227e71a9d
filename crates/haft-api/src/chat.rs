//! Chats and their messages.

use haft_core::chat::{Chat, Message};
use haft_core::id::{ManifestId, MessageId};
use haft_core::workspace::ManifestInfo;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::run::RunView;

/// A chat with the state of its workspace.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ChatState {
    #[serde(flatten)]
    pub chat: Chat,
    /// The same as `active_leaf`.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(value_type = Option<Uuid>, required)]
    pub active_leaf_message_id: Option<MessageId>,
    /// The state of the workspace; `null` if it never had files.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(value_type = Option<Uuid>, required)]
    pub active_manifest_id: Option<ManifestId>,
}

/// A page of chats.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ChatList {
    pub chats: Vec<Chat>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A page of messages, in the order in which they were written.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageList {
    pub messages: Vec<Message>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// The state of the workspace at a message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageManifest {
    /// The state; `null` if there was none yet.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub manifest: Option<ManifestInfo>,
}

/// A message and its answer.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AnsweredMessage {
    pub message: Message,
    /// The answer; `null` if no agent answers.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub answer: Option<Message>,
    /// The run that wrote the answer.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub run: Option<RunView>,
}

/// A run that was stopped.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct StoppedAnswer {
    /// The run; `null` if nothing was running.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub run_id: Option<Uuid>,
}

/// A chat with all its messages.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ChatExport {
    pub chat: Chat,
    /// All branches, in the order in which they were written.
    pub messages: Vec<Message>,
}
