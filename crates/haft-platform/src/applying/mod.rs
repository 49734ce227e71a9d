//! Brings an installation to the state of a folder: the desired state, the plan, applying it, and the way back.
//!
//! A kind of thing is a part of [`desired`], a file that plans it, and a field of the store's `ApplyChanges`.

mod desired;
mod desired_resource;
mod documents;
mod export;
mod export_agents;
mod export_references;
mod model_url;
mod plan;
mod plan_agents;
mod plan_artifacts;
mod plan_pipelines;
mod plan_resources;
mod plan_servers;
mod plan_toolsets;
mod planned_tools;
mod planner;
mod run;

pub use export::export;
pub use plan::{ApplyOptions, ApplyReport, ApplySummary, ChangeAction, ChangeKind, PlannedChange};
pub use run::{apply, prepare};
