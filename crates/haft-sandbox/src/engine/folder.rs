//! A folder on disk that lives as long as one process.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::SandboxError;

/// How the folder of a process begins; then come the server that made it, and a number.
const PREFIX: &str = "run-";

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A folder that only the server's user may enter; removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes a new one.
    pub(crate) fn make(scratch: &Path) -> Result<Self, SandboxError> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = scratch.join(format!("{PREFIX}{}-{number}", std::process::id()));
        make_private(&path)?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder in it.
    pub(crate) fn sub(&self, name: &str) -> Result<PathBuf, SandboxError> {
        let path = self.path.join(name);
        make_private(&path)?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            tracing::warn!(folder = %self.path.display(), %error, "a sandbox's folder is left behind");
        }
    }
}

fn make_private(path: &Path) -> Result<(), SandboxError> {
    let made = DirBuilder::new().mode(0o700).create(path);
    made.map_err(|source| SandboxError::Prepare { path: path.to_owned(), source })
}

/// Removes a folder with all that is in it, also where its owner took away his own rights.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            allow(path)?;
            fs::remove_dir_all(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn allow(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            allow(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes folders of servers that are no longer there.
pub(crate) fn sweep(scratch: &Path) {
    for entry in fs::read_dir(scratch).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let maker = rest.split('-').next().unwrap_or_default();
        if !Path::new("/proc").join(maker).exists() {
            drop(remove(&entry.path()));
        }
    }
}
