//! Definitions in the forms that models and their clients read, and the way back from what a model then sends.
//!
//! `format` writes a definition, `root` makes the shape that every model takes at the top, `strict` and `gemini` are
//! the parts of JSON Schema that two of them know, with `parts` in common; `names` are names that models take, `tokens`
//! is what a definition costs, and `restore` turns arguments back.

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
