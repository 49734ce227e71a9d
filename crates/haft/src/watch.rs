//! Watching a folder of definitions while the program runs.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Weak};

use haft_core::problem::Problem;
use haft_definition::folder::{FolderWatcher, SETTLE_DELAY};

use crate::load::canonical_folder;
use crate::report::{LoadError, LoadReport};
use crate::set::ToolSet;

/// Watches a folder until it is dropped. Created by [`Tools::watch`](crate::Tools::watch).
#[must_use = "the folder is watched until this is dropped"]
pub struct WatchGuard {
    report: LoadReport,
    stopped: Arc<AtomicBool>,
    wake: Sender<()>,
}

impl WatchGuard {
    /// Returns the report of the first load; [`Tools::not_ready`](crate::Tools::not_ready) returns the current problems.
    pub fn report(&self) -> &LoadReport {
        &self.report
    }

    /// Loads the folder and starts the watcher thread.
    pub(crate) fn start(set: &Arc<ToolSet>, folder: &Path) -> Result<Self, LoadError> {
        let root = canonical_folder(folder)?;
        let (wake, changes) = mpsc::channel();
        // Before the load, so that no change in between is missed.
        let signal = wake.clone();
        let watcher = FolderWatcher::open(root, move || {
            // The receiver is gone once the thread has ended.
            let _ = signal.send(());
        });
        let report = set.sync_folder(watcher.path());
        let stopped = Arc::new(AtomicBool::new(false));
        let thread_state =
            WatchThread { set: Arc::downgrade(set), watcher, changes, stopped: Arc::clone(&stopped) };
        let thread = std::thread::Builder::new().name("haft-watch".to_owned());
        thread.spawn(move || thread_state.run()).map_err(|error| {
            let message = format!("cannot start the watcher thread: {error}");
            LoadError {
                path: Some(folder.to_owned()),
                problems: vec![Problem::new("", "no_thread", message)],
            }
        })?;
        Ok(Self { report, stopped, wake })
    }
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // The thread may have ended already.
        let _ = self.wake.send(());
    }
}

struct WatchThread {
    set: Weak<ToolSet>,
    watcher: FolderWatcher,
    changes: Receiver<()>,
    stopped: Arc<AtomicBool>,
}

impl WatchThread {
    fn run(mut self) {
        loop {
            match self.changes.recv_timeout(self.watcher.poll_interval()) {
                Ok(()) => std::thread::sleep(SETTLE_DELAY),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while self.changes.try_recv().is_ok() {}
            let Some(set) = self.set.upgrade() else { return };
            if self.stopped.load(Ordering::Acquire) {
                return;
            }
            if self.watcher.is_stale() {
                self.watcher.reopen();
            }
            let report = set.sync_folder(self.watcher.path());
            if !report.loaded.is_empty() {
                tracing::info!(tools = ?report.loaded, "definition files changed");
            }
        }
    }
}
