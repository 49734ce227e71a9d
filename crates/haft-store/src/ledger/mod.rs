//! Calls: durable before their answer leaves, cheap by doing many at once.
//!
//! Embedded, a call is appended to a journal file and moved to SQLite in bulk later; with PostgreSQL, all calls
//! that wait at a moment share one statement and one commit.

mod api;
mod committer;
mod fold;
mod group;
pub(crate) mod health;
pub(crate) mod insert;
pub(crate) mod journal;
pub(crate) mod record;
mod recover;
mod segment;
mod tail;

pub(crate) use group::Group;
use journal::Journal;
pub(crate) use tail::Durability;

/// Where a call goes first.
pub(crate) enum Ledgers {
    Journal(Box<Journal>),
    Group(Group),
}
