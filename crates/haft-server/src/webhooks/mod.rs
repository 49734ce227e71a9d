//! Delivers events to webhooks: signed, retried, at least once.

mod manage;
mod sender;
mod signature;
mod worker;

pub(crate) use manage::{
    WebhookFields, WebhookUpdate, create, create_for_one, delete, discard, find, update,
};
pub(crate) use sender::{check_url, send_test};
pub(crate) use signature::SigningSecret;
pub(crate) use worker::deliver;
