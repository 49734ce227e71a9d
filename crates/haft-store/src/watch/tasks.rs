//! Starting and stopping the tasks.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{files, listen};
use crate::engine::Kind;
use crate::ledger::Ledgers;
use crate::store::{Inner, Store};

/// How often waiting calls are moved to the database.
const FOLD_EVERY: Duration = Duration::from_millis(250);
/// How often the reaper comes.
const REAP_EVERY: Duration = Duration::from_mins(10);

/// The running tasks. Dropping it stops them too, without waiting.
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
    /// Starts the tasks: the file watcher (or the listener of PostgreSQL), the mover of calls, the reaper.
    pub fn watch(&self) -> WatchTasks {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let inner = &self.inner;
        match inner.engine.kind {
            Kind::Sqlite => {
                tasks.spawn(files::follow(Arc::clone(inner), stop.clone()));
                tasks.spawn(fold_often(Arc::clone(inner), stop.clone()));
            }
            Kind::Postgres => {
                tasks.spawn(listen::follow(Arc::clone(inner), stop.clone()));
            }
        }
        tasks.spawn(reap_often(Arc::clone(inner), stop.clone()));
        WatchTasks { stop, tasks }
    }
}

async fn fold_often(inner: Arc<Inner>, stop: CancellationToken) {
    let Ledgers::Journal(journal) = &inner.ledger else { return };
    let mut failing = false;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(FOLD_EVERY) => {}
            () = journal.crowded(), if !failing => {}
        }
        let result = inner.fold().await;
        if let Err(error) = &result {
            tracing::error!(error = error as &dyn std::error::Error, "calls wait in the journal");
        }
        failing = result.is_err();
    }
}

async fn reap_often(inner: Arc<Inner>, stop: CancellationToken) {
    loop {
        match inner.reap().await {
            Ok(reaped) if reaped.bundles > 0 || reaped.calls > 0 => {
                tracing::info!(bundles = reaped.bundles, calls = reaped.calls, "removed what was old");
            }
            Ok(_) => {}
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "could not remove what is old");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(REAP_EVERY) => {}
        }
    }
}
