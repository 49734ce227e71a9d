//! `/tools/bundles/{id}/tools/{name}/version/{version}`: tools by bundle, name and version. `PUT` creates and never
//! replaces.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_api::call::{AcceptedCall, OutcomeView};
use haft_core::name::{ToolName, Version, check_without_underscore};
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::token::Role;
use haft_definition::dialect::Defaults;
use haft_runtime::registry::Entry;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::Params;
use crate::reply::{Success, created, success};
use crate::routes::definition_body::{DefinitionBody, author_text, parse};
use crate::routes::invoke::{self, InvokeRequest, RejectedCall};
use crate::routes::tool::{self, EnabledBody};
use haft_api::tool::{DeletedTool, ToolView};
use haft_platform::Installation;
use haft_platform::identity::Identity;
use haft_platform::{audit, bundles, tools};

/// Bundle, name and version.
type ToolPath = (String, String, String);

/// Checks the segments of a path and returns the reference to the tool.
fn reference(app: &Installation, identity: &Identity, path: &ToolPath) -> Result<ToolRef, ApiError> {
    let (bundle, name, version) = path;
    let bundle = bundles::find(app, identity, bundle)?;
    Ok(ToolRef::Name {
        bundle: Some(bundle.slug.clone()),
        name: ToolName::new(name)?,
        version: Some(Version::new(version)?),
    })
}

fn find(app: &Installation, identity: &Identity, path: &ToolPath) -> Result<Arc<Entry>, ApiError> {
    Ok(tools::resolve(app, identity, &reference(app, identity, path)?)?)
}

/// Return a tool.
#[utoipa::path(
    get, path = "/tools/bundles/{id}/tools/{name}/version/{version}", tag = "bundles",
    params(("id" = String, Path, description = "Id or slug of the bundle", example = "user-created"),
        ("name" = String, Path, description = "Name of the tool", example = "greet"),
        ("version" = String, Path, description = "Version of the tool", example = "1.0.0")),
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(path): Path<ToolPath>,
) -> Result<Response, ApiError> {
    let entry = find(&app, &identity, &path)?;
    Ok(success(tool::view_of(&app, &identity, &entry).await).into_response())
}

/// Create a tool; if the bundle already has this name and version, the response is a conflict.
#[utoipa::path(
    put, path = "/tools/bundles/{id}/tools/{name}/version/{version}", tag = "bundles",
    params(("id" = String, Path, description = "Id or slug of the bundle", example = "user-created"),
        ("name" = String, Path, description = "Name of the tool", example = "greet"),
        ("version" = String, Path, description = "Version of the tool", example = "1.0.0")),
    request_body(description = "A definition in any dialect, as JSON, YAML or a skill",
        content((DefinitionBody = "application/json"), (String = "application/yaml"), (String = "application/x-haft-skill"))),
    responses((status = 201, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 415, body = ErrorBody))
)]
pub(crate) async fn put(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(path): Path<ToolPath>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    // Existing tools may have such names, but none is created here.
    check_without_underscore(&path.1)?;
    check_without_underscore(&path.2)?;
    let ToolRef::Name { bundle: Some(bundle), name, version: Some(version) } =
        reference(&app, &identity, &path)?
    else {
        return Err(ApiError::bad_request("the path does not name a tool"));
    };
    let defaults = Defaults { name: Some(name.to_string()), version: Some(version.to_string()) };
    let parsed = parse(&body, &defaults)?;
    if parsed.spec.name != name || parsed.spec.version != version {
        let message = format!(
            "name or version mismatch: the definition has `{}@{}`, the path has `{name}@{version}`",
            parsed.spec.name, parsed.spec.version
        );
        return Err(ApiError::bad_request(message));
    }
    let text = author_text(&body, &parsed);
    let (tool, warnings) = tools::store(&app, &identity, Some(bundle.as_str()), parsed, text).await?;
    audit::note(&identity, "tool.create", &tool.qualified());
    Ok(created(tool::view_with_warnings(&app, &identity, tool.id, warnings).await?))
}

/// Enable or disable a tool.
#[utoipa::path(
    patch, path = "/tools/bundles/{id}/tools/{name}/version/{version}", tag = "bundles",
    params(("id" = String, Path, description = "Id or slug of the bundle", example = "user-created"),
        ("name" = String, Path, description = "Name of the tool", example = "greet"),
        ("version" = String, Path, description = "Version of the tool", example = "1.0.0")), request_body = EnabledBody,
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(path): Path<ToolPath>,
    body: Body,
) -> Result<Response, ApiError> {
    let entry = find(&app, &identity, &path)?;
    tool::set_enabled(&app, &identity, &entry, &body).await
}

/// Delete a tool.
#[utoipa::path(
    delete, path = "/tools/bundles/{id}/tools/{name}/version/{version}", tag = "bundles",
    params(("id" = String, Path, description = "Id or slug of the bundle", example = "user-created"),
        ("name" = String, Path, description = "Name of the tool", example = "greet"),
        ("version" = String, Path, description = "Version of the tool", example = "1.0.0"),
        ("keep_backup" = Option<bool>, Query, description = "Whether a backup is kept; default: `true`"),
        ("force" = Option<bool>, Query, description = "Delete it even if tools or agents need it")),
    responses((status = 200, body = Success<DeletedTool>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "Tools or agents need it; `details.used_by` has their names"))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(path): Path<ToolPath>,
    params: Params,
) -> Result<Response, ApiError> {
    let entry = find(&app, &identity, &path)?;
    tool::remove(&app, &identity, &entry, &params).await
}

/// Call a tool.
#[utoipa::path(
    post, path = "/tools/bundles/{id}/tools/{name}/version/{version}/invoke", tag = "calls",
    params(("id" = String, Path, description = "Id or slug of the bundle", example = "user-created"),
        ("name" = String, Path, description = "Name of the tool", example = "greet"),
        ("version" = String, Path, description = "Version of the tool", example = "1.0.0"),
        ("mode" = Option<Mode>, Query, description = "Default: the mode of the server"),
        ("async" = Option<bool>, Query, description = "Return 202 immediately and run the call in the background"),
        ("Idempotency-Key" = Option<String>, Header, description = "A call with the same key and arguments runs only once",
            min_length = 1, max_length = 255, pattern = "^[!-~]+$")),
    request_body = Option<invoke::InvokeBody>,
    responses(
        (status = 200, body = OutcomeView<'static>, description = "The outcome, including that of a failed tool"),
        (status = 202, body = AcceptedCall, description = "Accepted; see `/calls/{id}`"),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 429, body = OutcomeView<'static>, description = "The rate limit of the tool is exceeded"),
        (status = 503, body = RejectedCall, description = "The server is overloaded, or the store is unavailable"),
    )
)]
pub(crate) async fn call(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(path): Path<ToolPath>,
    request: InvokeRequest,
) -> Result<Response, ApiError> {
    let reference = reference(&app, &identity, &path).map_err(ApiError::of_call)?;
    invoke::run(&app, &identity, reference.into(), request).await
}
