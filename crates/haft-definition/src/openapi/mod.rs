//! API descriptions: an OpenAPI 3.0 or 3.1 document becomes one `http` tool per operation.
//!
//! [`read`] is pure and bounded: what a document can cost in time and memory is limited by [`Limits`], whatever it
//! contains. A fault of the document is an error; a fault of one operation leaves that operation out, with the reason;
//! a doubt is a warning. Nothing is fetched: references to other documents are not followed.
//!
//! [`merge`] lays a new reading over the tools of an earlier one, and keeps what people changed.

mod arguments;
mod body;
mod data;
mod document;
mod import;
mod keywords;
mod merge;
mod names;
mod operation;
mod parameters;
mod response;
mod schema;
mod security;
mod select;
mod servers;
mod text;

pub use document::{Limits, MAX_DOCUMENT};
pub use import::{ImportOptions, ImportedOperation, OpenApiImport, SkippedOperation, read};
pub use merge::{ExistingTool, MergePlan, MergeStep, ToolUpdate, merge};
pub use select::OperationFilter;

#[cfg(test)]
mod document_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod merge_tests;
#[cfg(test)]
mod request_tests;
#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod test_support;
