//! `GET /tools/{ref}/revisions`, `POST …/revisions/{n}/restore` and `GET …/diff`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::redact;
use haft_core::spec::ToolSpec;
use haft_core::token::Role;
use haft_core::tool::Revision;
use haft_runtime::registry::Entry;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::app::App;
use crate::audit;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::view::{RevisionView, ToolView};

/// The revisions of a definition.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevisionList {
    total: usize,
    revisions: Vec<RevisionView>,
    /// Always `null`: there is one page.
    #[schema(required)]
    next_page_token: Option<String>,
}

/// The difference between two revisions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevisionDiff {
    #[schema(example = 1)]
    from: u32,
    #[schema(example = 2)]
    to: u32,
    changes: Vec<FieldChange>,
}

/// A field that differs.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FieldChange {
    /// The dotted path of the field.
    #[schema(example = "description")]
    pub(crate) field: String,
    /// The earlier value; `null` if the field is missing there.
    pub(crate) before: Value,
    /// The later value; `null` if the field is missing there.
    pub(crate) after: Value,
}

/// List the revisions of a definition, newest first.
#[utoipa::path(
    get, path = "/tools/{ref}/revisions", tag = "life cycle", params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")),
    responses((status = 200, body = Success<RevisionList>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let entry = super::tool::find(&app, &identity, &reference)?;
    let revisions = app.store().revisions(entry.tool.id).await?;
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
    State(app): State<Arc<App>>,
    identity: Identity,
    Path((reference, number)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let entry = super::tool::find(&app, &identity, &reference)?;
    let revisions = app.store().revisions(entry.tool.id).await?;
    let revision = find(&revisions, &number)?;
    // The version label belongs to the tool, not to the revision.
    let mut spec = ToolSpec::clone(&revision.spec);
    spec.version = entry.tool.spec.version.clone();
    let tool = app.store().update_tool(entry.tool.id, spec.into()).await?;
    audit::note(&identity, "tool.restore", &tool.qualified());
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
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let entry = super::tool::find(&app, &identity, &reference)?;
    let revisions = app.store().revisions(entry.tool.id).await?;
    let to = params.get("to").map_or_else(|| entry.tool.revision.to_string(), str::to_owned);
    let from = params.get("from").map_or_else(|| default_base(&entry).to_string(), str::to_owned);
    let (before, after) = (find(&revisions, &from)?, find(&revisions, &to)?);
    let mut changes = Vec::new();
    compare("", &masked(before), &masked(after), &mut changes);
    Ok(success(RevisionDiff { from: before.number, to: after.number, changes }).into_response())
}

fn default_base(entry: &Entry) -> u32 {
    let published = entry.tool.published.as_ref().map(|(number, _)| *number);
    published.filter(|number| *number != entry.tool.revision).unwrap_or((entry.tool.revision - 1).max(1))
}

fn find<'a>(revisions: &'a [Revision], number: &str) -> Result<&'a Revision, ApiError> {
    let revision =
        number.parse().ok().and_then(|n: u32| revisions.iter().find(|revision| revision.number == n));
    revision.ok_or_else(|| ApiError::not_found("revision", number))
}

fn masked(revision: &Revision) -> Value {
    // A spec always serialises.
    serde_json::to_value(redact::masked(&revision.spec)).unwrap_or_default()
}

/// Collects the fields in which two values differ.
pub(crate) fn compare(field: &str, before: &Value, after: &Value, changes: &mut Vec<FieldChange>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for key in keys(old, new) {
                let path = if field.is_empty() { key.clone() } else { format!("{field}.{key}") };
                let (old, new) = (old.get(key).unwrap_or(&Value::Null), new.get(key).unwrap_or(&Value::Null));
                compare(&path, old, new, changes);
            }
        }
        _ => changes.push(FieldChange {
            field: field.to_owned(),
            before: before.clone(),
            after: after.clone(),
        }),
    }
}

fn keys<'a>(old: &'a Map<String, Value>, new: &'a Map<String, Value>) -> impl Iterator<Item = &'a String> {
    old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)))
}
