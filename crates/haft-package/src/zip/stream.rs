//! Writes an archive piece by piece, and unpacks one that was written so.
//!
//! Unlike the reader of packages, it sets no limits: the caller has already limited what goes in.

use std::collections::HashSet;
use std::io::{self, Cursor, Read as _, Write};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use zip::result::ZipError;
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, DateTime, System, ZipArchive, ZipWriter};

/// The longest target of a symbolic link.
const MAX_TARGET: u64 = 4096;

/// Writes an archive to something that cannot seek, such as a connection.
pub struct ArchiveWriter<W: Write> {
    archive: ZipWriter<StreamWriter<W>>,
    names: HashSet<String>,
}

impl<W: Write> ArchiveWriter<W> {
    /// Starts an archive.
    pub fn new(output: W) -> Self {
        Self { archive: ZipWriter::new_stream(output), names: HashSet::new() }
    }

    /// Adds a folder.
    pub fn folder(&mut self, path: &[u8]) -> io::Result<()> {
        let name = self.name(path);
        self.archive.add_directory(name, options().unix_permissions(0o755)).map_err(to_io)
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &[u8], target: &[u8]) -> io::Result<()> {
        let name = self.name(path);
        let target = String::from_utf8_lossy(target);
        self.archive.add_symlink(name, target, options().unix_permissions(0o777)).map_err(to_io)
    }

    /// Starts a file; what is written with [`ArchiveWriter::bytes`] from now on is its content.
    pub fn file(&mut self, path: &[u8], executable: bool, size: u64) -> io::Result<()> {
        let name = self.name(path);
        let mode = if executable { 0o755 } else { 0o644 };
        let options = options()
            .compression_method(CompressionMethod::Deflated)
            .large_file(size >= u64::from(u32::MAX))
            .unix_permissions(mode);
        self.archive.start_file(name, options).map_err(to_io)
    }

    /// Adds bytes to the file that was started last.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.archive.write_all(bytes)
    }

    /// Writes the end of the archive, and returns the output.
    pub fn finish(self) -> io::Result<W> {
        self.archive.finish().map(StreamWriter::into_inner).map_err(to_io)
    }

    /// Returns a name for a path: paths are any bytes, names are text and unique.
    fn name(&mut self, path: &[u8]) -> String {
        let plain = String::from_utf8_lossy(path).into_owned();
        let mut name = plain.clone();
        let mut number = 2;
        while !self.names.insert(name.clone()) {
            name = format!("{plain}-{number}");
            number += 1;
        }
        name
    }
}

fn options() -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(DateTime::DEFAULT)
        .system(System::Unix)
}

fn to_io(error: ZipError) -> io::Error {
    match error {
        ZipError::Io(error) => error,
        other => io::Error::other(other),
    }
}

/// What was unpacked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unpacked {
    /// The number of files.
    pub files: u64,
    /// Entries that were left out: they would be outside the folder, or are links that lead out of it.
    pub skipped: Vec<String>,
}

/// Unpacks an archive into an existing folder. Nothing is written outside it.
pub fn unpack_into(archive: &[u8], folder: &Path) -> io::Result<Unpacked> {
    let mut archive = ZipArchive::new(Cursor::new(archive)).map_err(to_io)?;
    let mut unpacked = Unpacked::default();
    // Created last, so that no file is written through one.
    let mut links: Vec<(PathBuf, PathBuf)> = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(to_io)?;
        let name = entry.name().map_err(to_io)?.into_owned();
        let Some(path) = inner_path(Path::new(&name)) else {
            unpacked.skipped.push(name);
            continue;
        };
        let target = folder.join(&path);
        if entry.is_dir() {
            std::fs::create_dir_all(&target)?;
            continue;
        }
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent)?;
        }
        if entry.is_symlink() {
            let mut text = String::new();
            entry.by_ref().take(MAX_TARGET).read_to_string(&mut text)?;
            if stays_inside(&path, Path::new(&text)) {
                links.push((target, text.into()));
            } else {
                unpacked.skipped.push(name);
            }
            continue;
        }
        let mut file = std::fs::File::create_new(&target)?;
        io::copy(&mut entry, &mut file)?;
        if entry.unix_mode().is_some_and(|mode| mode & 0o100 != 0) {
            let mode = file.metadata()?.permissions().mode() | 0o111;
            file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        }
        unpacked.files += 1;
    }
    for (path, target) in links {
        symlink(target, path)?;
    }
    Ok(unpacked)
}

