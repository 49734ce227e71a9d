//! `POST /policy/explain`: what would happen to a call, and why.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use haft_core::exact_json;
use haft_core::policy::Effect;
use haft_core::token::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::body::{self, Body};
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::policy::{self, CallExplanation, Considered, ExplainedCaller};

/// The call to explain.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct ExplainBody {
    /// The tool: id, name or `bundle:name`; the latter two optionally with `@version`.
    #[schema(example = "greet")]
    tool: String,
    /// The arguments.
    #[serde(default, deserialize_with = "exact_json::object")]
    #[schema(value_type = Object, example = json!({"name": "Ada"}))]
    args: Map<String, Value>,
    /// Who calls; default: you.
    #[serde(default, rename = "as", deserialize_with = "body::optional_object")]
    caller: Option<ExplainCaller>,
}

/// The caller to explain.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub(crate) struct ExplainCaller {
    /// The name or id of a token. Its role, elevation and allow-list apply; with `role` it need not exist.
    #[schema(example = "ci")]
    token: Option<String>,
    /// The role; default: that of the token, or `caller`.
    #[schema(example = "caller")]
    role: Option<Role>,
    /// Whether tools that need approval run without it; default: as the token.
    elevated: Option<bool>,
    /// The tenant; only admins of the platform may name another one.
    tenant: Option<String>,
    /// The agent that makes the call; default: none.
    agent: Option<String>,
    /// The surface; default: `rest`.
    #[schema(example = "rest")]
    surface: Option<String>,
    /// The agents above the one that makes the call, outermost first; default: none.
    #[schema(example = json!(["planner"]))]
    agents_above: Vec<String>,
    /// The surfaces that the call is made on behalf of, that of the root first; default: none.
    #[schema(example = json!(["mcp"]))]
    surfaces_above: Vec<String>,
}

/// What would happen to a call, and why.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplanationView {
    effect: Effect,
    /// The rule that decided; `null` if the call is allowed because nothing says otherwise. The checks of haft itself
    /// have the prefix `built-in:`, the rules of the platform `platform:`.
    #[schema(required, example = "large-payments")]
    rule: Option<String>,
    /// The reason of the rule, as callers see it.
    #[schema(required)]
    reason: Option<String>,
    /// Everything that was considered: the checks of haft itself, the rules of the platform, those of the tenant.
    considered: Vec<ConsideredView>,
}

/// A rule or a check that was considered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConsideredView {
    #[schema(example = "large-payments")]
    rule: String,
    /// What it does to the calls that it matches.
    effect: Effect,
    /// Whether it matches the call.
    matched: bool,
    /// Why it matches or not.
    #[schema(example = "`when` is false")]
    why: String,
}

impl From<ExplainCaller> for ExplainedCaller {
    fn from(caller: ExplainCaller) -> Self {
        let ExplainCaller { token, role, elevated, tenant, agent, surface, agents_above, surfaces_above } =
            caller;
        Self { token, role, elevated, tenant, agent, surface, agents_above, surfaces_above }
    }
}

impl From<CallExplanation> for ExplanationView {
    fn from(explanation: CallExplanation) -> Self {
        let CallExplanation { effect, rule, reason, considered } = explanation;
        let view = |Considered { rule, effect, matched, why }| ConsideredView { rule, effect, matched, why };
        Self { effect, rule, reason, considered: considered.into_iter().map(view).collect() }
    }
}

/// Explain what would happen to a call: which rule decides, and why the others do not match. Nothing is called.
#[utoipa::path(
    post, path = "/policy/explain", tag = "policy", request_body = ExplainBody,
    responses((status = 200, body = Success<ExplanationView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn explain(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let ExplainBody { tool, args, caller } = body.json()?;
    let explanation = policy::explain(&app, &identity, &tool, args, caller.map(Into::into)).await?;
    Ok(success(ExplanationView::from(explanation)).into_response())
}
