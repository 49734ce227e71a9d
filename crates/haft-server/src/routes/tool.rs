//! `GET`, `PUT`, `PATCH`, `DELETE /tools/{ref}` and its source text.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::catalog::{Backup, FileForm, ToolChange};
use haft_core::id::ToolId;
use haft_core::redact;
use haft_core::reference::ToolRef;
use haft_core::token::Role;
use haft_definition::dialect::{self, Defaults};
use haft_runtime::registry::Entry;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::body::Body;
use crate::definition::{self, Place};
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::routes::{broken_file, bundles};
use crate::view::ToolView;

/// Finds the tool that a path names, or says which names are near.
pub(crate) fn find(app: &App, identity: &Identity, reference: &str) -> Result<Arc<Entry>, ApiError> {
    let reference: ToolRef = reference.parse()?;
    let snapshot = app.registry().snapshot();
    Ok(Arc::clone(snapshot.resolve(&identity.tenant, &reference)?))
}

/// Returns the view of a tool, after it is known whether the tool can run.
pub(crate) async fn view(app: &App, identity: &Identity, id: ToolId) -> Result<ToolView, ApiError> {
    let entry = app.registry().snapshot().tool(&identity.tenant, id).cloned();
    let entry = entry.ok_or_else(|| ApiError::not_found("tool", &id.to_string()))?;
    app.registry().verified(&entry).await;
    Ok(ToolView::from(&*entry))
}

/// Show one tool.
#[utoipa::path(
    get, path = "/tools/{ref}", tag = "tools",
    params(("ref" = String, Path, description = "id, name, `bundle:name`, or either with `@version`")),
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let entry = find(&app, &identity, &reference)?;
    app.registry().verified(&entry).await;
    Ok(success(ToolView::from(&*entry)).into_response())
}

/// Change a tool: the definition becomes its next revision.
#[utoipa::path(
    put, path = "/tools/{ref}", tag = "tools", params(("ref" = String, Path)),
    request_body(content_type = "application/json", content = Object),
    responses((status = 200, body = Success<ToolView>), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody))
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    if let Some(file) = broken_file::find(&app, &identity, &reference) {
        return broken_file::put(&app, &identity, &file, &body).await;
    }
    let entry = find(&app, &identity, &reference)?;
    let tool = &entry.tool;
    bundles::require_open(&app, &identity, &entry)?;
    let reading = definition::read(&body, &Place::of(&tool.spec))?;
    definition::same_identity(&reading.spec, &tool.spec)?;
    definition::refuse_published(reading.status, Some(tool.status))?;
    let elsewhere = definition::other_bundle(reading.bundle.as_deref(), tool);
    let (status, text) = (reading.status, definition::author_text(&body, &reading));
    let checked = definition::check(
        &app,
        &identity.tenant,
        (reading, text.as_ref()),
        Some(&tool.spec),
        tool.folder().map(str::to_owned),
    )
    .await?;
    let change = ToolChange { spec: checked.spec, text, status, enabled: checked.enabled };
    let updated = app.catalog().update_tool(tool.id, change).await?;
    app.audit(&identity, "tool.update", &updated.qualified());
    let mut view = view(&app, &identity, tool.id).await?;
    view.warnings = checked.warnings;
    view.warnings.extend(elsewhere);
    Ok(success(view).into_response())
}

/// The one thing that `PATCH` changes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Switch {
    /// On or off.
    #[serde(alias = "isEnabled", alias = "is_enabled")]
    pub(crate) enabled: bool,
}

/// Switch a tool on or off.
#[utoipa::path(
    patch, path = "/tools/{ref}", tag = "tools", params(("ref" = String, Path)), request_body = Switch,
    responses((status = 200, body = Success<ToolView>), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let entry = find(&app, &identity, &reference)?;
    switch(&app, &identity, &entry, &body).await
}

/// Switches a tool, for this route and the one under bundles.
pub(crate) async fn switch(
    app: &App,
    identity: &Identity,
    entry: &Entry,
    body: &Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    bundles::require_open(app, identity, entry)?;
    let Switch { enabled } = body.json()?;
    let tool = app.catalog().enable_tool(entry.tool.id, enabled).await?;
    app.audit(identity, if enabled { "tool.enable" } else { "tool.disable" }, &tool.qualified());
    Ok(success(view(app, identity, tool.id).await?).into_response())
}

/// What became of a deleted tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Deleted {
    message: String,
    /// Where the definition is kept, relative to the home folder.
    backup_path: Option<String>,
}

/// Delete a tool; its definition is kept in `tool-history/` unless `keep_backup=false`.
#[utoipa::path(
    delete, path = "/tools/{ref}", tag = "tools",
    params(("ref" = String, Path), ("keep_backup" = Option<bool>, Query)),
    responses((status = 200, body = Success<Deleted>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let entry = find(&app, &identity, &reference)?;
    let keep = params.get("keep_backup").is_none() || params.flag("keep_backup")?;
    remove(&app, &identity, &entry, if keep { Backup::Keep } else { Backup::Discard }).await
}

/// Removes a tool, for this route and the one under bundles.
pub(crate) async fn remove(
    app: &App,
    identity: &Identity,
    entry: &Entry,
    backup: Backup,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let backup_path = app.catalog().delete_tool(entry.tool.id, backup).await?;
    app.audit(identity, "tool.delete", &entry.qualified);
    let message = format!("Tool '{}' deleted", entry.tool.spec.name);
    Ok(success(Deleted { message, backup_path }).into_response())
}

/// Show the text of a definition, for an editor.
#[utoipa::path(
    get, path = "/tools/{ref}/source", tag = "tools",
    params(("ref" = String, Path), ("format" = Option<String>, Query, description = "`skill`, `yaml` or `json`")),
    responses((status = 200, body = Success<Object>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn source(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    if let Some(file) = broken_file::find(&app, &identity, &reference) {
        return broken_file::source(&app, &identity, &file).await;
    }
    let entry = find(&app, &identity, &reference)?;
    let asked = params.choice("format", dialect::form_of_extension, "`skill`, `yaml`, `json`")?;
    let tool = &entry.tool;
    let own =
        tool.path.as_deref().and_then(|path| path.rsplit('.').next()).and_then(dialect::form_of_extension);
    let chosen = asked.or(own).unwrap_or(FileForm::Json);
    let kept = if asked.is_none_or(|asked| Some(asked) == own) {
        own_text(&app, &identity, &entry, chosen).await?
    } else {
        None
    };
    let text = kept.unwrap_or_else(|| dialect::write(&redact::masked(&tool.spec), chosen, None));
    Ok(success(json!({"text": text, "form": chosen.extension(), "path": tool.path})).into_response())
}

/// Returns the author's own text, comments and all, where it shows no secret. A text that does not parse may show
/// anything: it is for those who mend it.
async fn own_text(
    app: &App,
    identity: &Identity,
    entry: &Entry,
    form: FileForm,
) -> Result<Option<String>, ApiError> {
    let Some(path) = entry.tool.path.as_deref() else { return Ok(None) };
    let Some(text) = app.store().definition_text(path).await? else { return Ok(None) };
    let shown = match dialect::read(&text, form, &Defaults::default()) {
        Ok(reading) => !redact::has_literal_secret(&reading.spec),
        Err(_) => identity.role >= Role::Editor,
    };
    Ok(shown.then_some(text))
}
