//! Revisions of tools, and differences between revisions of any kind.

use haft_core::Timestamp;
use haft_core::redact;
use haft_core::spec::ToolSpec;
use haft_core::tool::Revision;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The revisions of a definition.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RevisionList {
    pub total: usize,
    pub revisions: Vec<RevisionView>,
    /// Always `null`: there is one page.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// One revision, as the API shows it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RevisionView {
    #[schema(example = 1)]
    pub number: u32,
    /// The SHA-256 of the definition.
    pub hash: String,
    pub created_at: Timestamp,
    /// Who stored it.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "local")]
    pub created_by: Option<String>,
    /// Whether production mode runs this revision.
    pub published: bool,
    /// When it was last published.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub published_at: Option<Timestamp>,
    /// Who published it.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub published_by: Option<String>,
    pub definition: ToolSpec,
}

impl RevisionView {
    /// Creates the view of a revision.
    pub fn new(revision: &Revision, published: Option<u32>) -> Self {
        Self {
            number: revision.number,
            hash: revision.hash.clone(),
            created_at: revision.created_at,
            created_by: revision.created_by.clone(),
            published: published == Some(revision.number),
            published_at: revision.published_at,
            published_by: revision.published_by.clone(),
            definition: redact::masked(&revision.spec),
        }
    }
}

/// The difference between two revisions.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RevisionDiff {
    #[schema(example = 1)]
    pub from: u32,
    #[schema(example = 2)]
    pub to: u32,
    pub changes: Vec<FieldChange>,
}

/// A field that differs between two definitions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    /// The dotted path of the field.
    #[schema(example = "description")]
    pub field: String,
    /// The earlier value; `null` if the field is missing there.
    pub before: Value,
    /// The later value; `null` if the field is missing there.
    pub after: Value,
}
