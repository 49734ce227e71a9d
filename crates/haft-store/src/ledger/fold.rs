//! Moves the rows of the journal to SQLite.

use std::sync::Arc;

use haft_core::catalog::StoreError;

use super::Ledgers;
use super::insert::insert;
use super::journal::Journal;
use crate::engine::fault;
use crate::store::Inner;

const DOING: &str = "move calls from the journal to the database";

impl Inner {
    /// Moves everything that waits; afterwards the tables know every call that was recorded before.
    pub(crate) async fn fold(self: &Arc<Self>) -> Result<(), StoreError> {
        // To its end even if the caller stops waiting: rows in flight must not be forgotten.
        let inner = Arc::clone(self);
        match tokio::spawn(async move { inner.fold_now().await }).await {
            Ok(result) => result,
            Err(error) => Err(StoreError::unavailable(DOING, error)),
        }
    }

    async fn fold_now(self: &Arc<Self>) -> Result<(), StoreError> {
        let Ledgers::Journal(journal) = &self.ledger else { return Ok(()) };
        let _one = journal.folding.lock().await;
        let batch =
            self.journal(Journal::rotate).await?.map_err(|error| StoreError::unavailable(DOING, error))?;
        if batch.rows().is_empty() {
            return Ok(());
        }
        if let Err(error) = insert(&self.engine, &self.node, batch.rows()).await {
            journal.put_back(batch);
            return Err(fault(DOING)(error));
        }
        self.journal(move |journal| journal.forget(&batch)).await
    }

    /// Runs something on the journal that waits for the disk, off the async threads.
    pub(crate) async fn journal<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Journal) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || match &inner.ledger {
            Ledgers::Journal(journal) => Some(work(journal)),
            Ledgers::Group(_) => None,
        });
        match done.await {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(StoreError::unavailable(DOING, "there is no journal")),
            Err(error) => Err(StoreError::unavailable(DOING, error)),
        }
    }
}
