//! Bundles, tools and their revisions.

mod api;
pub(crate) mod apply;
pub(crate) mod apply_state;
mod built_ins;
mod bundles;
pub(crate) mod deleted;
mod examples;
pub(crate) mod insert;
mod inspect;
pub(crate) mod mcp;
mod mcp_review;
mod missing;
mod queries;
mod registry_import;
mod retention;
mod session;
mod state;
pub(crate) mod sync;
mod sync_apply;
mod sync_bundles;
mod tool_files;
mod tools;
pub(crate) mod toolsets;
mod transitions;

pub(crate) use session::Session;
pub use state::Catalog;
