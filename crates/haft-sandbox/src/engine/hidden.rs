//! Folders hidden from every process, wherever a mount shows them.
//!
//! They are kept open, so that they are found after a move: a process at level `Host` can rename a parent folder, and the
//! next process would see them at the new path.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use super::mount_table::MountTable;

/// Folders hidden from every process.
#[derive(Debug)]
pub(crate) struct HiddenPaths {
    folders: Vec<Folder>,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// `None` if it did not exist when the sandbox was opened.
    handle: Option<OwnedFd>,
}

impl HiddenPaths {
    pub(crate) fn open<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Self {
        let open_folder = |path: &PathBuf| Folder {
            path: path.clone(),
            handle: open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok(),
        };
        Self { folders: paths.map(open_folder).collect() }
    }

    /// Returns the current canonical paths, the configured ones if they exist, and the same folders in other mounts.
    pub(crate) fn paths(&self) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for folder in &self.folders {
            let found = [folder.handle.as_ref().and_then(current_path), fs::canonicalize(&folder.path).ok()];
            for path in found.into_iter().flatten() {
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        // Read for every process: a mount may have been added.
        let mounts = MountTable::read()?;
        let aliases: Vec<PathBuf> = paths.iter().flat_map(|path| mounts.aliases(path)).collect();
        for path in aliases {
            if !paths.iter().any(|hidden| path.starts_with(hidden)) {
                paths.push(path);
            }
        }
        Ok(paths)
    }
}

/// Returns the path of an open folder; `None` if it was removed.
fn current_path(handle: &OwnedFd) -> Option<PathBuf> {
    let path = fs::read_link(Path::new("/proc/self/fd").join(handle.as_raw_fd().to_string())).ok()?;
    path.try_exists().unwrap_or(true).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_folder_is_found() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |path: &str| root.join(path);
        fs::create_dir_all(at("a/data")).unwrap();
        std::os::unix::fs::symlink(at("a/data"), at("link")).unwrap();
        let hidden = HiddenPaths::open([at("a/data"), at("link"), at("later")].iter());
        assert_eq!(hidden.paths().unwrap(), [at("a/data")]);
        fs::create_dir(at("later")).unwrap();
        fs::rename(at("a"), at("b")).unwrap();
        assert_eq!(hidden.paths().unwrap(), [at("b/data"), at("later")]);
        fs::create_dir_all(at("a/data")).unwrap();
        assert_eq!(hidden.paths().unwrap(), [at("b/data"), at("a/data"), at("later")]);
        fs::remove_dir_all(at("b")).unwrap();
        assert_eq!(hidden.paths().unwrap(), [at("a/data"), at("later")]);
    }
}
