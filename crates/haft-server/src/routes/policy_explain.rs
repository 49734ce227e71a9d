//! `POST /policy/explain`: what would happen to a call, and why.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use haft_core::name::{AgentSlug, TenantId};
use haft_core::outcome::ErrorCode;
use haft_core::policy::{Decision, Effect};
use haft_core::principal::Principal;
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::spec::ToolSpec;
use haft_core::token::{Role, TokenRecord};
use haft_core::tool::Tool;
use haft_runtime::policy::{Above, Explanation, Question};
use haft_runtime::registry::{Entry, Snapshot};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::app::App;
use crate::body::{self, Body};
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::reply::{Success, success};
use haft_core::exact_json;

/// The surface of a call that names none.
const DEFAULT_SURFACE: &str = "rest";

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
#[derive(Debug, Clone, Serialize, ToSchema)]
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

/// Explain what would happen to a call: which rule decides, and why the others do not match. Nothing is called.
#[utoipa::path(
    post, path = "/policy/explain", tag = "policy", request_body = ExplainBody,
    responses((status = 200, body = Success<ExplanationView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn explain(
    State(app): State<Arc<App>>,
    identity: Identity,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let ExplainBody { tool, args, caller } = body.json()?;
    let reference: ToolRef = tool.parse()?;
    let principal = principal(&app, &identity, caller.as_ref()).await?;
    let snapshot = app.registry().snapshot();
    let entry = Arc::clone(snapshot.resolve(&principal.tenant, &reference)?);
    let args = Value::Object(args);
    let caller = caller.unwrap_or_default();
    let agents =
        caller.agents_above.iter().map(|slug| AgentSlug::new(slug)).collect::<Result<Vec<_>, _>>()?;
    let surfaces: Vec<_> = caller.surfaces_above.into_iter().map(Cow::Owned).collect();
    let policy = app.policy().handle().load();
    let explanation = policy.explain(&Question {
        principal: &principal,
        tool: &entry.tool,
        surface: caller.surface.as_deref().unwrap_or(DEFAULT_SURFACE),
        agent: caller.agent.as_deref(),
        args: &args,
        above: Above { surfaces: &surfaces, agents: &agents },
    });
    let mode = app.settings().mode;
    let before = vec![
        role_check(&principal),
        allow_list_check(&principal, &entry.tool),
        state_check(&snapshot, &entry, mode),
    ];
    let spec = entry.definition(mode.into()).map_or(&entry.tool.spec, |(_, spec)| spec);
    let own = own_check(spec, &principal, &explanation.decision);
    Ok(success(combine(before, explanation, own)).into_response())
}

/// Returns the caller whose call is explained.
async fn principal(
    app: &App,
    identity: &Identity,
    caller: Option<&ExplainCaller>,
) -> Result<Principal, ApiError> {
    let Some(caller) = caller else { return Ok(Principal::clone(identity)) };
    let tenant = match caller.tenant.as_deref() {
        None => identity.tenant.clone(),
        Some(tenant) if tenant == identity.tenant.as_str() || identity.is_platform_admin() => {
            TenantId::new(tenant)?
        }
        Some(_) => return Err(ApiError::new(ErrorCode::Forbidden, "`as.tenant` must be your own tenant")),
    };
    let mut principal = match caller.token.as_deref() {
        None => Principal::new(tenant, "", Role::Caller),
        Some(token) => match find_token(app, &tenant, token).await? {
            Some(record) => Principal::from(&record),
            None if caller.role.is_some() => Principal::new(tenant, token, Role::Caller),
            None => {
                let mut error = ApiError::not_found("token", token);
                error.message.push_str("; add `role` to explain the call of a token that does not exist");
                return Err(error);
            }
        },
    };
    principal.role = caller.role.unwrap_or(principal.role);
    principal.elevated = caller.elevated.unwrap_or(principal.elevated);
    Ok(principal)
}

async fn find_token(app: &App, tenant: &TenantId, token: &str) -> Result<Option<TokenRecord>, ApiError> {
    let mut tokens = app.store().tokens().await?.into_iter().filter(|record| record.tenant == *tenant);
    Ok(tokens.find(|record| record.name == token || record.id.to_string() == token))
}

fn state_check(snapshot: &Snapshot, entry: &Entry, mode: Mode) -> ConsideredView {
    match entry.runnable(snapshot.is_bundle_enabled(entry), mode) {
        Ok(()) => check("state", Effect::Deny, false, format!("the tool can run in {} mode", mode.as_str())),
        Err(reason) => check("state", Effect::Deny, true, entry.not_runnable(reason).message),
    }
}

/// Checks the tool's own setting, which an elevated caller and an allow rule override.
fn own_check(spec: &ToolSpec, principal: &Principal, decision: &Decision) -> ConsideredView {
    let setting = if spec.requires_confirmation { "requires_confirmation: true" } else { "policy: elevated" };
    let why = if !spec.needs_approval() {
        "the tool itself requires no approval".to_owned()
    } else if principal.elevated {
        format!("the tool has `{setting}`, and the caller is elevated")
    } else if let Some(rule) = decision.rule.as_ref().filter(|_| decision.is_explicit_allow()) {
        format!("the tool has `{setting}`, but the rule `{rule}` allows the call")
    } else {
        format!("the tool has `{setting}`, and the caller is not elevated")
    };
    let held = spec.needs_approval() && !principal.elevated && !decision.is_explicit_allow();
    check("tool", Effect::Approve, held, why)
}

fn role_check(principal: &Principal) -> ConsideredView {
    let role = principal.role.as_str();
    let denied = principal.role < Role::Caller;
    let why = if denied {
        format!("the role `{role}` may not call tools")
    } else {
        format!("the role `{role}` may call tools")
    };
    check("role", Effect::Deny, denied, why)
}

fn allow_list_check(principal: &Principal, tool: &Tool) -> ConsideredView {
    let (denied, why) = if principal.tools.is_unlimited() {
        (false, "the token has no allow-list")
    } else if principal.tools.allows(tool) {
        (false, "the allow-list of the token contains the tool")
    } else {
        (true, "the allow-list of the token does not contain the tool")
    };
    check("allow-list", Effect::Deny, denied, why.to_owned())
}

fn check(name: &str, effect: Effect, matched: bool, why: String) -> ConsideredView {
    ConsideredView { rule: format!("built-in:{name}"), effect, matched, why }
}

/// Combines the checks with the rules: of all that matches, the strongest effect wins, and among equals the first.
fn combine(before: Vec<ConsideredView>, explanation: Explanation, own: ConsideredView) -> ExplanationView {
    let Explanation { decision, considered } = explanation;
    let rules = considered.into_iter().map(|rule| ConsideredView {
        rule: rule.rule.to_string(),
        effect: rule.effect,
        matched: rule.matched,
        why: rule.why,
    });
    let considered: Vec<ConsideredView> = before.into_iter().chain(rules).chain([own]).collect();
    let mut strongest: Option<&ConsideredView> = None;
    for one in considered.iter().filter(|one| one.matched) {
        if strongest.is_none_or(|found| one.effect > found.effect) {
            strongest = Some(one);
        }
    }
    let rule = strongest.map(|one| one.rule.clone());
    let by_rule = rule.as_deref() == decision.rule.as_deref();
    ExplanationView {
        effect: strongest.map_or(Effect::Allow, |one| one.effect),
        reason: decision.reason.filter(|_| by_rule).map(|reason| reason.to_string()),
        rule,
        considered,
    }
}
