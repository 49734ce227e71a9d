//! Tests of the store; whatever does not concern files runs on both engines.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests and their helpers fail by panicking"
)]

mod agent_files;
mod agents;
mod applications;
mod apply;
mod approvals;
mod artifacts;
mod audit;
mod author;
mod bundles;
mod catalog;
mod chats;
mod claims;
mod credentials;
mod deleted_resources;
mod deleted_tools;
mod device_logins;
mod disk;
mod examples;
mod growth;
mod harness;
mod key_rotation;
mod ledger;
mod life_cycle;
mod limits;
mod logins;
mod mcp;
mod nodes;
mod people;
mod pipelines;
mod plans;
mod policies;
mod processes;
mod property;
mod queue;
mod quotas;
mod reload;
mod resource_files;
mod runs;
mod sign_on;
mod skipped_files;
mod tenants;
mod tokens;
