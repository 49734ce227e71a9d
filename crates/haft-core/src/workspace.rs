//! Workspaces: versioned folders that calls work in.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::id::{CallId, ChatId, ManifestId, MessageId};
use crate::name::{NameError, TenantId, WorkspaceSlug};
use crate::outcome::CallError;
use crate::{BoxFuture, Timestamp};

/// The start of the name of a chat's workspace.
const CHAT: &str = "chat:";

/// The name of a workspace: that of a chat, or one that callers chose.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkspaceName {
    /// The workspace of a chat, written `chat:<id>`.
    Chat(ChatId),
    /// A workspace that was created by a call that named it.
    Named(WorkspaceSlug),
}

impl fmt::Display for WorkspaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkspaceName::Chat(id) => write!(f, "{CHAT}{id}"),
            WorkspaceName::Named(name) => name.fmt(f),
        }
    }
}

impl FromStr for WorkspaceName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        match text.strip_prefix(CHAT).and_then(|id| id.parse().ok()) {
            Some(id) => Ok(WorkspaceName::Chat(id)),
            None => WorkspaceSlug::new(text).map(WorkspaceName::Named),
        }
    }
}

impl Serialize for WorkspaceName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WorkspaceName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What a call may do in a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceAccess {
    /// Only read: the call of a tool without side effects. Such calls run beside others.
    Read,
    /// Change files: one call after another.
    Change,
}

/// The folder that a running call works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceFolder {
    /// The name of the workspace.
    pub name: WorkspaceName,
    /// The folder with its files on this machine.
    pub path: PathBuf,
    /// Whether the call must not change it.
    pub read_only: bool,
}

/// What a call did in its workspace, for its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkspaceUse {
    /// The name of the workspace.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "report"))]
    pub name: WorkspaceName,
    /// The state before the call; none before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<uuid::Uuid>))]
    pub pre_manifest: Option<ManifestId>,
    /// The state after the call; the one before if nothing changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<uuid::Uuid>))]
    pub post_manifest: Option<ManifestId>,
    /// The files that the call changed; at most [`MAX_CHANGES`].
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub changes: Vec<FileChange>,
    /// How many files it changed in all.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub changed: u64,
    /// Why the state after the call could not be stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The maximum number of changed files in the record of a call.
pub const MAX_CHANGES: usize = 100;

/// A file that differs between two states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileChange {
    /// The path in the workspace.
    #[cfg_attr(feature = "openapi", schema(example = "report/summary.md"))]
    pub path: String,
    /// What happened to it.
    pub change: FileChangeKind,
}

/// How a file differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// It is new.
    Added,
    /// Its content, kind or executable bit is another one.
    Modified,
    /// It is gone.
    Removed,
}

/// A stored state of a workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ManifestInfo {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
    pub id: ManifestId,
    /// The state before.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<uuid::Uuid>, required))]
    pub parent_id: Option<ManifestId>,
    /// The number of files.
    pub files: u64,
    /// The size of all files together.
    pub bytes: u64,
    /// Its cause.
    pub source: ManifestSource,
    /// The call, message or manifest that it comes from.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub source_ref: Option<String>,
    /// Who made it: the name of a token.
    pub created_by: String,
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
}

/// The cause of a state of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ManifestSource {
    /// A call.
    ToolRun,
    /// A person edited or deleted a file.
    Edit,
    /// A person added files.
    UserUpload,
    /// An earlier state was restored.
    Restore,
    /// Another branch of the chat was chosen.
    Branch,
}

impl ManifestSource {
    /// Every source.
    pub const ALL: [Self; 5] = [Self::ToolRun, Self::Edit, Self::UserUpload, Self::Restore, Self::Branch];

    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ToolRun => "tool_run",
            Self::Edit => "edit",
            Self::UserUpload => "user_upload",
            Self::Restore => "restore",
            Self::Branch => "branch",
        }
    }

    /// Parses the name that [`ManifestSource::as_str`] returns.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.as_str() == text)
    }
}

/// A request to work in a workspace.
#[derive(Debug, Clone)]
pub struct WorkspaceEntry {
    /// Whose workspace.
    pub tenant: TenantId,
    /// Which one; created if it does not exist.
    pub name: WorkspaceName,
    /// The call that works in it.
    pub call: CallId,
    /// The message that the call belongs to, if it is one of the chat.
    pub message: Option<MessageId>,
    /// Who calls: the name of a token.
    pub caller: Arc<str>,
    /// What the call may do.
    pub access: WorkspaceAccess,
}

/// Gives calls access to workspaces.
pub trait Workspaces: Send + Sync {
    /// Waits for the call's turn, and brings the folder to the active state of the workspace.
    fn enter(&self, entry: WorkspaceEntry) -> BoxFuture<'_, Result<Box<dyn EnteredWorkspace>, CallError>>;
}

/// A workspace while a call works in it. Dropping it abandons what the call changed.
pub trait EnteredWorkspace: Send + Sync {
    /// Returns the folder.
    fn folder(&self) -> &Arc<WorkspaceFolder>;

    /// Stores the state after the call, and lets the next call in.
    fn leave(self: Box<Self>) -> BoxFuture<'static, WorkspaceUse>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_a_chat_or_a_word() {
        let chat = "chat:018faf50-b7b6-7a01-9a05-a22a6e0af101";
        let parsed: WorkspaceName = chat.parse().unwrap();
        assert!(matches!(parsed, WorkspaceName::Chat(_)));
        assert_eq!(parsed.to_string(), chat);
        let named: WorkspaceName = "report-2026".parse().unwrap();
        assert_eq!(named.to_string(), "report-2026");
        for wrong in ["", "chat:", "chat:x", "a/b", "..", "a b", &"x".repeat(65)] {
            assert!(wrong.parse::<WorkspaceName>().is_err(), "{wrong}");
        }
    }
}
