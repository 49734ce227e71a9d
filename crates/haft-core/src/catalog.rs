//! The types of catalog changes, and how changes reach the registry.

use crate::Timestamp;
use crate::approval::Approval;
use crate::bundle::Bundle;
use crate::call::CallRecord;
use crate::id::{BundleId, ToolId};
use crate::lifecycle::{Deprecation, LegacyFields};
use crate::limit::LimitName;
use crate::live::ObjectChange;
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
    /// A limit of the tenant is reached. Nothing was changed.
    #[error("{message}")]
    LimitReached {
        /// The limit.
        limit: LimitName,
        /// Its value.
        value: u64,
        /// What is stored, the limit, and what to do.
        message: String,
    },
    /// Another change holds the lock that all changes need. Nothing was changed; a retry may succeed.
    #[error("the store is busy: another change takes longer than 15 s; try again")]
    Busy,
    /// Another node has claimed the work, or it has ended. Nothing was changed, and the result is to be dropped.
    #[error("another node has taken over; the result was dropped")]
    ClaimLost,
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

    /// Returns whether the same operation may succeed later: the database is away, or busy.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Busy)
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
    /// Returns whether anybody follows calls, approvals and other objects. Called for every call, so it must not block.
    fn has_followers(&self) -> bool {
        false
    }
    /// Receives the new state of a call, while somebody follows. It must not block.
    fn call_changed(&self, _call: &CallRecord) {}
    /// Receives the new state of an approval, while somebody follows. It must not block.
    fn approval_changed(&self, _approval: &Approval) {}
    /// Receives a change of an agent, a run, a chat, a pipeline or an artifact, while somebody follows. It must not block.
    fn object_changed(&self, _change: &ObjectChange) {}
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
    /// Its purpose.
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

/// A tool that is imported from a registry, with its state there.
#[derive(Debug, Clone)]
pub struct ImportedTool {
    /// The stored tool to update; `None` creates one.
    pub id: Option<ToolId>,
    /// The bundle, which is created if it does not exist.
    pub bundle: BundleSlug,
    /// The definition.
    pub spec: ToolSpec,
    /// The status.
    pub status: Status,
    /// Whether it is enabled.
    pub enabled: bool,
    /// When it was first published, if it was.
    pub published_at: Option<Timestamp>,
    /// The fields that haft keeps.
    pub legacy: LegacyFields,
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
    /// The tool still runs, with a warning, until the removal date if there is one. The store adds who and when.
    Deprecate(Deprecation),
    /// Sets the status to `draft` or `disabled`.
    Set(Status),
    /// Adds a revision with the same content and a new version label.
    Relabel(Version),
}
