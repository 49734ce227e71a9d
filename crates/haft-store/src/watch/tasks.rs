//! Starting and stopping the background tasks.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{agents, definitions, listen, reports};
use crate::engine::Kind;
use crate::ledger::LedgerBackend;
use crate::nodes;
use crate::store::{Inner, Store};

/// How often the journal is drained.
const DRAIN_INTERVAL: Duration = Duration::from_millis(250);
/// How often old data is removed.
const REAP_INTERVAL: Duration = Duration::from_mins(10);

/// The running background tasks. Dropping it stops them without waiting.
pub struct WatchTasks {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl WatchTasks {
    /// Stops the tasks and waits for them.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Drop for WatchTasks {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Store {
    /// Starts the background tasks: the file watcher, or the heartbeat of this node and the PostgreSQL listener; draining
    /// the journal, removing old data, and recovering what dead nodes held.
    pub fn watch(&self) -> WatchTasks {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let inner = &self.inner;
        match inner.engine.kind {
            Kind::Sqlite => {
                tasks.spawn(definitions::watch(Arc::clone(inner), stop.clone()));
                tasks.spawn(agents::watch(Arc::clone(inner), stop.clone()));
                tasks.spawn(drain_regularly(Arc::clone(inner), stop.clone()));
            }
            Kind::Postgres => {
                tasks.spawn(nodes::keep_lease(Arc::clone(inner), stop.clone()));
                tasks.spawn(listen::listen(Arc::clone(inner), stop.clone()));
            }
        }
        tasks.spawn(reports::send(Arc::clone(inner), stop.clone()));
        tasks.spawn(reap_regularly(Arc::clone(inner), stop.clone()));
        tasks.spawn(recover_regularly(Arc::clone(inner), stop.clone()));
        WatchTasks { stop, tasks }
    }
}

async fn drain_regularly(inner: Arc<Inner>, stop: CancellationToken) {
    let LedgerBackend::Journal(journal) = &inner.ledger else { return };
    let mut failing = false;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(DRAIN_INTERVAL) => {}
            () = journal.backlog(), if !failing => {}
        }
        let result = inner.drain_journal().await;
        if let Err(error) = &result {
            tracing::error!(error = error as &dyn std::error::Error, "calls stay in the journal");
        }
        failing = result.is_err();
        if !failing {
            inner.recover_deferred().await;
        }
    }
}

/// Stores what could not be stored before, recovers what nodes held that have lost their lease, and ends approvals that
/// nobody decided.
async fn recover_regularly(inner: Arc<Inner>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(inner.leases.interval()) => {}
        }
        if inner.engine.kind == Kind::Postgres {
            inner.watch_nodes().await;
        }
        inner.store_unsaved().await;
        if let Err(error) = inner.recover().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot recover the calls of dead nodes"
            );
        }
        if let Err(error) = inner.expire_approvals().await {
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot end expired approvals");
        }
    }
}

async fn reap_regularly(inner: Arc<Inner>, stop: CancellationToken) {
    loop {
        match inner.reap().await {
            Ok(report) if report.bundles > 0 || report.calls > 0 => {
                tracing::info!(bundles = report.bundles, calls = report.calls, "removed old data");
            }
            Ok(_) => {}
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "cannot remove old data");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(REAP_INTERVAL) => {}
        }
    }
}
