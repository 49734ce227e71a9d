//! Files to index: what changed on disk since it was last read, found by stat stamps.

use std::collections::HashSet;
use std::path::Path;

use haft_core::catalog::StoreError;

use super::sync_apply::{Item, Outcome};
use crate::files::read::{self, ReadFault};
use crate::files::scan::{self, Found, FoundBundle, Scan};
use crate::files::stamp::{Stamp, is_fresh};
use crate::files::{definition, layout, write};
use crate::store::{Inner, State, Store};

/// The most threads that read definition files.
const MAX_THREADS: usize = 8;
/// Fewer files than this are not worth a thread.
const LEAST_SHARE: usize = 100;

/// What a rebuild of the index found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReindexReport {
    /// How many bundles there are.
    pub bundles: usize,
    /// How many definition files were read.
    pub tools: usize,
    /// How many files cannot be read as a definition.
    pub unreadable: usize,
    /// How many entries of the index were different.
    pub changed: usize,
}

/// Whether files are read whose stamp says that they are unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    Changed,
    Everything,
}

/// What a sync did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Synced {
    pub(crate) changed: usize,
    /// Some file is so new that it has to be looked at again shortly.
    pub(crate) again: bool,
}

/// What differs between the disk and what is known of it.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) bundles: Vec<FoundBundle>,
    /// Bundles whose folder is gone.
    pub(crate) lost: Vec<(haft_core::name::TenantId, haft_core::name::BundleSlug)>,
    pub(crate) changed: Vec<Found>,
    pub(crate) gone: Vec<String>,
}

impl Store {
    /// Rebuilds the index from the definition files, reading every one of them.
    pub async fn reindex(&self) -> Result<ReindexReport, StoreError> {
        self.run(|inner| async move { inner.reindex().await }).await
    }
}

impl Inner {
    /// Brings the index up to what is on disk. Costs one walk where nothing changed.
    pub(crate) async fn sync(&self) -> Result<Synced, StoreError> {
        let Some(files) = &self.files else { return Ok(Synced::default()) };
        let scan = files.run("list the definition files".into(), scan::scan).await?;
        let clean = scan.leftovers.is_empty();
        if clean && Plan::new(scan, &*self.state.lock().await, Effort::Changed).is_empty() {
            return Ok(Synced::default());
        }
        self.apply_disk(Effort::Changed).await
    }

    async fn reindex(&self) -> Result<ReindexReport, StoreError> {
        let synced = self.apply_disk(Effort::Everything).await?;
        let state = self.state.lock().await;
        let tools = state.files.values().filter(|file| file.tool.is_some()).count();
        Ok(ReindexReport {
            bundles: state.bundles.len(),
            tools,
            unreadable: state.files.len() - tools,
            changed: synced.changed,
        })
    }

    async fn apply_disk(&self, effort: Effort) -> Result<Synced, StoreError> {
        let Some(files) = &self.files else { return Ok(Synced::default()) };
        let mut session = self.session().await?;
        // Once more under the lock: the walk before may have seen half of another process's change.
        let scan = files.run("list the definition files".into(), scan::scan).await?;
        let leftovers = scan.leftovers.clone();
        let mut plan = Plan::new(scan, &session.state, effort);
        let found = std::mem::take(&mut plan.changed);
        let (items, vanished) = files
            .run("read the definition files".into(), move |home| {
                // The lock is ours, so that no temporary file is in use.
                for path in leftovers {
                    write::remove(&home.join(path))?;
                }
                Ok(read_all(home, found))
            })
            .await?;
        plan.gone.extend(vanished.into_iter().filter(|path| session.state.files.contains_key(path)));
        let again = items.iter().any(|item| item.found.stamp.is_unknown());
        let Outcome { touched } = session.apply(plan, items).await?;
        session.finish().await?;
        Ok(Synced { changed: touched, again })
    }
}

impl Plan {
    fn new(scan: Scan, state: &State, effort: Effort) -> Self {
        let all = effort == Effort::Everything;
        let mut plan = Plan::default();
        let mut folders = HashSet::new();
        let described: HashSet<String> = scan.bundles.iter().filter_map(FoundBundle::file).collect();
        for bundle in scan.bundles {
            let key = (bundle.tenant.clone(), bundle.slug.clone());
            if all || state.bundles.get(&key).is_none_or(|known| known.stamp != bundle.stamp) {
                plan.bundles.push(bundle);
            }
            folders.insert(key);
        }
        let paths: HashSet<&str> = scan.files.iter().map(|found| found.path.as_str()).collect();
        let closed = |path: &str| scan.closed.iter().any(|folder| path.starts_with(folder));
        let gone = |path: &&String| {
            !paths.contains(path.as_str()) && !described.contains(path.as_str()) && !closed(path)
        };
        plan.gone = state.files.keys().filter(gone).cloned().collect();
        plan.gone.sort();
        let known = |found: &Found| state.files.get(&found.path);
        let differs = |found: &Found| known(found).is_none_or(|known| known.stamp != found.stamp);
        let moved = !plan.gone.is_empty() || scan.files.iter().any(differs);
        // Where something moved, a file that was refused as the second of its pair may be the first now.
        let refused = |found: &Found| moved && known(found).is_some_and(|known| known.tool.is_none());
        plan.changed =
            scan.files.into_iter().filter(|found| all || differs(found) || refused(found)).collect();
        let user_created = haft_core::name::BundleSlug::user_created();
        plan.lost = state
            .bundles
            .keys()
            // A file at the top needs the bundle `user-created` even without its folder.
            .filter(|key| !folders.contains(*key) && key.1 != user_created)
            .filter(|key| !closed(&format!("{}/", layout::bundle_folder(&key.0, &key.1))))
            .cloned()
            .collect();
        plan
    }

    fn is_empty(&self) -> bool {
        self.bundles.is_empty() && self.lost.is_empty() && self.changed.is_empty() && self.gone.is_empty()
    }
}

/// Reads files; returns also those that vanished meanwhile. Many are read by as many threads as there are cores.
fn read_all(home: &Path, mut found: Vec<Found>) -> (Vec<Item>, Vec<String>) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let share = found.len().div_ceil(threads).max(LEAST_SHARE);
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        while found.len() > share {
            let part = found.split_off(found.len() - share);
            others.push(scope.spawn(move || read_some(home, part)));
        }
        let (mut items, mut vanished) = read_some(home, found);
        for other in others.into_iter().rev() {
            let (more, gone) = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            items.extend(more);
            vanished.extend(gone);
        }
        (items, vanished)
    })
}

fn read_some(home: &Path, found: Vec<Found>) -> (Vec<Item>, Vec<String>) {
    let (mut items, mut vanished) = (Vec::with_capacity(found.len()), Vec::new());
    for mut found in found {
        if let Some(fault) = found.fault.clone() {
            items.push(Item { found, reading: Err(fault) });
            continue;
        }
        match read::text(&home.join(&found.path)) {
            Ok((text, metadata)) => {
                found.stamp = if is_fresh(&metadata) { Stamp::unknown() } else { Stamp::of(&metadata) };
                let reading = definition::read(&text, found.form, &found.path);
                items.push(Item { found, reading });
            }
            Err(ReadFault::Gone) => vanished.push(found.path),
            Err(ReadFault::Bad(why)) => items.push(Item { found, reading: Err(why) }),
        }
    }
    (items, vanished)
}

/// Returns the name that a path suggests.
pub(crate) fn name_hint(path: &str) -> String {
    haft_core::problem::excerpt(layout::hints(path).0, 64)
}