/// Returns a path that is below its folder; `None` if it is not.
fn inner_path(path: &Path) -> Option<PathBuf> {
    let is_inner = path.components().all(|component| matches!(component, Component::Normal(_)));
    (is_inner && path.components().next().is_some()).then(|| path.components().collect())
}

/// Returns whether a link at a path leads to something below the folder.
fn stays_inside(link: &Path, target: &Path) -> bool {
    let mut depth = link.components().count().saturating_sub(1);
    target.components().all(|component| match component {
        Component::Normal(_) => {
            depth += 1;
            true
        }
        Component::CurDir => true,
        Component::ParentDir => {
            let is_inside = depth > 0;
            depth = depth.saturating_sub(1);
            is_inside
        }
        Component::RootDir | Component::Prefix(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_unpacked() {
        let mut archive = ArchiveWriter::new(Vec::new());
        archive.folder(b"a").unwrap();
        archive.folder(b"a/empty").unwrap();
        archive.file(b"a/run.sh", true, 5).unwrap();
        archive.bytes(b"echo ").unwrap();
        archive.bytes(b"1").unwrap();
        archive.file("a/ü b\n.txt".as_bytes(), false, 0).unwrap();
        archive.link(b"a/to", b"run.sh").unwrap();
        archive.link(b"a/up", b"../../etc").unwrap();
        archive.file(b"a/\xff", false, 1).unwrap();
        archive.file(b"a/\xfe", false, 1).unwrap();
        let archive = archive.finish().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let unpacked = unpack_into(&archive, folder.path()).unwrap();
        assert_eq!(unpacked, Unpacked { files: 4, skipped: vec!["a/up".to_owned()] });
        let at = |path: &str| folder.path().join(path);
        assert_eq!(std::fs::read(at("a/run.sh")).unwrap(), b"echo 1");
        assert_ne!(std::fs::metadata(at("a/run.sh")).unwrap().permissions().mode() & 0o100, 0);
        assert_eq!(std::fs::metadata(at("a/ü b\n.txt")).unwrap().permissions().mode() & 0o100, 0);
        assert_eq!(std::fs::read_link(at("a/to")).unwrap(), Path::new("run.sh"));
        assert!(at("a/empty").is_dir() && at("a/\u{fffd}-2").is_file());
    }

    #[test]
    fn nothing_is_written_outside_the_folder() {
        let mut archive = ArchiveWriter::new(Vec::new());
        for name in ["../x", "/x", "a/../../x"] {
            archive.file(name.as_bytes(), false, 0).unwrap();
        }
        let archive = archive.finish().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let unpacked = unpack_into(&archive, &inner).unwrap();
        assert_eq!((unpacked.files, unpacked.skipped.len()), (0, 3));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(unpack_into(b"no archive", &inner).is_err());
    }

    #[test]
    fn a_link_must_stay_inside() {
        let check = |link: &str, target: &str| stays_inside(Path::new(link), Path::new(target));
        for (link, target) in [("a", "b"), ("a/b", "../c"), ("a/b", "./c/../d"), ("a/b/c", "../../d")] {
            assert!(check(link, target), "{link} -> {target}");
        }
        for (link, target) in [("a", "../b"), ("a", "/etc"), ("a/b", "../../c"), ("a/b", "../c/../../d")] {
            assert!(!check(link, target), "{link} -> {target}");
        }
    }
}
