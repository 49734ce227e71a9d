//! Definitions for models: `GET /tools/{ref}/definition` and `GET /tools/definitions/all`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::problem::Problem;
use haft_definition::export::{Definition, Format, definition};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;

/// One definition, or all of them, and what else there is to say.
#[derive(Serialize, ToSchema)]
pub(crate) struct Definitions {
    /// Always `success`.
    #[schema(example = "success")]
    status: &'static str,
    /// What the model's API takes, as it is.
    #[schema(value_type = Object)]
    data: Value,
    /// About how many tokens of the model's context it takes.
    tokens: usize,
    /// The same of each, by the name that the model uses; for all of them only.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    tokens_by_name: Map<String, Value>,
    /// What could not be said in this form.
    warnings: Vec<Warning>,
}

/// What could not be said in a form.
#[derive(Serialize, ToSchema)]
struct Warning {
    /// The tool, as `bundle:name@version`.
    tool: String,
    /// The place in its definition.
    field: String,
    /// A stable name.
    code: String,
    /// What it is, and what is done about it.
    message: String,
}

impl Warning {
    fn of(tool: &str, warnings: Vec<Problem>) -> impl Iterator<Item = Warning> {
        warnings.into_iter().map(move |Problem { field, code, message, .. }| Warning {
            tool: tool.to_owned(),
            field,
            code,
            message,
        })
    }
}

fn format(params: &Params) -> Result<Format, ApiError> {
    let format = params.choice("format", Format::parse, Format::NAMES)?.unwrap_or(Format::OpenAi);
    if !params.flag("strict")? {
        return Ok(format);
    }
    let only =
        "`strict` is for the formats `openai` and `openai-responses`: the others have no such mode here";
    format.strict().ok_or_else(|| ApiError::bad_request(only))
}

/// One definition, in the form of a model's API.
#[utoipa::path(
    get, path = "/tools/{ref}/definition", tag = "definitions",
    params(
        ("ref" = String, Path),
        ("format" = Option<String>, Query, description = "`openai`, `openai-responses`, `anthropic`, `gemini` or `mcp`"),
        ("strict" = Option<bool>, Query, description = "For OpenAI: in strict mode, where the schema allows that"),
    ),
    responses((status = 200, body = Definitions), (status = 404, body = ErrorBody))
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
    let Definition { value, tokens, warnings } = definition(offer.spec, &offer.name, format(&params)?);
    let warnings = Warning::of(&entry.qualified, warnings).collect();
    let tokens_by_name = Map::new();
    Ok(Json(Definitions { status: "success", data: value, tokens, tokens_by_name, warnings }).into_response())
}

/// Every definition that may be called now, in the form of a model's API.
#[utoipa::path(
    get, path = "/tools/definitions/all", tag = "definitions",
    params(
        ("format" = Option<String>, Query, description = "`openai`, `openai-responses`, `anthropic`, `gemini` or `mcp`"),
        ("strict" = Option<bool>, Query, description = "For OpenAI: in strict mode, where the schemas allow that"),
    ),
    responses((status = 200, body = Definitions))
)]
pub(crate) async fn all(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let format = format(&params)?;
    let snapshot = app.registry().snapshot();
    let (mut list, mut tokens, mut tokens_by_name, mut warnings) = (Vec::new(), 0, Map::new(), Vec::new());
    for offer in snapshot.offers(&identity.tenant, app.settings().mode) {
        let made = definition(offer.spec, &offer.name, format);
        tokens += made.tokens;
        tokens_by_name.insert(offer.name, made.tokens.into());
        warnings.extend(Warning::of(&offer.entry.qualified, made.warnings));
        list.push(made.value);
    }
    let data = Value::Array(list);
    Ok(Json(Definitions { status: "success", data, tokens, tokens_by_name, warnings }).into_response())
}
