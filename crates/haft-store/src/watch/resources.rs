//! Detects changes of files that define resources.

use std::sync::Arc;

use haft_definition::folder::{FolderWatcher, SETTLE_DELAY};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::definitions::interval;
use crate::database::Database;
use crate::resources::{FileScope, StoredKind};

/// Watches the folder of a kind until it is stopped. While there is no such folder, it looks for one.
pub(crate) async fn watch<S: StoredKind>(db: Arc<Database>, stop: CancellationToken) {
    let Some(files) = db.files.clone() else { return };
    let kinds = S::KIND.plural();
    let changed = Arc::new(Notify::new());
    let signal = Arc::clone(&changed);
    let mut watcher = FolderWatcher::open(files.at(kinds), move || signal.notify_one());
    let mut poll = interval(watcher.poll_interval());
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = changed.notified() => tokio::time::sleep(SETTLE_DELAY).await,
            _ = poll.tick() => {}
        }
        match db.sync_files_of::<S>(FileScope::Changed).await {
            Ok(result) => {
                if result.changed > 0 {
                    tracing::info!(changes = result.changed, "loaded changed files of {kinds}");
                }
                if result.repeat {
                    changed.notify_one();
                }
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "cannot sync the files of {kinds}");
            }
        }
        if watcher.is_stale() {
            watcher.reopen();
            // The first tick is immediate: changes before the new folder was watched caused no notification.
            poll = interval(watcher.poll_interval());
        }
    }
}
