//! What keeps definitions: the trait, and how changes reach the registry.

use crate::bundle::Bundle;
use crate::id::{BundleId, ToolId};
use crate::name::{BundleSlug, TenantId, Version};
use crate::problem::Problem;
use crate::spec::ToolSpec;
use crate::tool::{Source, Status, Tool};
use crate::Timestamp;

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such thing.
    #[error("there is no {what} `{key}`")]
    NotFound {
        /// The kind of thing.
        what: &'static str,
        /// What was asked for.
        key: String,
    },
    /// Something stands in the way; it is left unchanged.
    #[error("{0}")]
    Conflict(String),
    /// The thing is built in, or its bundle is disabled or deleted.
    #[error("{0}")]
    ReadOnly(String),
    /// The definition cannot be stored as it is.
    #[error("{}", crate::problem::join(.0))]
    Invalid(Vec<Problem>),
    /// The disk or the database does not work now. Nothing was changed.
    #[error("{doing}")]
    Unavailable {
        /// What was being done, for the operator.
        doing: String,
        /// What went wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// Makes a "there is no such thing".
    pub fn not_found(what: &'static str, key: impl std::fmt::Display) -> Self {
        Self::NotFound { what, key: key.to_string() }
    }

    /// Wraps a fault of the disk or the database.
    pub fn unavailable(
        doing: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unavailable { doing: doing.into(), source: source.into() }
    }
}

/// Says what keeps the disk from being written, where a fault tells it, in words that anybody may read: without paths.
pub fn in_the_way(fault: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    let mut cause = Some(fault);
    while let Some(error) = cause {
        let text = error.to_string();
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if says(&["No space left", "disk is full", "disk I/O error", "Disk quota"]) {
            return Some("the disk is full, or fails");
        }
        if says(&["Permission denied", "Read-only file system", "readonly database"]) {
            return Some("its folder may not be written");
        }
        cause = error.source();
    }
    None
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
