//! Imports OpenAPI 3.0 and 3.1 documents: each operation becomes an `http` tool.
//!
//! [`read`] is pure and bounded: [`Limits`] limit the time and memory for any document. An error of the document fails
//! the import; an error of one operation skips that operation, with the reason. Nothing is fetched: references to other
//! documents are not followed.
//!
//! [`merge`] updates the tools of an earlier import and keeps what users edited.

mod arguments;
mod body;
mod document;
mod filter;
mod import;
mod merge;
mod names;
mod operation;
mod parameters;
mod response;
mod schema;
mod security;
mod servers;
mod text;

pub use document::{Limits, MAX_DOCUMENT};
pub use filter::OperationFilter;
pub use import::{ImportOptions, ImportedOperation, OpenApiImport, SkippedOperation, read};
pub use merge::{ExistingTool, MergePlan, MergeStep, ToolUpdate, merge};
pub(crate) use names::{argument_name, secret_name};

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
