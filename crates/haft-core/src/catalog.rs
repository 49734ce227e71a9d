//! The store of definitions: its trait, its errors, and the changes it announces.

use std::sync::Arc;

use crate::bundle::Bundle;
use crate::id::{BundleId, ToolId};
use crate::name::{BundleSlug, TenantId, Version};
use crate::problem::Problem;
use crate::spec::ToolSpec;
use crate::tool::{Revision, Source, Status, Tool};
use crate::{BoxFuture, Timestamp};

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The object does not exist.
    #[error("{what} `{key}` not found")]
    NotFound {
        /// The kind of object.
        what: &'static str,
        /// The name or id that was looked up.
        key: String,
    },
    /// The change conflicts with an existing object, which is unchanged.
    #[error("{0}")]
    Conflict(String),
    /// The object is built in, or its bundle is disabled or deleted.
    #[error("{0}")]
    ReadOnly(String),
    /// The definition is invalid.
    #[error("{}", crate::problem::join(.0))]
    Invalid(Vec<Problem>),
    /// The disk or the database is unavailable. Nothing was changed.
    #[error("failed to {operation}")]
    Unavailable {
        /// What was attempted, such as `open the database`, for the operator.
        operation: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// Creates a "not found" error.
    pub fn not_found(what: &'static str, key: impl std::fmt::Display) -> Self {
        Self::NotFound { what, key: key.to_string() }
    }

    /// Wraps an error of the disk or the database.
    pub fn unavailable(
        operation: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unavailable { operation: operation.into(), source: source.into() }
    }
}

/// Why the storage cannot be written. The texts contain no paths, so they are safe for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StorageFault {
    /// The disk or the quota is full, or the disk fails.
    #[error("the disk is full or failing")]
    DiskFull,
    /// The folder or the database is read-only.
    #[error("its folder is not writable")]
    ReadOnly,
}

impl StorageFault {
    /// Returns the storage fault that an error or one of its sources carries: a `StorageFault` itself, or an I/O error.
    pub fn find(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        std::iter::successors(Some(error), |error| error.source()).find_map(|error| {
            let of_io = || Self::from_io(error.downcast_ref::<std::io::Error>()?);
            error.downcast_ref::<Self>().copied().or_else(of_io)
        })
    }

    fn from_io(error: &std::io::Error) -> Option<Self> {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some(Self::DiskFull),
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Some(Self::ReadOnly),
            _ => None,
        }
    }
}

/// An error with the storage fault that its code means, for sources that are not I/O errors.
#[derive(Debug)]
pub struct StorageError {
    fault: StorageFault,
    text: String,
}

impl StorageError {
    /// Describes a database error whose code means a storage fault.
    pub fn new(fault: StorageFault, error: &dyn std::error::Error) -> Self {
        Self { fault, text: error.to_string() }
    }
}

impl std::fmt::Display for StorageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for StorageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.fault)
    }
}

/// A definition file that is invalid and has no tool yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableFile {
    /// The file, relative to the home folder.
    pub path: String,
    /// The bundle whose folder holds it.
    pub bundle: BundleSlug,
    /// The tenant that owns the bundle.
    pub tenant: TenantId,
    /// The tool name derived from the file name.
    pub name: String,
    /// The error, with the line if known.
    pub error: String,
    /// When the file was last changed.
    pub modified_at: Timestamp,
}

/// One change of the catalog.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A bundle was created or changed.
    Bundle(Bundle),
    /// A bundle was removed permanently.
    BundleGone(BundleId),
    /// A tool was created or changed.
    Tool(Box<Tool>),
    /// A tool was removed.
    ToolGone(ToolId),
    /// A file is invalid.
    Unreadable(UnreadableFile),
    /// A file that was invalid is valid now, or was removed.
    UnreadableGone(String),
}

/// A receiver of changes, called before the write that caused them returns.
pub trait ChangeSink: Send + Sync {
    /// Applies changes in order.
    fn apply(&self, changes: Vec<Change>);
    /// Replaces the whole catalog.
    fn replace(&self, everything: Vec<Change>);
}

/// The format of a definition file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileForm {
    /// `.skill`: YAML front matter and a script body.
    Skill,
    /// `.yaml`: a YAML definition.
    Yaml,
    /// `.json`: the canonical form.
    Json,
}

impl FileForm {
    /// Returns the file extension, which is also the name of the format.
    pub const fn extension(self) -> &'static str {
        match self {
            FileForm::Skill => "skill",
            FileForm::Yaml => "yaml",
            FileForm::Json => "json",
        }
    }
}

