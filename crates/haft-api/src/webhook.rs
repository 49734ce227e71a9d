//! Webhooks and their deliveries.

use haft_core::Timestamp;
use haft_core::webhook::{Delivery, DeliveryStatus, Webhook, WebhookEvent};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// A webhook, without its secret.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Webhook)]
pub struct WebhookView {
    pub id: Uuid,
    #[schema(example = "https://example.com/hooks/haft")]
    pub url: String,
    pub events: Vec<WebhookEvent>,
    /// The tools that the events are about: `name` or `bundle:name`, each with `*` for any text; empty: every tool.
    #[schema(example = json!(["deploy", "mail:*"]))]
    pub tools: Vec<String>,
    /// Whether events are delivered.
    pub enabled: bool,
    pub created_at: Timestamp,
    pub modified_at: Timestamp,
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
#[derive(Serialize, Deserialize, ToSchema)]
pub struct WebhookWithSecret {
    #[serde(flatten)]
    pub webhook: WebhookView,
    /// The signing secret, which no later response contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "whsec_…")]
    pub secret: Option<String>,
}

/// A page of webhooks.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WebhookList {
    pub webhooks: Vec<WebhookView>,
    pub total: usize,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A new webhook.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct NewWebhookBody {
    /// Where events are posted.
    #[schema(example = "https://example.com/hooks/haft", max_length = 2048)]
    pub url: String,
    /// The events; default: all.
    #[schema(value_type = Option<Vec<WebhookEvent>>, example = json!(["call.finished", "approval.requested"]))]
    pub events: Option<Vec<String>>,
    /// The tools that the events are about: `name` or `bundle:name`, each with `*` for any text; default: every tool.
    #[serde(default)]
    #[schema(example = json!(["deploy", "mail:*"]), max_items = 64)]
    pub tools: Vec<String>,
    /// Whether events are delivered.
    #[serde(default = "enabled")]
    pub enabled: bool,
}

fn enabled() -> bool {
    true
}

/// Changes to a webhook; missing fields are kept.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct WebhookPatch {
    /// Where events are posted.
    #[schema(example = "https://example.com/hooks/haft", max_length = 2048)]
    pub url: Option<String>,
    /// The events.
    #[schema(value_type = Option<Vec<WebhookEvent>>)]
    pub events: Option<Vec<String>>,
    /// The tools that the events are about.
    #[schema(max_items = 64)]
    pub tools: Option<Vec<String>>,
    /// Whether events are delivered.
    pub enabled: Option<bool>,
    /// Whether to replace the signing secret; the response contains the new one.
    #[serde(default)]
    pub rotate_secret: bool,
}

/// The delivery of one event.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryView {
    /// The id, which the receiver sees as `webhook-id`.
    pub id: Uuid,
    pub webhook_id: Uuid,
    pub event: WebhookEvent,
    pub status: DeliveryStatus,
    /// The number of attempts so far.
    pub attempts: u32,
    /// The time of the next attempt; `null` if there is none.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_attempt_at: Option<Timestamp>,
    /// When the event happened.
    pub created_at: Timestamp,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub attempted_at: Option<Timestamp>,
    /// The HTTP status of the last response.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub response_status: Option<u16>,
    /// Why the last attempt failed.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub error: Option<String>,
    /// The body.
    #[schema(value_type = Object, example = json!({"type": "webhook.test", "timestamp": "2026-01-31T12:00:00Z", "data": {}}))]
    pub payload: Value,
}

impl From<Delivery> for DeliveryView {
    fn from(delivery: Delivery) -> Self {
        let is_pending = delivery.status == DeliveryStatus::Pending;
        Self {
            id: delivery.id.0,
            webhook_id: delivery.webhook.0,
            event: delivery.event,
            status: delivery.status,
            attempts: delivery.attempts,
            next_attempt_at: is_pending.then_some(delivery.not_before),
            created_at: delivery.created_at,
            attempted_at: delivery.attempted_at,
            response_status: delivery.response_status,
            error: delivery.error,
            payload: serde_json::from_str(&delivery.payload).unwrap_or_default(),
        }
    }
}

/// A page of deliveries.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DeliveryList {
    pub deliveries: Vec<DeliveryView>,
    pub total: u64,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}
