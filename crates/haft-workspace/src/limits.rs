//! How large a workspace may be.

/// How large a workspace may be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of files and folders.
    pub entries: u64,
    /// The maximum size of all files together.
    pub bytes: u64,
    /// The maximum depth of folders.
    pub depth: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 200_000, bytes: 4 << 30, depth: 64 }
    }
}
