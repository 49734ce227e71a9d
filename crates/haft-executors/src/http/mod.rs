//! The executor of `http` tools: one request, or several steps.
//!
//! Preparing compiles everything in a definition: templates, paths, expressions, header names. A run is one attempt; its
//! error says whether it may be retried ([`CallError::retryable`] and [`CallError::retry_after`]), and the pipeline
//! retries.
//!
//! Decisions of this module:
//! - `extract`: one match is the value, several are a list, none is an error (`null` with `error_mode: empty`).
//!   A regular expression yields its first group, or the whole match if it has none.
//! - `error_mode: empty` turns failures of the request (network, timeout, status, response) into `null` after the last
//!   attempt; errors of the definition and the configuration still fail.
//! - An empty response is `null`, unless the definition requires JSON.
//! - The model gets the status and a short excerpt of an error response, so that it can correct itself; HTML pages are
//!   omitted.
//!
//! [`CallError::retryable`]: haft_core::outcome::CallError::retryable
//! [`CallError::retry_after`]: haft_core::outcome::CallError::retry_after

mod auth;
mod exchange;
mod executor;
mod extract;
mod failure;
mod multipart;
mod oauth;
mod pairs;
mod plan;
mod prepare;
mod preview;
mod request;
mod response;
mod sign;
mod tokens;

pub use exchange::{Exchange, OverflowPolicy, exchange};
pub use executor::HttpExecutor;
