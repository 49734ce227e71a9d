//! `/agents`: models with instructions and tools.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::agent::{Agent, AgentDefinition, AgentRevision};
use haft_core::name::TenantId;
use haft_core::problem::Problem;
use haft_core::token::Role;
use haft_definition::agent::from_json;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::routed_kind::{ListedResources, ListedRevisions, RoutedKind};
use crate::agent_view;
use crate::authentication::Caller;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::params::Params;
use crate::reply::{Success, success};
use haft_api::agent::{
    AgentCheckView, AgentList, AgentRevisionList, AgentRevisionView, AgentToolView, AgentTools, AgentView,
};
use haft_platform::Installation;
use haft_platform::agents::manage::read_definition;
use haft_platform::agents::{RunsFor, Strictness, bind, check, key_warnings};
use haft_platform::identity::Identity;
use haft_platform::resources;

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

impl RoutedKind for AgentDefinition {
    const PATH: &'static str = "/agents";
    const TAG: &'static str = "agents";
    const EXAMPLE: &'static str = "assistant";
    const UPDATE: &'static str = "Replace the definition of an agent: a new revision.";
    type Body = AgentBody;
    type View = AgentView;
    type List = AgentList;
    type Revision = AgentRevisionView;
    type Revisions = AgentRevisionList;

    fn read(body: &Body, earlier: Option<&Agent>) -> Result<(Self, Vec<Problem>), ApiError> {
        let read = read_definition(body.json()?, earlier)?;
        Ok((read.definition, read.warnings))
    }

    async fn view(app: &Installation, agent: Agent, warnings: Vec<Problem>) -> Result<AgentView, ApiError> {
        Ok(agent_view::agent(app, &agent, warnings))
    }

    async fn views(
        app: &Installation,
        _tenant: &TenantId,
        found: Vec<Agent>,
    ) -> Result<Vec<AgentView>, ApiError> {
        let snapshot = app.registry().snapshot();
        Ok(found.iter().map(|agent| agent_view::in_snapshot(app, &snapshot, agent)).collect())
    }

    fn list(page: ListedResources<AgentView>) -> AgentList {
        let ListedResources { items, total, broken_files, next_page_token } = page;
        AgentList { agents: items, total, broken_files, next_page_token }
    }

    fn revision(revision: AgentRevision, published: Option<u32>) -> AgentRevisionView {
        AgentRevisionView::new(&revision, published).with_definition(&revision.definition)
    }

    fn listed_revision(revision: AgentRevision, published: Option<u32>) -> AgentRevisionView {
        AgentRevisionView::new(&revision, published)
    }

    fn revisions(page: ListedRevisions<AgentRevisionView>) -> AgentRevisionList {
        let ListedRevisions { items, total, next_page_token } = page;
        AgentRevisionList { total, revisions: items, next_page_token }
    }
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
    warnings.extend(key_warnings(&app, &identity.tenant, &definition).await?);
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

/// Returns the tools that an agent could call for a caller, with the number of tokens of their definitions.
fn tools_of(
    app: &Installation,
    identity: &Identity,
    definition: &AgentDefinition,
) -> (Vec<AgentToolView>, usize) {
    let snapshot = app.registry().snapshot();
    let runs_for = RunsFor { principal: identity, mode: app.settings().mode, surfaces: &[] };
    let bound = bind(app, &snapshot, definition, runs_for).unwrap_or_default();
    let tokens = bound.iter().map(|binding| binding.tokens).sum();
    (bound.iter().map(agent_view::tool).collect(), tokens)
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
    let agent = resources::find::<AgentDefinition>(&app, &identity, &reference).await?;
    let definition =
        agent.runnable(app.settings().mode).map_or(&agent.definition, |(_, definition)| definition);
    let (tools, tokens) = tools_of(&app, &identity, definition);
    let missing = check(&app, &identity.tenant, definition, Strictness::Draft).missing;
    Ok(success(AgentTools { tools, tokens, missing }).into_response())
}
