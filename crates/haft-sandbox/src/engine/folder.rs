//! A folder on disk that lives as long as one process.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::command::File;
use crate::error::SandboxError;
use crate::owner;

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
        let path = scratch.join(format!("{PREFIX}{}-{number}", owner::own()));
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

impl Folder {
    /// Writes the small files of a process. The process may be another user's: it reads them, and the folder above
    /// is closed to everyone else.
    pub(crate) fn put(&self, small: &[File]) -> Result<(), SandboxError> {
        let files = self.path.join("files");
        let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| SandboxError::Prepare { path, source }
        };
        open(&files, 0o755).map_err(failed(&files))?;
        for file in small {
            let path = files.join(file.name);
            fs::write(&path, &file.content).and_then(|()| open(&path, 0o444)).map_err(failed(&path))?;
        }
        Ok(())
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

/// Removes a folder with all that is in it, however deep, also where its owner took away his own rights. What a
/// confined process made may be deeper than a stack, a path, or the number of open files allows; so every folder
/// is moved up into the first one before it is emptied.
fn remove(first: &Path) -> io::Result<()> {
    if !first.try_exists()? {
        return Ok(());
    }
    let mut folders = vec![first.to_owned()];
    let mut patience = 100;
    while let Some(folder) = folders.last().cloned() {
        let within = empty(&folder, first)?;
        if !within.is_empty() {
            // Then its turn comes again.
            folders.extend(within);
            continue;
        }
        match fs::remove_dir(&folder) {
            // Reading a folder while it changes may leave entries out.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && patience > 0 => patience -= 1,
            Err(error) => return Err(error),
            Ok(()) => drop(folders.pop()),
        }
    }
    Ok(())
}

/// Removes the files of a folder; returns the folders that were in it, by where they are now.
fn empty(folder: &Path, first: &Path) -> io::Result<Vec<PathBuf>> {
    let open = || fs::Permissions::from_mode(0o700);
    fs::set_permissions(folder, open())?;
    let mut within = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            fs::remove_file(entry.path())?;
        } else if folder == first {
            within.push(entry.path());
        } else {
            // A folder that is moved gets another parent, which takes the right to write it.
            fs::set_permissions(entry.path(), open())?;
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let moved = first.join(format!("removed-{}-{number}", owner::own()));
            fs::rename(entry.path(), &moved)?;
            within.push(moved);
        }
    }
    Ok(within)
}

/// Removes folders of servers that are no longer there.
pub(crate) fn sweep(scratch: &Path) {
    for entry in fs::read_dir(scratch).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        if owner::is_gone(rest)
            && let Err(error) = remove(&entry.path())
        {
            tracing::warn!(folder = %entry.path().display(), %error, "a sandbox's folder is left behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_deeper_than_any_path_is_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::make(scratch.path()).unwrap();
        let mut inner = folder.sub("work").unwrap();
        let name = "x".repeat(200);
        for level in 0..600 {
            // Each is made at the top, and what was made before is moved into it.
            let outer = folder.path().join("work").join(format!("{name}{level}"));
            fs::create_dir(&outer).unwrap();
            fs::write(outer.join("file"), "x").unwrap();
            if level > 0 {
                fs::rename(&inner, outer.join("inner")).unwrap();
            }
            inner = outer;
        }
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o000)).unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_server_left_is_removed_by_the_next_one() {
        let scratch = tempfile::tempdir().unwrap();
        let kept = Folder::make(scratch.path()).unwrap();
        for name in ["run-1-0-3", "run-4194305-12-0", "other"] {
            fs::create_dir_all(scratch.path().join(name).join("work")).unwrap();
        }
        sweep(scratch.path());
        let mut left: Vec<_> = fs::read_dir(scratch.path()).unwrap().map(|e| e.unwrap().path()).collect();
        left.sort();
        let mut expected = vec![scratch.path().join("other"), kept.path().to_owned()];
        expected.sort();
        assert_eq!(left, expected);
    }
}
