//! The settings of a store.

use std::path::PathBuf;
use std::time::Duration;

use haft_core::secret::Secret;

use crate::engine::CHANGE_TIMEOUT;

/// Where and how a store keeps its data.
#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// The home folder: definition files, SQLite and the call journal. Required without `database_url`.
    pub home: Option<PathBuf>,
    /// A `postgres://` URL. With it, the database is the source of truth and there are no definition files.
    pub database_url: Option<Secret>,
    /// The key of stored credentials, 64 hexadecimal digits. The default is the file `key` in the home folder.
    pub key: Option<Secret>,
    /// The key that a rotation changes to. While it is set, credentials that are encrypted with either key can be read.
    pub new_key: Option<Secret>,
    /// Which records of calls wait for the disk. Definitions always do.
    pub sync: LedgerSync,
    /// With PostgreSQL, a node that shows no sign of life for this long loses its running calls.
    pub lease: Duration,
    /// With PostgreSQL, how long a change waits for one of another node before it fails as busy.
    pub change_timeout: Duration,
    /// How many days calls are kept; 0 keeps them forever.
    pub keep_days: u32,
    /// Limits for all other data.
    pub retention: Retention,
}

/// Which records of calls are on disk before the answer leaves, and so survive a power failure. The others survive the
/// end of the process, and reach the disk within a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LedgerSync {
    /// Those that a promise rests on: an idempotency key, an approval, a queued call.
    #[default]
    Auto,
    /// All.
    Always,
    /// None.
    Os,
}

/// How long and how much data is kept; 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The largest number of calls of a tenant.
    pub calls: u32,
    /// How many days ended runs of agents are kept. Those that answer in a chat stay as long as the chat.
    pub run_days: u32,
    /// How many days approvals are kept after they were requested. Those that wait stay.
    pub approval_days: u32,
    /// How many days an approval is remembered.
    pub grant_days: u32,
    /// How many days chats are kept after their last change.
    pub chat_days: u32,
    /// How many days states of workspaces are kept. The active one and those of messages stay.
    pub workspace_days: u32,
    /// The largest number of states of a workspace. The active one and those of messages stay.
    pub workspace_states: u32,
    /// The largest number of revisions of a tool. The newest and the published one stay.
    pub tool_revisions: u32,
    /// The largest number of revisions of an agent. The newest and the published one stay.
    pub agent_revisions: u32,
    /// The largest number of revisions of a pipeline. The newest and the published one stay.
    pub pipeline_revisions: u32,
    /// The largest number of versions of a code artifact. The newest, the published one and those that tools pin stay.
    pub artifact_versions: u32,
    /// The largest size of the calls of a tenant in bytes. The oldest arguments and results are removed first, and the
    /// calls themselves only if that is not enough.
    pub tenant_bytes: u64,
    /// The largest size of all calls in bytes; the tenant with most is reduced first.
    pub ledger_bytes: u64,
    /// How long the key of an idempotent call returns its outcome.
    pub idempotency_keys: Duration,
    /// How many days audit records are kept.
    pub audit_days: u32,
    /// The largest number of audit records.
    pub audit_records: u32,
    /// How many days replaced and deleted definitions stay in `tool-history/`.
    pub history_days: u32,
    /// The largest number of backups of one file name.
    pub history_copies: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            calls: 5_000_000,
            run_days: 30,
            approval_days: 90,
            grant_days: 365,
            chat_days: 365,
            workspace_days: 90,
            workspace_states: 1000,
            tool_revisions: 500,
            agent_revisions: 500,
            pipeline_revisions: 500,
            artifact_versions: 500,
            tenant_bytes: 4 << 30,
            ledger_bytes: 16 << 30,
            idempotency_keys: Duration::from_hours(24),
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
        Self { home: Some(home.into()), ..Self::defaults() }
    }

    /// Returns the settings of a store in PostgreSQL.
    pub fn postgres(url: Secret) -> Self {
        Self { database_url: Some(url), ..Self::defaults() }
    }

    fn defaults() -> Self {
        Self {
            home: None,
            database_url: None,
            key: None,
            new_key: None,
            sync: LedgerSync::Auto,
            lease: Duration::from_secs(10),
            change_timeout: CHANGE_TIMEOUT,
            keep_days: 30,
            retention: Retention::default(),
        }
    }
}
