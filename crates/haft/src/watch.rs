//! Following a folder of definitions while the program runs.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use haft_core::problem::Problem;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::load::true_folder;
use crate::report::{LoadError, LoadReport};
use crate::set::ToolSet;

/// An editor's save is several events; they are taken together.
const SETTLE: Duration = Duration::from_millis(80);
/// Where the system tells of changes, looking for oneself is only the net below.
const LOOK: Duration = Duration::from_secs(5);
/// Where it does not (some network folders), looking is all there is.
const LOOK_BLIND: Duration = Duration::from_millis(700);

/// Follows a folder until it is dropped. Made by [`Tools::watch`](crate::Tools::watch).
#[must_use = "the folder is followed until this is dropped"]
pub struct WatchGuard {
    report: LoadReport,
    stopped: Arc<AtomicBool>,
    wake: Sender<()>,
}

impl WatchGuard {
    /// Returns what came of the first load; what has been wrong since, [`Tools::not_ready`](crate::Tools::not_ready) reports.
    pub fn report(&self) -> &LoadReport {
        &self.report
    }

    /// Loads the folder and starts the thread that follows it.
    pub(crate) fn start(set: &Arc<ToolSet>, folder: &Path) -> Result<Self, LoadError> {
        let root = true_folder(folder)?;
        let (wake, changes) = mpsc::channel();
        // Before the load: what changes in between is told.
        let eye = Eye::open(root, &wake);
        let report = set.follow(&eye.path);
        let stopped = Arc::new(AtomicBool::new(false));
        let follower = Follower {
            set: Arc::downgrade(set),
            eye,
            wake: wake.clone(),
            changes,
            stopped: Arc::clone(&stopped),
        };
        let thread = std::thread::Builder::new().name("haft-watch".to_owned());
        thread.spawn(move || follower.run()).map_err(|error| {
            let message = format!("the thread that follows it cannot be started: {error}");
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
        // The thread may have ended by itself.
        let _ = self.wake.send(());
    }
}

struct Follower {
    set: Weak<ToolSet>,
    eye: Eye,
    wake: Sender<()>,
    changes: Receiver<()>,
    stopped: Arc<AtomicBool>,
}

impl Follower {
    fn run(mut self) {
        loop {
            match self.changes.recv_timeout(self.eye.look_every()) {
                Ok(()) => std::thread::sleep(SETTLE),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while self.changes.try_recv().is_ok() {}
            let Some(set) = self.set.upgrade() else { return };
            if self.stopped.load(Ordering::Acquire) {
                return;
            }
            if self.eye.is_off() {
                self.eye = Eye::open(self.eye.path.clone(), &self.wake);
            }
            let report = set.follow(&self.eye.path);
            if !report.loaded.is_empty() {
                tracing::info!(tools = ?report.loaded, "definition files changed");
            }
        }
    }
}

/// What tells of changes beneath one folder.
struct Eye {
    path: PathBuf,
    /// The folder that is watched, which is not always the one at the path.
    folder: Option<Folder>,
    watcher: Option<RecommendedWatcher>,
}

/// Tells a folder from another at the same path; numbers are used again, moments are not.
type Folder = (u64, u64, Option<SystemTime>);

fn folder_at(path: &Path) -> Option<Folder> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.created().ok()))
}

impl Eye {
    fn open(path: PathBuf, wake: &Sender<()>) -> Self {
        // Before the watch: a folder that is replaced in between is seen to be another.
        let folder = folder_at(&path);
        let watcher = folder.and_then(|_| start(&path, wake.clone()));
        Self { path, folder, watcher }
    }

    /// Tells whether another folder has come in the place of the watched one.
    fn is_off(&self) -> bool {
        let now = folder_at(&self.path);
        now.is_some() && now != self.folder
    }

    fn look_every(&self) -> Duration {
        if self.watcher.is_some() && folder_at(&self.path) == self.folder { LOOK } else { LOOK_BLIND }
    }
}

fn start(folder: &Path, wake: Sender<()>) -> Option<RecommendedWatcher> {
    let handler = move |event: notify::Result<notify::Event>| match event {
        // Reading a file is an event too; it changes nothing.
        Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
        Ok(_) | Err(_) => drop(wake.send(())),
    };
    let made = notify::recommended_watcher(handler).and_then(|mut watcher| {
        watcher.watch(folder, RecursiveMode::Recursive)?;
        Ok(watcher)
    });
    match made {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::warn!(%error, "the system does not tell of changed files; looking for them instead");
            None
        }
    }
}