/// The original text of a definition, including comments and layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// The file format.
    pub form: FileForm,
    /// The text.
    pub text: String,
}

/// A bundle to create or replace.
#[derive(Debug, Clone)]
pub struct PutBundle {
    /// The id; if `None`, the bundle is looked up by its slug or gets a new id.
    pub id: Option<BundleId>,
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Its slug.
    pub slug: BundleSlug,
    /// The name shown to people.
    pub display_name: String,
    /// What it is for.
    pub description: String,
    /// Whether it is enabled.
    pub enabled: bool,
}

/// A tool to create.
#[derive(Debug, Clone)]
pub struct NewTool {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// The bundle, which is created if it does not exist.
    pub bundle: BundleSlug,
    /// The definition.
    pub spec: ToolSpec,
    /// The file format, if the store writes files.
    pub form: FileForm,
    /// The text of the file, used if it has this format and defines exactly `spec`.
    pub text: Option<SourceText>,
    /// Whether it is enabled.
    pub enabled: bool,
    /// The source.
    pub source: Source,
}

/// An atomic change of a tool.
#[derive(Debug, Clone)]
pub struct ToolChange {
    /// The new definition.
    pub spec: ToolSpec,
    /// The new text of the file, used if it has the file's format and defines exactly `spec`.
    pub text: Option<SourceText>,
    /// The new status, if it changes.
    pub status: Option<Status>,
    /// The new value of `enabled`, if it changes.
    pub enabled: Option<bool>,
}

impl From<ToolSpec> for ToolChange {
    fn from(spec: ToolSpec) -> Self {
        Self { spec, text: None, status: None, enabled: None }
    }
}

/// The result of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutResult {
    /// The object was created.
    Created,
    /// An existing object was replaced.
    Replaced,
}

/// What happens to the file of a deleted tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backup {
    /// It is moved to `tool-history/`.
    Keep,
    /// It is removed.
    Discard,
}

/// A change of a tool's lifecycle status.
#[derive(Debug, Clone, PartialEq)]
pub enum Transition {
    /// The newest revision becomes the one that production runs.
    Publish,
    /// The tool still runs, with a warning.
    Deprecate,
    /// Sets the status to `draft` or `disabled`.
    Set(Status),
    /// Adds a revision with the same content and a new version label.
    Relabel(Version),
}

/// Stores bundles, tools and their revisions. When a write returns, it is durable and announced.
pub trait Catalog: Send + Sync {
    /// Creates, replaces or restores a bundle.
    fn put_bundle(&self, bundle: PutBundle) -> BoxFuture<'_, Result<(Bundle, PutResult), StoreError>>;
    /// Enables or disables a bundle.
    fn enable_bundle(&self, id: BundleId, enabled: bool) -> BoxFuture<'_, Result<Bundle, StoreError>>;
    /// Soft-deletes an empty bundle.
    fn delete_bundle(&self, id: BundleId) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Stores a new tool; an existing `<bundle, name, version>` is a conflict and stays unchanged.
    fn create_tool(&self, tool: NewTool) -> BoxFuture<'_, Result<Tool, StoreError>>;
    /// Changes a tool atomically. New content appends a revision; a new text with the same content only
    /// replaces the file.
    fn update_tool(&self, id: ToolId, change: ToolChange) -> BoxFuture<'_, Result<Tool, StoreError>>;
    /// Enables or disables a tool.
    fn enable_tool(&self, id: ToolId, enabled: bool) -> BoxFuture<'_, Result<Tool, StoreError>>;
    /// Changes the lifecycle status of a tool.
    fn transition(&self, id: ToolId, step: Transition) -> BoxFuture<'_, Result<Tool, StoreError>>;
    /// Deletes a tool; returns the path of its backup, relative to the home folder.
    fn delete_tool(&self, id: ToolId, backup: Backup) -> BoxFuture<'_, Result<Option<String>, StoreError>>;
    /// Returns all revisions, newest first.
    fn revisions(&self, id: ToolId) -> BoxFuture<'_, Result<Vec<Revision>, StoreError>>;
    /// Stores the built-in tools of this program; those of other programs are unchanged.
    fn set_built_ins(&self, specs: Vec<ToolSpec>) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Adds calls to the usage counters.
    fn add_usage(&self, calls: Vec<(ToolId, u64, Timestamp)>) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// A shared catalog.
pub type SharedCatalog = Arc<dyn Catalog>;
