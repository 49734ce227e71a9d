//! Creating, changing, publishing and deleting agents.

use haft_core::agent::{Agent, AgentRevision};
use haft_core::live::ResourceAction;
use haft_core::problem::Problem;
use haft_core::token::Role;
use haft_definition::agent::{ReadAgent, from_json};
use serde_json::Value;

use crate::agents::{Strictness, check, require_publishable, require_valid, visible_agent};
use crate::audit;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::installation::Installation;
use crate::resources;

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
    Ok((resources::create(app, identity, read.definition).await?, warnings))
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

/// Restores an earlier revision as the newest one; returns the agent with the warnings about its definition.
pub async fn restore(
    app: &Installation,
    identity: &Identity,
    agent: &Agent,
    revision: &AgentRevision,
) -> Result<(Agent, Vec<Problem>), ServiceError> {
    let strictness = Strictness::of_saving(app, &revision.definition);
    let warnings = require_valid(check(app, &identity.tenant, &revision.definition, strictness))?;
    Ok((resources::restore(app, identity, agent, &revision.definition).await?, warnings))
}

/// Publishes the newest revision of an agent; returns it with the warnings about it.
pub async fn publish(
    app: &Installation,
    identity: &Identity,
    reference: &str,
) -> Result<(Agent, Vec<Problem>), ServiceError> {
    identity.require(Role::Editor)?;
    let agent = visible_agent(app, identity, reference).await?;
    resources::note(identity, ResourceAction::Published, &*agent.definition);
    let found = check(app, &identity.tenant, &agent.definition, Strictness::Published);
    require_publishable(agent.definition.slug.as_str(), &found)?;
    // What was checked is what is published.
    Ok((resources::publish(app, identity, &agent).await?, found.warnings))
}
