//! `POST /tools/{ref}/publish`, `/deprecate` and `/version`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::catalog::Transition;
use haft_core::lifecycle::Deprecation;
use haft_core::name::Version;
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::token::Role;
use haft_core::tool::Status;
use haft_runtime::registry::Entry;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::audit;
use crate::body::Body;
use crate::definition;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::runs;
use crate::view::ToolView;

/// The longest message of a deprecation, in characters.
const MAX_MESSAGE: usize = 500;

async fn change_status(
    app: &App,
    identity: &Identity,
    entry: &Entry,
    transition: Transition,
    action: &str,
) -> Result<Response, ApiError> {
    super::bundles::require_enabled_bundle(app, identity, entry)?;
    let tool = app.store().transition(entry.tool.id, transition).await?;
    audit::note(identity, action, &tool.qualified());
    Ok(success(super::tool::view(app, identity, tool.id).await?).into_response())
}

/// Publish the newest revision: production mode runs it. A deprecated tool is no longer deprecated.
#[utoipa::path(
    post, path = "/tools/{ref}/publish", tag = "life cycle", params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")),
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn publish(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let entry = super::tool::find(&app, &identity, &reference)?;
    if let Some(reason) = unpublishable(&app, &entry).await {
        let message = format!("cannot publish `{}`: {reason}", entry.qualified);
        return Err(ApiError::new(ErrorCode::NotReady, message));
    }
    change_status(&app, &identity, &entry, Transition::Publish, "tool.publish").await
}

/// Returns why a tool cannot be published, after it is known whether it can run.
pub(super) async fn unpublishable(app: &App, entry: &Arc<Entry>) -> Option<String> {
    let tool = &entry.tool;
    definition::refresh_references(app, &tool.spec).await;
    app.registry().verified(entry).await;
    if let Some(fault) = entry.fault() {
        return Some(fault);
    }
    // A published tool runs in production mode, where agents and pipelines must be published, too.
    match runs::target_problem(app, &tool.tenant, &tool.spec, Mode::Production) {
        Some(problem) => Some(problem.to_string()),
        None => app.retrieval().draft_pipeline_of(tool).await,
    }
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
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let entry = super::tool::find(&app, &identity, &reference)?;
    let DeprecateBody { replaced_by, removal_date, message } = body.json_or_default()?;
    let deprecation = Deprecation {
        replaced_by: replaced_by.map(|text| replacement(&app, &identity, &entry, &text)).transpose()?,
        removal_date: removal_date.map(|text| parse_date(&text, app.now())).transpose()?,
        message: message.map(check_message).transpose()?,
        ..Deprecation::default()
    };
    change_status(&app, &identity, &entry, Transition::Deprecate(deprecation), "tool.deprecate").await
}

/// Resolves the replacement of a tool; returns the reference that names it.
fn replacement(app: &App, identity: &Identity, entry: &Entry, text: &str) -> Result<String, ApiError> {
    let invalid =
        |why: &str| ApiError::bad_request(format!("invalid `replaced_by`: `{}` {why}", excerpt(text, 120)));
    let reference: ToolRef =
        text.parse().map_err(|error| invalid(&format!("is not a reference: {error}")))?;
    let found = super::tool::resolve(app, identity, &reference).map_err(|error| ApiError {
        message: format!("invalid `replaced_by`: {}", error.message),
        code: ErrorCode::InvalidRequest,
        ..error
    })?;
    let tool = &found.tool;
    if tool.id == entry.tool.id {
        return Err(invalid("is the deprecated tool itself"));
    }
    if tool.status == Status::Deprecated {
        return Err(invalid("is deprecated, too; name a tool that stays"));
    }
    let has_version = matches!(reference, ToolRef::Name { version: Some(_), .. });
    // Another version of the same tool can be named by its version only.
    let is_same_name = tool.bundle_id == entry.tool.bundle_id && tool.spec.name == entry.tool.spec.name;
    Ok(if has_version || is_same_name {
        tool.qualified()
    } else {
        format!("{}:{}", tool.bundle, tool.spec.name)
    })
}

/// Parses a date or a time in the future.
fn parse_date(text: &str, now: Timestamp) -> Result<Timestamp, ApiError> {
    let invalid =
        |why: &str| ApiError::bad_request(format!("invalid `removal_date`: `{}` {why}", excerpt(text, 60)));
    let parsed = text.parse().or_else(|_| format!("{text}T00:00:00Z").parse::<Timestamp>());
    let at = parsed.map_err(|_| {
        invalid(
            "is not a date; expected a date such as `2027-01-31` or a time such as `2027-01-31T12:00:00Z`",
        )
    })?;
    if at <= now {
        return Err(invalid("is in the past; disable or delete the tool instead"));
    }
    Ok(at)
}

fn check_message(message: String) -> Result<String, ApiError> {
    let length = message.chars().count();
    if length > MAX_MESSAGE || message.trim().is_empty() || message.chars().any(char::is_control) {
        return Err(ApiError::bad_request(format!(
            "invalid `message`: expected one line of 1 to {MAX_MESSAGE} characters"
        )));
    }
    Ok(message)
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
    identity.require(Role::Editor)?;
    let text = params.get("new_version").ok_or_else(|| ApiError::bad_request("missing `new_version`"))?;
    let version = Version::new(text)?;
    if !version.is_three_numbers() {
        return Err(ApiError::bad_request(format!(
            "invalid `new_version`: `{version}`; expected X.Y.Z, for example `1.2.0`"
        )));
    }
    let entry = super::tool::find(&app, &identity, &reference)?;
    change_status(&app, &identity, &entry, Transition::Relabel(version), "tool.version").await
}
