//! The layer below all domains of the store: the database, the home folder, the clock, the leases of the nodes, and the
//! notification of changes.

pub(crate) mod access_changes;
pub(crate) mod nodes;
pub(crate) mod reports;

use std::future::Future;
use std::sync::Arc;

use haft_core::catalog::{ChangeSink, StoreError};
use haft_core::secret::Secret;
use haft_core::{Clock, Timestamp};
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};
use tokio::sync::{Mutex, MutexGuard, watch};

use crate::database::nodes::Leases;
use crate::database::reports::ChangeReports;
use crate::engine::{Engine, failed_to};
use crate::files::Files;
use crate::notification::ChangeSet;
use crate::outbox::Outbox;
use crate::settings::Retention;
use crate::{audit, time};

/// How many rows one statement removes.
pub(crate) const BATCH: u64 = 500;

const GENERATION: &str = "SELECT value FROM generation WHERE one = 1";

/// The database layer that all domains share.
pub(crate) struct Database {
    pub(crate) engine: Engine,
    /// The home folder, if definitions are files.
    pub(crate) files: Option<Files>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The id of this process among those that share the database.
    pub(crate) node: String,
    /// With PostgreSQL, its address.
    pub(crate) url: Option<Secret>,
    /// With PostgreSQL, the leases of the nodes.
    pub(crate) leases: Leases,
    pub(crate) retention: Retention,
    pub(crate) sink: Arc<dyn ChangeSink>,
    /// Changed objects that are reported in batches.
    pub(crate) reports: ChangeReports,
    /// Which events are delivered to webhooks.
    pub(crate) outbox: Arc<Outbox>,
    /// The last generation that this process knows. The lock serialises all changes that others are notified of.
    pub(crate) generation: Mutex<Generation>,
}

/// The number of changes that other processes had to be notified of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Generation(pub(crate) i64);

impl Generation {
    /// Advances to the generation of our own change. After a gap, another process wrote in between: the watcher then
    /// reloads.
    pub(crate) fn advance(&mut self, generation: i64) {
        if self.0 + 1 == generation {
            self.0 = generation;
        }
    }
}

/// A change in progress that other processes are notified of. Nothing changes if it is dropped.
pub(crate) struct SharedChange<'a> {
    pub(crate) tx: Transaction<'static, Any>,
    generation: MutexGuard<'a, Generation>,
    database: &'a Database,
}

impl<'a> SharedChange<'a> {
    /// Commits the change and its audit record, and notifies other nodes. The next change begins when the returned lock
    /// is dropped.
    pub(crate) async fn commit(
        self,
        changed: &ChangeSet,
        subject: &str,
    ) -> Result<MutexGuard<'a, Generation>, sqlx::Error> {
        let Self { mut tx, mut generation, database } = self;
        database.engine.notify(&mut tx, &database.node, changed).await?;
        let advanced = advance_generation(&mut tx, subject).await?;
        if changed.tokens {
            access_changes::record(&mut tx, advanced, &changed.actors).await?;
        }
        tx.commit().await?;
        generation.advance(advanced);
        Ok(generation)
    }
}

impl Database {
    /// Returns the current time, truncated to the precision of the tables.
    pub(crate) fn now(&self) -> Timestamp {
        time::now(&*self.clock)
    }

    /// Begins a change that other processes are notified of; waits for the one in progress.
    pub(crate) async fn begin_shared(&self) -> Result<SharedChange<'_>, sqlx::Error> {
        let generation = self.generation.lock().await;
        Ok(SharedChange { tx: self.engine.begin_change().await?, generation, database: self })
    }

    /// Returns the generation in the database.
    pub(crate) async fn stored_generation(&self) -> Result<i64, sqlx::Error> {
        read_generation(&self.engine.pool).await
    }

    /// Runs a change to completion even if the caller stops waiting: a change must not be left half done.
    pub(crate) async fn complete<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        match tokio::spawn(audit::in_current_request(work)).await {
            Ok(result) => result,
            Err(error) => Err(StoreError::unavailable("change the store", error)),
        }
    }

    /// Runs a change to completion, like [`Database::complete`]; `action` is the action in its error.
    pub(crate) async fn complete_query<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl Future<Output = Result<T, sqlx::Error>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.complete(async move { work.await.map_err(failed_to(action)) }).await
    }

    /// Runs a statement that removes a batch of rows until it finds fewer.
    pub(crate) async fn delete_batches(&self, sql: &str, values: &[&str]) -> Result<(), sqlx::Error> {
        loop {
            let mut delete = sqlx::query(AssertSqlSafe(sql));
            for value in values {
                delete = delete.bind(*value);
            }
            if delete.execute(&self.engine.pool).await?.rows_affected() < BATCH {
                return Ok(());
            }
        }
    }
}

/// Returns the statement that removes a batch of the rows that a query selects by id.
pub(crate) fn delete_batch(table: &str, select: &str) -> String {
    format!("DELETE FROM {table} WHERE id IN ({select} LIMIT {BATCH})")
}

/// Reads the generation, in a transaction or outside.
pub(crate) async fn read_generation(
    executor: impl sqlx::Executor<'_, Database = Any>,
) -> Result<i64, sqlx::Error> {
    sqlx::query(GENERATION).fetch_one(executor).await?.try_get(0)
}

/// Advances the generation, so that other processes see the change, and stores the audit record of the current
/// request.
pub(crate) async fn advance_generation(
    tx: &mut Transaction<'static, Any>,
    subject: &str,
) -> Result<i64, sqlx::Error> {
    audit::store_current_record(tx, subject).await?;
    let row = sqlx::query("UPDATE generation SET value = value + 1 WHERE one = 1 RETURNING value")
        .fetch_one(&mut **tx)
        .await?;
    row.try_get(0)
}

/// A number that changes whenever something may have changed.
#[derive(Debug)]
pub(crate) struct ChangeSignal(watch::Sender<u64>);

impl Default for ChangeSignal {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl ChangeSignal {
    /// Signals that there may be a change.
    pub(crate) fn send(&self) {
        self.0.send_modify(|number| *number = number.wrapping_add(1));
    }

    /// Returns a number that changes with each signal.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
