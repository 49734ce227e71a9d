//! `GET /tools/{ref}/usage`: the users of a tool, and the same for resources of every kind.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::catalog::StoreError;
use haft_core::id::{TokenId, ToolId};
use haft_core::name::TenantId;
use haft_core::policy::PolicyRule;
use haft_core::resource::Resource;
use haft_core::token::{Role, TokenRecord};
use haft_runtime::registry::{Entry, Snapshot};

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::reply::{Success, success};
use haft_api::usage::{RecentCaller, ResourceUsage, ToolUsage, UsingAgent, UsingRule, UsingToken, UsingTool};
use haft_platform::Installation;
use haft_platform::identity::Identity;
use haft_platform::resource_kind::ServedKind;
use haft_platform::resource_usage::{UseTarget, UsedTool, Users, users};

/// The largest number of tools, tokens or callers in one list of the response.
const MAX_ITEMS: usize = 100;

/// The fields that usages of tools and resources share.
struct FoundUsers {
    tools: Vec<UsingTool>,
    agents: Vec<UsingAgent>,
    tokens: Vec<UsingToken>,
    unrestricted_tokens: usize,
    policy_rules: Vec<UsingRule>,
    callers: Vec<RecentCaller>,
}

impl FoundUsers {
    async fn of(app: &Installation, target: &impl UseTarget) -> Result<Self, ApiError> {
        let tenant = target.owner();
        let Users { tools, agents } = users(app, target).await?;
        let mut found = Self {
            tools: tools
                .into_iter()
                .map(|tool| UsingTool { id: tool.id.0, tool: tool.tool, field: tool.field.into() })
                .take(MAX_ITEMS)
                .collect(),
            agents: agents
                .into_iter()
                .map(|agent| UsingAgent { id: agent.id, agent: agent.agent, rules: agent.rules })
                .take(MAX_ITEMS)
                .collect(),
            tokens: Vec::new(),
            unrestricted_tokens: 0,
            policy_rules: Vec::new(),
            callers: Vec::new(),
        };
        // Tokens and rules do not match resources that only tools use.
        let Some(id) = target.call_id() else { return Ok(found) };
        let tokens = tokens_of(app, tenant).await?;
        let by_rules = |token: &TokenRecord| using_token(token, target.matching_rules(&token.tools));
        found.tokens = tokens.iter().filter_map(by_rules).take(MAX_ITEMS).collect();
        found.unrestricted_tokens = tokens.iter().filter(|token| token.tools.is_unlimited()).count();
        found.policy_rules = policy_rules(app, tenant, |rule| target.is_ruled_by(rule)).await?;
        found.callers = recent_callers(app, tenant, id, &tokens).await?;
        Ok(found)
    }
}

/// Finds the users of a resource.
pub(super) async fn of_resource<S: ServedKind>(
    app: &Installation,
    found: &Resource<S>,
) -> Result<ResourceUsage, ApiError> {
    let FoundUsers { tools, agents, tokens, unrestricted_tokens, policy_rules, callers } =
        FoundUsers::of(app, found).await?;
    Ok(ResourceUsage {
        resource: format!("{}:{}", S::KIND.plural(), found.definition.slug()),
        tools,
        agents,
        tokens,
        unrestricted_tokens,
        policy_rules,
        callers,
        counted_calls: haft_store::COUNTED_CALLS,
    })
}

/// Return who depends on a tool: tokens, policy rules, other tools, agents, MCP endpoints and recent callers.
#[utoipa::path(
    get, path = "/tools/{ref}/usage", tag = "life cycle", params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")),
    responses((status = 200, body = Success<ToolUsage>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let entry = haft_platform::tools::find(&app, &identity, &reference)?;
    Ok(success(of(&app, &identity, &entry).await?).into_response())
}

/// Finds out who depends on a tool.
pub(super) async fn of(
    app: &Installation,
    identity: &Identity,
    entry: &Entry,
) -> Result<ToolUsage, ApiError> {
    let target = UsedTool { entry, tenant: &identity.tenant };
    let FoundUsers { tools, agents, tokens, unrestricted_tokens, policy_rules, callers } =
        FoundUsers::of(app, &target).await?;
    Ok(ToolUsage {
        tool: entry.qualified.to_string(),
        tokens,
        unrestricted_tokens,
        policy_rules,
        tools,
        agents,
        mcp_views: mcp_views(app, &app.registry().snapshot(), entry),
        callers,
        counted_calls: haft_store::COUNTED_CALLS,
    })
}

async fn tokens_of(app: &Installation, tenant: &TenantId) -> Result<Vec<TokenRecord>, StoreError> {
    let tokens = app.store().access().tokens().await?;
    Ok(tokens.into_iter().filter(|token| token.tenant == *tenant).collect())
}

/// Returns who made the latest calls of a tool, an agent or a pipeline.
async fn recent_callers(
    app: &Installation,
    tenant: &TenantId,
    id: ToolId,
    tokens: &[TokenRecord],
) -> Result<Vec<RecentCaller>, StoreError> {
    let names: HashMap<String, (&str, TokenId)> =
        tokens.iter().map(|token| (token.id.to_string(), (token.name.as_str(), token.id))).collect();
    let callers = app.store().calls().tool_callers(tenant, id).await?.into_iter().map(|caller| {
        let token = names.get(&caller.principal);
        RecentCaller {
            name: token.map_or(caller.name, |(name, _)| (*name).to_owned()),
            token_id: token.map(|(_, id)| id.0),
            calls: caller.calls,
            last_called_at: caller.last_called_at,
        }
    });
    Ok(callers.collect())
}

fn using_token(token: &TokenRecord, rules: Vec<String>) -> Option<UsingToken> {
    (!rules.is_empty()).then(|| UsingToken {
        id: token.id.0,
        name: token.name.clone(),
        role: token.role,
        rules,
    })
}

/// Returns the rules of a tenant and of the platform that match.
async fn policy_rules(
    app: &Installation,
    tenant: &TenantId,
    is_match: impl Fn(&PolicyRule) -> bool,
) -> Result<Vec<UsingRule>, StoreError> {
    let policies = app.store().policies().all().await?;
    let own = policies.tenants.iter().filter(|(owner, _)| owner == tenant);
    let scopes = own.map(|(owner, rules)| (owner.as_str(), rules)).chain([("platform", &policies.platform)]);
    let rules = scopes.flat_map(|(scope, rules)| rules.rules.iter().map(move |rule| (scope, rule)));
    let matching = rules.filter(|(_, rule)| is_match(rule)).take(MAX_ITEMS);
    let view = |(scope, rule): (&str, &PolicyRule)| UsingRule {
        scope: scope.to_owned(),
        name: rule.name.clone(),
        effect: rule.effect,
    };
    Ok(matching.map(view).collect())
}

/// Returns the MCP endpoints that list a tool.
fn mcp_views(app: &Installation, snapshot: &Snapshot, entry: &Entry) -> Vec<String> {
    if !snapshot.is_runnable(entry, app.settings().mode) {
        return Vec::new();
    }
    vec!["/mcp".to_owned(), format!("/mcp/bundles/{}", entry.tool.bundle)]
}
