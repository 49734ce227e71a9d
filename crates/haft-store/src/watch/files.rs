//! Notices changes of definition files, and of what other processes on the same home wrote.

use std::sync::Arc;
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
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
    let watcher = start(&files.at(SKILLS), &changed);
    let every = if watcher.is_some() { LOOK } else { LOOK_BLIND };
    let mut look = tokio::time::interval(every);
    let mut compare = tokio::time::interval(COMPARE);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    compare.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
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
    }
}

fn start(folder: &std::path::Path, changed: &Arc<Notify>) -> Option<RecommendedWatcher> {
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
