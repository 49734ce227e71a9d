//! Creating, changing and deleting webhooks.

use haft_core::id::WebhookId;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_core::token::Role;
use haft_core::webhook::{ToolPatterns, Webhook, WebhookEvent, WebhookScope, WebhookTarget};
use haft_store::{NewWebhook, WebhookChange};
use uuid::Uuid;

use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::webhooks::{SigningSecret, check_url};

/// Returns a webhook that is not stored yet.
fn new_webhook(app: &Context, tenant: &TenantId, scope: WebhookScope, target: WebhookTarget) -> Webhook {
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
async fn store(app: &Context, webhook: &Webhook, secret: &SigningSecret) -> Result<(), ServiceError> {
    let new = NewWebhook { webhook: webhook.clone(), secret: secret.secret().clone() };
    app.store().webhooks().insert(new).await?;
    Ok(())
}

/// Generates a signing secret.
fn generate() -> Result<SigningSecret, ServiceError> {
    SigningSecret::generate()
        .map_err(|_| ServiceError::new(ErrorCode::Internal, "the operating system returned no random bytes"))
}

fn parse_events(names: &[String]) -> Result<Vec<WebhookEvent>, ServiceError> {
    let known = WebhookEvent::SELECTABLE.map(|event| format!("`{}`", event.as_str())).join(", ");
    let mut events = Vec::new();
    for name in names {
        let event = WebhookEvent::parse(name).filter(|event| *event != WebhookEvent::Test);
        let event = event.ok_or_else(|| {
            let name = excerpt(name, 60);
            ServiceError::bad_request(format!("invalid `events`: `{name}`; expected some of {known}"))
        })?;
        if !events.contains(&event) {
            events.push(event);
        }
    }
    if events.is_empty() {
        return Err(ServiceError::bad_request(format!("invalid `events`: empty; expected some of {known}")));
    }
    Ok(events)
}

fn parse_tools(patterns: &[String]) -> Result<ToolPatterns, ServiceError> {
    ToolPatterns::new(patterns)
        .map_err(|error| ServiceError::bad_request(format!("invalid `tools`: {error}")))
}

/// Finds a webhook of the tenant.
pub async fn find(app: &Context, identity: &Identity, id: &str) -> Result<Webhook, ServiceError> {
    identity.require(Role::Admin)?;
    let missing = || ServiceError::not_found("webhook", id);
    let parsed: WebhookId = id.parse().map_err(|_| missing())?;
    app.store().webhooks().get(&identity.tenant, parsed).await?.ok_or_else(missing)
}

/// What a new webhook is.
pub struct WebhookFields {
    pub url: String,
    /// The events; all if missing.
    pub events: Option<Vec<String>>,
    /// The patterns of the tools that the events are about.
    pub tools: Vec<String>,
    pub enabled: bool,
}

/// Changes to a webhook; missing fields are kept.
pub struct WebhookUpdate {
    pub url: Option<String>,
    pub events: Option<Vec<String>>,
    pub tools: Option<Vec<String>>,
    pub enabled: Option<bool>,
    /// Whether to replace the signing secret.
    pub rotate_secret: bool,
}

/// Creates a webhook of the tenant; returns it with its signing secret.
pub async fn create(
    app: &Context,
    identity: &Identity,
    new: WebhookFields,
) -> Result<(Webhook, SigningSecret), ServiceError> {
    let url = check_url(app, "url", &new.url)?.to_string();
    let events = match new.events {
        Some(events) => parse_events(&events)?,
        None => WebhookEvent::SELECTABLE.to_vec(),
    };
    let target = WebhookTarget { url, events, tools: parse_tools(&new.tools)? };
    let webhook =
        Webhook { enabled: new.enabled, ..new_webhook(app, &identity.tenant, WebhookScope::Tenant, target) };
    let secret = generate()?;
    store(app, &webhook, &secret).await?;
    audit::note(identity, "webhook.create", &webhook.target.url);
    Ok((webhook, secret))
}

/// Changes a webhook; returns it with its new signing secret, if there is one.
pub async fn update(
    app: &Context,
    identity: &Identity,
    old: &Webhook,
    change: WebhookUpdate,
) -> Result<(Webhook, Option<SigningSecret>), ServiceError> {
    let mut target = old.target.clone();
    if let Some(url) = &change.url {
        target.url = check_url(app, "url", url)?.to_string();
    }
    if let Some(events) = &change.events {
        target.events = parse_events(events)?;
    }
    if let Some(tools) = change.tools {
        target.tools = parse_tools(&tools)?;
    }
    let secret = if change.rotate_secret { Some(generate()?) } else { None };
    let stored = WebhookChange {
        target: Some(target),
        enabled: change.enabled,
        secret: secret.as_ref().map(|secret| secret.secret().clone()),
    };
    let changed = app.store().webhooks().change(&identity.tenant, old.id, stored).await?;
    audit::note(identity, "webhook.update", &changed.target.url);
    Ok((changed, secret))
}

/// Deletes a webhook and its deliveries.
pub async fn delete(app: &Context, identity: &Identity, id: &str) -> Result<(), ServiceError> {
    let webhook = find(app, identity, id).await?;
    app.store().webhooks().delete(&identity.tenant, webhook.id).await?;
    audit::note(identity, "webhook.delete", &webhook.target.url);
    Ok(())
}

/// Stores the webhook of a call or a run before it starts: it must not end without it. Returns its id, and the signing
/// secret if none was given.
pub async fn create_for_one(
    app: &Context,
    identity: &Identity,
    (url, secret): (&str, Option<&str>),
    event: WebhookEvent,
) -> Result<(WebhookId, Option<SigningSecret>), ServiceError> {
    let url = check_url(app, "webhook.url", url)?.to_string();
    let (secret, is_given) = match secret {
        Some(secret) => {
            let parsed = SigningSecret::parse(secret);
            let invalid = |error| ServiceError::bad_request(format!("invalid `webhook.secret`: {error}"));
            (parsed.map_err(invalid)?, true)
        }
        None => (generate()?, false),
    };
    let target = WebhookTarget { url, events: vec![event], tools: ToolPatterns::default() };
    let webhook = new_webhook(app, &identity.tenant, WebhookScope::Call, target);
    store(app, &webhook, &secret).await?;
    Ok((webhook.id, (!is_given).then_some(secret)))
}

/// Deletes the webhook of a call or a run that did not start.
pub async fn discard(app: &Context, identity: &Identity, id: WebhookId) {
    if let Err(error) = app.store().webhooks().delete(&identity.tenant, id).await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "cannot delete the webhook of a rejected call or run"
        );
    }
}
