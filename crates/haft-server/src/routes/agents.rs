//! `/agents`: models with instructions and tools.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::agent::AgentDefinition;
use haft_core::problem::{Problem, excerpt};
use haft_core::token::Role;
use haft_core::tool::Status;
use haft_definition::agent::from_json;
use haft_store::{ResourceFileError, ResourceQuery};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::agent_view::{AgentToolView, AgentView};
use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use crate::resource_view::expected_revision;
use haft_platform::Installation;
use haft_platform::agents::{RunsFor, Strictness, bind, check, manage, visible_agent};
use haft_platform::audit;
use haft_platform::identity::Identity;
use haft_platform::resources;

/// How many broken files are listed.
const MAX_FILES: usize = 50;

/// How much of the error of a file is shown, in characters.
const MAX_ERROR: usize = 2000;

/// A page of agents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentList {
    agents: Vec<AgentView>,
    /// The number of agents that match the filter.
    total: u64,
    /// The files in `agents/` that cannot be used, or not wholly; only on the first page, whatever the filter.
    broken_files: Vec<BrokenAgentFile>,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// A file in `agents/` that cannot be used, or not wholly.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BrokenAgentFile {
    /// The file, relative to the home folder.
    #[schema(example = "agents/assistant.yaml")]
    path: String,
    /// Why, with the line if it is known.
    error: String,
    /// When the file was last read.
    modified_at: Timestamp,
}

/// What to change in an agent without a new revision.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct AgentPatch {
    /// Whether it may run.
    enabled: bool,
}

/// A definition in a request, as the OpenAPI document shows it; [`from_json`] reads it.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(example = json!({
    "slug": "assistant",
    "model": "claude-sonnet-5",
    "instructions": "You are a helpful assistant.",
    "tools": ["datetime_utils"],
}))]
#[expect(dead_code, reason = "only describes the body")]
pub(crate) enum AgentBody {
    /// The canonical form.
    Canonical(Box<AgentDefinition>),
    /// Other spellings, and fields left to their defaults.
    Other(HashMap<String, Value>),
}

/// The result of a check.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentCheck)]
pub(crate) struct AgentCheckView {
    valid: bool,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
    /// The tools that it could call now.
    tools: Vec<AgentToolView>,
    /// The estimated number of tokens of their definitions.
    tokens: usize,
    /// The definition as it would be stored; missing if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<AgentDefinition>,
}

/// The tools of an agent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentTools {
    tools: Vec<AgentToolView>,
    /// The estimated number of tokens of their definitions.
    tokens: usize,
    /// The rules that match no tool.
    missing: Vec<String>,
}

/// List agents, by slug.
#[utoipa::path(
    get, path = "/agents", tag = "agents",
    params(
        ("q" = Option<String>, Query, description = "A part of the slug, the name or the description"),
        ("status" = Option<Status>, Query),
        PageParams,
    ),
    responses((status = 200, body = Success<AgentList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("agents")?;
    let status = params.choice("status", Status::parse, "`draft`, `published`, `deprecated`, `disabled`")?;
    let skip = page.after::<u32>()?.unwrap_or(0).saturating_add(page.skip);
    let q = params.get("q").map(str::to_owned);
    let query = ResourceQuery { q, status, after: None, skip, limit: page.size };
    let (found, total) = app.store().agents().list(&identity.tenant, &query).await?;
    let end = u64::from(skip) + found.len() as u64;
    let next_page_token = (end < total && !found.is_empty()).then(|| page.token(&end.to_string()));
    let snapshot = app.registry().snapshot();
    let agents = found.iter().map(|agent| AgentView::in_snapshot(&app, &snapshot, agent)).collect();
    let broken_files = if skip == 0 { broken_files(&app, &identity).await? } else { Vec::new() };
    Ok(success(AgentList { agents, total, broken_files, next_page_token }).into_response())
}

async fn broken_files(app: &Installation, identity: &Identity) -> Result<Vec<BrokenAgentFile>, ApiError> {
    let found = app.store().agents().file_errors(&identity.tenant).await?.into_iter().take(MAX_FILES);
    let shown = found.map(|ResourceFileError { path, error, modified_at }| BrokenAgentFile {
        path,
        error: excerpt(&error, MAX_ERROR),
        modified_at,
    });
    Ok(shown.collect())
}

/// Create an agent.
#[utoipa::path(
    post, path = "/agents", tag = "agents", request_body = AgentBody,
    responses(
        (status = 201, body = Success<AgentView>), (status = 400, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "The slug is taken"),
    )
)]
pub(crate) async fn create(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let read = manage::read_definition(body.json()?)?;
    let (agent, warnings) = manage::create(&app, &identity, read).await?;
    Ok(created(AgentView::new(&app, &agent).with_warnings(warnings)))
}

