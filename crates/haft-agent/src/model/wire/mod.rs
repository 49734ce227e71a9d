//! The wire formats of providers: a request as JSON, and the events of a response.
//!
//! These modules only convert. They send nothing and know no address.

mod anthropic;
mod anthropic_request;
mod chat;
mod chat_request;
mod format;
mod gemini;
mod gemini_request;
mod parts;
mod responses;
mod responses_request;

#[cfg(test)]
mod request_tests;

pub(super) use anthropic::Anthropic;
pub(super) use chat::Chat;
pub(super) use format::{Decoder, Target, Wire};
pub(super) use gemini::Gemini;
pub(super) use responses::Responses;
