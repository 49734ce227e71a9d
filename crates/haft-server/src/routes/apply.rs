//! `POST /apply` and `GET /export`: the installation as a folder.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use haft_core::outcome::ErrorCode;
use haft_core::token::Role;

use super::toolsets::zip_response;
use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::report_view;
use haft_api::apply::ApplyReport;
use haft_platform::Installation;
use haft_platform::applying::{self, ApplyOptions};
use haft_platform::audit;
use haft_platform::toolsets::MAX_PACKAGE_BYTES;

/// Bring the installation to the state of a folder: its bundles, toolsets, MCP servers, policy rules, agents, pipelines
/// and code artifacts, all or nothing.
#[utoipa::path(
    post, path = "/apply", tag = "apply",
    params(
        ("dry_run" = Option<bool>, Query, description = "Report the changes, and change nothing"),
        ("prune" = Option<bool>, Query, description = "Delete tools of these bundles, agents, pipelines with their documents, code artifacts and MCP servers that the folder does not have"),
        ("plan" = Option<String>, Query, description = "The id of the plan to apply; if the folder or the installation has changed since, nothing is applied"),
        ("allow_unsandboxed" = Option<bool>, Query, description = "Let tools of toolsets that ask for it run without isolation"),
    ),
    request_body(content = Vec<u8>, content_type = "application/zip", description = "The folder as a ZIP file"),
    responses(
        (status = 200, body = Success<ApplyReport>),
        (status = 400, body = ErrorBody, description = "`details.problems` has every problem, with its file"),
        (status = 409, body = ErrorBody), (status = 413, body = ErrorBody),
    )
)]
pub(crate) async fn apply(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    identity.require_all_tools("apply a folder")?;
    let dry_run = params.flag("dry_run")?;
    let options =
        ApplyOptions { prune: params.flag("prune")?, allow_unsandboxed: params.flag("allow_unsandboxed")? };
    let body = Body::read(request, MAX_PACKAGE_BYTES, "the folder").await?;
    if !body.bytes.starts_with(b"PK") {
        let message = "expected the folder as a ZIP file (`Content-Type: application/zip`)";
        return Err(ApiError::bad_request(message));
    }
    if dry_run {
        audit::note(&identity, "apply.plan", "");
    }
    let prepared = Box::pin(applying::prepare(&app, &identity, body.bytes.to_vec(), options)).await?;
    if params.get("plan").is_some_and(|plan| plan != prepared.report.plan) {
        let message = "the folder or the installation changed after the plan was made; nothing was applied: make a new \
                       plan";
        return Err(ApiError::new(ErrorCode::Conflict, message));
    }
    if dry_run {
        return Ok(success(report_view::apply(prepared.report)).into_response());
    }
    let report = Box::pin(applying::apply(&app, &identity, prepared)).await?;
    // Whether tools that run agents are ready is known at once.
    app.agents().refresh_names().await?;
    Ok(success(report_view::apply(report)).into_response())
}

/// Export the installation, or some bundles of it, as a folder that can be applied elsewhere. Secrets become `${VAR}`.
#[utoipa::path(
    get, path = "/export", tag = "apply",
    params(("bundle" = Option<String>, Query, description = "Only these bundles, comma-separated; default: all, with MCP servers, policy rules, agents, pipelines and code artifacts")),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/zip", description = "The folder as a ZIP file"),
        (status = 404, body = ErrorBody),
    )
)]
pub(crate) async fn export(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    identity.require_all_tools("export the installation")?;
    let archive = applying::export(&app, &identity, &params.list("bundle")).await?;
    Ok(zip_response("haft.zip", archive))
}
