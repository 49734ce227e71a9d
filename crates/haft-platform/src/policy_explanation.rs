//! Explains what would happen to a call, and why.

use std::borrow::Cow;
use std::sync::Arc;

use haft_core::actor::ActorKind;
use haft_core::callable::{CallableKind, CallableResource};
use haft_core::name::{AgentSlug, TenantId};
use haft_core::outcome::ErrorCode;
use haft_core::policy::{Decision, Effect};
use haft_core::principal::Principal;
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::spec::ToolSpec;
use haft_core::token::{Role, TokenRecord};
use haft_definition::defaults::ArgumentDefaults;
use haft_runtime::pipeline::bound_defaults;
use haft_runtime::policy::{CallAncestors, Explanation, PolicyRequest, Subject};
use haft_runtime::registry::{Entry, Snapshot};
use serde_json::{Map, Value};

use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::people::find_actor;

/// The caller to explain; a missing field has its default.
#[derive(Debug, Default)]
pub struct ExplainedCaller {
    /// The name or id of a token. With `role` it need not exist.
    pub token: Option<String>,
    /// The id, the e-mail address or the name of a person, instead of a token.
    pub person: Option<String>,
    pub role: Option<Role>,
    pub elevated: Option<bool>,
    pub tenant: Option<String>,
    /// The agent that makes the call.
    pub agent: Option<String>,
    pub surface: Option<String>,
    /// The agents above the one that makes the call, outermost first.
    pub agents_above: Vec<String>,
    /// The surfaces that the call is made on behalf of, that of the root first.
    pub surfaces_above: Vec<String>,
}

/// The decision about a call and its reasons.
pub struct CallExplanation {
    pub effect: Effect,
    /// The rule that decided; `None` if the call is allowed because nothing says otherwise.
    pub rule: Option<String>,
    /// The reason of the rule, as callers see it.
    pub reason: Option<String>,
    /// Everything that was considered, in order.
    pub considered: Vec<Considered>,
}

/// An evaluated rule or check.
pub struct Considered {
    pub rule: String,
    /// Its effect on matching calls.
    pub effect: Effect,
    /// Whether it matches the call.
    pub matched: bool,
    /// Why it matches or not.
    pub why: String,
}

/// Explains what would happen to a call; nothing is called.
pub async fn explain(
    app: &Context,
    identity: &Identity,
    tool: &str,
    args: Map<String, Value>,
    caller: Option<ExplainedCaller>,
) -> Result<CallExplanation, ServiceError> {
    let principal = principal(app, identity, caller.as_ref()).await?;
    let snapshot = app.registry().snapshot();
    let callee = if let Some(resource) = resource(app, &principal.tenant, tool).await? {
        ExplainedCallee::Resource(resource)
    } else {
        let reference: ToolRef = tool.parse()?;
        ExplainedCallee::Tool(Arc::clone(snapshot.resolve(&principal.tenant, &reference)?))
    };
    let mode = app.settings().mode;
    let mut args = args;
    if let ExplainedCallee::Tool(entry) = &callee {
        // The arguments that the call would run with.
        args.extend(ArgumentDefaults::of(definition_of(entry, mode)).missing(&args));
        app.pipeline().compile(&snapshot.resolved(entry), mode).await;
        let plan = entry.plan(mode.into(), app.registry().executors());
        if let Ok(plan) = plan {
            args.extend(bound_defaults(&plan, &principal.tenant, mode).await.missing(&args));
        }
    }
    let args = Value::Object(args);
    let caller = caller.unwrap_or_default();
    let agents =
        caller.agents_above.iter().map(|slug| AgentSlug::new(slug)).collect::<Result<Vec<_>, _>>()?;
    let surfaces: Vec<_> = caller.surfaces_above.into_iter().map(Cow::Owned).collect();
    let policy = app.policy().handle().load();
    let explanation = policy.explain(&PolicyRequest {
        principal: &principal,
        subject: callee.subject(),
        surface: caller.surface.as_deref().unwrap_or(DEFAULT_SURFACE),
        agent: caller.agent.as_deref(),
        args: &args,
        above: CallAncestors { surfaces: &surfaces, agents: &agents },
    });
    let mut before = vec![role_check(&principal), allow_list_check(&principal, &callee)];
    let own = match &callee {
        ExplainedCallee::Tool(entry) => {
            before.push(state_check(&snapshot, entry, mode));
            own_check(definition_of(entry, mode), &principal, &explanation.decision)
        }
        ExplainedCallee::Resource(resource) => waiting_check(resource, &explanation.decision),
    };
    Ok(combine(before, explanation, own))
}

