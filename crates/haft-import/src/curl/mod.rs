//! Turns a curl command line into the definition of an `http` tool: query parameters and the fields of the body become
//! arguments, credentials become references to secrets.
//!
//! Nothing is executed: the shell syntax is parsed as far as people paste it, and everything else is an error.

mod command;
#[cfg(test)]
mod curl_tests;
mod definition;
mod words;

pub use definition::{CurlTool, read};

/// Why a command cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CurlError {
    /// It is too long.
    #[error("the command exceeds the limit of {MAX_BYTES} bytes")]
    TooLong,
    /// It does not start with `curl`.
    #[error("the command does not start with `curl`")]
    NotCurl,
    /// A quote is not closed.
    #[error("a {0} quote is not closed")]
    Quote(&'static str),
    /// An option needs a value.
    #[error("the option `{0}` has no value")]
    MissingValue(String),
    /// An option cannot be converted.
    #[error("the option `{option}` is unsupported: {reason}")]
    Unsupported {
        /// The option.
        option: String,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// There is no URL.
    #[error("the command has no URL")]
    NoUrl,
    /// The URL is invalid.
    #[error("invalid URL `{url}`: {reason}")]
    Url {
        /// The URL.
        url: String,
        /// Why.
        reason: String,
    },
    /// The method is invalid.
    #[error("invalid method `{0}`")]
    Method(String),
    /// A header is invalid.
    #[error("invalid header `{0}`: expected `Name: value`")]
    Header(String),
}

/// The longest command in bytes.
pub const MAX_BYTES: usize = 256 * 1024;
