//! Notices changes of definition files, and of what other processes on the same home wrote.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;

use crate::files::layout::SKILLS;
use crate::store::Inner;

/// An editor's save is several events; they are taken together.
const SETTLE: Duration = Duration::from_millis(80);
/// Where the system tells of changes, looking for oneself is only the net below.
const LOOK: Duration = Duration::from_secs(5);
/// Where it does not (some network folders), looking is all there is.
const LOOK_BLIND: Duration = Duration::from_millis(700);
/// How often the generation of the index is compared.
const COMPARE: Duration = Duration::from_secs(1);

/// Follows the files until it is stopped.
pub(super) async fn follow(inner: Arc<Inner>, stop: CancellationToken) {
    let Some(files) = inner.files.clone() else { return };
    let changed = Arc::new(Notify::new());
    let mut eye = Eye::open(files.at(SKILLS), &changed);
    let mut look = ticks(eye.look_every());
    let mut compare = ticks(COMPARE);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = changed.notified() => {
                tokio::time::sleep(SETTLE).await;
                inner.look(&changed).await;
            }
            _ = look.tick() => inner.look(&changed).await,
            _ = compare.tick() => inner.compare().await,
        }
        if eye.is_off() {
            eye = Eye::open(files.at(SKILLS), &changed);
            // Begins with a look: what came before the new folder was watched was not told.
            look = ticks(eye.look_every());
        }
    }
}

/// Ticks at once, and then ever again.
fn ticks(every: Duration) -> Interval {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks
}

/// What tells of changes below one folder.
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
    fn open(path: PathBuf, changed: &Arc<Notify>) -> Self {
        // Before the watch: a folder that is replaced in between is seen to be another.
        let folder = folder_at(&path);
        let watcher = folder.and_then(|_| start(&path, changed));
        Self { path, folder, watcher }
    }

    /// Tells whether another folder has come in the place of the watched one.
    fn is_off(&self) -> bool {
        let now = folder_at(&self.path);
        now.is_some() && now != self.folder
    }

    fn look_every(&self) -> Duration {
        if self.watcher.is_some() { LOOK } else { LOOK_BLIND }
    }
}

fn start(folder: &Path, changed: &Arc<Notify>) -> Option<RecommendedWatcher> {
    let signal = Arc::clone(changed);
    let handler = move |event: notify::Result<notify::Event>| match event {
        // Reading a file is an event too; it changes nothing.
        Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
        Ok(_) | Err(_) => signal.notify_one(),
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

impl Inner {
    async fn look(&self, changed: &Arc<Notify>) {
        match self.sync().await {
            Ok(synced) => {
                if synced.changed > 0 {
                    tracing::info!(changes = synced.changed, "definition files changed");
                }
                if synced.again {
                    changed.notify_one();
                }
            }
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "could not read the definition files"
                );
            }
        }
    }

    /// Fetches what another process wrote to the index.
    async fn compare(&self) {
        let known = self.state.lock().await.generation;
        match self.generation().await {
            Ok(now) if now != known => {
                if let Err(error) = self.reload().await {
                    tracing::error!(error = &error as &dyn std::error::Error, "could not load the catalog");
                }
            }
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "could not read the generation of the catalog"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_folder_at_the_same_path_is_noticed() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("skills");
        let eye = || Eye::open(path.clone(), &Arc::new(Notify::new()));
        let before = eye();
        assert!(!before.is_off(), "there is nothing to watch");
        std::fs::create_dir(&path).unwrap();
        assert!(before.is_off());
        for _ in 0..20 {
            let eye = eye();
            std::fs::write(path.join("file"), "x").unwrap();
            assert!(!eye.is_off());
            std::fs::remove_dir_all(&path).unwrap();
            assert!(!eye.is_off());
            std::fs::create_dir(&path).unwrap();
            assert!(eye.is_off());
        }
    }
}
