//! `POST /tools/{ref}/publish`, `/deprecate` and `/version`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::name::Version;
use haft_core::token::Role;
use haft_core::tool::Tool;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::Params;
use crate::reply::{Success, success};
use haft_api::tool::ToolView;
use haft_platform::Installation;
use haft_platform::identity::Identity;
use haft_platform::tools::{self, NewDeprecation};

async fn shown(app: &Installation, identity: &Identity, tool: &Tool) -> Result<Response, ApiError> {
    Ok(success(super::tool::view(app, identity, tool.id).await?).into_response())
}

/// Publish the newest revision: production mode runs it. A deprecated tool is no longer deprecated.
#[utoipa::path(
    post, path = "/tools/{ref}/publish", tag = "life cycle", params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")),
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn publish(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let entry = tools::find(&app, &identity, &reference)?;
    let tool = tools::publish(&app, &identity, &entry).await?;
    shown(&app, &identity, &tool).await
}

/// Why a tool is deprecated.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub(crate) struct DeprecateBody {
    /// The tool to call instead: id, name or `bundle:name`, the latter two optionally with `@version`.
    #[schema(example = "greet2")]
    replaced_by: Option<String>,
    /// From this time on, calls are rejected: a date such as `2027-01-31` (00:00 UTC), or a time.
    #[schema(example = "2027-01-31")]
    removal_date: Option<String>,
    /// A message for callers.
    #[schema(max_length = 500, example = "the old API is going away")]
    message: Option<String>,
}

/// Deprecate a tool: it still runs, with a warning, until the removal date if there is one.
#[utoipa::path(
    post, path = "/tools/{ref}/deprecate", tag = "life cycle", params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")),
    request_body = Option<DeprecateBody>,
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn deprecate(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let entry = tools::find(&app, &identity, &reference)?;
    let DeprecateBody { replaced_by, removal_date, message } = body.json_or_default()?;
    let new = NewDeprecation { replaced_by, removal_date, message };
    let tool = tools::deprecate(&app, &identity, &entry, new).await?;
    shown(&app, &identity, &tool).await
}

/// Set the version label of a tool.
#[utoipa::path(
    post, path = "/tools/{ref}/version", tag = "life cycle",
    params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet"), ("new_version" = String, Query, description = "X.Y.Z", pattern = r"^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$", example = "1.1.0")),
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn version(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let text = params.get("new_version").ok_or_else(|| ApiError::bad_request("missing `new_version`"))?;
    let version = Version::new(text)?;
    if !version.is_three_numbers() {
        return Err(ApiError::bad_request(format!(
            "invalid `new_version`: `{version}`; expected X.Y.Z, for example `1.2.0`"
        )));
    }
    let entry = tools::find(&app, &identity, &reference)?;
    let tool = tools::relabel(&app, &identity, &entry, version).await?;
    shown(&app, &identity, &tool).await
}
