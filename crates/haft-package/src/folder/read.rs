//! Reads a local folder. Every file is opened beneath its folder by handle, so that no symbolic link is followed.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use haft_core::problem::{Problem, excerpt};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat};

use crate::files::{MAX_FILE, MAX_FILES, PackageFiles, is_signature, signature_folder, too_large};
use crate::path::{MAX_DEPTH, PackagePath, is_junk_name};
use crate::problems::{MAX_SHOWN, Problems, of_file};

/// The maximum number of entries of all folders, with those that are ignored.
const MAX_ENTRIES: usize = 10 * MAX_FILES;

/// Reads a folder. Hidden files, `__pycache__` and the like are left out; symbolic links and special files are problems.
pub fn read(folder: &Path) -> Result<PackageFiles, Vec<Problem>> {
    let open = openat(CWD, folder, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let root = open.map_err(|error| vec![failed("", "open the folder", &error.into())])?;
    let mut reader = Reader { files: PackageFiles::new(), problems: Problems::default(), entries: 0 };
    if let Err(problem) = reader.folder(&root, "", 1) {
        reader.problems.push(problem);
    }
    reader.problems.or(reader.files)
}

struct Reader {
    files: PackageFiles,
    problems: Problems,
    entries: usize,
}

impl Reader {
    fn folder(&mut self, folder: &OwnedFd, path: &str, depth: usize) -> Result<(), Problem> {
        if depth > MAX_DEPTH {
            let message = format!("folders are nested more than {MAX_DEPTH} levels deep; move the files up");
            return Err(of_file(path, "unsafe_path", message));
        }
        for name in self.names(folder, path)? {
            if self.problems.is_full() {
                return Ok(());
            }
            let inner = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            if let Err(problem) = self.entry(folder, &name, &inner, depth) {
                self.problems.push(problem);
            }
        }
        Ok(())
    }

    /// Returns the sorted names of a folder, without those that are ignored.
    fn names(&mut self, folder: &OwnedFd, path: &str) -> Result<Vec<String>, Problem> {
        let list = |error: rustix::io::Errno| failed(path, "list the folder", &error.into());
        let mut names = Vec::new();
        for entry in Dir::read_from(folder).map_err(list)? {
            let entry = entry.map_err(list)?;
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                let message = format!("the folder has more than {MAX_ENTRIES} entries; is it the right one?");
                return Err(Problem::new("", "too_many_files", message));
            }
            match entry.file_name().to_str() {
                Ok("." | "..") => {}
                Ok(name) if is_junk_name(name) => {}
                Ok(name) => names.push(name.to_owned()),
                Err(_) => {
                    let shown = entry.file_name().to_string_lossy().into_owned();
                    self.problems.push(of_file(
                        &shown,
                        "unsafe_path",
                        "the name is not UTF-8; rename the file",
                    ));
                }
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn entry(&mut self, folder: &OwnedFd, name: &str, path: &str, depth: usize) -> Result<(), Problem> {
        let about = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| failed(path, "read the file", &error.into()))?;
        match FileType::from_raw_mode(about.st_mode) {
            FileType::Directory if is_signature(path) => Err(signature_folder(path)),
            FileType::Directory => {
                let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let inner = openat(folder, name, flags, Mode::empty())
                    .map_err(|error| failed(path, "open the folder", &error.into()))?;
                self.folder(&inner, path, depth + 1)
            }
            FileType::RegularFile => self.file(folder, name, path),
            FileType::Symlink => {
                let message = "symbolic links are not allowed in packages; replace it by a copy of the file";
                Err(of_file(path, "symbolic_link", message))
            }
            _ => Err(of_file(path, "special_file", "not a regular file; remove it")),
        }
    }

    fn file(&mut self, folder: &OwnedFd, name: &str, path: &str) -> Result<(), Problem> {
        let safe = PackagePath::new(path).map_err(|error| of_file(path, "unsafe_path", error.to_string()))?;
        // A file that was replaced by a FIFO in the meantime must not block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let handle = openat(folder, name, flags, Mode::empty())
            .map_err(|error| failed(path, "open the file", &error.into()))?;
        let about = fstat(handle.as_fd()).map_err(|error| failed(path, "read the file", &error.into()))?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return Err(of_file(path, "special_file", "not a regular file; remove it"));
        }
        let mut bytes = Vec::new();
        let mut limited = File::from(handle).take(MAX_FILE + 1);
        limited.read_to_end(&mut bytes).map_err(|error| failed(path, "read the file", &error))?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(too_large(path));
        }
        self.files.add(safe, bytes, about.st_mode & 0o111 != 0)
    }
}

fn failed(path: &str, action: &str, error: &io::Error) -> Problem {
    let message = format!("failed to {action}: {}", excerpt(&error.to_string(), MAX_SHOWN));
    of_file(path, "unreadable", message)
}
