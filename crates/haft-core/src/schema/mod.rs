//! JSON Schema 2020-12: compilation, validation with limits, walking, and conversion of other dialects.
//!
//! The types of the validation library are not exposed.

mod bounds;
mod message;
pub mod normalize;
mod raw;
mod validate;
pub mod walk;

pub use raw::RawSchema;
pub use validate::{Schema, Violation};
pub use walk::declared_properties;
