//! Definitions for models: `GET /tools/{ref}/definition` and `GET /tools/definitions/all`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::problem::{Problem, nearest};
use haft_core::reference::ToolRef;
use haft_definition::export::{Definition, Format, definition};
use haft_runtime::registry::{Audience, Naming, ToolOffer};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::Params;
use crate::reply::SuccessStatus;
use haft_platform::Installation;
use haft_platform::error::ServiceError;
use haft_platform::identity::Identity;
use haft_platform::viewer::Viewer;

/// The most names in one request.
const MAX_NAMES: usize = 500;

/// One or all definitions, with token counts and warnings.
#[derive(Serialize, ToSchema)]
pub(crate) struct Definitions<T> {
    status: SuccessStatus,
    /// The definitions, in the format of the model API.
    data: T,
    /// The estimated number of tokens.
    #[schema(example = 120)]
    tokens: usize,
    /// The estimated number of tokens by tool name; only for all definitions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tokens_by_name: BTreeMap<String, usize>,
    /// What the format cannot express.
    warnings: Vec<Warning>,
}

/// A definition in the format of a model API.
#[derive(Serialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = Object, example = json!({
    "type": "function",
    "function": {
        "name": "greet",
        "description": "Greets somebody by name",
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}))]
pub(crate) struct ModelDefinition(Value);

/// Something that the format cannot express.
#[derive(Serialize, ToSchema)]
#[schema(as = FormatWarning)]
struct Warning {
    /// The tool, as `bundle:name@version`.
    #[schema(example = "user-created:greet@1.0.0")]
    tool: String,
    /// The field of its definition.
    #[schema(example = "input_schema")]
    field: String,
    /// A stable code.
    #[schema(example = "not_strict")]
    code: String,
    /// A human-readable message.
    #[schema(example = "the schema cannot be strict")]
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

/// Returns for whom the tools are named: names that `invoke` accepts.
fn audience<'a>(app: &Installation, identity: &'a Identity) -> Audience<'a> {
    Audience { tenant: &identity.tenant, mode: app.settings().mode, naming: Naming::ByKind }
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
        ("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet"),
        ("format" = Option<String>, Query, description = "`openai` (the default), `openai-responses`, `anthropic`, `gemini` or `mcp`",
            pattern = "^(openai|openai-responses|anthropic|gemini|mcp)$"),
        ("strict" = Option<bool>, Query, description = "OpenAI strict mode, if the schema allows it"),
    ),
    responses((status = 200, body = Definitions<ModelDefinition>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn one(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let entry = haft_platform::tools::find(&app, &identity, &reference)?;
    let snapshot = app.registry().snapshot();
    let offer = snapshot.offer(&entry, audience(&app, &identity));
    let Definition { value, tokens, warnings } = definition(&offer.spec, &offer.name, format(&params)?);
    let warnings = Warning::from_problems(&entry.qualified, warnings).collect();
    let (status, data, tokens_by_name) = (SuccessStatus::Success, ModelDefinition(value), BTreeMap::new());
    Ok(Json(Definitions { status, data, tokens, tokens_by_name, warnings }).into_response())
}

/// Return the definitions of all callable tools in the format of a model API.
#[utoipa::path(
    get, path = "/tools/definitions/all", tag = "definitions",
    params(
        ("format" = Option<String>, Query, description = "`openai` (the default), `openai-responses`, `anthropic`, `gemini` or `mcp`",
            pattern = "^(openai|openai-responses|anthropic|gemini|mcp)$"),
        ("strict" = Option<bool>, Query, description = "OpenAI strict mode, if the schemas allow it"),
        ("bundle" = Option<String>, Query, description = "Only tools of these bundles: comma-separated ids or slugs"),
        ("tag" = Option<String>, Query, description = "Only tools with one of these tags, comma-separated"),
        ("names" = Option<String>, Query, description = "Only these tools: comma-separated names (own names or those for models), ids, or references such as `bundle:name@version`; every one must be callable"),
    ),
    responses((status = 200, body = Definitions<Vec<ModelDefinition>>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn all(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let format = format(&params)?;
    let filter = OfferFilter::parse(&params)?;
    let snapshot = app.registry().snapshot();
    let (mut list, mut tokens, mut tokens_by_name, mut warnings) =
        (Vec::new(), 0, BTreeMap::new(), Vec::new());
    let viewer = Viewer::new(&app, &identity);
    let mut offers = snapshot.offers(audience(&app, &identity));
    offers.retain(|offer| viewer.sees(offer.entry));
    filter.check_names(&offers)?;
    for offer in offers.into_iter().filter(|offer| filter.matches(offer)) {
        let exported = definition(&offer.spec, &offer.name, format);
        tokens += exported.tokens;
        tokens_by_name.insert(offer.name, exported.tokens);
        warnings.extend(Warning::from_problems(&offer.entry.qualified, exported.warnings));
        list.push(ModelDefinition(exported.value));
    }
    let (status, data) = (SuccessStatus::Success, list);
    Ok(Json(Definitions { status, data, tokens, tokens_by_name, warnings }).into_response())
}

/// Which of the callable tools are returned.
struct OfferFilter {
    bundles: Vec<String>,
    tags: Vec<String>,
    names: Vec<(String, Option<ToolRef>)>,
}

impl OfferFilter {
    fn parse(params: &Params) -> Result<Self, ApiError> {
        let names = params.list("names");
        if names.len() > MAX_NAMES {
            return Err(ApiError::bad_request(format!("`names` exceeds the limit of {MAX_NAMES} names")));
        }
        let names = names.into_iter().map(|name| (name.clone(), name.parse().ok())).collect();
        Ok(Self { bundles: params.list("bundle"), tags: params.list("tag"), names })
    }

    /// Rejects names that no offer has: a model that misses a tool silently is hard to debug.
    fn check_names(&self, offers: &[ToolOffer<'_>]) -> Result<(), ApiError> {
        let missing = self.names.iter().find(|name| !offers.iter().any(|offer| is_named(offer, name)));
        let Some((name, _)) = missing else { return Ok(()) };
        let near = nearest(name, offers.iter().map(|offer| offer.name.as_str()));
        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        let error = ServiceError::not_found("callable tool", name);
        Err(ServiceError { message: format!("{}{hint}", error.message), ..error }.into())
    }

    fn matches(&self, offer: &ToolOffer<'_>) -> bool {
        let tool = &offer.entry.tool;
        let in_bundle =
            |bundle: &String| *bundle == tool.bundle.as_str() || *bundle == tool.bundle_id.to_string();
        (self.bundles.is_empty() || self.bundles.iter().any(in_bundle))
            && (self.tags.is_empty() || offer.spec.tags.iter().any(|tag| self.tags.contains(tag)))
            && (self.names.is_empty() || self.names.iter().any(|name| is_named(offer, name)))
    }
}

/// Returns whether a name, as written and as a reference, is that of an offer.
fn is_named(offer: &ToolOffer<'_>, (text, reference): &(String, Option<ToolRef>)) -> bool {
    let tool = &offer.entry.tool;
    *text == offer.name
        || match reference {
            None => false,
            Some(ToolRef::Id(id)) => tool.id == *id,
            Some(ToolRef::Name { bundle, name, version }) => {
                offer.spec.name == *name
                    && bundle.as_ref().is_none_or(|bundle| tool.bundle == *bundle)
                    && version.as_ref().is_none_or(|version| offer.spec.version == *version)
            }
        }
}
