//! What a store is opened with.

use std::path::PathBuf;

use haft_core::secret::Secret;

/// Where and how a store keeps things.
#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// The home folder: definition files, SQLite and the call journal. Needed without `database_url`.
    pub home: Option<PathBuf>,
    /// A `postgres://` address; with it the database is truth and no definition files are kept.
    pub database_url: Option<Secret>,
    /// The key of stored credentials, 64 hexadecimal digits; without it `key` in the home folder is used.
    pub key: Option<Secret>,
    /// Whether a call waits for the disk itself, which outlives a loss of power, or only for the
    /// operating system, which outlives the process. Definitions always wait for the disk.
    pub sync_to_disk: bool,
    /// How many days calls are kept; 0 keeps them for good.
    pub keep_days: u32,
}

impl StoreSettings {
    /// Returns the settings of an embedded store in a folder.
    pub fn embedded(home: impl Into<PathBuf>) -> Self {
        Self { home: Some(home.into()), database_url: None, key: None, sync_to_disk: true, keep_days: 30 }
    }

    /// Returns the settings of a store in PostgreSQL.
    pub fn postgres(url: Secret) -> Self {
        Self { home: None, database_url: Some(url), key: None, sync_to_disk: true, keep_days: 30 }
    }
}
