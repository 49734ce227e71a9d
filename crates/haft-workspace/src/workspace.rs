//! A folder whose states are stored.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checkout::Checkout;
use crate::folder::{Folder, Trash};
use crate::reader::Reader;
use crate::scan::Scan;
use crate::state::{StatCache, StateFiles, wait_for_next_time};
use crate::{Limits, Manifest, Packs, Snapshot, WorkspaceError, WorkspaceResult, snapshot};

/// A folder whose states are stored. One process at a time may use it.
pub struct Workspace {
    folder: PathBuf,
    state: StateFiles,
    packs: Arc<dyn Packs>,
    limits: Limits,
}

impl Workspace {
    /// Opens a workspace: its files are in `root/files`. Creates it first if necessary.
    ///
    /// # Errors
    /// Fails if a folder cannot be created.
    pub fn open(root: &Path, packs: Arc<dyn Packs>, limits: Limits) -> WorkspaceResult<Self> {
        let workspace =
            Self { folder: root.join("files"), state: StateFiles::new(root.to_owned()), packs, limits };
        fs::create_dir_all(root).map_err(WorkspaceError::io("create", root))?;
        if fs::symlink_metadata(&workspace.folder).is_err() {
            fs::create_dir(&workspace.folder).map_err(WorkspaceError::io("create", &workspace.folder))?;
        }
        Ok(workspace)
    }

    /// Returns the folder with the files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Says that the folder may change from now on. Call it before a program gets the folder: otherwise
    /// [`Workspace::checkout`] does not scan for changes.
    ///
    /// # Errors
    /// Fails if that cannot be recorded.
    pub fn begin_change(&self) -> WorkspaceResult<()> {
        self.state.begin_change()
    }

    /// Stores the present state. When this returns, it survives a crash of the machine. Nothing may change the folder
    /// meanwhile.
    ///
    /// # Errors
    /// Fails if the folder exceeds a limit, or if something cannot be read or stored.
    pub fn snapshot(&self) -> WorkspaceResult<Snapshot> {
        let before = self.state.load();
        let folder = Folder::open(&self.folder)?;
        let (snapshot, cache) = snapshot::store(&*self.packs, self.limits, &folder, &before)?;
        self.state.save(&cache)?;
        Ok(snapshot)
    }

    /// Removes the stored data of a rejected snapshot. Nothing may have been stored since.
    ///
    /// # Errors
    /// Fails if something cannot be removed.
    pub fn discard(&self, snapshot: &Snapshot) -> WorkspaceResult<()> {
        let Some(pack) = snapshot.pack else { return Ok(()) };
        // The cache refers to the pack, so it is cleared.
        self.state.save(&StatCache::unknown())?;
        self.state.begin_change()?;
        self.packs.remove(pack)
    }

    /// Brings the folder to a stored state. Costs what differs, if nothing changed the folder since the last snapshot.
    ///
    /// # Errors
    /// Fails if the state cannot be read or written. Then the folder is in between; a repetition continues.
    pub fn checkout(&self, manifest: &Manifest) -> WorkspaceResult<()> {
        let mut trash = Trash::open(&self.state.trash())?;
        let mut cache = self.state.load();
        let is_clean = self.state.is_clean();
        if is_clean && cache.content.hash == manifest.root.hash {
            return Ok(());
        }
        self.state.begin_change()?;
        let folder = self.writable_folder()?;
        if !is_clean {
            cache = self.scan(&folder, &cache)?;
        }
        let mut work = Checkout { reader: Reader::new(&*self.packs), trash, has_written: false };
        let cache = work.folder(&folder, cache, &manifest.root)?;
        trash = work.trash;
        trash.empty()?;
        if work.has_written {
            // A program that changes a file at once would leave its times as they are.
            wait_for_next_time();
        }
        self.state.save(&cache)
    }

    /// Empties the folder: the state of a workspace that has none.
    ///
    /// # Errors
    /// Fails if something cannot be removed.
    pub fn clear(&self) -> WorkspaceResult<()> {
        self.state.begin_change()?;
        let folder = self.writable_folder()?;
        let mut trash = Trash::open(&self.state.trash())?;
        for name in folder.names()? {
            folder.remove(&name, &mut trash)?;
        }
        trash.empty()?;
        self.state.save(&StatCache::unknown())
    }

    /// Opens the folder; makes a new one if a program replaced it by something else.
    fn writable_folder(&self) -> WorkspaceResult<Folder> {
        match Folder::open(&self.folder) {
            Err(WorkspaceError::NotAFolder(path)) => {
                fs::remove_file(&path).map_err(WorkspaceError::io("remove", &path))?;
                fs::create_dir(&path).map_err(WorkspaceError::io("create", &path))?;
                Folder::open(&path)
            }
            other => other,
        }
    }

    /// Returns what is in the folder, as far as it is known. What exceeds the limits is removed as a whole: it is not in
    /// any stored state.
    fn scan(&self, folder: &Folder, cache: &StatCache) -> WorkspaceResult<StatCache> {
        let mut scan = Scan::new(Limits { bytes: u64::MAX, ..self.limits });
        let scanned = scan.folder(folder, cache);
        let is_too_large = matches!(scanned, Err(WorkspaceError::TooLarge { .. }));
        if !is_too_large && scan.skipped.is_empty() {
            return scanned;
        }
        let mut trash = Trash::open(&self.state.trash())?;
        for name in folder.names()? {
            folder.remove(&name, &mut trash)?;
        }
        trash.empty()?;
        Ok(StatCache::unknown())
    }
}
