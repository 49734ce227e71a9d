//! `send_email`: one message over SMTP.

mod account;
mod failure;
mod message;
mod stream;
mod tool;

pub(crate) use tool::{SendEmail, send_email};
