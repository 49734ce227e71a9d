//! `/webhooks`: where events are delivered.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::token::Role;
use haft_core::webhook::{Webhook, WebhookEvent};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use haft_platform::Installation;
use haft_platform::webhooks::{self, WebhookFields, WebhookUpdate};

/// A webhook, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub(crate) struct WebhookView {
    id: Uuid,
    #[schema(example = "https://example.com/hooks/haft")]
    url: String,
    events: Vec<WebhookEvent>,
    /// The tools that the events are about: `name` or `bundle:name`, each with `*` for any text; empty: every tool.
    #[schema(example = json!(["deploy", "mail:*"]))]
    tools: Vec<String>,
    /// Whether events are delivered.
    enabled: bool,
    created_at: Timestamp,
    modified_at: Timestamp,
}

impl From<&Webhook> for WebhookView {
    fn from(webhook: &Webhook) -> Self {
        Self {
            id: webhook.id.0,
            url: webhook.target.url.clone(),
            events: webhook.target.events.clone(),
            tools: webhook.target.tools.texts(),
            enabled: webhook.enabled,
            created_at: webhook.created_at,
            modified_at: webhook.modified_at,
        }
    }
}

/// A webhook with its secret, if it is new.
#[derive(Serialize, ToSchema)]
pub(crate) struct WebhookWithSecret {
    #[serde(flatten)]
    webhook: WebhookView,
    /// The signing secret, which no later response contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "whsec_…")]
    secret: Option<String>,
}

/// A page of webhooks.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookList {
    webhooks: Vec<WebhookView>,
    total: usize,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// List the webhooks of the tenant, without their secrets.
#[utoipa::path(get, path = "/webhooks", tag = "webhooks", params(PageParams), responses((status = 200, body = Success<WebhookList>)))]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let page = params.page("webhooks")?;
    let all = app.store().webhooks(&identity.tenant).await?;
    let total = all.len();
    let (selected, next_page_token) = page.select(all, |webhook| webhook.id.to_string());
    let webhooks = selected.iter().map(WebhookView::from).collect();
    Ok(success(WebhookList { webhooks, total, next_page_token }).into_response())
}

/// A new webhook.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct NewWebhookBody {
    /// Where events are posted.
    #[schema(example = "https://example.com/hooks/haft", max_length = 2048)]
    url: String,
    /// The events; default: all.
    #[schema(value_type = Option<Vec<WebhookEvent>>, example = json!(["call.finished", "approval.requested"]))]
    events: Option<Vec<String>>,
    /// The tools that the events are about: `name` or `bundle:name`, each with `*` for any text; default: every tool.
    #[serde(default)]
    #[schema(example = json!(["deploy", "mail:*"]), max_items = 64)]
    tools: Vec<String>,
    /// Whether events are delivered.
    #[serde(default = "enabled")]
    enabled: bool,
}

fn enabled() -> bool {
    true
}

/// Create a webhook; only this response contains its signing secret.
#[utoipa::path(
    post, path = "/webhooks", tag = "webhooks", request_body = NewWebhookBody,
    responses((status = 201, body = Success<WebhookWithSecret>), (status = 409, body = ErrorBody))
)]
pub(crate) async fn create(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let NewWebhookBody { url, events, tools, enabled } = body.json()?;
    let fields = WebhookFields { url, events, tools, enabled };
    let (webhook, secret) = webhooks::create(&app, &identity, fields).await?;
    let secret = Some(secret.secret().expose().to_owned());
    Ok(created(WebhookWithSecret { webhook: WebhookView::from(&webhook), secret }))
}

/// Return one webhook, without its secret.
#[utoipa::path(
    get, path = "/webhooks/{id}", tag = "webhooks", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<WebhookView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let webhook = webhooks::find(&app, &identity, &id).await?;
    Ok(success(WebhookView::from(&webhook)).into_response())
}

/// Changes to a webhook; what is missing stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct WebhookPatch {
    /// Where events are posted.
    #[schema(example = "https://example.com/hooks/haft", max_length = 2048)]
    url: Option<String>,
    /// The events.
    #[schema(value_type = Option<Vec<WebhookEvent>>)]
    events: Option<Vec<String>>,
    /// The tools that the events are about.
    #[schema(max_items = 64)]
    tools: Option<Vec<String>>,
    /// Whether events are delivered.
    enabled: Option<bool>,
    /// Whether to replace the signing secret; the response contains the new one.
    #[serde(default)]
    rotate_secret: bool,
}

/// Change a webhook.
#[utoipa::path(
    patch, path = "/webhooks/{id}", tag = "webhooks", params(("id" = Uuid, Path)), request_body = WebhookPatch,
    responses((status = 200, body = Success<WebhookWithSecret>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let old = webhooks::find(&app, &identity, &id).await?;
    let WebhookPatch { url, events, tools, enabled, rotate_secret } = body.json()?;
    let change = WebhookUpdate { url, events, tools, enabled, rotate_secret };
    let (changed, secret) = webhooks::update(&app, &identity, &old, change).await?;
    let secret = secret.map(|secret| secret.secret().expose().to_owned());
    Ok(success(WebhookWithSecret { webhook: WebhookView::from(&changed), secret }).into_response())
}

/// Delete a webhook and its deliveries.
#[utoipa::path(
    delete, path = "/webhooks/{id}", tag = "webhooks", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    webhooks::delete(&app, &identity, &id).await?;
    Ok(reply::message("Webhook deleted"))
}
