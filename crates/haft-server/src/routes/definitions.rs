//! Definitions for models: `GET /tools/{ref}/definition` and `GET /tools/definitions/all`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::export::{Format, definition};
use serde_json::Value;

use crate::app::App;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::success;

fn format(params: &Params) -> Result<Format, ApiError> {
    Ok(params.choice("format", Format::parse, Format::NAMES)?.unwrap_or(Format::OpenAi))
}

/// One definition, in the form of a model's API.
#[utoipa::path(
    get, path = "/tools/{ref}/definition", tag = "definitions",
    params(("ref" = String, Path), ("format" = Option<String>, Query, description = "`openai`, `anthropic`, `gemini` or `mcp`")),
    responses((status = 200, body = Object), (status = 404, body = ErrorBody))
)]
pub(crate) async fn one(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let entry = super::tool::find(&app, &identity, &reference)?;
    let snapshot = app.registry().snapshot();
    let offer = snapshot.offer(&entry, app.settings().mode);
    Ok(success(definition(offer.spec, &offer.name, format(&params)?)).into_response())
}

/// Every definition that may be called now, in the form of a model's API.
#[utoipa::path(
    get, path = "/tools/definitions/all", tag = "definitions",
    params(("format" = Option<String>, Query, description = "`openai`, `anthropic`, `gemini` or `mcp`")),
    responses((status = 200, body = Vec<Object>))
)]
pub(crate) async fn all(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let format = format(&params)?;
    let snapshot = app.registry().snapshot();
    let offers = snapshot.offers(&identity.tenant, app.settings().mode);
    let list: Vec<Value> = offers.iter().map(|offer| definition(offer.spec, &offer.name, format)).collect();
    Ok(success(list).into_response())
}
