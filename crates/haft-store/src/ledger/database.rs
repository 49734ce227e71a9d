//! Calls written directly to PostgreSQL.

use std::sync::Arc;

use haft_core::catalog::StoreError;

use super::group_commit::{GroupCommit, WriteError};
use super::insert::{insert, insert_relaxed};
use crate::engine::{Engine, storage_failure};
use crate::ledger::usage::LedgerUsage;
use crate::outbox::Outbox;
use crate::settings::LedgerSync;

const RECORD: &str = "record a call";
/// The error text of the database goes to the log only.
const REJECTED: &str = "the database rejected the write; see the log";

/// What the group commit needs.
pub(crate) struct GroupCommitParts<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) node: &'a str,
    pub(crate) usage: &'a Arc<LedgerUsage>,
    pub(crate) outbox: &'a Arc<Outbox>,
}

/// Creates the group commit that stores calls in the database.
pub(crate) fn group_commit(parts: &GroupCommitParts<'_>, sync: LedgerSync) -> GroupCommit {
    let (engine, node): (Engine, Arc<str>) = (parts.engine.clone(), parts.node.into());
    let (usage, outbox) = (Arc::clone(parts.usage), Arc::clone(parts.outbox));
    GroupCommit::new(move |rows| {
        let (engine, node) = (engine.clone(), Arc::clone(&node));
        let (usage, outbox) = (Arc::clone(&usage), Arc::clone(&outbox));
        Box::pin(async move {
            let stored = match sync {
                LedgerSync::Always => insert(&engine, &outbox, &node, &rows).await,
                LedgerSync::Auto | LedgerSync::Os => insert_relaxed(&engine, &outbox, &node, &rows).await,
            };
            let lost = stored.map_err(|error| rejected(&error))?;
            usage.count(&rows).await;
            Ok(lost)
        })
    })
}

/// Checks whether the database accepts a write.
pub(super) async fn probe(engine: &Engine) -> Result<(), StoreError> {
    let done = sqlx::query("UPDATE generation SET value = value WHERE one = 1").execute(&engine.pool).await;
    done.map(drop).map_err(|error| rejected(&error).into())
}

fn rejected(error: &sqlx::Error) -> WriteError {
    tracing::error!(%error, "cannot record calls in the database");
    WriteError { action: RECORD, failure: storage_failure(error), message: REJECTED.into() }
}
