//! The integration tests of haft-agent: models over HTTP, with the wire formats of their providers, and runs of agents.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod cancellation;
mod chat;
mod failures;
mod harness;
mod limits;
mod peers;
mod providers;
mod retries;
mod run_approvals;
mod run_batches;
mod run_context;
mod run_harness;
mod run_limits;
mod run_loop;
mod run_resume;
