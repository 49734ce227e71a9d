//! The call pipeline of haft: the registry, the stages, the limits, and the executors that only call functions or tools.
//!
//! Every call, from every surface, runs through [`pipeline::Pipeline`]. This crate knows no network, no process and no SQL.

pub mod clock;
pub mod concurrency;
mod depth;
pub mod event_log;
pub mod events;
pub mod executors;
pub mod function;
pub mod limits;
pub mod pipeline;
pub mod queue;
pub mod rate;
pub mod registry;
pub mod retry;
pub mod stages;
pub mod steps;

/// The policy that the pipeline applies; in a crate of its own, so that the grammar of conditions is built beside this one.
pub use haft_policy as policy;