/// Returns the definition that a call runs.
fn definition_of(entry: &Entry, mode: Mode) -> &ToolSpec {
    entry.definition(mode.into()).map_or(&entry.tool.spec, |(_, spec)| spec)
}

/// What is called: a tool, or an agent or a retrieval pipeline.
enum ExplainedCallee {
    Tool(Arc<Entry>),
    Resource(CallableResource),
}

impl ExplainedCallee {
    fn subject(&self) -> Subject<'_> {
        match self {
            Self::Tool(entry) => (&entry.tool).into(),
            Self::Resource(resource) => resource.into(),
        }
    }
}

/// Returns the agent or the pipeline that `agents:SLUG` or `pipelines:SLUG` names, if there is one.
async fn resource(
    app: &Context,
    tenant: &TenantId,
    name: &str,
) -> Result<Option<CallableResource>, ServiceError> {
    let Some((bundle, slug)) = name.split_once(':') else { return Ok(None) };
    if bundle == CallableKind::Agent.bundle() {
        let agent = app.store().agents().find(tenant, slug).await?;
        return Ok(agent.map(|agent| agent.callable(agent.revision)));
    }
    if bundle == CallableKind::Pipeline.bundle() {
        return Ok(app
            .store()
            .documents()
            .queried_pipeline(tenant, slug)
            .await?
            .map(|pipeline| pipeline.callable()));
    }
    Ok(None)
}

/// The surface of a call that names none.
const DEFAULT_SURFACE: &str = "rest";

/// Returns the caller whose call is explained.
async fn principal(
    app: &Context,
    identity: &Identity,
    caller: Option<&ExplainedCaller>,
) -> Result<Principal, ServiceError> {
    let Some(caller) = caller else { return Ok(Principal::clone(identity)) };
    let tenant = match caller.tenant.as_deref() {
        None => identity.tenant.clone(),
        Some(tenant) if tenant == identity.tenant.as_str() || identity.is_platform_admin() => {
            TenantId::new(tenant)?
        }
        Some(_) => {
            return Err(ServiceError::new(ErrorCode::Forbidden, "`as.tenant` must be your own tenant"));
        }
    };
    let mut principal = match (caller.token.as_deref(), caller.person.as_deref()) {
        (None, None) => Principal::new(tenant, "", Role::Caller),
        (Some(_), Some(_)) => {
            return Err(ServiceError::bad_request("`as.token` and `as.person` exclude each other"));
        }
        (None, Some(person)) => principal_of_person(app, identity, &tenant, person).await?,
        (Some(token), None) => match find_token(app, &tenant, token).await? {
            Some(record) => principal_of_token(app, &record)?,
            None if caller.role.is_some() => Principal::new(tenant, token, Role::Caller),
            None => {
                let mut error = ServiceError::not_found("token", token);
                error.message.push_str("; add `role` to explain the call of a token that does not exist");
                return Err(error);
            }
        },
    };
    principal.role = caller.role.unwrap_or(principal.role);
    principal.elevated = caller.elevated.unwrap_or(principal.elevated);
    Ok(principal)
}

/// Returns the principal of a token. One that belongs to somebody does no more than they may do.
fn principal_of_token(app: &Context, token: &TokenRecord) -> Result<Principal, ServiceError> {
    if token.actor.is_none() {
        return Ok(Principal::from(token));
    }
    let principal = app.access().principal_of_token(token.id);
    let disabled = || ServiceError::bad_request("invalid `as.token`: its owner is disabled");
    principal.map(|principal| Principal::clone(&principal)).ok_or_else(disabled)
}

