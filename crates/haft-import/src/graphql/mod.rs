//! Imports GraphQL schemas: each query and mutation becomes an `http` tool.
//!
//! A schema is the result of [`INTROSPECTION`], as JSON, or SDL text. A tool selects the fields of its result to a bounded
//! depth and number; types that contain themselves are cut.

mod import;
mod input;
mod introspection;
mod schema;
mod sdl;
mod selection;

#[cfg(test)]
mod graphql_tests;

pub use import::read;
pub use introspection::INTROSPECTION;
