//! `GET /tools/{ref}/revisions`, `POST …/revisions/{n}/restore` and `GET …/diff`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::redact;
use haft_core::spec::ToolSpec;
use haft_core::token::Role;
use haft_core::tool::Revision;
use haft_runtime::registry::Entry;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::view::{RevisionView, ToolView};

/// Every state that a definition has had, newest first.
#[utoipa::path(
    get, path = "/tools/{ref}/revisions", tag = "life cycle", params(("ref" = String, Path)),
    responses((status = 200, body = Success<Object>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let entry = super::tool::find(&app, &identity, &reference)?;
    let revisions = app.catalog().revisions(entry.tool.id).await?;
    let published = entry.tool.published.as_ref().map(|(number, _)| *number);
    let views: Vec<_> = revisions.iter().map(|revision| RevisionView::new(revision, published)).collect();
    Ok(success(json!({"total": views.len(), "revisions": views, "next_page_token": null})).into_response())
}

/// Make an earlier state the newest one.
#[utoipa::path(
    post, path = "/tools/{ref}/revisions/{n}/restore", tag = "life cycle",
    params(("ref" = String, Path), ("n" = u32, Path)),
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn restore(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path((reference, number)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let entry = super::tool::find(&app, &identity, &reference)?;
    let revisions = app.catalog().revisions(entry.tool.id).await?;
    let wanted = pick(&revisions, &number)?;
    // The label is the tool's, not the revision's: restoring content does not rename.
    let mut spec = ToolSpec::clone(&wanted.spec);
    spec.version = entry.tool.spec.version.clone();
    let tool = app.catalog().update_tool(entry.tool.id, spec.into()).await?;
    app.audit(&identity, "tool.restore", &tool.qualified());
    Ok(success(super::tool::view(&app, &identity, tool.id).await?).into_response())
}

/// What differs between two states, field by field.
#[utoipa::path(
    get, path = "/tools/{ref}/diff", tag = "life cycle",
    params(("ref" = String, Path),
        ("from" = Option<u32>, Query, description = "A revision; the published one, else the one before, if left out"),
        ("to" = Option<u32>, Query, description = "A revision; the newest if left out")),
    responses((status = 200, body = Success<Object>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn diff(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let entry = super::tool::find(&app, &identity, &reference)?;
    let revisions = app.catalog().revisions(entry.tool.id).await?;
    let to = params.get("to").map_or_else(|| entry.tool.revision.to_string(), str::to_owned);
    let from = params.get("from").map_or_else(|| earlier(&entry).to_string(), str::to_owned);
    let (before, after) = (pick(&revisions, &from)?, pick(&revisions, &to)?);
    let mut changes = Vec::new();
    compare("", &shown(before), &shown(after), &mut changes);
    Ok(success(json!({"from": before.number, "to": after.number, "changes": changes})).into_response())
}

fn earlier(entry: &Entry) -> u32 {
    let published = entry.tool.published.as_ref().map(|(number, _)| *number);
    published.filter(|number| *number != entry.tool.revision).unwrap_or((entry.tool.revision - 1).max(1))
}

fn pick<'a>(revisions: &'a [Revision], number: &str) -> Result<&'a Revision, ApiError> {
    let found = number.parse().ok().and_then(|n: u32| revisions.iter().find(|revision| revision.number == n));
    found.ok_or_else(|| ApiError::not_found("revision", number))
}

fn shown(revision: &Revision) -> Value {
    // A spec always serialises; an empty object would only hide the difference.
    serde_json::to_value(redact::masked(&revision.spec)).unwrap_or_default()
}

fn compare(field: &str, before: &Value, after: &Value, changes: &mut Vec<Value>) {
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
        _ => changes.push(json!({"field": field, "before": before, "after": after})),
    }
}

fn keys<'a>(old: &'a Map<String, Value>, new: &'a Map<String, Value>) -> impl Iterator<Item = &'a String> {
    old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)))
}
