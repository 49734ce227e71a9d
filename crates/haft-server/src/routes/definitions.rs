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

/// One or all definitions, with token counts and warnings.
#[derive(Serialize, ToSchema)]
pub(crate) struct Definitions {
    /// Always `success`.
    #[schema(example = "success")]
    status: &'static str,
    /// The definitions, in the format of the model API.
    #[schema(value_type = Object)]
    data: Value,
    /// The estimated number of tokens.
    tokens: usize,
    /// The estimated number of tokens by tool name; only for all definitions.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    tokens_by_name: Map<String, Value>,
    /// What the format cannot express.
    warnings: Vec<Warning>,
}

/// Something that the format cannot express.
#[derive(Serialize, ToSchema)]
struct Warning {
    /// The tool, as `bundle:name@version`.
    tool: String,
    /// The field of its definition.
    field: String,
    /// A stable code.
    code: String,
    /// A human-readable message.
    message: String,
}

impl Warning {
    fn from_problems(tool: &str, warnings: Vec<Problem>) -> impl Iterator<Item = Warning> {
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
    let message = "`strict` is supported only by the formats `openai` and `openai-responses`";
    format.strict().ok_or_else(|| ApiError::bad_request(message))
}

/// Return one definition in the format of a model API.
#[utoipa::path(
    get, path = "/tools/{ref}/definition", tag = "definitions",
    params(
        ("ref" = String, Path),
        ("format" = Option<String>, Query, description = "`openai`, `openai-responses`, `anthropic`, `gemini` or `mcp`"),
        ("strict" = Option<bool>, Query, description = "OpenAI strict mode, if the schema allows it"),
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
    let warnings = Warning::from_problems(&entry.qualified, warnings).collect();
    let tokens_by_name = Map::new();
    Ok(Json(Definitions { status: "success", data: value, tokens, tokens_by_name, warnings }).into_response())
}

/// Return the definitions of all callable tools in the format of a model API.
#[utoipa::path(
    get, path = "/tools/definitions/all", tag = "definitions",
    params(
        ("format" = Option<String>, Query, description = "`openai`, `openai-responses`, `anthropic`, `gemini` or `mcp`"),
        ("strict" = Option<bool>, Query, description = "OpenAI strict mode, if the schemas allow it"),
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
        let exported = definition(offer.spec, &offer.name, format);
        tokens += exported.tokens;
        tokens_by_name.insert(offer.name, exported.tokens.into());
        warnings.extend(Warning::from_problems(&offer.entry.qualified, exported.warnings));
        list.push(exported.value);
    }
    let data = Value::Array(list);
    Ok(Json(Definitions { status: "success", data, tokens, tokens_by_name, warnings }).into_response())
}
