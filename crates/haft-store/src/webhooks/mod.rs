//! Webhooks: their settings, the outbox of events, and deliveries.

mod api;
mod deliveries;
mod outbox;
mod payload;

pub use api::{NewWebhook, WebhookChange};
pub use deliveries::{ClaimedDelivery, DeliveryLimits, DeliveryQuery, DeliveryResult};
pub(crate) use outbox::{NewDelivery, Outbox, insert_into_sqlite, insert_new};
