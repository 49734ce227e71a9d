//! `GET`, `PUT`, `PATCH` and `DELETE /tools/{ref}`, and `GET /tools/{ref}/source`.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::catalog::Backup;
use haft_core::id::ToolId;
use haft_core::problem::Problem;
use haft_core::token::Role;
use haft_definition::dialect;
use haft_runtime::registry::Entry;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::routes::definition_body::{DefinitionBody, author_text, parse};
use crate::routes::usage;
use haft_api::tool::{DeletedTool, SourceView, ToolView};
use haft_platform::Installation;
use haft_platform::definition;
use haft_platform::identity::Identity;
use haft_platform::tools::{self, Deletion, ToolSource, broken_file, file_warnings, find};
use haft_platform::viewer::Viewer;
use haft_platform::warnings::Warnings;

/// Returns the current view of a tool, after it is known whether the tool can run.
pub(crate) async fn view(app: &Installation, identity: &Identity, id: ToolId) -> Result<ToolView, ApiError> {
    let entry = app.registry().snapshot().tool(&identity.tenant, id).cloned();
    let entry = entry.ok_or_else(|| ApiError::not_found("tool", &id.to_string()))?;
    Ok(view_of(app, identity, &entry).await)
}

/// Returns the view of a tool with its warnings, after it is known whether the tool can run.
pub(crate) async fn view_of(app: &Installation, identity: &Identity, entry: &Arc<Entry>) -> ToolView {
    app.registry().verified(entry).await;
    let mut view = crate::view::tool(entry, &Viewer::new(app, identity), &app.registry().snapshot());
    let mut warnings = Warnings::new(app, identity);
    warnings.examine(entry).await;
    view.warnings = warnings.of(entry).await;
    view
}

/// Returns the current view of a tool that was written, with the warnings about its definition.
pub(crate) async fn view_with_warnings(
    app: &Installation,
    identity: &Identity,
    id: ToolId,
    warnings: Vec<Problem>,
) -> Result<ToolView, ApiError> {
    let mut view = view(app, identity, id).await?;
    let mut all = warnings;
    // The warnings of the write have the lines of the text.
    let known: HashSet<String> = all.iter().map(|warning| warning.message.clone()).collect();
    all.extend(view.warnings.into_iter().filter(|warning| !known.contains(&warning.message)));
    view.warnings = all;
    Ok(view)
}

/// Return one tool.
#[utoipa::path(
    get, path = "/tools/{ref}", tag = "tools",
    params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")),
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let entry = find(&app, &identity, &reference)?;
    let mut view = view_of(&app, &identity, &entry).await;
    view.warnings.splice(0..0, file_warnings(&app, &entry).await);
    Ok(success(view).into_response())
}

/// Update a tool: the definition becomes its newest revision.
#[utoipa::path(
    put, path = "/tools/{ref}", tag = "tools", params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")),
    request_body(description = "A definition in any dialect, as JSON, YAML or a skill",
        content((DefinitionBody = "application/json"), (String = "application/yaml"), (String = "application/x-haft-skill"))),
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 415, body = ErrorBody))
)]
pub(crate) async fn put(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let (tool, warnings) = if let Some(file) = broken_file::find(&app, &identity, &reference) {
        broken_file::check_mendable(&app, &identity, &file)?;
        let parsed = parse(&body, &definition::defaults_from_file(&file))?;
        let text = author_text(&body, &parsed);
        broken_file::mend(&app, &identity, &file, parsed, text).await?
    } else {
        let entry = tools::changeable(&app, &identity, &reference)?;
        let parsed = parse(&body, &definition::defaults_from_spec(&entry.tool.spec))?;
        let text = author_text(&body, &parsed);
        tools::update(&app, &identity, &entry, parsed, text).await?
    };
    Ok(success(view_with_warnings(&app, &identity, tool.id, warnings).await?).into_response())
}

/// The body of a `PATCH`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct EnabledBody {
    /// Whether the tool or bundle can run.
    #[serde(alias = "isEnabled", alias = "is_enabled")]
    pub(crate) enabled: bool,
}

/// Enable or disable a tool.
#[utoipa::path(
    patch, path = "/tools/{ref}", tag = "tools", params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")), request_body = EnabledBody,
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let entry = find(&app, &identity, &reference)?;
    set_enabled(&app, &identity, &entry, &body).await
}

/// Enables or disables a tool; shared with the route below bundles.
pub(crate) async fn set_enabled(
    app: &Installation,
    identity: &Identity,
    entry: &Entry,
    body: &Body,
) -> Result<Response, ApiError> {
    tools::check_switchable(app, identity, entry)?;
    let EnabledBody { enabled } = body.json()?;
    let tool = tools::set_enabled(app, identity, entry, enabled).await?;
    Ok(success(view(app, identity, tool.id).await?).into_response())
}

/// Delete a tool; for 48 hours it can be restored, and a backup of its definition is kept in `tool-history/`, unless
/// `keep_backup=false`. If tools or agents need it, nothing is deleted unless `force=true`.
#[utoipa::path(
    delete, path = "/tools/{ref}", tag = "tools",
    params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet"), ("keep_backup" = Option<bool>, Query, description = "Whether a backup is kept; default: `true`"),
        ("force" = Option<bool>, Query, description = "Delete it even if tools or agents need it")),
    responses((status = 200, body = Success<DeletedTool>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "Tools or agents need it; `details.used_by` has their names"))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let entry = find(&app, &identity, &reference)?;
    remove(&app, &identity, &entry, &params).await
}

/// Deletes a tool; shared with the route below bundles.
pub(crate) async fn remove(
    app: &Installation,
    identity: &Identity,
    entry: &Entry,
    params: &Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let keep_backup = params.get("keep_backup").is_none() || params.flag("keep_backup")?;
    let backup = if keep_backup { Backup::Keep } else { Backup::Discard };
    let usage = usage::of(app, identity, entry).await?;
    let deletion = Deletion { backup, force: params.flag("force")? };
    let backup_path = tools::delete(app, identity, entry, deletion).await?;
    let message = format!("Tool '{}' deleted", entry.tool.spec.name);
    Ok(success(DeletedTool { message, backup_path, usage }).into_response())
}

/// Restore a deleted tool with its revisions, its status and its file. If the reference matches several deleted tools, the
/// last deleted one is restored.
#[utoipa::path(
    post, path = "/tools/{ref}/undelete", tag = "tools",
    params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")),
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "It is not deleted, or its bundle is"))
)]
pub(crate) async fn undelete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let tool = tools::undelete(&app, &identity, &reference).await?;
    Ok(success(view(&app, &identity, tool.id).await?).into_response())
}

/// Return the source text of a definition.
#[utoipa::path(
    get, path = "/tools/{ref}/source", tag = "tools",
    params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet"), ("format" = Option<String>, Query, description = "`skill`, `yaml` (or `yml`) or `json`; default: the form of the file",
            pattern = "^(skill|yaml|yml|json)$")),
    responses((status = 200, body = Success<SourceView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn source(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let source = if let Some(file) = broken_file::find(&app, &identity, &reference) {
        broken_file::source(&app, &identity, &file).await?
    } else {
        let entry = find(&app, &identity, &reference)?;
        let requested = params.choice("format", dialect::form_of_extension, "`skill`, `yaml`, `json`")?;
        tools::source(&app, &identity, &entry, requested).await?
    };
    let ToolSource { text, form, path } = source;
    Ok(success(SourceView { text, form: form.into(), path }).into_response())
}
