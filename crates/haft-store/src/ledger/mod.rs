//! Calls: durable before their answer leaves, cheap by doing many at once.
//!
//! Embedded, a call is appended to a journal file and moved to SQLite in bulk later; with PostgreSQL, all calls
//! that wait at a moment share one statement and one commit.

mod api;
mod fold;
mod group;
pub(crate) mod journal;
pub(crate) mod record;
mod recover;
mod segment;
mod syncer;

pub(crate) use group::Group;
use journal::Journal;

/// Where a call goes first.
pub(crate) enum Ledgers {
    Journal(Box<Journal>),
    Group(Group),
}
