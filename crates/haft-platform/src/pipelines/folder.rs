//! Reads the files of a folder of this machine. Every file is opened beneath its folder by handle, so that no symbolic
//! link is followed.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat};

/// The most files of one folder.
const MAX_FILES: usize = 10_000;
/// The maximum number of entries that are read.
const MAX_ENTRIES: usize = 100_000;
/// The deepest folder.
const MAX_DEPTH: usize = 32;

/// A file of a folder.
pub(super) struct FolderFile {
    /// Its path relative to the folder.
    pub name: String,
    /// Its content, or one byte more than the limit.
    pub bytes: Vec<u8>,
}

/// Passes every file of a folder to `take`, sorted by name. Hidden files, symbolic links and special files are left out.
/// Of each file at most `max_bytes` and one more are read.
pub(super) fn read_folder(
    folder: &Path,
    max_bytes: usize,
    take: &mut dyn FnMut(FolderFile) -> io::Result<()>,
) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let root = openat(CWD, folder, flags, Mode::empty())?;
    Reader { entries: 0, files: 0, max_bytes, take }.folder(&root, "", 1)
}

struct Reader<'a> {
    entries: usize,
    files: usize,
    max_bytes: usize,
    take: &'a mut dyn FnMut(FolderFile) -> io::Result<()>,
}

impl Reader<'_> {
    fn folder(&mut self, folder: &OwnedFd, path: &str, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(io::Error::other(format!("folders are nested more than {MAX_DEPTH} levels deep")));
        }
        for name in self.names(folder)? {
            let inner = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            let about = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(about.st_mode) {
                FileType::Directory => {
                    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let handle = openat(folder, &name, flags, Mode::empty())?;
                    self.folder(&handle, &inner, depth + 1)?;
                }
                FileType::RegularFile => self.file(folder, &name, inner)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the sorted names of a folder, without hidden ones.
    fn names(&mut self, folder: &OwnedFd) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(folder)? {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                let message = format!("the folder has more than {MAX_ENTRIES} entries; is it the right one?");
                return Err(io::Error::other(message));
            }
            let entry = entry?;
            let name = entry.file_name().to_string_lossy();
            if !name.starts_with('.') {
                names.push(name.into_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn file(&mut self, folder: &OwnedFd, name: &str, path: String) -> io::Result<()> {
        self.files += 1;
        if self.files > MAX_FILES {
            return Err(io::Error::other(format!(
                "the folder has more than {MAX_FILES} files; add its parts"
            )));
        }
        // A file that was replaced by a FIFO in the meantime must not block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let handle = openat(folder, name, flags, Mode::empty())?;
        if FileType::from_raw_mode(fstat(handle.as_fd())?.st_mode) != FileType::RegularFile {
            return Ok(());
        }
        let mut bytes = Vec::new();
        let limit = u64::try_from(self.max_bytes).unwrap_or(u64::MAX).saturating_add(1);
        File::from(handle).take(limit).read_to_end(&mut bytes)?;
        (self.take)(FolderFile { name: path, bytes })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_read_beneath_the_folder() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        std::fs::create_dir_all(at("docs/a")).unwrap();
        std::fs::write(at("secret.txt"), "no").unwrap();
        for (name, text) in [("docs/b.md", "b"), ("docs/a/c.txt", "long text"), ("docs/.hidden", "no")] {
            std::fs::write(at(name), text).unwrap();
        }
        symlink(at("secret.txt"), at("docs/link.txt")).unwrap();
        symlink(home.path(), at("docs/up")).unwrap();
        let mut found = Vec::new();
        read_folder(&at("docs"), 4, &mut |file| {
            found.push((file.name, file.bytes.len()));
            Ok(())
        })
        .unwrap();
        assert_eq!(found, [("a/c.txt".to_owned(), 5), ("b.md".to_owned(), 1)]);
        assert!(read_folder(&at("missing"), 4, &mut |_| Ok(())).is_err());
    }
}
