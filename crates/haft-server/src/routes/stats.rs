//! `GET /stats`: the numbers of the home page, in one request.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::approval::ApprovalStatus;
use haft_core::catalog::StoreError;
use haft_core::mcp::Phase;
use haft_store::{ApprovalQuery, ListPage};
use serde::Serialize;
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::reply::{Success, success};
use crate::routes::calls::visible_calls;
use haft_platform::Installation;
use haft_platform::events::sees_approvals_of_others;
use haft_platform::identity::Identity;
use haft_platform::viewer::Viewer;
use haft_platform::warnings::Warnings;

const DAY: Duration = Duration::from_hours(24);
const MINUTE: Duration = Duration::from_mins(1);

/// What runs in a tenant, as far as the token of the request sees it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Stats {
    /// How many calls started in the last minute.
    #[schema(example = 12)]
    calls_per_minute: u64,
    /// How many calls started in the last 24 hours.
    #[schema(example = 4800)]
    calls_24h: u64,
    /// How many of them failed.
    #[schema(example = 3)]
    failures_24h: u64,
    /// How many calls wait for approval.
    #[schema(example = 1)]
    approvals_waiting: u64,
    tools: ToolStats,
    servers: ServerStats,
}

/// The tools: each is ready, failed or disabled.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct ToolStats {
    #[schema(example = 42)]
    total: usize,
    /// Enabled and ready to run.
    #[schema(example = 40)]
    ready: usize,
    /// Enabled, but not ready to run.
    #[schema(example = 1)]
    failed: usize,
    /// Ready, with warnings.
    #[schema(example = 2)]
    warnings: usize,
    /// Disabled, or in a disabled bundle.
    #[schema(example = 1)]
    disabled: usize,
}

/// The MCP servers.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct ServerStats {
    #[schema(example = 3)]
    total: usize,
    /// Connected, with nothing to review.
    #[schema(example = 2)]
    ready: usize,
    /// Unreachable, waiting for a login, or with changed tools to review.
    #[schema(example = 1)]
    attention: usize,
}

/// Return the numbers of the home page: calls, failures, approvals, tools, MCP servers.
#[utoipa::path(get, path = "/stats", tag = "operation", responses((status = 200, body = Success<Stats>)))]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
) -> Result<Response, ApiError> {
    let now = app.now();
    let ago = |time| now.checked_sub(time).unwrap_or(Timestamp::UNIX_EPOCH);
    // Calls may have started within this millisecond.
    let end = now.checked_add(Duration::from_millis(1)).unwrap_or(now);
    let counts = app.store().calls().counts(&visible_calls(&identity), &[ago(DAY), ago(MINUTE), end]).await?;
    let counted = |index: usize| counts.get(index).copied().unwrap_or_default();
    let (earlier, latest) = (counted(0), counted(1));
    let stats = Stats {
        calls_per_minute: latest.total(),
        calls_24h: earlier.total() + latest.total(),
        failures_24h: earlier.error + latest.error,
        approvals_waiting: approvals_waiting(&app, &identity).await?,
        tools: tools(&app, &identity).await,
        servers: servers(&app, &identity).await?,
    };
    Ok(success(stats).into_response())
}

async fn approvals_waiting(app: &Installation, identity: &Identity) -> Result<u64, StoreError> {
    let query = ApprovalQuery {
        tenant: identity.tenant.clone(),
        status: Some(ApprovalStatus::Waiting),
        requested_by: (!sees_approvals_of_others(identity)).then(|| identity.id().to_string()),
        before: None,
        limit: 1,
    };
    Ok(app.store().approvals().list(query).await?.1)
}

async fn tools(app: &Installation, identity: &Identity) -> ToolStats {
    let snapshot = app.registry().snapshot();
    let viewer = Viewer::new(app, identity);
    let mut warnings = Warnings::new(app, identity);
    let mut stats = ToolStats::default();
    for entry in snapshot.tools(&identity.tenant) {
        if entry.tool.is_built_in_copy() || !viewer.lists(&snapshot, entry, true) {
            continue;
        }
        stats.total += 1;
        if !entry.tool.enabled || !snapshot.is_bundle_enabled(entry) {
            stats.disabled += 1;
        } else if entry.ready() {
            stats.ready += 1;
            stats.warnings += usize::from(!warnings.of(entry).await.is_empty());
        } else {
            stats.failed += 1;
        }
    }
    if !viewer.is_restricted() {
        let unreadable = snapshot.unreadable(&identity.tenant).count();
        stats.total += unreadable;
        stats.failed += unreadable;
    }
    stats
}

async fn servers(app: &Installation, identity: &Identity) -> Result<ServerStats, StoreError> {
    let all = app.store().catalog().mcp_servers_of(&identity.tenant, &ListPage::ALL).await?;
    if all.is_empty() {
        return Ok(ServerStats::default());
    }
    let to_review = app.store().catalog().mcp_servers_to_review(&identity.tenant).await?;
    let mut stats = ServerStats { total: all.len(), ..ServerStats::default() };
    for server in all {
        let phase = app.mcp_clients().state(&server.tenant, &server.id).map(|state| state.phase);
        match phase {
            Some(Phase::Error | Phase::NeedsAuth) => stats.attention += 1,
            _ if to_review.contains(&server.id) => stats.attention += 1,
            Some(Phase::Connected) => stats.ready += 1,
            Some(Phase::Starting | Phase::Connecting | Phase::Disconnected) | None => {}
        }
    }
    Ok(stats)
}
