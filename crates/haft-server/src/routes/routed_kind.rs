//! The parts of the shared routes that differ by kind of resource.

use std::sync::Arc;

use haft_api::resource::BrokenFile;
use haft_core::name::TenantId;
use haft_core::problem::Problem;
use haft_core::resource::{Resource, ResourceRevision};
use haft_platform::Installation;
use haft_platform::resource_kind::ServedKind;
use serde::Serialize;
use utoipa::ToSchema;

use crate::body::Body;
use crate::error::ApiError;

pub(super) type Application = Arc<Installation>;

/// A kind of resource with routes.
pub(crate) trait RoutedKind: ServedKind {
    /// The path of all resources of the kind.
    const PATH: &'static str;
    /// The name of the parameter for one of them.
    const REFERENCE: &'static str = "ref";
    /// The path segment of revisions, and the name of the parameter for one of them.
    const REVISIONS: (&'static str, &'static str) = ("revisions", "n");
    /// The tag in the OpenAPI document.
    const TAG: &'static str;
    /// The slug in examples.
    const EXAMPLE: &'static str;
    /// The description of updates in the OpenAPI document.
    const UPDATE: &'static str;

    /// A definition in requests, as the OpenAPI document shows it; [`RoutedKind::read`] reads it.
    type Body: ToSchema;
    /// A resource in responses.
    type View: Serialize + ToSchema + Send;
    /// A page of resources.
    type List: Serialize + ToSchema + Send;
    /// A revision.
    type Revision: Serialize + ToSchema + Send;
    /// A page of revisions.
    type Revisions: Serialize + ToSchema + Send;

    /// Reads a definition, with the warnings about its text. An update may keep omitted fields of the newest definition.
    fn read(body: &Body, earlier: Option<&Resource<Self>>) -> Result<(Self, Vec<Problem>), ApiError>;

    /// Shows the resources of a list.
    fn views(
        app: &Installation,
        tenant: &TenantId,
        found: Vec<Resource<Self>>,
    ) -> impl Future<Output = Result<Vec<Self::View>, ApiError>> + Send;

    /// Shows a page of resources.
    fn list(page: ListedResources<Self::View>) -> Self::List;

    /// Shows a revision; `published` is the number of the one that production uses.
    fn revision(revision: ResourceRevision<Self>, published: Option<u32>) -> Self::Revision;

    /// Shows a revision in a list.
    fn listed_revision(revision: ResourceRevision<Self>, published: Option<u32>) -> Self::Revision {
        Self::revision(revision, published)
    }

    /// Shows a page of revisions.
    fn revisions(page: ListedRevisions<Self::Revision>) -> Self::Revisions;

    /// Shows a changed resource with its warnings.
    fn view(
        app: &Installation,
        resource: Resource<Self>,
        warnings: Vec<Problem>,
    ) -> impl Future<Output = Result<Self::View, ApiError>> + Send;
}

/// A page of resources.
pub(crate) struct ListedResources<V> {
    /// The resources.
    pub(crate) items: Vec<V>,
    /// The number of resources that match the filter.
    pub(crate) total: u64,
    /// The files that cannot be used.
    pub(crate) broken_files: Vec<BrokenFile>,
    /// The token of the next page.
    pub(crate) next_page_token: Option<String>,
}

/// A page of revisions, newest first.
pub(crate) struct ListedRevisions<R> {
    /// The revisions.
    pub(crate) items: Vec<R>,
    /// The number of revisions.
    pub(crate) total: u64,
    /// The token of the next page.
    pub(crate) next_page_token: Option<String>,
}
