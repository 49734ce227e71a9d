//! `/webhooks`: where events are delivered.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::id::WebhookId;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_core::token::Role;
use haft_core::webhook::{ToolPatterns, Webhook, WebhookEvent, WebhookScope, WebhookTarget};
use haft_store::{NewWebhook, WebhookChange};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::audit;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use crate::webhooks::{SigningSecret, check_url};

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
    State(app): State<Arc<App>>,
    identity: Identity,
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
    State(app): State<Arc<App>>,
    identity: Identity,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let new: NewWebhookBody = body.json()?;
    let url = check_url(&app, "url", &new.url)?.to_string();
    let events = match new.events {
        Some(events) => parse_events(&events)?,
        None => WebhookEvent::SELECTABLE.to_vec(),
    };
    let target = WebhookTarget { url, events, tools: parse_tools(&new.tools)? };
    let webhook =
        Webhook { enabled: new.enabled, ..new_webhook(&app, &identity.tenant, WebhookScope::Tenant, target) };
    let secret = generate()?;
    store(&app, &webhook, &secret).await?;
    audit::note(&identity, "webhook.create", &webhook.target.url);
    let secret = Some(secret.secret().expose().to_owned());
    Ok(created(WebhookWithSecret { webhook: WebhookView::from(&webhook), secret }))
}

/// Returns a webhook that is not stored yet.
pub(super) fn new_webhook(
    app: &App,
    tenant: &TenantId,
    scope: WebhookScope,
    target: WebhookTarget,
) -> Webhook {
    let now = app.now();
    Webhook {
        id: WebhookId(Uuid::now_v7()),
        tenant: tenant.clone(),
        scope,
        target,
        enabled: true,
        created_at: now,
        modified_at: now,
    }
}

/// Stores a webhook.
pub(super) async fn store(app: &App, webhook: &Webhook, secret: &SigningSecret) -> Result<(), ApiError> {
    let new = NewWebhook { webhook: webhook.clone(), secret: secret.secret().clone() };
    app.store().insert_webhook(new).await?;
    Ok(())
}

/// Generates a signing secret.
pub(super) fn generate() -> Result<SigningSecret, ApiError> {
    SigningSecret::generate()
        .map_err(|_| ApiError::new(ErrorCode::Internal, "the operating system returned no random bytes"))
}

fn parse_events(names: &[String]) -> Result<Vec<WebhookEvent>, ApiError> {
    let known = WebhookEvent::SELECTABLE.map(|event| format!("`{}`", event.as_str())).join(", ");
    let mut events = Vec::new();
    for name in names {
        let event = WebhookEvent::parse(name).filter(|event| *event != WebhookEvent::Test);
        let event = event.ok_or_else(|| {
            let name = excerpt(name, 60);
            ApiError::bad_request(format!("invalid `events`: `{name}`; expected some of {known}"))
        })?;
        if !events.contains(&event) {
            events.push(event);
        }
    }
    if events.is_empty() {
        return Err(ApiError::bad_request(format!("invalid `events`: empty; expected some of {known}")));
    }
    Ok(events)
}

fn parse_tools(patterns: &[String]) -> Result<ToolPatterns, ApiError> {
    ToolPatterns::new(patterns).map_err(|error| ApiError::bad_request(format!("invalid `tools`: {error}")))
}

/// Return one webhook, without its secret.
#[utoipa::path(
    get, path = "/webhooks/{id}", tag = "webhooks", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<WebhookView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let webhook = find(&app, &identity, &id).await?;
    Ok(success(WebhookView::from(&webhook)).into_response())
}

/// Finds a webhook of the tenant.
pub(super) async fn find(app: &App, identity: &Identity, id: &str) -> Result<Webhook, ApiError> {
    identity.require(Role::Admin)?;
    let missing = || ApiError::not_found("webhook", id);
    let parsed: WebhookId = id.parse().map_err(|_| missing())?;
    app.store().webhook(&identity.tenant, parsed).await?.ok_or_else(missing)
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
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let old = find(&app, &identity, &id).await?;
    let patch: WebhookPatch = body.json()?;
    let mut target = old.target.clone();
    if let Some(url) = &patch.url {
        target.url = check_url(&app, "url", url)?.to_string();
    }
    if let Some(events) = &patch.events {
        target.events = parse_events(events)?;
    }
    if let Some(tools) = patch.tools {
        target.tools = parse_tools(&tools)?;
    }
    let secret = if patch.rotate_secret { Some(generate()?) } else { None };
    let change = WebhookChange {
        target: Some(target),
        enabled: patch.enabled,
        secret: secret.as_ref().map(|secret| secret.secret().clone()),
    };
    let changed = app.store().change_webhook(&identity.tenant, old.id, change).await?;
    audit::note(&identity, "webhook.update", &changed.target.url);
    let secret = secret.map(|secret| secret.secret().expose().to_owned());
    Ok(success(WebhookWithSecret { webhook: WebhookView::from(&changed), secret }).into_response())
}

/// Delete a webhook and its deliveries.
#[utoipa::path(
    delete, path = "/webhooks/{id}", tag = "webhooks", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let webhook = find(&app, &identity, &id).await?;
    app.store().delete_webhook(&identity.tenant, webhook.id).await?;
    audit::note(&identity, "webhook.delete", &webhook.target.url);
    Ok(reply::message("Webhook deleted"))
}
