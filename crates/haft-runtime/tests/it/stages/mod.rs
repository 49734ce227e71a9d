//! The stages around real calls. Tests that depend on time use the paused clock of the runtime.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests fail by panicking")]

mod bundle;
mod cache;
mod concurrency;
mod definition_rate;
mod lineage;
mod observer;
mod order;
mod rate_limit;
mod registry;
mod reporting;
mod resources;
mod rig;
mod steps;
mod time;
