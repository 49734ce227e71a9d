//! Resources: what people define, name and change, with revisions and one life cycle.
//!
//! A kind of resource is its definition type, [`ResourceSpec`]. Everything else, from revisions to publication, is the
//! same for all kinds. Tools have their own life cycle, because they belong to bundles.

use std::fmt;
use std::hash::Hash;
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::Timestamp;
use crate::id::IdError;
use crate::limit::LimitName;
use crate::live::{ObjectEvent, ResourceAction};
use crate::name::TenantId;
use crate::runnable::Mode;
use crate::tool::Status;

/// A kind of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceKind {
    /// A model with instructions and tools.
    Agent,
    /// A retrieval index over documents.
    Pipeline,
    /// A stored program.
    CodeArtifact,
}

impl ResourceKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Agent, Self::Pipeline, Self::CodeArtifact];

    /// Returns the name used in the store and in actions of the audit log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Pipeline => "pipeline",
            Self::CodeArtifact => "code_artifact",
        }
    }

    /// Returns the word for one resource of this kind in messages.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Pipeline => "pipeline",
            Self::CodeArtifact => "artifact",
        }
    }

    /// Returns the word for several resources of this kind. Files that define them are in a folder of this name.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Agent => "agents",
            Self::Pipeline => "pipelines",
            Self::CodeArtifact => "artifacts",
        }
    }

    /// Returns [`ResourceKind::noun`] with its article.
    pub const fn with_article(self) -> &'static str {
        match self {
            Self::Agent => "an agent",
            Self::Pipeline => "a pipeline",
            Self::CodeArtifact => "an artifact",
        }
    }

    /// Returns the limit of the number of resources of this kind that one tenant has.
    pub const fn limit(self) -> LimitName {
        match self {
            Self::Agent => LimitName::Agents,
            Self::Pipeline => LimitName::Pipelines,
            Self::CodeArtifact => LimitName::Artifacts,
        }
    }

    /// Returns the name of the action in the audit log.
    pub const fn audit_action(self, change: ResourceAction) -> &'static str {
        use ResourceAction::{Created, Deleted, Deprecated, Disabled, Enabled, Published, Updated};
        match (self, change) {
            (Self::Agent, Created) => "agent.create",
            (Self::Agent, Updated) => "agent.update",
            (Self::Agent, Deleted) => "agent.delete",
            (Self::Agent, Published) => "agent.publish",
            (Self::Agent, Deprecated) => "agent.deprecate",
            (Self::Agent, Enabled) => "agent.enable",
            (Self::Agent, Disabled) => "agent.disable",
            (Self::Pipeline, Created) => "pipeline.create",
            (Self::Pipeline, Updated) => "pipeline.update",
            (Self::Pipeline, Deleted) => "pipeline.delete",
            (Self::Pipeline, Published) => "pipeline.publish",
            (Self::Pipeline, Deprecated) => "pipeline.deprecate",
            (Self::Pipeline, Enabled) => "pipeline.enable",
            (Self::Pipeline, Disabled) => "pipeline.disable",
            (Self::CodeArtifact, Created) => "code_artifact.create",
            (Self::CodeArtifact, Updated) => "code_artifact.update",
            (Self::CodeArtifact, Deleted) => "code_artifact.delete",
            (Self::CodeArtifact, Published) => "code_artifact.publish",
            (Self::CodeArtifact, Deprecated) => "code_artifact.deprecate",
            (Self::CodeArtifact, Enabled) => "code_artifact.enable",
            (Self::CodeArtifact, Disabled) => "code_artifact.disable",
        }
    }
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.noun())
    }
}

/// The identifier of a resource.
pub trait ResourceId:
    Copy + Eq + Hash + fmt::Debug + fmt::Display + FromStr<Err = IdError> + From<Uuid> + Send + Sync + 'static
{
}

impl<T> ResourceId for T where
    T: Copy
        + Eq
        + Hash
        + fmt::Debug
        + fmt::Display
        + FromStr<Err = IdError>
        + From<Uuid>
        + Send
        + Sync
        + 'static
{
}

/// The definition of a resource, as its author writes it.
pub trait ResourceSpec:
    Clone + fmt::Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Identifies a resource through all its revisions.
    type Id: ResourceId;
    /// The kind.
    const KIND: ResourceKind;

    /// Returns the name by which other definitions refer to it.
    fn slug(&self) -> &str;
    /// Returns the name that people see.
    fn name(&self) -> &str;
    /// Returns what it is for.
    fn description(&self) -> &str;
    /// Sets the slug to that of another definition of the same resource.
    fn set_slug(&mut self, other: &Self);
    /// Returns the report of a change.
    fn event(resource: &Resource<Self>, change: ResourceAction) -> ObjectEvent;
}

/// A stored resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource<S: ResourceSpec> {
    /// Its id.
    pub id: S::Id,
    /// Its tenant.
    pub tenant: TenantId,
    /// The newest revision.
    pub definition: Arc<S>,
    /// The number of the newest revision.
    pub revision: u32,
    /// The hash of the newest revision.
    pub hash: String,
    /// The published revision, which production uses.
    pub published: Option<(u32, Arc<S>)>,
    /// The status.
    pub status: Status,
    /// Whether it may be used.
    pub enabled: bool,
    /// The file that defines it, relative to the home folder; `None` if the store does.
    pub path: Option<String>,
    /// Why its file cannot be used; the last valid definition is kept out of service.
    pub error: Option<String>,
    /// Who created it.
    pub created_by: Option<Arc<str>>,
    /// Who stored the newest revision.
    pub modified_by: Option<Arc<str>>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its definition last changed.
    pub modified_at: Timestamp,
    /// When it was published.
    pub published_at: Option<Timestamp>,
    /// When it was deleted; it can still be restored.
    pub deleted_at: Option<Timestamp>,
}

impl<S: ResourceSpec> Resource<S> {
    /// Returns the revision that is used in a mode, with its number: in production the published one, in debug the newest.
    pub fn runnable(&self, mode: Mode) -> Option<(u32, &Arc<S>)> {
        match mode {
            Mode::Production => self.published.as_ref().map(|(number, definition)| (*number, definition)),
            Mode::Debug => Some((self.revision, &self.definition)),
        }
    }

    /// Returns the published definition, or the newest one while nothing is published.
    pub fn serving(&self) -> &Arc<S> {
        self.published.as_ref().map_or(&self.definition, |(_, definition)| definition)
    }

    /// Returns the number of the published revision.
    pub fn published_revision(&self) -> Option<u32> {
        self.published.as_ref().map(|(number, _)| *number)
    }

    /// Returns whether it is disabled, by its switch or its status.
    pub fn is_disabled(&self) -> bool {
        !self.enabled || self.status == Status::Disabled
    }
}

/// One revision of a resource. It never changes.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceRevision<S> {
    /// Its number, from 1.
    pub number: u32,
    /// The hash of the definition.
    pub hash: String,
    /// The definition.
    pub definition: Arc<S>,
    /// Who stored it.
    pub created_by: Option<Arc<str>>,
    /// When it was stored.
    pub created_at: Timestamp,
}
