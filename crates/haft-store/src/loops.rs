//! Starting and stopping the background tasks.

use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::agent::AgentDefinition;
use haft_core::artifact::ArtifactDefinition;
use haft_core::retrieval::PipelineDefinition;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::database::{nodes, reports};
use crate::engine::Kind;
use crate::reaper::Reaper;
use crate::store::Store;
use crate::watch;

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

/// A background loop of the store. It runs until its cancellation token is cancelled.
pub struct StoreLoop {
    /// Its name.
    pub name: &'static str,
    /// Whether it detects changes of other processes, such as revoked tokens.
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
        let mut loops = match self.db.engine.kind {
            Kind::Sqlite => self.file_loops(stop),
            Kind::Postgres => vec![
                store_loop("heartbeat", stop, &self.db, |db, stop| Box::pin(nodes::keep_lease(db, stop))),
                StoreLoop {
                    detects_changes: true,
                    ..store_loop("notifications", stop, &self.changes, |changes, stop| {
                        Box::pin(watch::listen(changes, stop))
                    })
                },
            ],
        };
        loops.push(store_loop("reports", stop, &self.db, |db, stop| Box::pin(reports::send(db, stop))));
        loops.push(store_loop("reaper", stop, &self.reaper, |reaper, stop| {
            Box::pin(reap_regularly(reaper, stop))
        }));
        loops.push(store_loop("recovery", stop, &self.recovery, |recovery, stop| {
            Box::pin(recovery.recover_regularly(stop))
        }));
        loops
    }

    /// Returns the tasks of a store with a home folder.
    fn file_loops(&self, stop: &CancellationToken) -> Vec<StoreLoop> {
        vec![
            StoreLoop {
                detects_changes: true,
                ..store_loop("definition_files", stop, &self.changes, |changes, stop| {
                    Box::pin(watch::definition_files(changes, stop))
                })
            },
            store_loop("agent_files", stop, &self.db, |db, stop| {
                Box::pin(watch::resource_files::<AgentDefinition>(db, stop))
            }),
            store_loop("pipeline_files", stop, &self.db, |db, stop| {
                Box::pin(watch::resource_files::<PipelineDefinition>(db, stop))
            }),
            store_loop("artifact_files", stop, &self.db, |db, stop| {
                Box::pin(watch::resource_files::<ArtifactDefinition>(db, stop))
            }),
            store_loop("journal", stop, &self.recovery, |recovery, stop| {
                Box::pin(recovery.drain_regularly(stop))
            }),
        ]
    }
}

/// Returns a loop that works with one part of the store.
fn store_loop<P: Clone + Send + Sync + 'static>(
    name: &'static str,
    stop: &CancellationToken,
    part: &P,
    start: fn(P, CancellationToken) -> BoxFuture<'static, ()>,
) -> StoreLoop {
    let (part, stop) = (part.clone(), stop.clone());
    StoreLoop { name, detects_changes: false, run: Box::new(move || start(part.clone(), stop.clone())) }
}

async fn reap_regularly(reaper: Reaper, stop: CancellationToken) {
    loop {
        match reaper.reap().await {
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
