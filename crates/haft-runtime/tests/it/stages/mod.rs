//! The stages, around real calls. Where time matters it is the runtime's, which stands still.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests fail by panicking")]

mod bundle;
mod cache;
mod concurrency;
mod definition_rate;
mod observer;
mod order;
mod rate_limit;
mod registry;
mod rig;
mod telling;
mod time;
