//! Imports of API descriptions: what is asked for, where the document comes from, and what becomes of its tools.

mod apply;
mod fetch;
mod request;

pub(crate) use apply::{Plan, Report};
pub(crate) use fetch::document;
pub(crate) use request::{ImportBody, Origin, read};
