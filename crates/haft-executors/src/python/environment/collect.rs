//! Removes environments that nothing uses.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use haft_core::Timestamp;
use haft_core::outcome::CallError;
use haft_runtime::registry::{RevisionSelector, Snapshot};

use super::build::{ABOUT, BUILDING, measure};
use super::environments::{PythonEnvironments, USED};
use super::key::EnvironmentKey;
use super::lock::EnvironmentLock;

/// The start of the name of a folder that is being removed.
const REMOVING: &str = ".removing-";

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CollectedEnvironments {
    /// The environments.
    pub removed: Vec<EnvironmentKey>,
    /// Their size together.
    pub bytes: u64,
}

/// An environment on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stored {
    key: EnvironmentKey,
    last_used: SystemTime,
}

impl PythonEnvironments {
    /// Returns the environments that the registered tools of all tenants need now, in their newest and in their published
    /// revision. The folders of bundles are relative to `home`.
    pub async fn referenced(
        &self,
        tools: &Snapshot,
        home: Option<&Path>,
    ) -> Result<HashSet<EnvironmentKey>, CallError> {
        let mut keys = HashSet::new();
        // Not held while files are read.
        let entries: Vec<_> = tools.entries().cloned().collect();
        for entry in entries {
            let folder = home.zip(entry.tool.folder()).map(|(home, folder)| home.join(folder));
            for revision in [RevisionSelector::Head, RevisionSelector::Published] {
                let Some((_, spec)) = entry.definition(revision) else { continue };
                keys.extend(self.key_of(spec, folder.clone()).await?);
            }
        }
        Ok(keys)
    }

    /// Removes the environments that no tool needs and that were not used for `keep_unused`, and what killed processes
    /// left. `referenced` are the keys of all tools: see [`PythonEnvironments::referenced`].
    pub async fn collect(
        &self,
        referenced: HashSet<EnvironmentKey>,
        now: Timestamp,
    ) -> io::Result<CollectedEnvironments> {
        let environments = self.clone();
        let work = move || environments.collect_blocking(&referenced, now.into());
        tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
    }

    fn collect_blocking(
        &self,
        referenced: &HashSet<EnvironmentKey>,
        now: SystemTime,
    ) -> io::Result<CollectedEnvironments> {
        let builder = &self.inner.builder;
        let keep = builder.settings.keep_unused;
        remove_leftovers(&builder.root)?;
        let mut collected = CollectedEnvironments::default();
        for key in expired(stored(&builder.root)?, referenced, now, keep) {
            // A task that builds or removes it holds the lock.
            let Some(lock) = EnvironmentLock::try_acquire(&builder.root, &key)? else { continue };
            let folder = builder.folder(&key);
            // It may have been used since it was listed.
            if !is_expired(last_used(&folder), now, keep) {
                continue;
            }
            let bytes = measure(&folder).bytes;
            let removing = builder.root.join(format!("{REMOVING}{key}"));
            std::fs::rename(&folder, &removing)?;
            self.inner.forget(&key);
            std::fs::remove_dir_all(&removing)?;
            lock.remove();
            collected.bytes = collected.bytes.saturating_add(bytes);
            collected.removed.push(key);
        }
        Ok(collected)
    }
}

/// Returns the environments to remove.
fn expired(
    stored: Vec<Stored>,
    referenced: &HashSet<EnvironmentKey>,
    now: SystemTime,
    keep: Duration,
) -> Vec<EnvironmentKey> {
    let is_unused =
        |stored: &Stored| !referenced.contains(&stored.key) && is_expired(Some(stored.last_used), now, keep);
    stored.into_iter().filter(is_unused).map(|stored| stored.key).collect()
}

/// A clock that was set back makes no environment expired.
fn is_expired(last_used: Option<SystemTime>, now: SystemTime, keep: Duration) -> bool {
    last_used.and_then(|time| now.duration_since(time).ok()).is_some_and(|unused| unused >= keep)
}

/// Lists the environments.
fn stored(root: &Path) -> io::Result<Vec<Stored>> {
    let mut stored = Vec::new();
    for name in names(root)? {
        if let Some(key) = EnvironmentKey::parse(&name)
            && let Some(last_used) = last_used(&root.join(&name))
        {
            stored.push(Stored { key, last_used });
        }
    }
    Ok(stored)
}

/// Returns when an environment was last used, or else when it was built.
fn last_used(folder: &Path) -> Option<SystemTime> {
    let time = |name: &str| std::fs::metadata(folder.join(name)).and_then(|about| about.modified()).ok();
    time(USED).or_else(|| time(ABOUT))
}

/// Removes folders whose process was killed while it built or removed an environment.
fn remove_leftovers(root: &Path) -> io::Result<()> {
    for name in names(root)? {
        let key = [BUILDING, REMOVING].iter().find_map(|start| name.strip_prefix(start));
        let Some(key) = key.and_then(EnvironmentKey::parse) else { continue };
        if let Some(_lock) = EnvironmentLock::try_acquire(root, &key)? {
            match std::fs::remove_dir_all(root.join(&name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Returns the names in a folder; none if it does not exist.
fn names(root: &Path) -> io::Result<Vec<String>> {
    match std::fs::read_dir(root) {
        Ok(entries) => {
            let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
            names.collect()
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_unreferenced_and_unused_for_long_is_removed() {
        let key = |digit: &str| EnvironmentKey::parse(&digit.repeat(40)).unwrap();
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(24 * 1000);
        let day = Duration::from_hours(24);
        let stored = vec![
            Stored { key: key("a"), last_used: now - 20 * day },
            Stored { key: key("b"), last_used: now - 20 * day },
            Stored { key: key("c"), last_used: now - 13 * day },
            Stored { key: key("d"), last_used: now + day },
            Stored { key: key("e"), last_used: now - 14 * day },
        ];
        let referenced = HashSet::from([key("b")]);
        assert_eq!(expired(stored, &referenced, now, 14 * day), [key("a"), key("e")]);
    }
}
