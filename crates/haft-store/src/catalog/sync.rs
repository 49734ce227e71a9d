//! Brings the index up to date with the definition files; stat stamps show which files changed.

use std::collections::HashSet;
use std::path::Path;

use haft_core::catalog::StoreError;
use haft_definition::folder::{FileStamp, ReadError, SymbolicLinks, name_and_version, read_text};

use super::state::FileIndex;
use super::state::{Catalog, CatalogState};
use super::sync_apply::ReadFile;
use crate::audit::FILE_ACTOR;
use crate::files::scan::{self, Scan, ScannedBundle, ScannedFile};
use crate::files::stamp::is_recent;
use crate::files::{definition, layout, write};
use crate::resources::FileScope;

/// The largest number of threads that read definition files.
const MAX_THREADS: usize = 8;
/// The least number of files for a thread.
const MIN_FILES_PER_THREAD: usize = 100;

/// The result of rebuilding the index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReindexReport {
    /// The number of bundles.
    pub bundles: usize,
    /// The number of valid definition files.
    pub tools: usize,
    /// The number of files that are not a valid definition.
    pub unreadable: usize,
    /// The number of index entries that changed.
    pub changed: usize,
}

/// Which files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadScope {
    Changed,
    All,
}

/// The result of a sync.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SyncResult {
    pub(crate) changed: usize,
    /// A file changed so recently that it has to be read again soon.
    pub(crate) repeat: bool,
}

/// The differences between the disk and the index.
#[derive(Debug, Default)]
pub(crate) struct SyncPlan {
    pub(crate) bundles: Vec<ScannedBundle>,
    /// Bundles whose folder is missing.
    pub(crate) missing_bundles: Vec<(haft_core::name::TenantId, haft_core::name::BundleSlug)>,
    pub(crate) changed: Vec<ScannedFile>,
    /// Files that no longer exist.
    pub(crate) missing_files: Vec<String>,
}

impl Catalog {
    /// Rebuilds the index from the definition files, reading every one of them.
    pub async fn reindex(&self) -> Result<ReindexReport, StoreError> {
        self.run(|catalog| async move { catalog.reindex().await }).await
    }
}

impl CatalogState {
    /// Brings the index up to date with the disk. Costs one scan if nothing changed.
    pub(crate) async fn sync(&self) -> Result<SyncResult, StoreError> {
        let Some(files) = &self.db.files else { return Ok(SyncResult::default()) };
        let scan = files.run("list the definition files".into(), scan::scan).await?;
        let clean = scan.leftovers.is_empty();
        if clean && SyncPlan::new(scan, &*self.index.lock().await, ReadScope::Changed).is_empty() {
            return Ok(SyncResult::default());
        }
        self.apply_disk(ReadScope::Changed).await
    }

    async fn reindex(&self) -> Result<ReindexReport, StoreError> {
        self.db.sync_resource_files(FileScope::All).await?;
        let synced = self.apply_disk(ReadScope::All).await?;
        let index = self.index.lock().await;
        let tools = index.files.values().filter(|file| file.tool.is_some()).count();
        Ok(ReindexReport {
            bundles: index.bundles.len(),
            tools,
            unreadable: index.files.len() - tools,
            changed: synced.changed,
        })
    }

    async fn apply_disk(&self, scope: ReadScope) -> Result<SyncResult, StoreError> {
        let Some(files) = &self.db.files else { return Ok(SyncResult::default()) };
        let mut session = self.session().await?;
        session.actor = Some(FILE_ACTOR.into());
        // Scanned again under the lock: the first scan may have seen an incomplete change of another process.
        let scan = files.run("list the definition files".into(), scan::scan).await?;
        let leftovers = scan.leftovers.clone();
        let mut plan = SyncPlan::new(scan, &session.index, scope);
        let changed = std::mem::take(&mut plan.changed);
        let (read_files, vanished) = files
            .run("read the definition files".into(), move |home| {
                // The lock is held, so no temporary file is in use.
                for path in leftovers {
                    write::remove(&home.join(path))?;
                }
                Ok(read_all(home, changed))
            })
            .await?;
        plan.missing_files.extend(vanished.into_iter().filter(|path| session.index.files.contains_key(path)));
        let repeat = read_files.iter().any(|file| file.scanned.stamp.is_unknown());
        let touched = session.apply(plan, read_files).await?;
        session.finish().await?;
        Ok(SyncResult { changed: touched, repeat })
    }
}

