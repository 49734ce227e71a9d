//! `GET /limits`: the limits of a tenant and how much of them is used.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use haft_core::catalog::StoreError;
use haft_core::duration;
use haft_core::limit::{CallRate, LimitName, RateStatus};
use haft_core::tenant::TenantLimits;
use haft_core::token::Role;
use haft_runtime::rate::Rate;
use haft_runtime::registry::Entry;
use serde::Serialize;
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::identity::Identity;

/// How many tools and tokens with limits are listed: each may need a query.
const MAX_LISTED: usize = 100;

/// A limit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitView {
    /// Where it is set; errors and metrics have the same name.
    #[schema(example = "tenant.calls_per_minute")]
    name: &'static str,
    /// The tool or token; `null` for limits of the tenant and of the server.
    #[schema(required, example = "web:fetch@1.0.0")]
    subject: Option<String>,
    #[schema(example = 600)]
    value: u64,
    /// The period of a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "1m")]
    per: Option<String>,
    /// How much is used now; missing where it is counted apart for each session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 12)]
    used: Option<u64>,
    /// How much is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 588)]
    remaining: Option<u64>,
    /// After how many seconds a used rate has more left.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 42)]
    reset_seconds: Option<u64>,
}

/// The limits of a tenant.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitList {
    #[schema(example = "default")]
    tenant: String,
    /// Whether rates and parallel calls are counted for all nodes together.
    shared: bool,
    limits: Vec<LimitView>,
    /// The number of limits of tools and tokens that are not listed.
    omitted: usize,
}

impl LimitView {
    fn new(name: LimitName, value: u64) -> Self {
        let (subject, per, used, remaining, reset_seconds) = (None, None, None, None, None);
        Self { name: name.as_str(), subject, value, per, used, remaining, reset_seconds }
    }

    fn used(name: LimitName, value: u64, used: u64) -> Self {
        let remaining = Some(value.saturating_sub(used));
        Self { used: Some(used), remaining, ..Self::new(name, value) }
    }

    fn rate(name: LimitName, rate: CallRate, status: RateStatus) -> Self {
        let used = status.limit.saturating_sub(status.remaining);
        let seconds = u64::try_from(status.reset.as_millis().div_ceil(1000)).unwrap_or(u64::MAX);
        Self {
            per: Some(duration::format(rate.period)),
            reset_seconds: (used > 0).then_some(seconds),
            ..Self::used(name, rate.calls.into(), used.into())
        }
    }

    fn of(self, subject: impl Into<String>) -> Self {
        Self { subject: Some(subject.into()), ..self }
    }
}

/// List the limits of the tenant with their current use: those of the server that hold for it, its own, and those of its
/// tools. Admins see the limits of all tokens, others that of their own.
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
    let (tools, more_tools) = tool_limits(&app, &identity).await?;
    limits.extend(tools);
    let list = LimitList {
        tenant: identity.tenant.to_string(),
        shared: app.store().shares_limits(),
        limits,
        omitted: more_tokens + more_tools,
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
    let TenantLimits { calls_per_minute, max_parallel, max_tools, max_queued_calls, max_stored_bytes } =
        app.access().limits(tenant);
    let stored = app.store().tenant_usage(tenant).await?;
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
    if let Some(max) = max_tools {
        limits.push(LimitView::used(LimitName::Tools, max, stored.tools));
    }
    if let Some(max) = max_stored_bytes {
        let used = stored.definition_bytes.saturating_add(stored.call_bytes);
        limits.push(LimitView::used(LimitName::StoredBytes, max, used));
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
        if let (Some(id), Some(rate)) = (token.token, token.rate_limit) {
            let status = in_use.token_rate(id, rate).await?;
            limits.push(LimitView::rate(LimitName::TokenRate, rate, status).of(token.name.to_string()));
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
