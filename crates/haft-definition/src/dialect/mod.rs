//! The dialects in which tools are defined: all are read to one [`ToolSpec`](haft_core::spec::ToolSpec),
//! and that is written to three kinds of file.
//!
//! Nothing behind this module knows dialects. Everything here is bounded: the text, its nesting, its
//! nodes, its aliases, and the number of problems reported.

mod canonical;
mod control;
mod definition;
mod detect;
mod document;
mod draft;
mod emit;
mod execution;
mod fields;
mod foreign;
mod hints;
mod http;
mod implementation;
mod json;
mod load;
mod params;
mod reading;
mod registry;
mod skill;
mod spelling;
#[cfg(test)]
mod test_support;
mod tool_json;
mod write;
mod yaml;

pub use detect::{Dialect, detect};
pub use document::{MAX_TEXT, place};
pub(crate) use foreign::read_foreign;
pub(crate) use load::Bounds;
pub use reading::{Defaults, ParsedDefinition, form_of_extension, read, read_value};
pub use write::write;
