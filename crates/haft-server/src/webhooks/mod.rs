//! Delivers events to webhooks: signed, retried, at least once.

mod sender;
mod signature;
mod worker;

pub(crate) use sender::{check_url, send_test};
pub(crate) use signature::SigningSecret;
pub(crate) use worker::deliver;
