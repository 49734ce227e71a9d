//! `POST /tools/{ref}/publish`, `/deprecate` and `/version`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::catalog::Transition;
use haft_core::name::Version;
use haft_core::token::Role;

use crate::app::App;
use crate::audit;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::view::ToolView;

async fn change_status(
    app: &App,
    identity: &Identity,
    reference: &str,
    transition: Transition,
    action: &str,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let entry = super::tool::find(app, identity, reference)?;
    super::bundles::require_enabled_bundle(app, identity, &entry)?;
    let tool = app.store().transition(entry.tool.id, transition).await?;
    audit::note(identity, action, &tool.qualified());
    Ok(success(super::tool::view(app, identity, tool.id).await?).into_response())
}

/// Publish the newest revision: production mode runs it.
#[utoipa::path(
    post, path = "/tools/{ref}/publish", tag = "life cycle", params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")),
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn publish(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let entry = super::tool::find(&app, &identity, &reference)?;
    app.registry().verified(&entry).await;
    if let Some(fault) = entry.fault() {
        let message = format!("cannot publish `{}`: {fault}", entry.qualified);
        return Err(ApiError::new(haft_core::outcome::ErrorCode::NotReady, message));
    }
    change_status(&app, &identity, &reference, Transition::Publish, "tool.publish").await
}

/// Deprecate a tool: it still runs, with a warning.
#[utoipa::path(
    post, path = "/tools/{ref}/deprecate", tag = "life cycle", params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")),
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn deprecate(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    change_status(&app, &identity, &reference, Transition::Deprecate, "tool.deprecate").await
}

/// Set the version label of a tool.
#[utoipa::path(
    post, path = "/tools/{ref}/version", tag = "life cycle",
    params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet"), ("new_version" = String, Query, description = "X.Y.Z", pattern = r"^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$", example = "1.1.0")),
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn version(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let text = params.get("new_version").ok_or_else(|| ApiError::bad_request("missing `new_version`"))?;
    let version = Version::new(text)?;
    if !version.is_three_numbers() {
        return Err(ApiError::bad_request(format!(
            "invalid `new_version`: `{version}`; expected X.Y.Z, for example `1.2.0`"
        )));
    }
    change_status(&app, &identity, &reference, Transition::Relabel(version), "tool.version").await
}
