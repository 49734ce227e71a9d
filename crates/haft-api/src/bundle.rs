//! Bundles and their publication.

use haft_core::Timestamp;
use haft_core::bundle::{Bundle, BundleKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A bundle, as the API shows it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BundleView {
    pub id: Uuid,
    /// The tenant that owns it; `null` for a global bundle, which every tenant has.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "default")]
    pub tenant: Option<String>,
    #[schema(example = "demo")]
    pub slug: String,
    #[schema(example = "Demo")]
    pub display_name: String,
    #[schema(example = "Tools of the demo")]
    pub description: String,
    pub enabled: bool,
    pub kind: BundleKind,
    /// Whether `kind` is `built_in`.
    pub built_in: bool,
    /// The number of tools.
    pub tool_count: usize,
    pub created_at: Timestamp,
    pub modified_at: Timestamp,
    /// When it was deleted; it can be restored for 48 hours.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub soft_deleted_at: Option<Timestamp>,
    #[schema(example = 1)]
    pub schema_version: u32,
}

impl BundleView {
    /// Creates the view of a bundle.
    pub fn new(bundle: &Bundle, tool_count: usize) -> Self {
        Self {
            id: bundle.id.0,
            tenant: (!bundle.tenant.is_global()).then(|| bundle.tenant.to_string()),
            slug: bundle.slug.to_string(),
            display_name: bundle.display_name.clone(),
            description: bundle.description.clone(),
            enabled: bundle.enabled,
            kind: bundle.kind,
            built_in: bundle.kind == BundleKind::BuiltIn,
            tool_count,
            created_at: bundle.created_at,
            modified_at: bundle.modified_at,
            soft_deleted_at: bundle.soft_deleted_at,
            schema_version: 1,
        }
    }
}

/// A page of bundles.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BundleList {
    pub bundles: Vec<BundleView>,
    pub total: usize,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// The result of publishing a bundle, or of a dry run.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BundlePublication {
    #[schema(example = "demo")]
    pub bundle: String,
    pub dry_run: bool,
    /// The number of tools that were published, or would be.
    pub published: usize,
    /// The number of unchanged tools, whose newest revision is already published.
    pub unchanged: usize,
    /// The number of tools that cannot be published; if it is not 0, nothing is published.
    pub failed: usize,
    pub tools: Vec<PublicationLine>,
}

/// One tool of the bundle.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PublicationLine {
    pub id: Uuid,
    /// The tool, as `bundle:name@version`.
    #[schema(example = "demo:greet@1.0.0")]
    pub tool: String,
    pub action: PublicationAction,
    /// The revision that production ran before.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub published_revision: Option<u32>,
    /// The newest revision.
    pub revision: u32,
    /// Why it cannot be published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The action for a tool when its bundle is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PublicationAction {
    /// Its newest revision is published.
    Published,
    /// Its newest revision was published before.
    Unchanged,
    /// It is disabled or deprecated; its status does not change.
    Skipped,
    /// It cannot be published.
    Failed,
}
