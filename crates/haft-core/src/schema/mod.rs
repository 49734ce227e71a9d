//! JSON Schema 2020-12: compiled once, checked often, bounded always.
//!
//! The library behind it stays behind the types of this module.

mod bounds;
mod declared;
mod message;
pub mod normalize;
mod validate;
pub mod walk;

pub use declared::declared;
pub use validate::{Schema, Violation};
