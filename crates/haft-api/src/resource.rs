//! The parts of responses that all kinds of resources share.

use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::problem::Problem;
use haft_core::resource::{Resource, ResourceSpec};
use haft_core::tool::Status;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// The state of a resource without its definition.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ResourceState {
    /// The status.
    pub status: Status,
    /// Whether it may be used.
    pub enabled: bool,
    /// The number of the newest revision.
    pub revision: u32,
    /// The number of the published revision, which production uses.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub published_revision: Option<u32>,
    /// The file that defines it, relative to the home folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Why its file cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Who created it.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(value_type = Option<String>, required)]
    pub created_by: Option<Arc<str>>,
    /// Who stored the newest revision.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(value_type = Option<String>, required)]
    pub modified_by: Option<Arc<str>>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When its definition last changed.
    #[schema(value_type = String, format = DateTime)]
    pub modified_at: Timestamp,
    /// When it was published.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub published_at: Option<Timestamp>,
    /// When it was deleted; for 48 hours it can be restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deleted_at: Option<Timestamp>,
}

impl ResourceState {
    /// Returns the state of a resource.
    pub fn of<S: ResourceSpec>(resource: &Resource<S>) -> Self {
        Self {
            status: resource.status,
            enabled: resource.enabled,
            revision: resource.revision,
            published_revision: resource.published_revision(),
            path: resource.path.clone(),
            error: resource.error.clone(),
            created_by: resource.created_by.clone(),
            modified_by: resource.modified_by.clone(),
            created_at: resource.created_at,
            modified_at: resource.modified_at,
            published_at: resource.published_at,
            deleted_at: resource.deleted_at,
        }
    }
}

/// A definition file with errors.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BrokenFile {
    /// The file, relative to the home folder.
    #[schema(example = "agents/assistant.yaml")]
    pub path: String,
    /// The error, with the line if it is known.
    pub error: String,
    /// When the file was last read.
    pub modified_at: Timestamp,
}

/// The result of checking a definition without storing it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DefinitionCheck {
    pub valid: bool,
    pub errors: Vec<Problem>,
    pub warnings: Vec<Problem>,
}

/// A page of resources of any kind.
#[derive(Debug, Deserialize)]
pub struct ResourcePage<T> {
    #[serde(alias = "agents", alias = "pipelines", alias = "artifacts")]
    pub items: Vec<T>,
    /// The number of resources that match the filter.
    pub total: usize,
}

/// A deleted resource of any kind in a list, without its definition.
#[derive(Debug, Deserialize)]
pub struct DeletedResource {
    pub id: Uuid,
    pub slug: String,
    /// The number of the newest revision.
    pub revision: u32,
    /// Its status before the deletion.
    pub status: Status,
    /// When it was deleted; for 48 hours it can be restored.
    pub deleted_at: Timestamp,
}

/// A changed resource of any kind, without its definition.
#[derive(Debug, Deserialize)]
pub struct ChangedResource {
    pub slug: String,
    /// The number of the newest revision.
    pub revision: u32,
    /// The number of the published revision, which production uses.
    #[serde(deserialize_with = "crate::read::nullable")]
    pub published_revision: Option<u32>,
    /// Warnings about the definition.
    #[serde(default)]
    pub warnings: Vec<Problem>,
}

/// The details of the error for deleting a tool or a resource that is in use.
#[derive(Debug, Deserialize)]
pub struct ResourceUsers {
    /// Their names.
    pub used_by: Vec<String>,
}