impl SyncPlan {
    fn new(scan: Scan, index: &FileIndex, scope: ReadScope) -> Self {
        let all = scope == ReadScope::All;
        let mut plan = SyncPlan::default();
        let mut folders = HashSet::new();
        let bundle_files: HashSet<String> = scan.bundles.iter().filter_map(ScannedBundle::file).collect();
        for bundle in scan.bundles {
            let key = (bundle.tenant.clone(), bundle.slug.clone());
            if all || index.bundles.get(&key).is_none_or(|indexed| indexed.stamp != bundle.stamp) {
                plan.bundles.push(bundle);
            }
            folders.insert(key);
        }
        let paths: HashSet<&str> = scan.files.iter().map(|file| file.path.as_str()).collect();
        let unlisted = |path: &str| scan.unlisted.iter().any(|folder| path.starts_with(folder));
        let is_missing = |path: &&String| {
            !paths.contains(path.as_str()) && !bundle_files.contains(path.as_str()) && !unlisted(path)
        };
        plan.missing_files = index.files.keys().filter(is_missing).cloned().collect();
        plan.missing_files.sort();
        let indexed = |file: &ScannedFile| index.files.get(&file.path);
        let differs = |file: &ScannedFile| indexed(file).is_none_or(|indexed| indexed.stamp != file.stamp);
        let any_change = !plan.missing_files.is_empty() || scan.files.iter().any(differs);
        // After any change, a file that was rejected as a duplicate may be the only one now.
        let rejected =
            |file: &ScannedFile| any_change && indexed(file).is_some_and(|indexed| indexed.tool.is_none());
        plan.changed = scan.files.into_iter().filter(|file| all || differs(file) || rejected(file)).collect();
        let user_created = haft_core::name::BundleSlug::user_created();
        plan.missing_bundles = index
            .bundles
            .keys()
            // Files outside of all bundles need `user-created` even without its folder.
            .filter(|key| !folders.contains(*key) && key.1 != user_created)
            .filter(|key| !unlisted(&format!("{}/", layout::bundle_folder(&key.0, &key.1))))
            .cloned()
            .collect();
        plan
    }

    fn is_empty(&self) -> bool {
        self.bundles.is_empty()
            && self.missing_bundles.is_empty()
            && self.changed.is_empty()
            && self.missing_files.is_empty()
    }
}

/// Reads files on several threads; also returns the paths of files that have vanished.
fn read_all(home: &Path, mut files: Vec<ScannedFile>) -> (Vec<ReadFile>, Vec<String>) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let share = files.len().div_ceil(threads).max(MIN_FILES_PER_THREAD);
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        while files.len() > share {
            let part = files.split_off(files.len() - share);
            others.push(scope.spawn(move || read_some(home, part)));
        }
        let (mut read, mut vanished) = read_some(home, files);
        for other in others.into_iter().rev() {
            let (more, more_vanished) = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            read.extend(more);
            vanished.extend(more_vanished);
        }
        (read, vanished)
    })
}

fn read_some(home: &Path, files: Vec<ScannedFile>) -> (Vec<ReadFile>, Vec<String>) {
    let (mut read, mut vanished) = (Vec::with_capacity(files.len()), Vec::new());
    for mut scanned in files {
        if let Some(error) = scanned.error.clone() {
            read.push(ReadFile { scanned, definition: Err(error) });
            continue;
        }
        match read_text(&home.join(&scanned.path), SymbolicLinks::Reject) {
            Ok((text, metadata)) => {
                scanned.stamp =
                    if is_recent(&metadata) { FileStamp::unknown() } else { FileStamp::of(&metadata) };
                let definition = definition::read(&text, scanned.form, &scanned.path);
                read.push(ReadFile { scanned, definition });
            }
            Err(ReadError::NotFound) => vanished.push(scanned.path),
            Err(ReadError::Unreadable { message, .. }) => {
                read.push(ReadFile { scanned, definition: Err(message) });
            }
        }
    }
    (read, vanished)
}

/// Returns the tool name that a path suggests.
pub(crate) fn name_hint(path: &str) -> String {
    haft_core::problem::excerpt(name_and_version(path).0, 64)
}
