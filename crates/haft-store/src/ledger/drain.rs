//! Moves the rows of the journal to SQLite.

use std::sync::Arc;

use haft_core::catalog::StoreError;
use haft_core::id::CallId;

use super::LedgerBackend;
use super::insert::insert;
use super::journal::Journal;
use crate::engine::failed_to;
use crate::ledger::Calls;

const DRAIN: &str = "move calls from the journal to the database";

impl Calls {
    /// Moves all rows of the journal; afterwards the table holds every call recorded before.
    pub(crate) async fn drain_journal(&self) -> Result<(), StoreError> {
        // In its own task: rows in flight must not be lost if the caller stops waiting.
        let this = self.clone();
        match tokio::spawn(async move { this.drain_now().await }).await {
            Ok(result) => result,
            Err(error) => Err(StoreError::unavailable(DRAIN, error)),
        }
    }

    async fn drain_now(&self) -> Result<(), StoreError> {
        let LedgerBackend::Journal(journal) = &self.state.backend else { return Ok(()) };
        let _draining = journal.draining.lock().await;
        let batch = self
            .with_journal(Journal::rotate)
            .await?
            .map_err(|error| StoreError::unavailable(DRAIN, error))?;
        if batch.rows().is_empty() {
            return Ok(());
        }
        match insert(&self.db.engine, &self.db.outbox, &self.db.node, batch.rows()).await {
            Ok(lost) => report_lost(&lost),
            Err(error) => {
                journal.restore(batch);
                return Err(failed_to(DRAIN)(error));
            }
        }
        // Before the rows are discarded, so that new calls wait while bodies are removed.
        self.state.usage.count(batch.rows()).await;
        self.with_journal(move |journal| journal.discard(&batch)).await
    }

    /// Runs a blocking operation of the journal off the async threads.
    pub(crate) async fn with_journal<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Journal) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let state = Arc::clone(&self.state);
        let done = tokio::task::spawn_blocking(move || match &state.backend {
            LedgerBackend::Journal(journal) => Some(work(journal)),
            LedgerBackend::Database(_) => None,
        });
        match done.await {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(StoreError::unavailable(DRAIN, "this store has no journal")),
            Err(error) => Err(StoreError::unavailable(DRAIN, error)),
        }
    }
}

/// Logs the calls whose results were dropped.
pub(super) fn report_lost(lost: &[CallId]) {
    for call in lost {
        tracing::warn!(%call, "another process has claimed the call; its result was dropped");
    }
}
