//! What is known of a folder: its last stored state, and the times and sizes of its files then.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use crate::node::{Entry, FolderNode, Node};
use crate::{Content, Hash, WorkspaceError, WorkspaceResult};

/// A folder whose content is known.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StatCache {
    /// Its stored node; unknown if it differs from every stored one.
    pub(crate) content: Content,
    /// Its entries, ordered by name.
    pub(crate) entries: Vec<CachedEntry>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CachedEntry {
    pub(crate) name: Box<[u8]>,
    pub(crate) node: CachedNode,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum CachedNode {
    File {
        executable: bool,
        /// Unknown if the file has changed and is not stored yet.
        content: Content,
        /// How the file looked when its content was read; `None` if that tells nothing.
        stamp: Option<Stamp>,
    },
    Folder(StatCache),
    Link {
        target: Box<[u8]>,
    },
}

/// By this a file is recognised as unchanged. No program can set the time of the last change (`ctime`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    inode: u64,
    size: u64,
    mode: u32,
    modified: i64,
    changed: i64,
}

/// The kernel's clock for files moves in steps; two changes within one step have the same time.
const CLOCK_STEP: i64 = 20_000_000;

impl Stamp {
    pub(crate) fn of(stat: &Stat) -> Self {
        let nanos =
            |seconds: i64, nanos: u64| seconds.wrapping_mul(1_000_000_000).wrapping_add_unsigned(nanos);
        Self {
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode,
            modified: nanos(stat.st_mtime, stat.st_mtime_nsec),
            changed: nanos(stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// Returns the stamp if the last change is so long before a moment that a change after the moment has another time.
    pub(crate) fn before(self, moment: i64) -> Option<Self> {
        (self.changed.saturating_add(CLOCK_STEP) < moment).then_some(self)
    }

    pub(crate) fn size(self) -> u64 {
        self.size
    }
}

/// Returns the present time in nanoseconds, by the clock that files use.
pub(crate) fn now() -> i64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "compared with the times of files, which have the same clock"
    )]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

/// Waits until a change of a file has another time than the changes before.
pub(crate) fn wait_for_next_time() {
    std::thread::sleep(std::time::Duration::from_nanos(CLOCK_STEP.unsigned_abs()));
}

impl StatCache {
    /// A folder of which nothing is known.
    pub(crate) fn unknown() -> Self {
        Self { content: Content::UNKNOWN, entries: Vec::new() }
    }

    pub(crate) fn to_node(&self) -> FolderNode {
        let entries = self.entries.iter().map(|entry| Entry {
            name: entry.name.clone(),
            node: match &entry.node {
                CachedNode::File { executable, content, .. } => {
                    Node::File { executable: *executable, content: *content }
                }
                CachedNode::Folder(cache) => Node::Folder { content: cache.content },
                CachedNode::Link { target } => Node::Link { target: target.clone() },
            },
        });
        FolderNode { entries: entries.collect() }
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<&CachedNode> {
        let found = self.entries.binary_search_by(|entry| entry.name.as_ref().cmp(name)).ok()?;
        self.entries.get(found).map(|entry| &entry.node)
    }
}

/// The files beside a workspace in which its state is kept.
///
/// None of them is needed: without them everything is read again. So they are never flushed to the disk; a restart of
/// the machine makes them invalid.
#[derive(Debug)]
pub(crate) struct StateFiles {
    folder: PathBuf,
}

impl StateFiles {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(crate) fn trash(&self) -> PathBuf {
        self.folder.join("trash")
    }

    fn known(&self) -> PathBuf {
        self.folder.join("known")
    }

    /// Exists while the folder is in the known state.
    fn clean(&self) -> PathBuf {
        self.folder.join("clean")
    }

    /// Returns what is known of the folder.
    pub(crate) fn load(&self) -> StatCache {
        let read = || {
            let bytes = fs::read(self.known()).ok()?;
            let (hash, known) = bytes.split_at_checked(Hash::UNKNOWN.as_bytes().len())?;
            (hash == Hash::of(known).as_bytes()).then(|| postcard::from_bytes(known).ok()).flatten()
        };
        read().unwrap_or_else(StatCache::unknown)
    }

    /// Returns whether nothing has changed the folder since the state was saved.
    pub(crate) fn is_clean(&self) -> bool {
        fs::read(self.clean()).is_ok_and(|boot| boot == boot_id())
    }

    /// The folder is about to change.
    pub(crate) fn begin_change(&self) -> WorkspaceResult<()> {
        let path = self.clean();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(WorkspaceError::io("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Saves what is known of the folder, which is in this state.
    pub(crate) fn save(&self, cache: &StatCache) -> WorkspaceResult<()> {
        let known = postcard::to_allocvec(cache).unwrap_or_default();
        let bytes = [Hash::of(&known).as_bytes(), &known].concat();
        replace(&self.known(), &bytes)?;
        replace(&self.clean(), &boot_id())
    }
}

fn replace(path: &Path, bytes: &[u8]) -> WorkspaceResult<()> {
    let new = path.with_extension("new");
    let written = fs::write(&new, bytes).and_then(|()| fs::rename(&new, path));
    written.map_err(WorkspaceError::io("write", path))
}

/// Identifies the present run of the machine.
fn boot_id() -> Vec<u8> {
    fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}
