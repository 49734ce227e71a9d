//! Change notifications of a folder, with polling as the fallback.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

/// How long to wait after a notification: one save in an editor causes several.
pub const SETTLE_DELAY: Duration = Duration::from_millis(80);
/// How often to poll if the system reports changes; only a safety net.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How often to poll if it does not, as on some network file systems.
const UNWATCHED_POLL_INTERVAL: Duration = Duration::from_millis(700);

/// Watches everything in one folder.
pub struct FolderWatcher {
    path: PathBuf,
    /// The folder being watched, which may differ from the one at the path now.
    identity: Option<FolderIdentity>,
    on_change: Arc<dyn Fn() + Send + Sync>,
    watcher: Option<RecommendedWatcher>,
}

/// Distinguishes folders at the same path; the creation time is included because inode numbers are reused.
type FolderIdentity = (u64, u64, Option<SystemTime>);

fn identity_of(path: &Path) -> Option<FolderIdentity> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.created().ok()))
}

impl FolderWatcher {
    /// Watches a folder; `on_change` is called for every change, from another thread.
    pub fn open(path: PathBuf, on_change: impl Fn() + Send + Sync + 'static) -> Self {
        let mut watcher = Self { path, identity: None, on_change: Arc::new(on_change), watcher: None };
        watcher.reopen();
        watcher
    }

    /// Watches the folder that is at the path now.
    pub fn reopen(&mut self) {
        // The identity first: if the folder is replaced in between, the watcher is stale.
        self.identity = identity_of(&self.path);
        self.watcher = self.identity.and_then(|_| start(&self.path, Arc::clone(&self.on_change)));
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells whether another folder has replaced the one being watched.
    pub fn is_stale(&self) -> bool {
        let now = identity_of(&self.path);
        now.is_some() && now != self.identity
    }

    /// Returns how often the folder should be scanned without a notification.
    pub fn poll_interval(&self) -> Duration {
        if self.watcher.is_some() && identity_of(&self.path) == self.identity {
            POLL_INTERVAL
        } else {
            UNWATCHED_POLL_INTERVAL
        }
    }
}

fn start(folder: &Path, on_change: Arc<dyn Fn() + Send + Sync>) -> Option<RecommendedWatcher> {
    let handler = move |event: notify::Result<notify::Event>| match event {
        // Reading a file is an event too.
        Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
        Ok(_) | Err(_) => on_change(),
    };
    let started = notify::recommended_watcher(handler).and_then(|mut watcher| {
        watcher.watch(folder, RecursiveMode::Recursive)?;
        Ok(watcher)
    });
    match started {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::warn!(folder = %folder.display(), %error, "cannot watch the folder; polling it instead");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_folder_makes_the_watcher_stale() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("skills");
        let open = || FolderWatcher::open(path.clone(), || {});
        let mut before = open();
        assert!(!before.is_stale(), "there is no folder to watch");
        std::fs::create_dir(&path).unwrap();
        assert!(before.is_stale());
        before.reopen();
        assert!(!before.is_stale());
        for _ in 0..20 {
            let watcher = open();
            std::fs::write(path.join("file"), "x").unwrap();
            assert!(!watcher.is_stale());
            std::fs::remove_dir_all(&path).unwrap();
            assert!(!watcher.is_stale());
            std::fs::create_dir(&path).unwrap();
            assert!(watcher.is_stale());
        }
    }
}
