//! Folders that no process ever sees.
//!
//! They are held open, so that they are found wherever they are moved: a process at level `Host` may rename the
//! folder in which one lies, and the next process would look for it at its old path, and see it at the new one.

use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// Folders that no process ever sees.
#[derive(Debug)]
pub(crate) struct Hidden {
    folders: Vec<Folder>,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// None where there was nothing yet when the sandbox was opened.
    handle: Option<OwnedFd>,
}

impl Hidden {
    pub(crate) fn open<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Self {
        let hold = |path: &PathBuf| Folder {
            path: path.clone(),
            handle: open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok(),
        };
        Self { folders: paths.map(hold).collect() }
    }

    /// Returns the true paths at which they are now; also the one where each is looked for, if something is there.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for folder in &self.folders {
            let found = [folder.handle.as_ref().and_then(place_of), fs::canonicalize(&folder.path).ok()];
            for path in found.into_iter().flatten() {
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        paths
    }
}

/// Returns where an open folder is; `None` if it was removed.
fn place_of(handle: &OwnedFd) -> Option<PathBuf> {
    let path = fs::read_link(Path::new("/proc/self/fd").join(handle.as_raw_fd().to_string())).ok()?;
    path.try_exists().unwrap_or(true).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_found_where_it_was_moved() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |path: &str| root.join(path);
        fs::create_dir_all(at("a/data")).unwrap();
        std::os::unix::fs::symlink(at("a/data"), at("link")).unwrap();
        let hidden = Hidden::open([at("a/data"), at("link"), at("later")].iter());
        assert_eq!(hidden.paths(), [at("a/data")]);
        fs::create_dir(at("later")).unwrap();
        fs::rename(at("a"), at("b")).unwrap();
        assert_eq!(hidden.paths(), [at("b/data"), at("later")]);
        fs::create_dir_all(at("a/data")).unwrap();
        assert_eq!(hidden.paths(), [at("b/data"), at("a/data"), at("later")]);
        fs::remove_dir_all(at("b")).unwrap();
        assert_eq!(hidden.paths(), [at("a/data"), at("later")]);
    }
}
