//! Workspaces, their files and their states.

use haft_core::Timestamp;
use haft_core::workspace::{FileChange, ManifestInfo};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A workspace.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Workspace)]
pub struct WorkspaceView {
    #[schema(example = "report")]
    pub name: String,
    /// The active state; `null` before the first one.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub manifest_id: Option<Uuid>,
    /// The number of files.
    pub files: u64,
    /// The size of all files together.
    pub bytes: u64,
    pub created_at: Timestamp,
    pub modified_at: Timestamp,
}

/// A page of workspaces.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceList {
    pub workspaces: Vec<WorkspaceView>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// The files of a state.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct FileListing {
    /// The state; `null` if the workspace is new.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub manifest: Option<ManifestInfo>,
    /// The files, folders and links, ordered by path.
    pub files: Vec<ListedFile>,
    pub total: usize,
}

/// A file, folder or link of a workspace.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ListedFile {
    #[schema(example = "report/summary.md")]
    pub path: String,
    pub kind: ListedKind,
    /// The size of a file in bytes.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub size: Option<u64>,
    /// Whether a file can be executed.
    pub executable: bool,
    /// Where a link points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The hash of a file's content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// The kind of an entry of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListedKind {
    File,
    Folder,
    Link,
}

/// A page of states.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ManifestList {
    pub manifests: Vec<ManifestInfo>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// The files that differ between two states.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangeList {
    pub changes: Vec<FileChange>,
    pub total: usize,
}

impl From<Vec<FileChange>> for ChangeList {
    fn from(changes: Vec<FileChange>) -> Self {
        Self { total: changes.len(), changes }
    }
}
