//! `GET /tools/{ref}/usage`: who depends on a tool.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::id::TokenId;
use haft_core::implementation::Implementation;
use haft_core::policy::{Effect, PolicyRules};
use haft_core::principal::AllowList;
use haft_core::reference::ToolRef;
use haft_core::token::{Role, TokenRecord};
use haft_core::tool::Tool;
use haft_runtime::registry::{Entry, Snapshot};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::identity::Identity;

/// The largest number of tools, tokens or callers in one list of the response.
const MAX_ITEMS: usize = 100;

/// Who depends on a tool. Each list has at most 100 items.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolUsage {
    /// The tool, as `bundle:name@version`.
    #[schema(example = "user-created:greet@1.0.0")]
    tool: String,
    /// The tokens whose allow-list names or matches the tool.
    tokens: Vec<UsingToken>,
    /// How many tokens may call the tool because they have no allow-list.
    unrestricted_tokens: usize,
    /// The policy rules that name or match the tool.
    policy_rules: Vec<UsingRule>,
    /// The tools that refer to it.
    tools: Vec<UsingTool>,
    /// The MCP endpoints that offer it.
    mcp_views: Vec<String>,
    /// Who called it recently, most calls first.
    callers: Vec<RecentCaller>,
    /// How many of the latest calls `callers` counts at most.
    #[schema(example = 5000)]
    counted_calls: u32,
}

/// A token whose allow-list names or matches the tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsingToken {
    id: Uuid,
    #[schema(example = "ci")]
    name: String,
    role: Role,
    /// The rules of the allow-list that match.
    #[schema(example = json!(["greet"]))]
    rules: Vec<String>,
}

/// A policy rule that names or matches the tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsingRule {
    /// `platform`, or the id of the tenant.
    #[schema(example = "default")]
    scope: String,
    #[schema(example = "large-payments")]
    name: String,
    effect: Effect,
}

/// A tool that refers to the tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsingTool {
    id: Uuid,
    /// The tool, as `bundle:name@version`.
    #[schema(example = "user-created:old-greet@1.0.0")]
    tool: String,
    /// The field that refers to it.
    #[schema(example = "replaced_by")]
    field: &'static str,
}

/// Somebody who called the tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecentCaller {
    #[schema(example = "ci")]
    name: String,
    /// The id of the token, if it is stored.
    #[schema(required)]
    token_id: Option<Uuid>,
    /// How many of the latest calls it made.
    calls: u64,
    last_called_at: Timestamp,
}

/// Return who depends on a tool: tokens, policy rules, other tools, MCP endpoints and recent callers.
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
    let tenant = &identity.tenant;
    let tool = &entry.tool;
    let tokens = app.store().tokens().await?;
    let tokens: Vec<TokenRecord> = tokens.into_iter().filter(|token| token.tenant == *tenant).collect();
    let policies = app.store().policies().await?;
    let own = policies.tenants.iter().filter(|(owner, _)| owner == tenant);
    let mut policy_rules: Vec<UsingRule> =
        own.flat_map(|(owner, rules)| matching_rules(owner.as_str(), rules, tool)).collect();
    policy_rules.extend(matching_rules("platform", &policies.platform, tool));
    policy_rules.truncate(MAX_ITEMS);
    let snapshot = app.registry().snapshot();
    let callers = app.store().tool_callers(tenant, tool.id).await?;
    let names: HashMap<String, (&str, TokenId)> =
        tokens.iter().map(|token| (token.id.to_string(), (token.name.as_str(), token.id))).collect();
    let callers = callers.into_iter().map(|caller| {
        let token = names.get(&caller.principal);
        RecentCaller {
            name: token.map_or(caller.name, |(name, _)| (*name).to_owned()),
            token_id: token.map(|(_, id)| id.0),
            calls: caller.calls,
            last_called_at: caller.last_called_at,
        }
    });
    Ok(ToolUsage {
        tool: entry.qualified.to_string(),
        unrestricted_tokens: tokens.iter().filter(|token| token.tools.is_unlimited()).count(),
        tokens: tokens.iter().filter_map(|token| using_token(token, tool)).take(MAX_ITEMS).collect(),
        policy_rules,
        tools: using_tools(&snapshot, identity, entry),
        mcp_views: mcp_views(app, &snapshot, entry),
        callers: callers.collect(),
        counted_calls: haft_store::COUNTED_CALLS,
    })
}

fn using_token(token: &TokenRecord, tool: &Tool) -> Option<UsingToken> {
    let rules = token.tools.matching(tool);
    (!rules.is_empty()).then(|| UsingToken {
        id: token.id.0,
        name: token.name.clone(),
        role: token.role,
        rules,
    })
}

/// Returns the rules that say something about a tool: by its name, its bundle or its tags.
fn matching_rules(scope: &str, rules: &PolicyRules, tool: &Tool) -> Vec<UsingRule> {
    let names = |patterns: &Vec<String>| AllowList::new(patterns).is_ok_and(|list| list.allows(tool));
    let has_tag = |patterns: &Vec<String>| {
        let matches = |pattern: &String| {
            tool.spec.tags.iter().any(|tag| haft_core::principal::matches_pattern(pattern, tag))
        };
        patterns.iter().any(matches)
    };
    let matching = rules.rules.iter().filter(|rule| {
        let (tools, tags) = (rule.matching.tools.as_ref(), rule.matching.tags.as_ref());
        (tools.is_some() || tags.is_some()) && tools.is_none_or(names) && tags.is_none_or(has_tag)
    });
    let view = |name: &str, effect| UsingRule { scope: scope.to_owned(), name: name.to_owned(), effect };
    matching.map(|rule| view(&rule.name, rule.effect)).collect()
}

/// Returns the tools that refer to a tool: as their replacement, or in their steps.
fn using_tools(snapshot: &Snapshot, identity: &Identity, entry: &Entry) -> Vec<UsingTool> {
    let is_it = |text: &str| {
        let reference = text.parse::<ToolRef>();
        let found = reference.ok().and_then(|reference| snapshot.resolve(&identity.tenant, &reference).ok());
        found.is_some_and(|found| found.tool.id == entry.tool.id)
    };
    let field = |other: &Entry| {
        let replaced_by = other.tool.deprecation().and_then(|deprecation| deprecation.replaced_by.clone());
        if replaced_by.is_some_and(|text| is_it(&text)) {
            return Some("replaced_by");
        }
        let Implementation::Steps(steps) = &other.tool.spec.implementation else { return None };
        steps.steps.iter().any(|step| is_it(&step.tool)).then_some("implementation.steps")
    };
    let using = |other: &Arc<Entry>| {
        let field = field(other)?;
        Some(UsingTool { id: other.tool.id.0, tool: other.qualified.to_string(), field })
    };
    snapshot.tools(&identity.tenant).filter_map(using).take(MAX_ITEMS).collect()
}

/// Returns the MCP endpoints that list a tool.
fn mcp_views(app: &Installation, snapshot: &Snapshot, entry: &Entry) -> Vec<String> {
    if !snapshot.is_runnable(entry, app.settings().mode) {
        return Vec::new();
    }
    vec!["/mcp".to_owned(), format!("/mcp/bundles/{}", entry.tool.bundle)]
}
