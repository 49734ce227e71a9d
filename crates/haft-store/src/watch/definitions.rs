//! Detects changes of definition files, and changes that other processes on the same home made.

use std::sync::Arc;
use std::time::Duration;

use haft_definition::folder::{FolderWatcher, SETTLE_DELAY};
use tokio::sync::Notify;
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;

use crate::files::layout::SKILLS;
use crate::store::Inner;

/// How often the generation of the index is checked.
const GENERATION_INTERVAL: Duration = Duration::from_secs(1);

/// Watches the definition folder until it is stopped.
pub(super) async fn watch(inner: Arc<Inner>, stop: CancellationToken) {
    let Some(files) = inner.files.clone() else { return };
    let changed = Arc::new(Notify::new());
    let signal = Arc::clone(&changed);
    let mut watcher = FolderWatcher::open(files.at(SKILLS), move || signal.notify_one());
    let mut poll = interval(watcher.poll_interval());
    let mut check = interval(GENERATION_INTERVAL);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = changed.notified() => {
                tokio::time::sleep(SETTLE_DELAY).await;
                inner.sync_files(&changed).await;
            }
            _ = poll.tick() => inner.sync_files(&changed).await,
            _ = check.tick() => inner.check_generation().await,
        }
        if watcher.is_stale() {
            watcher.reopen();
            // The first tick is immediate: changes before the new folder was watched caused no notification.
            poll = interval(watcher.poll_interval());
        }
    }
}

/// Returns ticks at least a period apart.
pub(super) fn interval(period: Duration) -> Interval {
    let mut interval = tokio::time::interval(period);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    interval
}

impl Inner {
    async fn sync_files(&self, changed: &Notify) {
        match self.sync().await {
            Ok(result) => {
                if result.changed > 0 {
                    tracing::info!(changes = result.changed, "loaded changed definition files");
                }
                if result.repeat {
                    changed.notify_one();
                }
            }
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "cannot sync the definition files");
            }
        }
    }

    /// Reloads the catalog if another process changed the index.
    async fn check_generation(&self) {
        let known = self.state.lock().await.generation;
        match self.generation().await {
            Ok(now) if now != known => {
                if let Err(error) = self.reload().await {
                    tracing::error!(error = &error as &dyn std::error::Error, "cannot load the catalog");
                }
            }
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "cannot read the generation of the catalog"),
        }
    }
}
