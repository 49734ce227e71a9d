//! `/v1/models`: the agents that answer.

use haft_core::agent::Agent;
use haft_core::outcome::ErrorCode;
use haft_core::resource::ResourceKind;
use haft_store::ResourceQuery;
use serde_json::{Value, json};

use super::error::OpenAiError;
use haft_platform::Installation;
use haft_platform::agents::{require_runnable, visible_agent};
use haft_platform::identity::Identity;

/// The most agents that are listed.
const MAX_LISTED: u32 = 1000;

/// Lists the agents that can run.
pub(super) async fn list(app: &Installation, identity: &Identity) -> Result<Value, OpenAiError> {
    let slugs = identity.visible_slugs(ResourceKind::Agent);
    let query = ResourceQuery { slugs, limit: MAX_LISTED, ..ResourceQuery::default() };
    let (agents, _) = app.store().agents().list(&identity.tenant, &query).await?;
    let mode = app.settings().mode;
    let runnable = agents.iter().filter(|agent| {
        identity.allows_agent(&agent.definition.slug) && require_runnable(agent, mode).is_ok()
    });
    Ok(json!({"object": "list", "data": runnable.map(model).collect::<Vec<_>>()}))
}

/// Returns one agent that can run.
pub(super) async fn get(app: &Installation, identity: &Identity, name: &str) -> Result<Value, OpenAiError> {
    let agent = visible_agent(app, identity, name).await.map_err(|error| match error.code {
        ErrorCode::NotFound => OpenAiError::no_model(name),
        _ => error.into(),
    })?;
    if !identity.allows_agent(&agent.definition.slug) {
        return Err(OpenAiError::no_model(name));
    }
    require_runnable(&agent, app.settings().mode)?;
    Ok(model(&agent))
}

fn model(agent: &Agent) -> Value {
    let definition = &agent.definition;
    json!({
        "id": definition.slug,
        "object": "model",
        "created": agent.created_at.as_second(),
        "owned_by": agent.tenant,
        "x_haft": {"id": agent.id, "name": definition.name, "description": definition.description},
    })
}
