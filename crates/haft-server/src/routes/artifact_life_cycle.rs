//! `/code-artifacts/{id}`: its life cycle.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::artifact::ArtifactDefinition;
use haft_core::token::Role;

use super::code_artifacts::ArtifactView;
use super::revisions::RevisionDiff;
use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::resource_view::ResourcePatch;
use haft_platform::Installation;
use haft_platform::artifacts::check_source;
use haft_platform::resources;

/// Enable or disable a code artifact.
#[utoipa::path(
    patch, path = "/code-artifacts/{id}", tag = "artifacts", request_body = ResourcePatch,
    params(("id" = String, Path, description = "Id or slug", example = "word-count")),
    responses((status = 200, body = Success<ArtifactView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let ResourcePatch { enabled } = body.json()?;
    let changed = resources::set_enabled::<ArtifactDefinition>(&app, &identity, &reference, enabled).await?;
    Ok(success(ArtifactView::from(changed)).into_response())
}

/// Publish the newest version of a code artifact: tools that follow the newest version run it in production mode.
#[utoipa::path(
    post, path = "/code-artifacts/{id}/publish", tag = "artifacts",
    params(("id" = String, Path, description = "Id or slug", example = "word-count")),
    responses(
        (status = 200, body = Success<ArtifactView>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn publish(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let artifact = resources::find::<ArtifactDefinition>(&app, &identity, &reference).await?;
    let published = resources::publish(&app, &identity, &artifact).await?;
    Ok(success(ArtifactView::from(published)).into_response())
}

/// Deprecate a code artifact: tools still run it.
#[utoipa::path(
    post, path = "/code-artifacts/{id}/deprecate", tag = "artifacts",
    params(("id" = String, Path, description = "Id or slug", example = "word-count")),
    responses((status = 200, body = Success<ArtifactView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn deprecate(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let changed = resources::deprecate::<ArtifactDefinition>(&app, &identity, &reference).await?;
    Ok(success(ArtifactView::from(changed)).into_response())
}

/// Restore an earlier version of a code artifact as the newest one.
#[utoipa::path(
    post, path = "/code-artifacts/{id}/versions/{number}/restore", tag = "artifacts",
    params(
        ("id" = String, Path, description = "Id or slug", example = "word-count"),
        ("number" = u32, Path, minimum = 1, maximum = 2_147_483_647, example = 1),
    ),
    responses(
        (status = 200, body = Success<ArtifactView>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn restore(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((reference, number)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let artifact = resources::find::<ArtifactDefinition>(&app, &identity, &reference).await?;
    let version = resources::revision(&app, &artifact, "version", &number).await?;
    check_source(&app, &version.definition.content).await?;
    let restored = resources::restore(&app, &identity, &artifact, &version.definition).await?;
    Ok(success(ArtifactView::from(restored)).into_response())
}

/// Compare two revisions, field by field.
#[utoipa::path(
    get, path = "/code-artifacts/{id}/diff", tag = "artifacts",
    params(
        ("id" = String, Path, description = "Id or slug", example = "word-count"),
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
    let found = resources::find::<ArtifactDefinition>(&app, &identity, &reference).await?;
    let difference = resources::diff(&app, &found, params.get("from"), params.get("to")).await?;
    Ok(success(RevisionDiff::from(difference)).into_response())
}
