//! `send_email`: sends one message over SMTP.

mod account;
mod error;
mod message;
mod stream;
mod tool;

pub(crate) use tool::{SendEmail, send_email};
