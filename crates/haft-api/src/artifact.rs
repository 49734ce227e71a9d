//! Code artifacts and their versions.

use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::artifact;
use haft_core::artifact::{ArtifactContent, ArtifactDefinition, CodeArtifact};
use haft_core::id::ArtifactId;
use haft_core::name::ArtifactSlug;
use haft_core::resource::ResourceRevision;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::resource::{BrokenFile, ResourceState};

/// A code artifact with its newest version.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = CodeArtifact)]
pub struct ArtifactView {
    #[schema(value_type = Uuid)]
    pub id: ArtifactId,
    #[schema(value_type = String, example = "word-count")]
    pub slug: ArtifactSlug,
    #[serde(flatten)]
    pub content: Arc<ArtifactContent>,
    /// The number of the newest version.
    pub version: u32,
    /// The hash of that version.
    pub hash: String,
    #[serde(flatten)]
    pub state: ResourceState,
}

impl From<CodeArtifact> for ArtifactView {
    fn from(artifact: CodeArtifact) -> Self {
        Self {
            id: artifact.id,
            slug: artifact.definition.slug.clone(),
            content: Arc::clone(&artifact.definition.content),
            version: artifact.revision,
            state: ResourceState::of(&artifact),
            hash: artifact.hash,
        }
    }
}

/// The artifacts of the tenant.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ArtifactList {
    pub artifacts: Vec<ArtifactView>,
    pub total: u64,
    /// Files with errors, including partially valid ones; only on the first page, regardless of the filter.
    pub broken_files: Vec<BrokenFile>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A page of versions, newest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ArtifactVersionList {
    pub total: u64,
    pub versions: Vec<ArtifactVersion>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// One version of an artifact. It never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactVersion {
    /// Its number, from 1.
    pub version: u32,
    /// The content as the author wrote it.
    #[serde(flatten)]
    pub content: Arc<ArtifactContent>,
    /// The hash of the content.
    pub hash: String,
    /// Who stored it.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(value_type = Option<String>, required)]
    pub created_by: Option<Arc<str>>,
    /// When it was stored.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

impl From<artifact::ArtifactVersion> for ArtifactVersion {
    fn from(version: artifact::ArtifactVersion) -> Self {
        let artifact::ArtifactVersion { version, content, hash, created_by, created_at } = version;
        Self { version, content, hash, created_by, created_at }
    }
}

impl From<ResourceRevision<ArtifactDefinition>> for ArtifactVersion {
    fn from(revision: ResourceRevision<ArtifactDefinition>) -> Self {
        artifact::ArtifactVersion::from(revision).into()
    }
}
