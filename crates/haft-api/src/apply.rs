//! Plans and reports of applied folders.

use haft_core::problem::Problem;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::revision::FieldChange;

/// The planned or applied changes of a folder.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ApplyReport {
    /// Identifies the folder and the state that it was compared with. Applying with this id fails if either has changed.
    pub plan: String,
    /// Whether the changes were applied.
    pub applied: bool,
    pub summary: ApplySummary,
    pub changes: Vec<PlannedChange>,
    /// Warnings about the folder.
    pub warnings: Vec<Problem>,
}

/// The number of items per action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApplySummary {
    pub create: usize,
    pub update: usize,
    pub publish: usize,
    pub delete: usize,
    pub unchanged: usize,
    /// Items that are not in the folder; `prune` would delete them.
    pub unmanaged: usize,
}

/// One item of a plan and its action.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PlannedChange {
    pub kind: ChangeKind,
    pub action: ChangeAction,
    /// The bundle of a tool.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "weather")]
    pub bundle: Option<String>,
    #[schema(example = "forecast")]
    pub name: String,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "1.0.0")]
    pub version: Option<String>,
    /// The file or folder that defines it.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "bundles/weather/forecast.yaml")]
    pub file: Option<String>,
    /// The description of a new item, or the content of a pipeline that is or would be deleted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub summary: String,
    /// The fields that change; secrets are masked.
    pub fields: Vec<FieldChange>,
}

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Bundle,
    Tool,
    Toolset,
    McpServer,
    Policy,
    Agent,
    Pipeline,
    CodeArtifact,
}

/// The action for an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeAction {
    Create,
    Update,
    /// Its newest revision is published; its definition does not change.
    Publish,
    Delete,
    /// It matches the folder.
    Unchanged,
    /// It is not in the folder; `prune` would delete it.
    Unmanaged,
}
