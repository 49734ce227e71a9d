//! The executor of `http` tools: one request, or several steps.
//!
//! Preparing compiles everything that a definition holds: templates, paths, expressions, header names. A run
//! is one attempt; whether another may follow is said by the error ([`CallError::retryable`] and
//! [`CallError::retry_after`]), and the pipeline repeats.
//!
//! Decisions of this module:
//! - `extract`: one match is the value, several are a list, none is an error (`null` with `error_mode: empty`).
//!   A regular expression gives its first group, or the whole match where it has none.
//! - `error_mode: empty` turns failures of the request (network, time, status, answer) to `null` once nothing
//!   is left to repeat; faults of definition and configuration still fail.
//! - An empty answer is `null`, unless the definition demands JSON.
//! - The model reads the status and a short excerpt of an error answer, as that is what lets it correct
//!   itself; HTML pages are left out.
//!
//! [`CallError::retryable`]: haft_core::outcome::CallError::retryable
//! [`CallError::retry_after`]: haft_core::outcome::CallError::retry_after

mod auth;
mod exchange;
mod executor;
mod extract;
mod failure;
mod oauth;
mod pairs;
mod plan;
mod prepare;
mod request;
mod response;
mod sign;
mod tokens;

pub use exchange::{Exchange, OverflowPolicy, exchange};
pub use executor::HttpExecutor;
