//! Reads documents of several formats into text with structure, within limits.

mod csv;
mod deadline;
mod decode;
mod document;
mod docx;
mod error;
mod format;
mod html;
mod json_lines;
mod limits;
mod markdown;
mod output;
mod pdf;
#[cfg(test)]
mod read_tests;
mod table;
mod text;

pub use document::{ReadOptions, read};
pub use error::ReadError;
pub use format::Format;
pub use limits::ReadLimits;