/// Returns the principal of a person.
async fn principal_of_person(
    app: &Context,
    identity: &Identity,
    tenant: &TenantId,
    person: &str,
) -> Result<Principal, ServiceError> {
    // Others do not see people.
    identity.require(Role::Admin)?;
    let found = find_actor(app, tenant, person).await?.actor;
    if found.kind != ActorKind::Person {
        return Err(ServiceError::bad_request(
            "invalid `as.person`: a service account acts with a token, so name one of those as `as.token`",
        ));
    }
    let principal = app.access().principal_of_person(found.id, tenant);
    let disabled = || ServiceError::bad_request("invalid `as.person`: the person is disabled");
    principal.map(|principal| Principal::clone(&principal)).ok_or_else(disabled)
}

async fn find_token(
    app: &Context,
    tenant: &TenantId,
    token: &str,
) -> Result<Option<TokenRecord>, ServiceError> {
    let mut tokens =
        app.store().access().tokens().await?.into_iter().filter(|record| record.tenant == *tenant);
    Ok(tokens.find(|record| record.name == token || record.id.to_string() == token))
}

fn state_check(snapshot: &Snapshot, entry: &Entry, mode: Mode) -> Considered {
    match entry.runnable(snapshot.is_bundle_enabled(entry), mode) {
        Ok(()) => check("state", Effect::Deny, false, format!("the tool can run in {} mode", mode.as_str())),
        Err(reason) => check("state", Effect::Deny, true, entry.not_runnable(reason).message),
    }
}

/// Checks the tool's own setting, which an elevated caller and an allow rule override.
fn own_check(spec: &ToolSpec, principal: &Principal, decision: &Decision) -> Considered {
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

fn role_check(principal: &Principal) -> Considered {
    let role = principal.role.as_str();
    let denied = principal.role < Role::Caller;
    let why = if denied {
        format!("the role `{role}` may not call tools")
    } else {
        format!("the role `{role}` may call tools")
    };
    check("role", Effect::Deny, denied, why)
}

fn allow_list_check(principal: &Principal, callee: &ExplainedCallee) -> Considered {
    let (kind, allowed) = match callee {
        ExplainedCallee::Tool(entry) => ("tool", principal.tools.allows(&entry.tool)),
        ExplainedCallee::Resource(resource) => {
            (resource.kind.as_str(), principal.allows_resource(resource.kind, &resource.slug))
        }
    };
    let (denied, why) = if principal.tools.is_unlimited() {
        (false, "the token has no allow-list".to_owned())
    } else if allowed {
        (false, format!("the allow-list of the token contains the {kind}"))
    } else {
        (true, format!("the allow-list of the token does not contain the {kind}"))
    };
    check("allow-list", Effect::Deny, denied, why)
}

/// A call of an agent or a pipeline cannot wait: a rule that asks for approval denies it.
fn waiting_check(resource: &CallableResource, decision: &Decision) -> Considered {
    let (kind, held) = (resource.kind.as_str(), decision.effect == Effect::Approve);
    let why = if held {
        format!("a call of the {kind} cannot wait for the approval that a rule requires")
    } else {
        format!("no rule requires approval for the {kind}")
    };
    check("approval", Effect::Deny, held, why)
}

fn check(name: &str, effect: Effect, matched: bool, why: String) -> Considered {
    Considered { rule: format!("built-in:{name}"), effect, matched, why }
}

/// Combines the checks with the rules: of all that matches, the strongest effect wins, and among equals the first.
fn combine(before: Vec<Considered>, explanation: Explanation, own: Considered) -> CallExplanation {
    let Explanation { decision, considered } = explanation;
    let rules = considered.into_iter().map(|rule| Considered {
        rule: rule.rule.to_string(),
        effect: rule.effect,
        matched: rule.matched,
        why: rule.why,
    });
    let considered: Vec<Considered> = before.into_iter().chain(rules).chain([own]).collect();
    let mut strongest: Option<&Considered> = None;
    for one in considered.iter().filter(|one| one.matched) {
        if strongest.is_none_or(|found| one.effect > found.effect) {
            strongest = Some(one);
        }
    }
    let rule = strongest.map(|one| one.rule.clone());
    let by_rule = rule.as_deref() == decision.rule.as_deref();
    CallExplanation {
        effect: strongest.map_or(Effect::Allow, |one| one.effect),
        reason: decision.reason.filter(|_| by_rule).map(|reason| reason.to_string()),
        rule,
        considered,
    }
}
