//! The integration tests of haft-agent: models over HTTP, with the wire formats of their providers.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod cancellation;
mod chat;
mod failures;
mod harness;
mod limits;
mod peers;
mod providers;
mod retries;
