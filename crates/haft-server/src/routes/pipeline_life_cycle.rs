//! `/pipelines/{ref}`: its life cycle and its revisions.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::resource::ResourceRevision;
use haft_core::retrieval::PipelineDefinition;
use haft_core::token::Role;
use serde::Serialize;
use utoipa::ToSchema;

use super::pipelines::PipelineView;
use super::revisions::RevisionDiff;
use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::resource_view::ResourcePatch;
use haft_platform::Installation;
use haft_platform::resources;

/// A revision of a pipeline.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PipelineRevision {
    /// The number, from 1.
    number: u32,
    /// The hash of the definition.
    hash: String,
    /// Whether production uses it.
    published: bool,
    /// Who stored it.
    #[schema(value_type = Option<String>, required)]
    created_by: Option<Arc<str>>,
    /// When it was stored.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    definition: Arc<PipelineDefinition>,
}

impl PipelineRevision {
    fn new(revision: ResourceRevision<PipelineDefinition>, published: Option<u32>) -> Self {
        let ResourceRevision { number, hash, definition, created_by, created_at } = revision;
        Self { number, hash, published: published == Some(number), created_by, created_at, definition }
    }
}

/// The revisions of a pipeline.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PipelineRevisionList {
    total: usize,
    revisions: Vec<PipelineRevision>,
    /// Always `null`: there is one page.
    #[schema(required)]
    next_page_token: Option<String>,
}

/// Enable or disable a pipeline.
#[utoipa::path(
    patch, path = "/pipelines/{ref}", tag = "retrieval", request_body = ResourcePatch,
    params(("ref" = String, Path, description = "Id or slug", example = "handbook")),
    responses((status = 200, body = Success<PipelineView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let ResourcePatch { enabled } = body.json()?;
    let changed = resources::set_enabled::<PipelineDefinition>(&app, &identity, &reference, enabled).await?;
    Ok(success(PipelineView::from(app.store().pipeline_of(changed).await?)).into_response())
}

/// Deprecate a pipeline: it can still be queried.
#[utoipa::path(
    post, path = "/pipelines/{ref}/deprecate", tag = "retrieval",
    params(("ref" = String, Path, description = "Id or slug", example = "handbook")),
    responses((status = 200, body = Success<PipelineView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn deprecate(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let changed = resources::deprecate::<PipelineDefinition>(&app, &identity, &reference).await?;
    Ok(success(PipelineView::from(app.store().pipeline_of(changed).await?)).into_response())
}

/// List the revisions of a pipeline, newest first.
#[utoipa::path(
    get, path = "/pipelines/{ref}/revisions", tag = "retrieval",
    params(("ref" = String, Path, description = "Id or slug", example = "handbook")),
    responses((status = 200, body = Success<PipelineRevisionList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn revisions(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let pipeline = resources::find::<PipelineDefinition>(&app, &identity, &reference).await?;
    let found = app.store().pipelines().revisions(&identity.tenant, pipeline.id).await?;
    let published = pipeline.published_revision();
    let revisions: Vec<_> =
        found.into_iter().map(|revision| PipelineRevision::new(revision, published)).collect();
    let list = PipelineRevisionList { total: revisions.len(), revisions, next_page_token: None };
    Ok(success(list).into_response())
}

/// Get a revision of a pipeline.
#[utoipa::path(
    get, path = "/pipelines/{ref}/revisions/{n}", tag = "retrieval",
    params(
        ("ref" = String, Path, description = "Id or slug", example = "handbook"),
        ("n" = u32, Path, description = "Number of the revision", example = 1),
    ),
    responses((status = 200, body = Success<PipelineRevision>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn revision(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((reference, number)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let pipeline = resources::find::<PipelineDefinition>(&app, &identity, &reference).await?;
    let revision = resources::revision(&app, &pipeline, "revision", &number).await?;
    Ok(success(PipelineRevision::new(revision, pipeline.published_revision())).into_response())
}

/// Restore an earlier revision of a pipeline as the newest one.
#[utoipa::path(
    post, path = "/pipelines/{ref}/revisions/{n}/restore", tag = "retrieval",
    params(
        ("ref" = String, Path, description = "Id or slug", example = "handbook"),
        ("n" = u32, Path, description = "Number of the revision", example = 1),
    ),
    responses(
        (status = 200, body = Success<PipelineView>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn restore(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((reference, number)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let pipeline = resources::find::<PipelineDefinition>(&app, &identity, &reference).await?;
    let revision = resources::revision(&app, &pipeline, "revision", &number).await?;
    let restored = resources::restore(&app, &identity, &pipeline, &revision.definition).await?;
    Ok(success(PipelineView::from(app.store().pipeline_of(restored).await?)).into_response())
}

/// Compare two revisions, field by field.
#[utoipa::path(
    get, path = "/pipelines/{ref}/diff", tag = "retrieval",
    params(
        ("ref" = String, Path, description = "Id or slug", example = "handbook"),
        ("from" = Option<u32>, Query, description = "A revision; default: the published one, otherwise the previous one"),
        ("to" = Option<u32>, Query, description = "A revision; default: the newest one"),
    ),
    responses((status = 200, body = Success<RevisionDiff>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn diff(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let found = resources::find::<PipelineDefinition>(&app, &identity, &reference).await?;
    let difference = resources::diff(&app, &found, params.get("from"), params.get("to")).await?;
    Ok(success(RevisionDiff::from(difference)).into_response())
}
