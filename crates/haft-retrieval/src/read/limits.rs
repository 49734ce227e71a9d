//! What a document may cost.

use std::time::Duration;

/// The limits of reading one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadLimits {
    /// The maximum size of the file in bytes.
    pub max_bytes: usize,
    /// The maximum size of the extracted text in bytes.
    pub max_text: usize,
    /// The maximum number of blocks: paragraphs, rows, records.
    pub max_blocks: usize,
    /// The maximum number of pages of a PDF.
    pub max_pages: usize,
    /// The maximum size of all that is decompressed from a PDF or DOCX, in bytes.
    pub max_decompressed: usize,
    /// The maximum time of reading it.
    pub max_time: Duration,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            max_bytes: 64 << 20,
            max_text: 32 << 20,
            max_blocks: 500_000,
            max_pages: 5_000,
            max_decompressed: 256 << 20,
            max_time: Duration::from_mins(1),
        }
    }
}
