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
    /// How long and how much of everything else is kept.
    pub retention: Retention,
}

/// How long and how much is kept; 0 sets no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The most calls of a tenant.
    pub calls: u32,
    /// How many days records of changes are kept.
    pub audit_days: u32,
    /// The most records of changes.
    pub audit_records: u32,
    /// How many days replaced and deleted definitions stay in `tool-history/`.
    pub history_days: u32,
    /// The most of them of one file name.
    pub history_copies: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            calls: 5_000_000,
            audit_days: 365,
            audit_records: 1_000_000,
            history_days: 90,
            history_copies: 20,
        }
    }
}

impl StoreSettings {
    /// Returns the settings of an embedded store in a folder.
    pub fn embedded(home: impl Into<PathBuf>) -> Self {
        Self { home: Some(home.into()), ..Self::nowhere() }
    }

    /// Returns the settings of a store in PostgreSQL.
    pub fn postgres(url: Secret) -> Self {
        Self { database_url: Some(url), ..Self::nowhere() }
    }

    fn nowhere() -> Self {
        Self {
            home: None,
            database_url: None,
            key: None,
            sync_to_disk: true,
            keep_days: 30,
            retention: Retention::default(),
        }
    }
}
