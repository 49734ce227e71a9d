//! Delivers events to webhooks: signed, retried, at least once.

mod manage;
mod sender;
mod signature;
mod worker;

pub use manage::{WebhookFields, WebhookUpdate, create, create_for_one, delete, discard, find, update};
pub use sender::{check_url, send_test};
pub use signature::SigningSecret;
pub use worker::deliver;
