//! Resources: agents, retrieval pipelines and code artifacts, as rows or files, revision by revision.
//!
//! Everything here is the same for all kinds. What a kind adds is in its implementation of [`StoredKind`].

mod apply;
mod deleted;
mod files;
mod kind;
mod migrated;
mod read;
mod retention;
mod write;

pub use apply::{ResourceChange, ResourceHead};
pub(crate) use apply::{apply_in, heads_in};
pub(crate) use files::FileScope;
pub use files::ResourceFileError;
pub use kind::{FileDefinitions, StoredKind};
pub(crate) use migrated::fill_migrated;
pub(crate) use read::{BY_REFERENCE, all_in, count_change, read_resource, select_with};
pub use read::{ResourceName, ResourceNames, ResourceQuery, ResourceSource, Resources, RevisionSelector};
pub use write::ResourceUpdate;
