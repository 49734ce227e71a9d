//! Reports of imports.

use std::borrow::Cow;

use haft_core::problem::Problem;
use haft_core::tool::Status;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The result of an import.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ImportReport {
    /// The title of the document.
    #[schema(example = "Pets")]
    pub title: String,
    /// The version of the described API.
    pub version: String,
    /// The number of operations in the document.
    pub operations: usize,
    /// The bundle of the tools.
    #[schema(example = "pets")]
    pub bundle: String,
    /// Whether this was a dry run, which stores nothing.
    pub dry_run: bool,
    pub created: usize,
    pub updated: usize,
    pub unchanged: usize,
    pub skipped: usize,
    pub missing: usize,
    pub deleted: usize,
    /// The servers that the tools send requests to.
    pub servers: Vec<String>,
    /// The secrets that the tools need.
    pub secrets: Vec<String>,
    /// One entry per operation, and per tool whose operation is no longer in the document.
    pub tools: Vec<ImportedTool>,
    /// Warnings about the document.
    pub warnings: Vec<Problem>,
}

/// One operation and its tool.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ImportedTool {
    /// The operation, such as `GET /pets`.
    #[schema(example = "GET /pets")]
    pub operation: String,
    /// The name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The action, which a dry run only plans.
    pub action: ImportAction,
    /// Why it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The fields that the import changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Cow<'static, str>>,
    /// The fields that were kept because they were edited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Cow<'static, str>>,
    /// Warnings about the tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Problem>,
}

/// The action for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportAction {
    /// A tool was created.
    Created,
    /// A tool of an earlier import was updated.
    Updated,
    /// A tool of an earlier import matches the document.
    Unchanged,
    /// The operation was skipped.
    Skipped,
    /// The operation is no longer in the document; the tool was left unchanged.
    Missing,
    /// The operation is no longer in the document; the tool was deleted.
    Deleted,
}

/// The report of an import of registry rows, or of a dry run.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RegistryReport {
    #[schema(example = "user-created")]
    pub bundle: String,
    pub dry_run: bool,
    pub created: usize,
    pub updated: usize,
    pub unchanged: usize,
    pub skipped: usize,
    /// The number of invalid rows; if it is not 0, nothing is imported.
    pub failed: usize,
    pub rows: Vec<RowReport>,
}

/// One row of the report.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RowReport {
    /// The line of the row, from 1.
    #[schema(example = 1)]
    pub line: usize,
    /// The id of the row.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub row_id: Option<String>,
    /// The tool, as `bundle:name@version`.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "user-created:greet@1.0.0")]
    pub tool: Option<String>,
    pub action: RowAction,
    /// The status of the tool.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub status: Option<Status>,
    /// Whether lists hide the tool, because it is a tenant's copy of a built-in tool.
    pub hidden: bool,
    /// Why it was skipped or is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Problem>,
}

/// The action for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowAction {
    /// A tool was created.
    Created,
    /// The tool of an earlier import was updated.
    Updated,
    /// The tool of an earlier import matches the row.
    Unchanged,
    /// The row was skipped.
    Skipped,
    /// The row is invalid; nothing was imported.
    Failed,
}

/// The report of an import of single items, or of a dry run.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ItemImportReport {
    /// Whether this was a dry run, which stores nothing.
    pub dry_run: bool,
    pub created: usize,
    pub replaced: usize,
    pub skipped: usize,
    pub failed: usize,
    /// One entry per item, in their order.
    pub items: Vec<ImportItem>,
}

/// One item of an import.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ImportItem {
    /// The name of the tool or the server.
    #[schema(example = "example_users")]
    pub name: String,
    /// The action, which a dry run only plans.
    pub action: ItemAction,
    /// Warnings about the item.
    pub warnings: Vec<Problem>,
    /// Why it was not imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The definition that is stored, in the canonical form with secrets masked; for tools only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub definition: Option<Value>,
}

/// The action for an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemAction {
    /// It is created.
    Create,
    /// It replaces the item of the same name.
    Replace,
    /// It was not selected.
    Skip,
    /// It is invalid or was rejected.
    Error,
}
