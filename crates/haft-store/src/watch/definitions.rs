//! Detects changes of definition files, and changes that other processes on the same home made.

use std::sync::Arc;
use std::time::Duration;

use haft_definition::folder::{FolderWatcher, SETTLE_DELAY};
use tokio::sync::Notify;
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;

use super::changes::RemoteChanges;
use crate::catalog::Catalog;
use crate::files::layout::SKILLS;

/// How often the generation of the index is checked.
const GENERATION_INTERVAL: Duration = Duration::from_secs(1);

/// Watches the definition folder until it is stopped.
pub(crate) async fn watch(changes: RemoteChanges, stop: CancellationToken) {
    let Some(files) = changes.db.files.clone() else { return };
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
                sync_files(&changes.catalog, &changed).await;
            }
            _ = poll.tick() => sync_files(&changes.catalog, &changed).await,
            _ = check.tick() => changes.check_generation().await,
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

async fn sync_files(catalog: &Catalog, changed: &Notify) {
    match catalog.state.sync().await {
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
