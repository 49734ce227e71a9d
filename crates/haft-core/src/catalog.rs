//! The types of catalog changes, and how changes reach the registry.

use crate::Timestamp;
use crate::bundle::Bundle;
use crate::id::{BundleId, ToolId};
use crate::name::{BundleSlug, TenantId, Version};
use crate::problem::Problem;
use crate::spec::ToolSpec;
use crate::tool::{Source, Status, Tool};

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The object does not exist.
    #[error("{what} `{key}` not found")]
    NotFound {
        /// The kind of object.
        what: &'static str,
        /// The id or name that was requested.
        key: String,
    },
    /// The change conflicts with stored data, which stays unchanged.
    #[error("{0}")]
    Conflict(String),
    /// The object is built in, or its bundle is disabled or deleted.
    #[error("{0}")]
    ReadOnly(String),
    /// The definition is invalid.
    #[error("{}", crate::problem::join(.0))]
    Invalid(Vec<Problem>),
    /// The disk or the database failed. Nothing was changed.
    #[error("cannot {action}")]
    Unavailable {
        /// What failed, for the operator: a phrase such as `write the call journal`.
        action: String,
        /// The kind of failure.
        failure: StorageFailure,
        /// The error of the disk or the database.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// Creates a [`StoreError::NotFound`].
    pub fn not_found(what: &'static str, key: impl std::fmt::Display) -> Self {
        Self::NotFound { what, key: key.to_string() }
    }

    /// Creates a [`StoreError::Unavailable`]; an I/O error among the causes decides the kind of failure.
    pub fn unavailable(
        action: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let source = source.into();
        Self::Unavailable { action: action.into(), failure: StorageFailure::of(&*source), source }
    }

    /// Describes the error together with its cause, for the operator.
    pub fn with_cause(&self) -> String {
        match self {
            Self::Unavailable { source, .. } => format!("{self}: {source}"),
            other => other.to_string(),
        }
    }
}

/// The kind of a storage failure, as far as the system reports one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StorageFailure {
    /// The disk is full, or a quota is used up.
    DiskFull,
    /// The disk reports errors.
    DiskError,
    /// The process may not write there.
    PermissionDenied,
    /// The file system or the database is read-only.
    ReadOnly,
    /// Anything else.
    #[default]
    Other,
}

impl StorageFailure {
    /// Returns the kind of the first I/O error among an error and its causes.
    pub fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(io) = error.downcast_ref::<std::io::Error>() {
                return Self::of_io(io.kind());
            }
            cause = error.source();
        }
        Self::Other
    }

    /// Returns the kind of an I/O error.
    pub fn of_io(kind: std::io::ErrorKind) -> Self {
        use std::io::ErrorKind;
        match kind {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::DiskFull,
            ErrorKind::PermissionDenied => Self::PermissionDenied,
            ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            _ => Self::Other,
        }
    }

    /// Describes the failure without paths, for every reader; `None` if its kind is unknown.
    pub const fn describe(self) -> Option<&'static str> {
        match self {
            Self::DiskFull => Some("no space left on device"),
            Self::DiskError => Some("disk I/O error"),
            Self::PermissionDenied => Some("permission denied"),
            Self::ReadOnly => Some("read-only storage"),
            Self::Other => None,
        }
    }
}

/// A definition file that cannot be read and has no tool yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableFile {
    /// The file, relative to the home folder.
    pub path: String,
    /// The bundle whose folder holds it.
    pub bundle: BundleSlug,
    /// Who owns that bundle.
    pub tenant: TenantId,
    /// The name that the file's name suggests.
    pub name: String,
    /// What is wrong, with the line where it is known.
    pub error: String,
    /// When the file was last changed.
    pub modified_at: Timestamp,
}

/// One change of the catalog.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A bundle is new or different.
    Bundle(Bundle),
    /// A bundle was removed for good.
    BundleGone(BundleId),
    /// A tool is new or different.
    Tool(Box<Tool>),
    /// A tool was removed.
    ToolGone(ToolId),
    /// A file cannot be read.
    Unreadable(UnreadableFile),
    /// That file can be read now, or is gone.
    UnreadableGone(String),
}

/// Who wants to know of changes. Called before the write that caused them returns.
pub trait ChangeSink: Send + Sync {
    /// Takes changes in their order.
    fn apply(&self, changes: Vec<Change>);
    /// Takes the whole catalog anew.
    fn replace(&self, everything: Vec<Change>);
}

/// The kind of file that a new definition is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileForm {
    /// `.skill`: YAML front matter and a body.
    Skill,
    /// `.yaml`: a YAML definition.
    Yaml,
    /// `.json`: the canonical form.
    Json,
}

impl FileForm {
    /// Returns the ending of such files, which is also the name of the form.
    pub const fn extension(self) -> &'static str {
        match self {
            FileForm::Skill => "skill",
            FileForm::Yaml => "yaml",
            FileForm::Json => "json",
        }
    }
}

/// A definition as its author wrote it, comments and layout included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// The form it is written in.
    pub form: FileForm,
    /// The text.
    pub text: String,
}

/// A bundle to create or replace.
#[derive(Debug, Clone)]
pub struct PutBundle {
    /// Its id; `None` means: find it by its slug, or make an id.
    pub id: Option<BundleId>,
    /// Who owns it.
    pub tenant: TenantId,
    /// Its slug.
    pub slug: BundleSlug,
    /// The name shown to people.
    pub display_name: String,
    /// What it is for.
    pub description: String,
    /// Its switch.
    pub enabled: bool,
}

/// A tool to create.
#[derive(Debug, Clone)]
pub struct NewTool {
    /// Who owns it.
    pub tenant: TenantId,
    /// The bundle; it is made if it is missing.
    pub bundle: BundleSlug,
    /// What it is.
    pub spec: ToolSpec,
    /// The kind of file to write, where there are files.
    pub form: FileForm,
    /// What becomes the file, where it is of that form and says exactly what `spec` says.
    pub text: Option<SourceText>,
    /// Its switch.
    pub enabled: bool,
    /// Where it came from.
    pub source: Source,
}

/// A change of a tool, made whole or not at all.
#[derive(Debug, Clone)]
pub struct ToolChange {
    /// What it is from now on.
    pub spec: ToolSpec,
    /// What becomes the file, where it is of the file's form and says exactly what `spec` says.
    pub text: Option<SourceText>,
    /// Its status, where that changes.
    pub status: Option<Status>,
    /// Its switch, where that changes.
    pub enabled: Option<bool>,
}

impl From<ToolSpec> for ToolChange {
    fn from(spec: ToolSpec) -> Self {
        Self { spec, text: None, status: None, enabled: None }
    }
}

/// Whether a put made something new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutResult {
    /// It is new.
    Created,
    /// It was there and is different now.
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

/// A step in the life of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Transition {
    /// The newest revision becomes the one that production runs.
    Publish,
    /// Still runs, with a warning.
    Deprecate,
    /// Back to `draft`, or switched off by status.
    Set(Status),
    /// The newest revision gets a new version label, as a revision of its own.
    Relabel(Version),
}
