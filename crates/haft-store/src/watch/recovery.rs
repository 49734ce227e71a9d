//! Retries failed writes, and recovers the work of dead processes.

use haft_core::catalog::StoreError;
use tokio_util::sync::CancellationToken;

use crate::approvals::StoredApprovals;
use crate::engine::Kind;
use crate::ledger::{Calls, LedgerBackend};
use crate::runs::Runs;

/// How often the journal is drained.
const DRAIN_INTERVAL: std::time::Duration = std::time::Duration::from_millis(250);

/// Recovers the calls and runs of dead processes.
#[derive(Clone)]
pub(crate) struct Recovery {
    pub(crate) calls: Calls,
    pub(crate) runs: Runs,
    pub(crate) approvals: StoredApprovals,
}

impl Recovery {
    /// Recovers calls first, so that the calls of a continued run have ended.
    pub(crate) async fn recover(&self) -> Result<(), StoreError> {
        self.calls.recover().await?;
        self.runs.recover().await
    }

    /// Drains the journal until it is stopped.
    pub(crate) async fn drain_regularly(self, stop: CancellationToken) {
        let LedgerBackend::Journal(journal) = &self.calls.state.backend else { return };
        let mut failing = false;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(DRAIN_INTERVAL) => {}
                () = journal.backlog(), if !failing => {}
            }
            let result = self.calls.drain_journal().await;
            if let Err(error) = &result {
                tracing::error!(error = error as &dyn std::error::Error, "calls stay in the journal");
            }
            failing = result.is_err();
            if !failing {
                self.recover_deferred().await;
            }
        }
    }

    /// Runs a deferred recovery once calls can be recorded again.
    async fn recover_deferred(&self) {
        if !self.calls.take_deferred_recovery() {
            return;
        }
        if let Err(error) = self.recover().await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "calls stay in the journal of a dead process"
            );
            self.calls.defer_recovery_again();
        }
    }

    /// Retries failed writes, recovers the work of nodes that lost their lease, and expires undecided approvals, until it is
    /// stopped.
    pub(crate) async fn recover_regularly(self, stop: CancellationToken) {
        let db = &self.calls.db;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(db.leases.interval()) => {}
            }
            if db.engine.kind == Kind::Postgres {
                db.watch_nodes().await;
            }
            self.calls.store_unsaved().await;
            if let Err(error) = self.recover().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot recover the calls of dead nodes"
                );
            }
            if let Err(error) = self.approvals.expire().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot end expired approvals");
            }
        }
    }
}
