//! `GET /models`: the models that agents can use.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use haft_store::ResourceQuery;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::reply::{Success, success};
use crate::report_view;
use haft_api::model::ModelList;
use haft_platform::Installation;
use haft_platform::agents::{configured_models, providers};

/// How many agents are asked for their models.
const MAX_AGENTS: u32 = 500;

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
    let models = models.into_iter().map(report_view::model).collect();
    let providers = providers.iter().map(report_view::provider).collect();
    Ok(success(ModelList { models, providers, private_urls }).into_response())
}
