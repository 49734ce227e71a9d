//! Calls written directly to PostgreSQL.

use std::sync::Arc;

use haft_core::catalog::StoreError;

use super::group_commit::{GroupCommit, WriteError};
use super::insert::{insert, insert_relaxed};
use super::usage::LedgerUsage;
use crate::engine::{Engine, storage_failure};
use crate::settings::LedgerSync;

const RECORD: &str = "record a call";
/// The error text of the database goes to the log only.
const REJECTED: &str = "the database rejected the write; see the log";

/// Creates the group commit that stores calls in the database.
pub(crate) fn group_commit(
    engine: &Engine,
    node: &str,
    usage: &Arc<LedgerUsage>,
    sync: LedgerSync,
) -> GroupCommit {
    let (engine, node, usage): (Engine, Arc<str>, _) = (engine.clone(), node.into(), Arc::clone(usage));
    GroupCommit::new(move |rows| {
        let (engine, node, usage) = (engine.clone(), Arc::clone(&node), Arc::clone(&usage));
        Box::pin(async move {
            let stored = match sync {
                LedgerSync::Always => insert(&engine, &node, &rows).await,
                LedgerSync::Auto | LedgerSync::Os => insert_relaxed(&engine, &node, &rows).await,
            };
            stored.map_err(|error| rejected(&error))?;
            usage.count(&rows).await;
            Ok(())
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
