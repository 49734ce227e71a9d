//! Starting and stopping the background tasks.

use std::sync::Arc;
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::agent::AgentDefinition;
use haft_core::artifact::ArtifactDefinition;
use haft_core::retrieval::PipelineDefinition;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{definitions, listen, reports, resources};
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

/// A background loop of the store. It runs until the token that it was made with is cancelled.
pub struct StoreLoop {
    /// Its name.
    pub name: &'static str,
    /// Whether the changes of other processes, revoked tokens among them, are detected by it.
    pub detects_changes: bool,
    /// Starts it. A loop that failed can be started again.
    pub run: Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
}

impl Store {
    /// Starts the background tasks: the file watcher, or the heartbeat of this node and the PostgreSQL listener; draining
    /// the journal, removing old data, and recovering what dead nodes held.
    pub fn watch(&self) -> WatchTasks {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for found in self.loops(&stop) {
            tasks.spawn((found.run)());
        }
        WatchTasks { stop, tasks }
    }

    /// Returns the background tasks of [`Store::watch`] for a caller that runs them itself, until `stop` is cancelled.
    pub fn loops(&self, stop: &CancellationToken) -> Vec<StoreLoop> {
        let make = |name, start: StartLoop| {
            let (inner, stop) = (Arc::clone(&self.inner), stop.clone());
            let run = Box::new(move || start(Arc::clone(&inner), stop.clone()));
            StoreLoop { name, detects_changes: false, run }
        };
        let mut loops = match self.inner.engine.kind {
            Kind::Sqlite => vec![
                StoreLoop {
                    detects_changes: true,
                    ..make("definition_files", |inner, stop| Box::pin(definitions::watch(inner, stop)))
                },
                make("agent_files", |inner, stop| Box::pin(resources::watch::<AgentDefinition>(inner, stop))),
                make("pipeline_files", |inner, stop| {
                    Box::pin(resources::watch::<PipelineDefinition>(inner, stop))
                }),
                make("artifact_files", |inner, stop| {
                    Box::pin(resources::watch::<ArtifactDefinition>(inner, stop))
                }),
                make("journal", |inner, stop| Box::pin(drain_regularly(inner, stop))),
            ],
            Kind::Postgres => vec![
                make("heartbeat", |inner, stop| Box::pin(nodes::keep_lease(inner, stop))),
                StoreLoop {
                    detects_changes: true,
                    ..make("notifications", |inner, stop| Box::pin(listen::listen(inner, stop)))
                },
            ],
        };
        loops.push(make("reports", |inner, stop| Box::pin(reports::send(inner, stop))));
        loops.push(make("reaper", |inner, stop| Box::pin(reap_regularly(inner, stop))));
        loops.push(make("recovery", |inner, stop| Box::pin(recover_regularly(inner, stop))));
        loops
    }
}

type StartLoop = fn(Arc<Inner>, CancellationToken) -> BoxFuture<'static, ()>;

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
