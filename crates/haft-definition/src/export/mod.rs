//! Exports definitions in the formats of model APIs, and converts the arguments that models send back.
//!
//! `format` exports a definition, `root` converts the root of the schema, `strict` and `gemini` convert schemas to the
//! supported subset of JSON Schema with the functions of `parts`, `names` derives names that models support, `tokens`
//! estimates the size, and `restore` converts arguments back.

mod format;
mod gemini;
mod names;
mod parts;
mod restore;
mod root;
mod strict;
mod tokens;

pub use format::{Definition, Format, definition};
pub use names::{distinct_name, is_model_name, looks_distinct, model_name};
pub use restore::{ArgumentAliases, drop_nulls, for_alternatives};
pub use tokens::estimate_tokens;
