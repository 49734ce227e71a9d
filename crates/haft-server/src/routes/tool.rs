//! `GET`, `PUT`, `PATCH` and `DELETE /tools/{ref}`, and `GET /tools/{ref}/source`.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::catalog::{Backup, FileForm, ToolChange};
use haft_core::id::ToolId;
use haft_core::implementation::Implementation;
use haft_core::problem::Problem;
use haft_core::redact;
use haft_core::reference::ToolRef;
use haft_core::spec::ToolSpec;
use haft_core::token::Role;
use haft_definition::dialect::{self, Defaults};
use haft_runtime::registry::Entry;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::audit;
use crate::body::Body;
use crate::definition::{self, DefinitionBody};
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::routes::usage::{self, ToolUsage};
use crate::routes::{broken_file, bundles, validate};
use crate::view::ToolView;
use crate::viewer::Viewer;
use crate::warnings::Warnings;

/// Finds a tool by a reference in a path.
pub(crate) fn find(app: &App, identity: &Identity, reference: &str) -> Result<Arc<Entry>, ApiError> {
    resolve(app, identity, &reference.parse()?)
}

/// Finds a tool.
pub(crate) fn resolve(app: &App, identity: &Identity, reference: &ToolRef) -> Result<Arc<Entry>, ApiError> {
    let snapshot = app.registry().snapshot();
    Ok(Arc::clone(snapshot.resolve(&identity.tenant, reference)?))
}

/// Returns the current view of a tool, after it is known whether the tool can run.
pub(crate) async fn view(app: &App, identity: &Identity, id: ToolId) -> Result<ToolView, ApiError> {
    let entry = app.registry().snapshot().tool(&identity.tenant, id).cloned();
    let entry = entry.ok_or_else(|| ApiError::not_found("tool", &id.to_string()))?;
    Ok(view_of(app, identity, &entry).await)
}

/// Returns the view of a tool with its warnings, after it is known whether the tool can run.
pub(crate) async fn view_of(app: &App, identity: &Identity, entry: &Arc<Entry>) -> ToolView {
    app.registry().verified(entry).await;
    let mut view = ToolView::new(entry, &Viewer::new(app, identity), &app.registry().snapshot());
    let mut warnings = Warnings::new(app, identity);
    warnings.examine(entry).await;
    view.warnings = warnings.of(entry).await;
    view
}

/// Returns the current view of a tool that was written, with the warnings about its definition.
pub(crate) async fn view_with_warnings(
    app: &App,
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
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let entry = find(&app, &identity, &reference)?;
    let mut view = view_of(&app, &identity, &entry).await;
    view.warnings.splice(0..0, validate::file_warnings(&app, &entry).await);
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
    bundles::require_enabled_bundle(&app, &identity, &entry)?;
    let mut parsed = definition::parse(&body, &definition::defaults_from_spec(&tool.spec))?;
    keep_package(&mut parsed.spec, &tool.spec);
    definition::require_same_identity(&parsed.spec, &tool.spec)?;
    definition::reject_published(parsed.status, Some(tool.status))?;
    let bundle_mismatch = definition::bundle_mismatch(parsed.bundle.as_deref(), tool);
    let (status, text) = (parsed.status, definition::author_text(&body, &parsed));
    let checked = definition::check(
        &app,
        &identity.tenant,
        (parsed, text.as_ref()),
        Some(&tool.spec),
        tool.folder().map(str::to_owned),
    )
    .await?;
    let change = ToolChange { spec: checked.spec, text, status, enabled: checked.enabled };
    let updated = app.store().update_tool(tool.id, change).await?;
    audit::note(&identity, "tool.update", &updated.qualified());
    let mut warnings = checked.warnings;
    warnings.extend(bundle_mismatch);
    Ok(success(view_with_warnings(&app, &identity, tool.id, warnings).await?).into_response())
}

/// A function of a toolset stays in its package, which definitions cannot name.
fn keep_package(spec: &mut ToolSpec, stored: &ToolSpec) {
    if let (Implementation::Python(new), Implementation::Python(old)) =
        (&mut spec.implementation, &stored.implementation)
    {
        new.package.clone_from(&old.package);
    }
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
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let entry = find(&app, &identity, &reference)?;
    set_enabled(&app, &identity, &entry, &body).await
}

