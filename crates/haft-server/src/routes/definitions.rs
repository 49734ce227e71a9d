//! Definitions for models: `GET /tools/{ref}/definition` and `GET /tools/definitions/all`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::export::{Format, definition, model_name, model_names};
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::spec::ToolSpec;
use haft_runtime::registry::{Entry, Snapshot};
use serde_json::Value;

use crate::app::App;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::success;

fn format(params: &Params) -> Result<Format, ApiError> {
    Ok(params.choice("format", Format::parse, "`openai`, `anthropic`")?.unwrap_or(Format::OpenAi))
}

/// One definition, in the form of a model's API.
#[utoipa::path(
    get, path = "/tools/{ref}/definition", tag = "definitions",
    params(("ref" = String, Path), ("format" = Option<String>, Query, description = "`openai` or `anthropic`")),
    responses((status = 200, body = Object), (status = 404, body = ErrorBody))
)]
pub(crate) async fn one(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let entry = super::tool::find(&app, &identity, &reference)?;
    let spec = visible(&entry, app.settings().mode);
    Ok(success(definition(spec, &model_name(spec.name.as_str()), format(&params)?)).into_response())
}

/// Every definition that may be called now, in the form of a model's API.
#[utoipa::path(
    get, path = "/tools/definitions/all", tag = "definitions",
    params(("format" = Option<String>, Query, description = "`openai` or `anthropic`")),
    responses((status = 200, body = Vec<Object>))
)]
pub(crate) async fn all(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let format = format(&params)?;
    let mode = app.settings().mode;
    let snapshot = app.registry().snapshot();
    let entries = callable(&snapshot, &identity, mode);
    let names =
        model_names(entries.iter().map(|entry| (entry.tool.spec.name.as_str(), entry.qualified.as_str())));
    let list: Vec<Value> = entries
        .iter()
        .zip(&names)
        .map(|(entry, name)| definition(visible(entry, mode), name, format))
        .collect();
    Ok(success(list).into_response())
}

/// What a model may be offered: runnable tools, and of each name in a bundle only the version that a bare
/// name would call.
fn callable<'a>(snapshot: &'a Snapshot, identity: &'a Identity, mode: Mode) -> Vec<&'a Arc<Entry>> {
    let mut chosen: Vec<&Arc<Entry>> = Vec::new();
    for entry in snapshot.tools(&identity.tenant) {
        let bundle = snapshot.bundle(entry.tool.bundle_id).map(|bundle| &**bundle);
        if entry.runnable(bundle, mode).is_err() {
            continue;
        }
        match chosen.last_mut() {
            Some(last) if same_tool(last, entry) => {
                if entry.tool.created_at > last.tool.created_at {
                    *last = entry;
                }
            }
            _ => chosen.push(entry),
        }
    }
    chosen
}

/// Finds the tool that a model means by a name that was made for it, where no tool has that name itself.
pub(crate) fn by_model_name(app: &App, identity: &Identity, name: &str, mode: Mode) -> Option<ToolRef> {
    let snapshot = app.registry().snapshot();
    let entries = callable(&snapshot, identity, mode);
    let names = model_names(entries.iter().map(|e| (e.tool.spec.name.as_str(), e.qualified.as_str())));
    let found = names.iter().position(|made| made == name)?;
    entries.get(found).map(|entry| ToolRef::Id(entry.tool.id))
}

fn same_tool(a: &Entry, b: &Entry) -> bool {
    a.tool.bundle_id == b.tool.bundle_id && a.tool.spec.name == b.tool.spec.name
}

fn visible(entry: &Entry, mode: Mode) -> &ToolSpec {
    entry.definition(mode.into()).map_or(&entry.tool.spec, |(_, spec)| spec)
}
