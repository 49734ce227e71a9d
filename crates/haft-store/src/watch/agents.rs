//! Detects changes of files that define agents.

use std::sync::Arc;

use haft_definition::folder::{FolderWatcher, SETTLE_DELAY};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::definitions::interval;
use crate::agents::files::AgentFileScope;
use crate::files::layout::AGENTS;
use crate::store::Inner;

/// Watches the folder of agents until it is stopped. While there is no such folder, it looks for one.
pub(super) async fn watch(inner: Arc<Inner>, stop: CancellationToken) {
    let Some(files) = inner.files.clone() else { return };
    let changed = Arc::new(Notify::new());
    let signal = Arc::clone(&changed);
    let mut watcher = FolderWatcher::open(files.at(AGENTS), move || signal.notify_one());
    let mut poll = interval(watcher.poll_interval());
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = changed.notified() => tokio::time::sleep(SETTLE_DELAY).await,
            _ = poll.tick() => {}
        }
        match inner.sync_agents(AgentFileScope::Changed).await {
            Ok(result) => {
                if result.changed > 0 {
                    tracing::info!(changes = result.changed, "loaded changed files of agents");
                }
                if result.repeat {
                    changed.notify_one();
                }
            }
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "cannot sync the files of agents");
            }
        }
        if watcher.is_stale() {
            watcher.reopen();
            // The first tick is immediate: changes before the new folder was watched caused no notification.
            poll = interval(watcher.poll_interval());
        }
    }
}