/// Enables or disables a tool; shared with the route below bundles.
pub(crate) async fn set_enabled(
    app: &App,
    identity: &Identity,
    entry: &Entry,
    body: &Body,
) -> Result<Response, ApiError> {
    identity.require_editor_of(&entry.tool.tenant)?;
    bundles::require_enabled_bundle(app, identity, entry)?;
    let EnabledBody { enabled } = body.json()?;
    let tool = app.store().enable_tool(entry.tool.id, enabled).await?;
    audit::note(identity, if enabled { "tool.enable" } else { "tool.disable" }, &tool.qualified());
    Ok(success(view(app, identity, tool.id).await?).into_response())
}

/// A deleted tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedTool {
    #[schema(example = "Tool 'greet' deleted")]
    message: String,
    /// The backup of the definition, relative to the home folder.
    #[schema(required)]
    backup_path: Option<String>,
    /// Who depended on the tool.
    usage: ToolUsage,
}

/// Delete a tool; a backup of its definition is kept in `tool-history/` unless `keep_backup=false`.
#[utoipa::path(
    delete, path = "/tools/{ref}", tag = "tools",
    params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet"), ("keep_backup" = Option<bool>, Query, description = "Whether a backup is kept; default: `true`")),
    responses((status = 200, body = Success<DeletedTool>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let entry = find(&app, &identity, &reference)?;
    remove(&app, &identity, &entry, &params).await
}

/// Deletes a tool; shared with the route below bundles.
pub(crate) async fn remove(
    app: &App,
    identity: &Identity,
    entry: &Entry,
    params: &Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let keep_backup = params.get("keep_backup").is_none() || params.flag("keep_backup")?;
    let backup = if keep_backup { Backup::Keep } else { Backup::Discard };
    let usage = usage::of(app, identity, entry).await?;
    let backup_path = app.store().delete_tool(entry.tool.id, backup).await?;
    audit::note(identity, "tool.delete", &entry.qualified);
    let message = format!("Tool '{}' deleted", entry.tool.spec.name);
    Ok(success(DeletedTool { message, backup_path, usage }).into_response())
}

/// The source text of a definition.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SourceView {
    #[schema(example = "name: greet\n")]
    pub(crate) text: String,
    #[schema(value_type = SourceForm)]
    pub(crate) form: &'static str,
    /// The file, relative to the home folder.
    #[schema(required)]
    pub(crate) path: Option<String>,
}

/// The form of a source text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only describes the values")]
pub(crate) enum SourceForm {
    Skill,
    Yaml,
    Json,
}

/// Return the source text of a definition.
#[utoipa::path(
    get, path = "/tools/{ref}/source", tag = "tools",
    params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet"), ("format" = Option<String>, Query, description = "`skill`, `yaml` (or `yml`) or `json`; default: the form of the file",
            pattern = "^(skill|yaml|yml|json)$")),
    responses((status = 200, body = Success<SourceView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
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
    let requested = params.choice("format", dialect::form_of_extension, "`skill`, `yaml`, `json`")?;
    let tool = &entry.tool;
    let own =
        tool.path.as_deref().and_then(|path| path.rsplit('.').next()).and_then(dialect::form_of_extension);
    let form = requested.or(own).unwrap_or(FileForm::Json);
    let original = if requested.is_none_or(|requested| Some(requested) == own) {
        original_text(&app, &identity, &entry, form).await?
    } else {
        None
    };
    let text = original.unwrap_or_else(|| dialect::write(&redact::masked(&tool.spec), form, None));
    Ok(success(SourceView { text, form: form.extension(), path: tool.path.clone() }).into_response())
}

/// Returns the author's text, including comments, if it contains no secret. A text that does not parse may contain
/// secrets, so only editors get it.
async fn original_text(
    app: &App,
    identity: &Identity,
    entry: &Entry,
    form: FileForm,
) -> Result<Option<String>, ApiError> {
    let Some(path) = entry.tool.path.as_deref() else { return Ok(None) };
    let Some(text) = app.store().definition_text(path).await? else { return Ok(None) };
    let is_visible = match dialect::read(&text, form, &Defaults::default()) {
        Ok(parsed) => !redact::has_literal_secret(&parsed.spec),
        Err(_) => identity.role >= Role::Editor,
    };
    Ok(is_visible.then_some(text))
}
