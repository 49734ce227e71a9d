//! Imports OpenAPI 3.0, 3.1 and 3.2 and Swagger 2.0 documents: each operation becomes an `http` tool.
//!
//! [`read`] is pure and bounded: [`Limits`](crate::api::Limits) limit the time and memory for any document. An error of the document fails
//! the import; an error of one operation skips that operation, with the reason. Nothing is fetched: references to other
//! documents are not followed.

mod arguments;
mod body;
mod document;
mod import;
mod operation;
mod parameters;
mod response;
mod schema;
mod security;
mod servers;
mod swagger;

pub use import::read;
pub(crate) use servers::{check_given, escape_template, normalize_base};

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
mod swagger_tests;
#[cfg(test)]
mod test_support;
