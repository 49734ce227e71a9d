//! `GET /limits`: the limits of a tenant and how much of them is used.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use haft_api::limit::{LimitList, LimitView};
use haft_core::catalog::StoreError;
use haft_core::limit::{CallRate, LimitName};
use haft_core::tenant::TenantLimits;
use haft_core::token::Role;
use haft_runtime::rate::Rate;
use haft_runtime::registry::Entry;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::identity::Identity;

/// How many tools and tokens with limits are listed: each may need a query.
const MAX_LISTED: usize = 100;

/// List the limits of the tenant with their current use: those of the server that hold for it, its own, and those of its
/// tools. Admins see the limits of all tokens and people, others their own.
#[utoipa::path(get, path = "/limits", tag = "limits", responses((status = 200, body = Success<LimitList>)))]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
) -> Result<Response, ApiError> {
    identity.require(Role::Viewer)?;
    let mut limits = server_limits(&app);
    limits.extend(tenant_limits(&app, &identity).await?);
    let (tokens, more_tokens) = token_limits(&app, &identity).await?;
    limits.extend(tokens);
    let (members, more_members) = member_limits(&app, &identity).await?;
    limits.extend(members);
    let (tools, more_tools) = tool_limits(&app, &identity).await?;
    limits.extend(tools);
    let list = LimitList {
        tenant: identity.tenant.to_string(),
        shared: app.store().limits().is_shared(),
        limits,
        omitted: more_tokens + more_members + more_tools,
    };
    Ok(success(list).into_response())
}

/// The limits that are counted apart for each session, and that of the node.
fn server_limits(app: &Installation) -> Vec<LimitView> {
    let settings = app.settings();
    let running = u64::try_from(app.pipeline().running()).unwrap_or(u64::MAX);
    let max_running = u64::try_from(settings.server.max_running_calls).unwrap_or(u64::MAX);
    let mut limits = vec![LimitView::used(LimitName::RunningCalls, max_running, running)];
    let of_session = [
        (LimitName::SessionRate, settings.limits.session_calls_per_minute),
        (LimitName::IdenticalCalls, settings.limits.identical_calls),
    ];
    for (name, value) in of_session.into_iter().filter(|(_, value)| *value > 0) {
        limits.push(LimitView { per: Some("1m".to_owned()), ..LimitView::new(name, value.into()) });
    }
    limits
}

async fn tenant_limits(app: &Installation, identity: &Identity) -> Result<Vec<LimitView>, StoreError> {
    let tenant = &identity.tenant;
    let limits_of_tenant = app.access().limits(tenant);
    let TenantLimits { calls_per_minute, max_parallel, max_queued_calls, max_stored_bytes, .. } =
        limits_of_tenant;
    let stored = app.store().limits().tenant_usage(tenant).await?;
    let in_use = app.pipeline().limit_usage();
    let mut limits = Vec::new();
    if let Some(calls) = calls_per_minute {
        let rate = Rate::per_minute(u32::try_from(calls).unwrap_or(u32::MAX)).into();
        limits.push(LimitView::rate(LimitName::TenantRate, rate, in_use.tenant_rate(tenant, rate).await?));
    }
    if let Some(max) = max_parallel {
        limits.push(LimitView::used(LimitName::TenantParallel, max, in_use.tenant_parallel(tenant).await?));
    }
    let max_queued = app.settings().queue.max_queued.min(max_queued_calls.unwrap_or(u64::MAX));
    limits.push(LimitView::used(LimitName::QueuedCalls, max_queued, stored.queued_calls));
    for (name, max) in limits_of_tenant.stored() {
        if let Some(max) = max {
            limits.push(LimitView::used(name, max, app.store().limits().stored_count(tenant, name).await?));
        }
    }
    let TenantLimits { max_agents, max_pipelines, max_artifacts, .. } = limits_of_tenant;
    let numbers = [
        (LimitName::Agents, max_agents, stored.agents),
        (LimitName::Pipelines, max_pipelines, stored.pipelines),
        (LimitName::Artifacts, max_artifacts, stored.artifacts),
    ];
    let set = numbers.into_iter().filter_map(|(name, max, used)| Some(LimitView::used(name, max?, used)));
    limits.extend(set);
    // Counted per chat.
    if let Some(max) = limits_of_tenant.max_messages_per_chat {
        limits.push(LimitView::new(LimitName::ChatMessages, max));
    }
    if let Some(max) = max_stored_bytes {
        limits.push(LimitView::used(LimitName::StoredBytes, max, stored.stored_bytes()));
    }
    Ok(limits)
}

