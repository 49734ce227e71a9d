//! Resources: agents, retrieval pipelines and code artifacts, as rows or files, revision by revision.
//!
//! Everything here is the same for all kinds. What a kind adds is in its implementation of [`StoredKind`].

mod apply;
mod files;
mod kind;
mod migrated;
mod read;
mod write;

pub use apply::{ResourceChange, ResourceHead};
pub(crate) use files::FileScope;
pub use files::ResourceFileError;
pub use kind::{FileDefinitions, StoredKind};
pub(crate) use migrated::fill_migrated;
pub(crate) use read::{BY_REFERENCE, count_change, read_resource, select_with};
pub use read::{ResourceName, ResourceNames, ResourceQuery, Resources, RevisionSelector};
pub use write::ResourceUpdate;
