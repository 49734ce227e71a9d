//! Finds agents by slug or id.

use std::sync::Arc;

use haft_core::agent::Agent;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::resource::ResourceKind;
use haft_core::runnable::Mode;

use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::in_service::require_in_service;

/// Returns an agent of the caller's tenant, by slug or id, if the caller may see it.
pub async fn visible_agent(
    app: &Context,
    identity: &Identity,
    reference: &str,
) -> Result<Arc<Agent>, ServiceError> {
    let found = agent_of(app, &identity.tenant, reference).await?;
    found
        .filter(|agent| identity.sees_resource(ResourceKind::Agent, agent.definition.slug.as_str()))
        .ok_or_else(|| ServiceError::not_found("agent", reference))
}

/// Returns an agent of a tenant, by slug or id.
pub(super) async fn agent_of(
    app: &Context,
    tenant: &TenantId,
    reference: &str,
) -> Result<Option<Arc<Agent>>, ServiceError> {
    Ok(app.store().agents().find(tenant, reference).await?.map(Arc::new))
}

/// Returns an agent that a tool or another surface names, if it may run in this mode.
pub async fn runnable_agent(
    app: &Context,
    tenant: &TenantId,
    reference: &str,
    mode: Mode,
) -> Result<Arc<Agent>, CallError> {
    let found = agent_of(app, tenant, reference).await.map_err(crate::error::call_error)?;
    let agent = found.ok_or_else(|| {
        let shown = haft_core::problem::excerpt(reference, 64);
        CallError::new(ErrorCode::NotFound, format!("agent `{shown}` not found"))
    })?;
    require_runnable(&agent, mode)?;
    Ok(agent)
}

/// Rejects an agent that may not run in a mode.
pub fn require_runnable(agent: &Agent, mode: Mode) -> Result<(), CallError> {
    require_in_service(agent)?;
    if agent.runnable(mode).is_none() {
        let slug = &agent.definition.slug;
        let message = format!("agent `{slug}` has no published revision; publish it, or use debug mode");
        return Err(CallError::new(ErrorCode::NotPublished, message));
    }
    Ok(())
}