/// Returns the limits of tokens, and how many are left out.
async fn token_limits(
    app: &Installation,
    identity: &Identity,
) -> Result<(Vec<LimitView>, usize), StoreError> {
    let mut tokens = app.access().limited_tokens(&identity.tenant);
    if identity.role < Role::Admin {
        tokens.retain(|token| token.token == identity.token);
    }
    let omitted = tokens.len().saturating_sub(MAX_LISTED);
    let in_use = app.pipeline().limit_usage();
    let mut limits = Vec::new();
    for token in tokens.iter().take(MAX_LISTED) {
        // A token has at least one rate here; a token that comes from another one may share the counter of that one.
        for (id, rate) in token.token_rates() {
            let status = in_use.token_rate(id, rate).await?;
            limits.push(LimitView::rate(LimitName::TokenRate, rate, status).of(token.name.to_string()));
        }
    }
    Ok((limits, omitted))
}

/// Returns the limits of people and service accounts, and how many are left out.
async fn member_limits(
    app: &Installation,
    identity: &Identity,
) -> Result<(Vec<LimitView>, usize), StoreError> {
    let mut members = app.access().limited_members(&identity.tenant);
    if identity.role < Role::Admin {
        members.retain(|member| member.is_same_actor(identity));
    }
    let omitted = members.len().saturating_sub(MAX_LISTED);
    let in_use = app.pipeline().limit_usage();
    let mut limits = Vec::new();
    for member in members.iter().take(MAX_LISTED) {
        if let Some((id, rate)) = member.actor_rate() {
            let status = in_use.member_rate(&member.tenant, id, rate).await?;
            limits.push(LimitView::rate(LimitName::MemberRate, rate, status).of(member.name.to_string()));
        }
    }
    Ok((limits, omitted))
}

/// Returns the limits of the tools that the caller may call, and how many tools are left out.
async fn tool_limits(app: &Installation, identity: &Identity) -> Result<(Vec<LimitView>, usize), StoreError> {
    let mode = app.settings().mode;
    let limited: Vec<(Arc<Entry>, Option<CallRate>, Option<u64>)> = {
        let snapshot = app.registry().snapshot();
        let of_tool = |entry: &Arc<Entry>| {
            let (_, spec) = entry.definition(mode.into())?;
            let rate = spec.execution.rate_limit.as_ref();
            let rate =
                rate.and_then(|rate| Some(CallRate { calls: rate.calls, period: rate.period().ok()? }));
            let parallel = entry.tool.spec.execution.limits.max_parallel;
            (rate.is_some() || parallel.is_some())
                .then(|| (Arc::clone(entry), rate, parallel.map(Into::into)))
        };
        let visible = snapshot.tools(&identity.tenant).filter(|entry| identity.allows(&entry.tool));
        visible.filter_map(of_tool).collect()
    };
    let omitted = limited.len().saturating_sub(MAX_LISTED);
    let in_use = app.pipeline().limit_usage();
    let mut limits = Vec::new();
    for (entry, rate, parallel) in limited.iter().take(MAX_LISTED) {
        let subject = &*entry.qualified;
        if let Some(rate) = *rate {
            let status = in_use.tool_rate(entry, &identity.tenant, rate).await?;
            limits.push(LimitView::rate(LimitName::ToolRate, rate, status).of(subject));
        }
        if let Some(max) = *parallel {
            let used = in_use.tool_parallel(entry).await?;
            limits.push(LimitView::used(LimitName::ToolParallel, max, used).of(subject));
        }
    }
    Ok((limits, omitted))
}
