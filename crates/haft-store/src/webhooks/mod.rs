//! Webhooks: their settings and deliveries.

mod api;
mod deliveries;

pub use api::{NewWebhook, WebhookChange, Webhooks};
pub use deliveries::{ClaimedDelivery, DeliveryLimits, DeliveryQuery, DeliveryResult};
