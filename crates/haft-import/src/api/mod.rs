//! Imports of API descriptions: what their kinds share.
//!
//! [`read`] detects the kind of a document and reads it; every operation becomes an `http` tool. Each reader is pure and
//! bounded by [`Limits`]. [`merge`] updates the tools of an earlier import and keeps what users edited.

mod filter;
mod html;
mod import;
mod kind;
mod merge;
pub(crate) mod names;
pub(crate) mod templates;
pub(crate) mod text;

pub use filter::OperationFilter;
pub use import::{ApiImport, ImportOptions, ImportedOperation, Limits, MAX_DOCUMENT, SkippedOperation};
pub(crate) use import::{Selectable, select};
pub use kind::{ApiKind, detect, files_document, is_collection_file, read};
pub(crate) use merge::digests;
pub use merge::{ExistingTool, MergePlan, MergeStep, ToolUpdate, merge};
