//! Bundles, tools and their revisions.

mod api;
pub(crate) mod apply;
pub(crate) mod apply_state;
mod built_ins;
mod bundles;
mod examples;
pub(crate) mod insert;
pub(crate) mod mcp;
mod missing;
mod queries;
mod registry_import;
pub(crate) mod sync;
mod sync_apply;
mod sync_bundles;
mod tool_files;
mod tools;
pub(crate) mod toolsets;
mod transitions;
