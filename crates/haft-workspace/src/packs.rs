//! Where packs are kept.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::{PackId, WorkspaceError, WorkspaceResult};

/// Keeps packs. A pack is written once; only [`gc`](crate::gc) replaces one, by the same bytes with holes.
pub trait Packs: Send + Sync {
    /// Returns a folder for files that become packs, on the same file system if packs are files.
    fn staging(&self) -> &Path;

    /// Keeps a file as a pack, or in place of one; the file is gone afterwards. When this returns, the pack survives a
    /// crash of the machine.
    ///
    /// # Errors
    /// Fails if the pack cannot be stored.
    fn keep(&self, pack: PackId, file: &Path) -> WorkspaceResult<()>;

    /// Opens a pack.
    ///
    /// # Errors
    /// Fails if the pack is missing or cannot be read.
    fn open(&self, pack: PackId) -> WorkspaceResult<File>;

    /// Lists all packs.
    ///
    /// # Errors
    /// Fails if the list cannot be read.
    fn list(&self) -> WorkspaceResult<Vec<PackId>>;

    /// Removes a pack; one that is missing is fine.
    ///
    /// # Errors
    /// Fails if the pack cannot be removed.
    fn remove(&self, pack: PackId) -> WorkspaceResult<()>;
}

/// Packs in a folder, below folders with the last two digits of their identifiers.
#[derive(Debug, Clone)]
pub struct LocalPacks {
    root: PathBuf,
    staging: PathBuf,
}

impl LocalPacks {
    /// Opens the folder, and creates it first if necessary.
    ///
    /// # Errors
    /// Fails if the folder cannot be created.
    pub fn open(root: impl Into<PathBuf>) -> WorkspaceResult<Self> {
        let root = root.into();
        let staging = root.join("staging");
        fs::create_dir_all(&staging).map_err(WorkspaceError::io("create", &staging))?;
        Ok(Self { root, staging })
    }

    /// The first digits of an identifier are a time, so the last ones spread packs over folders.
    fn path(&self, pack: PackId) -> PathBuf {
        let name = pack.to_string();
        let folder = name.get(name.len() - 2..).unwrap_or_default();
        self.root.join(folder).join(&name)
    }
}

impl Packs for LocalPacks {
    fn staging(&self) -> &Path {
        &self.staging
    }

    fn keep(&self, pack: PackId, file: &Path) -> WorkspaceResult<()> {
        let path = self.path(pack);
        let folder = path.parent().unwrap_or(&self.root);
        File::open(file).and_then(|file| file.sync_all()).map_err(WorkspaceError::io("write", file))?;
        if !folder.exists() {
            fs::create_dir_all(folder).map_err(WorkspaceError::io("create", folder))?;
            sync_folder(&self.root)?;
        }
        fs::rename(file, &path).map_err(WorkspaceError::io("write", &path))?;
        sync_folder(folder)
    }

    fn open(&self, pack: PackId) -> WorkspaceResult<File> {
        let path = self.path(pack);
        File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => WorkspaceError::MissingPack(pack),
            _ => WorkspaceError::io("open", &path)(error),
        })
    }

    fn list(&self) -> WorkspaceResult<Vec<PackId>> {
        let read = |folder: &Path| -> WorkspaceResult<Vec<fs::DirEntry>> {
            let entries = fs::read_dir(folder).and_then(Iterator::collect);
            entries.map_err(WorkspaceError::io("list", folder))
        };
        let mut found = Vec::new();
        for folder in read(&self.root)? {
            if folder.path() == self.staging || !folder.path().is_dir() {
                continue;
            }
            let names = read(&folder.path())?.into_iter().map(|entry| entry.file_name());
            found.extend(names.filter_map(|name| Uuid::try_parse(name.to_str()?).ok().map(PackId)));
        }
        Ok(found)
    }

    fn remove(&self, pack: PackId) -> WorkspaceResult<()> {
        let path = self.path(pack);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(WorkspaceError::io("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }
}

fn sync_folder(folder: &Path) -> WorkspaceResult<()> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(WorkspaceError::io("write", folder))
}
