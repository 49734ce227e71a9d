//! Stat stamps: they detect a changed file without reading it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

/// The state of a file when it was last read, from its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStamp(String);

impl FileStamp {
    /// Returns the stamp of a file.
    pub fn of(metadata: &Metadata) -> Self {
        Self(format!(
            "{}.{}:{}.{}:{}:{}",
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.ctime(),
            metadata.ctime_nsec(),
            metadata.size(),
            metadata.ino()
        ))
    }

    /// Restores a stamp from its text.
    pub fn from_text(text: String) -> Self {
        Self(text)
    }

    /// Returns the text of the stamp.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a stamp that no file has; the file is read again at the next opportunity.
    pub fn unknown() -> Self {
        Self(String::new())
    }

    /// Tells whether the file has to be read again.
    pub fn is_unknown(&self) -> bool {
        self.0.is_empty()
    }
}
