//! `GET /tools/{ref}/revisions`, `POST …/revisions/{n}/restore` and `GET …/diff`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::token::Role;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::report_view;
use haft_api::revision::{RevisionDiff, RevisionList, RevisionView};
use haft_api::tool::ToolView;
use haft_platform::Installation;
use haft_platform::resources::Difference;
use haft_platform::tools::{self, default_base, differences, find_revision};

/// Shows the difference between two revisions.
pub(super) fn revision_diff(difference: Difference) -> RevisionDiff {
    let Difference { from, to, changes } = difference;
    RevisionDiff { from, to, changes: changes.into_iter().map(report_view::field_change).collect() }
}

/// List the revisions of a definition, newest first.
#[utoipa::path(
    get, path = "/tools/{ref}/revisions", tag = "life cycle", params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")),
    responses((status = 200, body = Success<RevisionList>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let entry = tools::find(&app, &identity, &reference)?;
    let revisions = app.store().catalog().revisions(entry.tool.id).await?;
    let published = entry.tool.published.as_ref().map(|(number, _)| *number);
    let views: Vec<_> = revisions.iter().map(|revision| RevisionView::new(revision, published)).collect();
    let list = RevisionList { total: views.len(), revisions: views, next_page_token: None };
    Ok(success(list).into_response())
}

/// Restore an earlier revision as the newest one.
#[utoipa::path(
    post, path = "/tools/{ref}/revisions/{n}/restore", tag = "life cycle",
    params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet"), ("n" = u32, Path, description = "Number of the revision", example = 1)),
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn restore(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((reference, number)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let entry = tools::find(&app, &identity, &reference)?;
    let revisions = app.store().catalog().revisions(entry.tool.id).await?;
    let revision = find_revision(&revisions, &number)?;
    let tool = tools::restore(&app, &identity, &entry, revision).await?;
    Ok(success(super::tool::view(&app, &identity, tool.id).await?).into_response())
}

/// Compare two revisions, field by field.
#[utoipa::path(
    get, path = "/tools/{ref}/diff", tag = "life cycle",
    params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet"),
        ("from" = Option<u32>, Query, description = "A revision; default: the published one, otherwise the previous one"),
        ("to" = Option<u32>, Query, description = "A revision; default: the newest one")),
    responses((status = 200, body = Success<RevisionDiff>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn diff(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let entry = tools::find(&app, &identity, &reference)?;
    let revisions = app.store().catalog().revisions(entry.tool.id).await?;
    let to = params.get("to").map_or_else(|| entry.tool.revision.to_string(), str::to_owned);
    let from = params.get("from").map_or_else(|| default_base(&entry).to_string(), str::to_owned);
    let (before, after) = (find_revision(&revisions, &from)?, find_revision(&revisions, &to)?);
    let changes = differences(before, after);
    let difference = Difference { from: before.number, to: after.number, changes };
    Ok(success(revision_diff(difference)).into_response())
}
