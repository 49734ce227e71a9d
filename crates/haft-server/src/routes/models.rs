//! `GET /models`: the models that agents can use.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use haft_store::ResourceQuery;
use serde::Serialize;
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::agents::{ConfiguredModel, ConfiguredProvider, configured_models, providers};

/// How many agents are asked for their models.
const MAX_AGENTS: u32 = 500;

/// The models and providers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelList {
    /// The models that the settings and the agents of the tenant name.
    models: Vec<ConfiguredModel>,
    /// The providers.
    providers: Vec<ConfiguredProvider>,
    /// The addresses of model servers that agents may use although they are private.
    private_urls: Vec<String>,
}

/// List the models that agents can use, and the providers, with whether their keys are stored.
#[utoipa::path(get, path = "/models", tag = "agents", responses((status = 200, body = Success<ModelList>)))]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
) -> Result<Response, ApiError> {
    let tenant = &identity.tenant;
    let query = ResourceQuery { limit: MAX_AGENTS, ..ResourceQuery::default() };
    let (agents, _) = app.store().agents().list(tenant, &query).await?;
    let of_agents = agents.iter().flat_map(|agent| {
        let definition = &agent.definition;
        std::iter::once(definition.model.clone()).chain(definition.fallback.clone())
    });
    let models = configured_models(&app, tenant, of_agents.collect()).await?;
    let providers = providers(&app, tenant).await?;
    let private_urls = app.settings().models.private_urls.clone();
    Ok(success(ModelList { models, providers, private_urls }).into_response())
}
