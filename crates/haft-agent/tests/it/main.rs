//! The integration tests of haft-agent: models over HTTP, with the wire formats of their providers.

mod cancellation;
mod chat;
mod failures;
mod harness;
mod limits;
mod peers;
mod providers;
mod retries;
