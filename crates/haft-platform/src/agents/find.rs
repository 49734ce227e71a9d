//! Finds agents by slug or id.

use std::sync::Arc;

use haft_core::agent::Agent;
use haft_core::id::AgentId;
use haft_core::name::{AgentSlug, TenantId};
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::runnable::Mode;
use haft_core::tool::Status;

use crate::error::ServiceError;
use crate::identity::Identity;
use crate::installation::Installation;

/// Returns an agent of the caller's tenant, by slug or id.
pub async fn visible_agent(
    app: &Installation,
    identity: &Identity,
    reference: &str,
) -> Result<Arc<Agent>, ServiceError> {
    agent_of(app, &identity.tenant, reference)
        .await?
        .ok_or_else(|| ServiceError::not_found("agent", reference))
}

/// Returns an agent of a tenant, by slug or id.
pub(super) async fn agent_of(
    app: &Installation,
    tenant: &TenantId,
    reference: &str,
) -> Result<Option<Arc<Agent>>, ServiceError> {
    if let Ok(id) = reference.parse::<AgentId>() {
        return Ok(app.store().agent(tenant, id).await?.map(Arc::new));
    }
    match AgentSlug::new(reference) {
        Ok(slug) => Ok(app.store().agent_by_slug(tenant, &slug).await?.map(Arc::new)),
        Err(_) => Ok(None),
    }
}

/// Returns an agent that a tool or another surface names, if it may run in this mode.
pub async fn runnable_agent(
    app: &Installation,
    tenant: &TenantId,
    reference: &str,
    mode: Mode,
) -> Result<Arc<Agent>, CallError> {
    let found = agent_of(app, tenant, reference).await.map_err(crate::built_ins::call_error)?;
    let agent = found.ok_or_else(|| {
        let shown = haft_core::problem::excerpt(reference, 64);
        CallError::new(ErrorCode::NotFound, format!("agent `{shown}` not found"))
    })?;
    require_runnable(&agent, mode)?;
    Ok(agent)
}

/// Rejects an agent that may not run in a mode.
pub fn require_runnable(agent: &Agent, mode: Mode) -> Result<(), CallError> {
    let slug = &agent.definition.slug;
    if !agent.enabled || agent.status == Status::Disabled {
        return Err(CallError::new(ErrorCode::Disabled, format!("agent `{slug}` is disabled")));
    }
    if let Some(error) = &agent.error {
        return Err(CallError::new(ErrorCode::NotReady, format!("agent `{slug}` is not ready: {error}")));
    }
    if agent.runnable(mode).is_none() {
        let message = format!("agent `{slug}` has no published revision; publish it, or use debug mode");
        return Err(CallError::new(ErrorCode::NotPublished, message));
    }
    Ok(())
}
