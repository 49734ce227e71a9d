//! Why a document cannot be read.

use std::time::Duration;

use thiserror::Error;

use super::Format;

/// A document that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file is larger than the limit.
    #[error("document has {bytes} bytes; the limit is {limit}")]
    TooLarge {
        /// The size of the file.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The text is larger than the limit.
    #[error("text of the document exceeds {limit} bytes; split the document")]
    TextTooLarge {
        /// The limit.
        limit: usize,
    },
    /// The document has too many parts.
    #[error("document has more than {limit} paragraphs, rows or records; split it")]
    TooManyBlocks {
        /// The limit.
        limit: usize,
    },
    /// The document has too many pages.
    #[error("document has more than {limit} pages; split it")]
    TooManyPages {
        /// The limit.
        limit: usize,
    },
    /// The compressed parts expand beyond the limit.
    #[error("compressed parts of the document exceed {limit} bytes when they are decompressed")]
    DecompressedTooLarge {
        /// The limit.
        limit: usize,
    },
    /// Reading takes too long.
    #[error("document takes longer than {limit:?} to read; split it")]
    TooSlow {
        /// The limit.
        limit: Duration,
    },
    /// The structure is nested too deeply.
    #[error("{format} document is nested more than {limit} levels deep")]
    TooDeep {
        /// The format.
        format: Format,
        /// The limit.
        limit: usize,
    },
    /// The document has no bytes, or only white space.
    #[error("document is empty")]
    Empty,
    /// The document has no text, such as a PDF of scanned pages.
    #[error("{format} document has no text; scanned pages need text recognition first")]
    NoText {
        /// The format.
        format: Format,
    },
    /// The bytes are not text, and no known format.
    #[error("document is binary; supported are text, Markdown, HTML, PDF, DOCX, CSV and JSON Lines")]
    Binary,
    /// The format is known and not supported.
    #[error(
        "unsupported document type `{0}`; supported are text, Markdown, HTML, PDF, DOCX, CSV and JSON Lines"
    )]
    Unsupported(String),
    /// The document is encrypted.
    #[error("{format} document is encrypted; remove its password protection and upload it again")]
    Encrypted {
        /// The format.
        format: Format,
    },
    /// The document does not follow its format.
    #[error("invalid {format} document: {problem}")]
    Damaged {
        /// The format.
        format: Format,
        /// The reason.
        problem: &'static str,
    },
    /// A line does not follow the format.
    #[error("invalid {format} document: {problem} (line {line})")]
    InvalidLine {
        /// The format.
        format: Format,
        /// The line, counted from 1.
        line: usize,
        /// The reason.
        problem: String,
    },
    /// The bytes do not follow the declared encoding.
    #[error("document is not valid {0}; save it as UTF-8")]
    Encoding(&'static str),
}