/// Check a definition without storing it.
#[utoipa::path(
    post, path = "/agents/check", tag = "agents", request_body = AgentBody,
    params(("publish" = Option<bool>, Query, description = "Check what publishing requires")),
    responses((status = 200, body = Success<AgentCheckView>))
)]
pub(crate) async fn check_definition(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Viewer)?;
    let (definition, mut warnings) = match from_json(body.json()?) {
        Ok(read) => (read.definition, read.warnings),
        Err(errors) => {
            let (tools, warnings, definition) = (Vec::new(), Vec::new(), None);
            let view = AgentCheckView { valid: false, errors, warnings, tools, tokens: 0, definition };
            return Ok(success(view).into_response());
        }
    };
    let strictness = if params.flag("publish")? {
        Strictness::Published
    } else {
        Strictness::of_saving(&app, &definition)
    };
    let found = check(&app, &identity.tenant, &definition, strictness);
    warnings.extend(found.warnings);
    let (tools, tokens) = tools_of(&app, &identity, &definition);
    let view = AgentCheckView {
        valid: found.errors.is_empty(),
        errors: found.errors,
        warnings,
        tools,
        tokens,
        definition: Some(definition),
    };
    Ok(success(view).into_response())
}

/// Returns the tools that an agent could call for somebody, with the number of tokens of their definitions.
fn tools_of(
    app: &Installation,
    identity: &Identity,
    definition: &AgentDefinition,
) -> (Vec<AgentToolView>, usize) {
    let snapshot = app.registry().snapshot();
    let runs_for = RunsFor { principal: identity, mode: app.settings().mode, surfaces: &[] };
    let bound = bind(app, &snapshot, definition, runs_for).unwrap_or_default();
    let tokens = bound.iter().map(|binding| binding.tokens).sum();
    (bound.iter().map(AgentToolView::from).collect(), tokens)
}

/// Get an agent.
#[utoipa::path(
    get, path = "/agents/{ref}", tag = "agents", params(("ref" = String, Path, description = "Slug or id", example = "assistant")),
    responses((status = 200, body = Success<AgentView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let agent = visible_agent(&app, &identity, &reference).await?;
    Ok(success(AgentView::new(&app, &agent)).into_response())
}

/// Replace the definition of an agent: a new revision.
#[utoipa::path(
    put, path = "/agents/{ref}", tag = "agents", request_body = AgentBody,
    params(
        ("ref" = String, Path, description = "Slug or id", example = "assistant"),
        ("If-Match" = Option<String>, Header, description = "The newest revision that you know", example = "1"),
    ),
    responses(
        (status = 200, body = Success<AgentView>), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn put(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let agent = visible_agent(&app, &identity, &reference).await?;
    audit::note(&identity, "agent.update", agent.definition.slug.as_str());
    let read = manage::read_update(&agent, body.json()?)?;
    let warnings = manage::check_saved(&app, &identity, &read)?;
    let expected = expected_revision(&headers)?;
    let agent = resources::update(&app, &identity, &agent, read.definition, expected).await?;
    Ok(success(AgentView::new(&app, &agent).with_warnings(warnings)).into_response())
}

/// Enable or disable an agent.
#[utoipa::path(
    patch, path = "/agents/{ref}", tag = "agents", request_body = AgentPatch,
    params(("ref" = String, Path, description = "Slug or id", example = "assistant")),
    responses((status = 200, body = Success<AgentView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let AgentPatch { enabled } = body.json()?;
    let agent = resources::set_enabled::<AgentDefinition>(&app, &identity, &reference, enabled).await?;
    Ok(success(AgentView::new(&app, &agent)).into_response())
}

/// Delete an agent with its revisions. Its runs and chats stay.
#[utoipa::path(
    delete, path = "/agents/{ref}", tag = "agents",
    params(("ref" = String, Path, description = "Slug or id", example = "assistant")),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let agent = visible_agent(&app, &identity, &reference).await?;
    resources::delete(&app, &identity, &agent).await?;
    Ok(reply::message("Agent deleted"))
}

/// List the tools that an agent can call for you.
#[utoipa::path(
    get, path = "/agents/{ref}/tools", tag = "agents",
    params(("ref" = String, Path, description = "Slug or id", example = "assistant")),
    responses((status = 200, body = Success<AgentTools>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn tools(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let agent = visible_agent(&app, &identity, &reference).await?;
    let definition =
        agent.runnable(app.settings().mode).map_or(&agent.definition, |(_, definition)| definition);
    let (tools, tokens) = tools_of(&app, &identity, definition);
    let missing = check(&app, &identity.tenant, definition, Strictness::Draft).missing;
    Ok(success(AgentTools { tools, tokens, missing }).into_response())
}

/// Publish the newest revision: it answers in production mode. Every tool must be published and able to run.
#[utoipa::path(
    post, path = "/agents/{ref}/publish", tag = "agents",
    params(("ref" = String, Path, description = "Slug or id", example = "assistant")),
    responses(
        (status = 200, body = Success<AgentView>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "A tool is missing, disabled or not published"),
    )
)]
pub(crate) async fn publish(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let (agent, warnings) = manage::publish(&app, &identity, &reference).await?;
    Ok(success(AgentView::new(&app, &agent).with_warnings(warnings)).into_response())
}

/// Deprecate an agent: it still runs.
#[utoipa::path(
    post, path = "/agents/{ref}/deprecate", tag = "agents",
    params(("ref" = String, Path, description = "Slug or id", example = "assistant")),
    responses((status = 200, body = Success<AgentView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn deprecate(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let agent = resources::deprecate::<AgentDefinition>(&app, &identity, &reference).await?;
    Ok(success(AgentView::new(&app, &agent)).into_response())
}
