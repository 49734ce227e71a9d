//! Bundles, tools and their revisions.

mod api;
mod built_ins;
mod bundles;
mod queries;
pub(crate) mod sync;
mod sync_apply;
mod sync_bundles;
mod tools;
mod transitions;
