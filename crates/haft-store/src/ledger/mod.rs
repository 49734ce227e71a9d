//! The call ledger: calls are durable before they are acknowledged, and many share one write.
//!
//! Embedded, a call is appended to a journal file and moved to SQLite in bulk later. With PostgreSQL, all calls that
//! wait at the same time share one statement and one commit.

pub(crate) mod api;
pub(crate) mod approvals;
mod audited;
pub(crate) mod callers;
pub(crate) mod database;
mod drain;
pub(crate) mod ended;
mod filter;
mod filter_columns;
mod group_commit;
pub(crate) mod health;
pub(crate) mod histogram;
pub(crate) mod insert;
pub(crate) mod journal;
pub(crate) mod queue;
pub(crate) mod record;
mod recover;
mod retention;
mod segment;
mod tail;
pub(crate) mod unsaved;
pub(crate) mod usage;

pub use api::Calls;
pub(crate) use filter_columns::{fill_filter_columns, fill_surface_columns};
use group_commit::GroupCommit;
use journal::Journal;

/// Where calls are written first.
pub(crate) enum LedgerBackend {
    Journal(Box<Journal>),
    Database(GroupCommit),
}
