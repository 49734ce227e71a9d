//! Brings an installation to the state of a folder: the desired state, the plan, applying it, and the way back.
//!
//! A kind of thing is a part of [`desired`], a file that plans it, and a field of the store's `ApplyChanges`.

mod desired;
mod documents;
mod export;
mod export_agents;
mod export_references;
mod plan;
mod plan_agents;
mod plan_artifacts;
mod plan_pipelines;
mod plan_servers;
mod plan_toolsets;
mod planner;
mod run;

pub use export::export;
pub use plan::ApplyReport;
pub use run::{ApplyOptions, apply, prepare};
