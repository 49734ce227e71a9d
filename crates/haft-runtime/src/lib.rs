//! The call pipeline of haft: the registry, the stages, and one executor per module.
//!
//! Every call, from every surface, runs through [`pipeline::Pipeline`]. This crate knows no HTTP server and no SQL.

pub mod artifact;
pub mod clock;
mod concurrency;
mod depth;
pub mod egress;
pub mod events;
pub mod exec;
pub mod executors;
pub mod files;
pub mod function;
pub mod http;
pub mod jsonpath;
pub mod limits;
pub mod pipeline;
pub mod policy;
mod preview;
pub mod process;
pub mod python;
pub mod queue;
pub mod rate;
pub mod registry;
pub mod retrieval;
pub mod retry;
pub mod script;
pub mod stages;
pub mod steps;
