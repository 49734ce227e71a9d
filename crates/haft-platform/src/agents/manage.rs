//! Creating, changing, publishing and deleting agents.

use haft_core::agent::{Agent, AgentDefinition, AgentRevision};
use haft_core::problem::Problem;
use haft_core::token::Role;
use haft_core::tool::Status;
use haft_definition::agent::{ReadAgent, from_json};
use haft_store::AgentUpdate;
use serde_json::Value;

use crate::agents::{Strictness, check, require_publishable, require_valid, visible_agent};
use crate::audit;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::installation::Installation;

/// Checks a definition that is about to be saved; returns the warnings.
pub fn check_saved(
    app: &Installation,
    identity: &Identity,
    read: &ReadAgent,
) -> Result<Vec<Problem>, ServiceError> {
    let strictness = Strictness::of_saving(app, &read.definition);
    let mut warnings = read.warnings.clone();
    warnings.extend(require_valid(check(app, &identity.tenant, &read.definition, strictness))?);
    Ok(warnings)
}

/// Shows others an agent that was just changed: whether tools that run it are ready is known at once.
async fn announce(app: &Installation, agent: Agent) -> Result<Agent, ServiceError> {
    app.runs().agents().refresh_names().await?;
    Ok(agent)
}

/// Reads a definition in every accepted spelling.
pub fn read_definition(value: Value) -> Result<ReadAgent, ServiceError> {
    from_json(value).map_err(|problems| ServiceError::invalid_definition(&problems))
}

/// Creates an agent; returns it with the warnings about its definition.
pub async fn create(
    app: &Installation,
    identity: &Identity,
    read: ReadAgent,
) -> Result<(Agent, Vec<Problem>), ServiceError> {
    audit::note(identity, "agent.create", read.definition.slug.as_str());
    let warnings = check_saved(app, identity, &read)?;
    let agent = app.store().create_agent(&identity.tenant, read.definition, &identity.name).await?;
    Ok((announce(app, agent).await?, warnings))
}

/// Reads the new definition of an agent; one without a slug keeps it.
pub fn read_update(agent: &Agent, mut value: Value) -> Result<ReadAgent, ServiceError> {
    if let Some(fields) = value.as_object_mut()
        && !fields.contains_key("slug")
    {
        fields.insert("slug".to_owned(), agent.definition.slug.as_str().into());
    }
    read_definition(value)
}

/// Replaces the definition of an agent: a new revision.
pub async fn update(
    app: &Installation,
    identity: &Identity,
    agent: &Agent,
    definition: AgentDefinition,
    expected_revision: Option<u32>,
) -> Result<Agent, ServiceError> {
    let update = AgentUpdate { definition, expected_revision, author: identity.name.to_string() };
    let agent = app.store().update_agent(&identity.tenant, agent.id, update).await?;
    announce(app, agent).await
}

/// Restores an earlier revision as the newest one; returns the agent with the warnings about its definition.
pub async fn restore(
    app: &Installation,
    identity: &Identity,
    agent: &Agent,
    revision: &AgentRevision,
) -> Result<(Agent, Vec<Problem>), ServiceError> {
    // The slug belongs to the agent, not to the revision.
    let slug = agent.definition.slug.clone();
    let definition = AgentDefinition { slug, ..AgentDefinition::clone(&revision.definition) };
    let strictness = Strictness::of_saving(app, &definition);
    let warnings = require_valid(check(app, &identity.tenant, &definition, strictness))?;
    let restored = update(app, identity, agent, definition, Some(agent.revision)).await?;
    Ok((restored, warnings))
}

/// Finds a revision of an agent by its number.
pub async fn revision(
    app: &Installation,
    agent: &Agent,
    number: &str,
) -> Result<AgentRevision, ServiceError> {
    let missing = || ServiceError::not_found("revision", number);
    let parsed = number.parse().map_err(|_| missing())?;
    app.store().agent_revision(&agent.tenant, agent.id, parsed).await?.ok_or_else(missing)
}

/// Enables or disables an agent.
pub async fn set_enabled(
    app: &Installation,
    identity: &Identity,
    agent: &Agent,
    enabled: bool,
) -> Result<Agent, ServiceError> {
    let action = if enabled { "agent.enable" } else { "agent.disable" };
    audit::note(identity, action, agent.definition.slug.as_str());
    let agent = app.store().set_agent_enabled(&identity.tenant, agent.id, enabled).await?;
    announce(app, agent).await
}

/// Deletes an agent with its revisions.
pub async fn delete(app: &Installation, identity: &Identity, reference: &str) -> Result<(), ServiceError> {
    identity.require(Role::Editor)?;
    let agent = visible_agent(app, identity, reference).await?;
    audit::note(identity, "agent.delete", agent.definition.slug.as_str());
    app.store().delete_agent(&identity.tenant, agent.id).await?;
    app.runs().agents().refresh_names().await?;
    Ok(())
}

/// Publishes the newest revision of an agent; returns it with the warnings about it.
pub async fn publish(
    app: &Installation,
    identity: &Identity,
    reference: &str,
) -> Result<(Agent, Vec<Problem>), ServiceError> {
    identity.require(Role::Editor)?;
    let agent = visible_agent(app, identity, reference).await?;
    let slug = agent.definition.slug.as_str();
    audit::note(identity, "agent.publish", slug);
    let found = check(app, &identity.tenant, &agent.definition, Strictness::Published);
    require_publishable(slug, &found)?;
    // What was checked is what is published.
    let published = app.store().publish_agent(&identity.tenant, agent.id, Some(agent.revision)).await?;
    Ok((announce(app, published).await?, found.warnings))
}

/// Deprecates an agent: it still runs.
pub async fn deprecate(
    app: &Installation,
    identity: &Identity,
    reference: &str,
) -> Result<Agent, ServiceError> {
    identity.require(Role::Editor)?;
    let agent = visible_agent(app, identity, reference).await?;
    audit::note(identity, "agent.deprecate", agent.definition.slug.as_str());
    let agent = app.store().set_agent_status(&identity.tenant, agent.id, Status::Deprecated).await?;
    announce(app, agent).await
}
