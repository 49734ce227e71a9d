//! `/agents/{ref}/revisions`: the earlier definitions of an agent.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::agent::AgentDefinition;
use haft_core::token::Role;
use serde::Serialize;
use utoipa::ToSchema;

use super::revisions::RevisionDiff;
use crate::agent_view::{AgentRevisionView, AgentView};
use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::Params;
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::agents::{manage, visible_agent};
use haft_platform::resources;

/// The revisions of an agent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentRevisionList {
    total: usize,
    revisions: Vec<AgentRevisionView>,
    /// Always `null`: there is one page.
    #[schema(required)]
    next_page_token: Option<String>,
}

/// List the revisions of an agent, newest first.
#[utoipa::path(
    get, path = "/agents/{ref}/revisions", tag = "agents",
    params(("ref" = String, Path, description = "Slug or id", example = "assistant")),
    responses((status = 200, body = Success<AgentRevisionList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let agent = visible_agent(&app, &identity, &reference).await?;
    let found = app.store().agents().revisions(&identity.tenant, agent.id).await?;
    let published = agent.published_revision();
    let revisions: Vec<_> =
        found.iter().map(|revision| AgentRevisionView::new(revision, published)).collect();
    let list = AgentRevisionList { total: revisions.len(), revisions, next_page_token: None };
    Ok(success(list).into_response())
}

/// Get a revision of an agent, with its definition.
#[utoipa::path(
    get, path = "/agents/{ref}/revisions/{n}", tag = "agents",
    params(
        ("ref" = String, Path, description = "Slug or id", example = "assistant"),
        ("n" = u32, Path, description = "Number of the revision", example = 1),
    ),
    responses((status = 200, body = Success<AgentRevisionView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((reference, number)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let agent = visible_agent(&app, &identity, &reference).await?;
    let revision = resources::revision(&app, &agent, "revision", &number).await?;
    let view =
        AgentRevisionView::new(&revision, agent.published_revision()).with_definition(&revision.definition);
    Ok(success(view).into_response())
}

/// Restore an earlier revision as the newest one.
#[utoipa::path(
    post, path = "/agents/{ref}/revisions/{n}/restore", tag = "agents",
    params(
        ("ref" = String, Path, description = "Slug or id", example = "assistant"),
        ("n" = u32, Path, description = "Number of the revision", example = 1),
    ),
    responses((status = 200, body = Success<AgentView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn restore(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((reference, number)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let agent = visible_agent(&app, &identity, &reference).await?;
    let revision = resources::revision(&app, &agent, "revision", &number).await?;
    let (agent, warnings) = manage::restore(&app, &identity, &agent, &revision).await?;
    Ok(success(AgentView::new(&app, &agent).with_warnings(warnings)).into_response())
}

/// Compare two revisions, field by field.
#[utoipa::path(
    get, path = "/agents/{ref}/diff", tag = "agents",
    params(
        ("ref" = String, Path, description = "Id or slug", example = "assistant"),
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
    let found = resources::find::<AgentDefinition>(&app, &identity, &reference).await?;
    let difference = resources::diff(&app, &found, params.get("from"), params.get("to")).await?;
    Ok(success(RevisionDiff::from(difference)).into_response())
}
