//! Appending steps. Runs of this node that append at the same time share one transaction.

use std::sync::PoisonError;

use haft_core::BoxFuture;
use haft_core::catalog::StoreError;
use haft_core::run::{RunEnd, RunLease, RunStep, RunStore, RunStoreError, RunUsage};
use sqlx::{Any, AssertSqlSafe, Transaction};
use tokio::sync::oneshot;

use super::row;
use super::signals::SharedError;
use crate::claims::{Claim, holds};
use crate::runs::Runs;

const APPEND: &str = "store the steps of the run";
/// Rows per statement: PostgreSQL takes 65,535 parameters at most, SQLite 32,766.
const ROWS_PER_STATEMENT: usize = 500;

/// Recomputes the bytes of a run.
const RECOUNT: &str = "UPDATE runs SET bytes = OCTET_LENGTH(input) + COALESCE(OCTET_LENGTH(output), 0) \
    + (SELECT CAST(COALESCE(SUM(OCTET_LENGTH(s.step)), 0) AS BIGINT) FROM run_steps s WHERE s.run_id = runs.id) \
    WHERE id = $1";

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Stored,
    /// The lease is lost: nothing was written.
    LeaseLost,
    /// A step with the number is stored already.
    Repeated,
}

/// The steps of one run that wait for the database.
pub(crate) struct QueuedSteps {
    run: String,
    claim: Claim,
    /// Numbers and texts.
    steps: Vec<(u32, String)>,
    usage: String,
    done: oneshot::Sender<Result<Written, SharedError>>,
}

impl RunStore for Runs {
    fn append_steps<'a>(
        &'a self,
        lease: &'a RunLease,
        steps: Vec<RunStep>,
        usage: &'a RunUsage,
    ) -> BoxFuture<'a, Result<(), RunStoreError>> {
        Box::pin(async move {
            let this = self.clone();
            let (lease, usage) = (lease.clone(), row::to_text(usage)?);
            let texts = steps.iter().map(|step| Ok((step.number, row::to_text(step)?)));
            let texts = texts.collect::<Result<Vec<_>, StoreError>>()?;
            let written = async move {
                let result = this.queue_steps(&lease, texts, usage).await;
                this.free_if_failed(&lease, result)
            };
            match self.db.complete(written).await? {
                Written::Stored => Ok(()),
                Written::LeaseLost => Err(RunStoreError::LeaseLost),
                Written::Repeated => {
                    let message = "a step with this number is already stored".to_owned();
                    Err(StoreError::Conflict(message).into())
                }
            }
        })
    }

    fn release_run<'a>(
        &'a self,
        lease: &'a RunLease,
        end: RunEnd,
        usage: &'a RunUsage,
    ) -> BoxFuture<'a, Result<(), RunStoreError>> {
        Box::pin(async move {
            let this = self.clone();
            let (lease, usage) = (lease.clone(), row::to_text(usage)?);
            let written = async move {
                let result = this.release(&lease, end, &usage).await;
                this.free_if_failed(&lease, result)
            };
            match self.db.complete(written).await? {
                Written::Stored | Written::Repeated => Ok(()),
                Written::LeaseLost => Err(RunStoreError::LeaseLost),
            }
        })
    }
}

impl Runs {
    /// Notes the lease if the write failed. Otherwise nobody would claim the run while this node lives.
    fn free_if_failed(
        &self,
        lease: &RunLease,
        result: Result<Written, StoreError>,
    ) -> Result<Written, StoreError> {
        if result.as_ref().is_err_and(StoreError::is_temporary) {
            self.signals.record_failure(lease.clone());
        }
        result
    }

    async fn queue_steps(
        &self,
        lease: &RunLease,
        steps: Vec<(u32, String)>,
        usage: String,
    ) -> Result<Written, StoreError> {
        let (done, stored) = oneshot::channel();
        let (run, claim) = (lease.run.to_string(), self.claim_of(lease));
        let queued = QueuedSteps { run, claim, steps, usage, done };
        self.signals.queue.lock().unwrap_or_else(PoisonError::into_inner).push(queued);
        {
            // Whoever gets here first writes for all that wait; the others find the queue empty.
            let _permit = self.signals.writing.lock().await;
            let group =
                std::mem::take(&mut *self.signals.queue.lock().unwrap_or_else(PoisonError::into_inner));
            self.write_steps(group).await;
        }
        match stored.await {
            Ok(result) => result.map_err(|error| error.into_error(APPEND)),
            Err(error) => Err(StoreError::unavailable(APPEND, error)),
        }
    }

    async fn write_steps(&self, mut group: Vec<QueuedSteps>) {
        if group.is_empty() {
            return;
        }
        // In one order everywhere, so that two nodes never wait for each other in a circle.
        group.sort_by(|one, other| one.run.cmp(&other.run));
        let result = self.store_group(&group).await.map_err(|error| SharedError::new(&error));
        for (index, queued) in group.into_iter().enumerate() {
            let written = result.clone().map(|all| all.get(index).copied().unwrap_or(Written::LeaseLost));
            // The caller may have stopped waiting.
            let _ = queued.done.send(written);
        }
    }

    async fn store_group(&self, group: &[QueuedSteps]) -> Result<Vec<Written>, sqlx::Error> {
        let mut tx = self.db.engine.begin().await?;
        let mut results = Vec::with_capacity(group.len());
        for queued in group {
            results.push(self.store_steps(&mut tx, queued).await?);
        }
        tx.commit().await?;
        Ok(results)
    }

    async fn store_steps(
        &self,
        tx: &mut Transaction<'static, Any>,
        queued: &QueuedSteps,
    ) -> Result<Written, sqlx::Error> {
        let sql = AssertSqlSafe(format!(
            "UPDATE runs SET usage = $1, bytes = bytes + $2 WHERE id = $3 AND status = 'running' AND {}",
            holds(4)
        ));
        let bytes: usize = queued.steps.iter().map(|(_, text)| text.len()).sum();
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let held = queued.claim.bind(sqlx::query(sql).bind(&queued.usage).bind(bytes).bind(&queued.run));
        if held.execute(&mut **tx).await?.rows_affected() == 0 {
            return Ok(Written::LeaseLost);
        }
        let mut inserted = 0;
        for steps in queued.steps.chunks(ROWS_PER_STATEMENT) {
            let sql = format!(
                "INSERT INTO run_steps (run_id, number, step) VALUES {} ON CONFLICT (run_id, number) DO NOTHING",
                self.db.engine.placeholders(steps.len(), 3)
            );
            let mut insert = sqlx::query(AssertSqlSafe(sql));
            for (number, text) in steps {
                insert = insert.bind(&queued.run).bind(i64::from(*number)).bind(text);
            }
            inserted += insert.execute(&mut **tx).await?.rows_affected();
        }
        let is_complete = inserted == u64::try_from(queued.steps.len()).unwrap_or(u64::MAX);
        if is_complete {
            return Ok(Written::Stored);
        }
        // The bytes were counted when the steps were first stored.
        let counted = sqlx::query(RECOUNT).bind(&queued.run);
        counted.execute(&mut **tx).await?;
        Ok(Written::Repeated)
    }
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
