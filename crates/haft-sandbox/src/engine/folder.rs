//! A temporary folder of one process.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::command::File;
use crate::error::SandboxError;
use crate::owner;

/// The prefix of folders, followed by the server and a number.
const PREFIX: &str = "run-";

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A folder that only the server's user can access; removed on drop.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Creates a folder.
    pub(crate) fn create(scratch: &Path) -> Result<Self, SandboxError> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = scratch.join(format!("{PREFIX}{}-{number}", owner::own()));
        create_private(&path)?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a subfolder.
    pub(crate) fn create_sub(&self, name: &str) -> Result<PathBuf, SandboxError> {
        let path = self.path.join(name);
        create_private(&path)?;
        Ok(path)
    }
}

impl Folder {
    /// Writes the files of a process. They are world-readable, because the process may have another user; the parent
    /// folder is private.
    pub(crate) fn write_files(&self, small: &[File]) -> Result<(), SandboxError> {
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
            tracing::warn!(folder = %self.path.display(), %error, "failed to remove a sandbox folder");
        }
    }
}

fn create_private(path: &Path) -> Result<(), SandboxError> {
    let made = DirBuilder::new().mode(0o700).create(path);
    made.map_err(|source| SandboxError::Prepare { path: path.to_owned(), source })
}

/// Removes a folder and its content, however deep and whatever its permissions. A confined process may nest folders
/// deeper than the stack, a path or the open files allow, so every folder is moved up into the first one before it is
/// emptied.
fn remove(first: &Path) -> io::Result<()> {
    if !first.try_exists()? {
        return Ok(());
    }
    let mut folders = vec![first.to_owned()];
    let mut retries = 100;
    while let Some(folder) = folders.last().cloned() {
        let within = empty(&folder, first)?;
        if !within.is_empty() {
            // It is visited again after them.
            folders.extend(within);
            continue;
        }
        match fs::remove_dir(&folder) {
            // Reading a folder while it changes may miss entries.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && retries > 0 => retries -= 1,
            Err(error) => return Err(error),
            Ok(()) => drop(folders.pop()),
        }
    }
    Ok(())
}

/// Removes the files of a folder; returns the new paths of its subfolders.
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
            // Moving a folder changes its `..` entry, which requires write permission.
            fs::set_permissions(entry.path(), open())?;
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let moved = first.join(format!("removed-{}-{number}", owner::own()));
            fs::rename(entry.path(), &moved)?;
            within.push(moved);
        }
    }
    Ok(within)
}

/// Removes folders of servers that have ended.
pub(crate) fn sweep(scratch: &Path) {
    for entry in fs::read_dir(scratch).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        if owner::is_gone(rest)
            && let Err(error) = remove(&entry.path())
        {
            tracing::warn!(folder = %entry.path().display(), %error, "failed to remove a sandbox folder");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_deeper_than_any_path_is_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::create(scratch.path()).unwrap();
        let mut inner = folder.create_sub("work").unwrap();
        let name = "x".repeat(200);
        for level in 0..600 {
            // Each is created at the top, and the previous one is moved into it.
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
    fn folders_of_ended_servers_are_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let kept = Folder::create(scratch.path()).unwrap();
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
