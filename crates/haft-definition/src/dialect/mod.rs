//! The dialects in which tools are defined: all are converted to a [`ToolSpec`](haft_core::spec::ToolSpec), which is
//! written to three file formats.
//!
//! No other module knows dialects. Everything here is bounded: the text, its nesting, its nodes, its aliases, and the
//! number of problems.

mod artifact;
mod author_path;
mod canonical;
mod control;
mod definition;
mod document;
mod draft;
mod emit;
mod execution;
mod fields;
mod hints;
mod http;
mod implementation;
mod json;
mod params;
mod partial;
mod reading;
mod registry;
mod several;
mod skill;
mod steps;
#[cfg(test)]
pub(crate) mod test_support;
mod tool_json;
mod write;
mod yaml;
mod yaml_document;

pub(crate) use artifact::inputs as artifact_inputs;
pub(crate) use document::locate_foreign;
pub use document::{MAX_TEXT, locate, read_foreign};
pub use fields::{Fields, Report, conflict, describe, item_path, join, unknown};
pub use partial::{UNKNOWN_FIELD, read_without};
pub use reading::{
    Defaults, Dialect, ParsedDefinition, detect, form_of_extension, read, read_part, read_value,
};
pub use several::{DefinitionText, MAX_DEFINITIONS, split};
pub use write::{write, write_fields, write_yaml};
pub use yaml::Bounds;
pub use yaml_document::{DocumentLimits, YamlDocument};
