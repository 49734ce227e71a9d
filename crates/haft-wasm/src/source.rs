//! Reads the binary of a module, from the definition or a file of its bundle.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Why the binary could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("not valid base64: {0}")]
    Base64(base64::DecodeError),
    #[error("must be a relative path in the bundle folder, without `..`, such as `tool.wasm`")]
    Outside,
    #[error("the definition has no bundle folder; set `base64` instead")]
    NoFolder,
    #[error("file not found in the bundle folder")]
    Missing,
    #[error("leads through a symbolic link or a file; copy the file into the bundle folder")]
    Link,
    #[error("not a regular file")]
    NotAFile,
    #[error("module size limit ({0} bytes) exceeded")]
    TooLarge(u64),
    #[error("failed to read: {0}")]
    Io(io::Error),
}

/// Decodes base64; white space is ignored and padding optional.
pub(crate) fn decode(text: &str, limit: u64) -> Result<Vec<u8>, SourceError> {
    const LENIENT: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    if text.len() as u64 / 4 * 3 > limit {
        return Err(SourceError::TooLarge(limit));
    }
    let compact: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    GeneralPurpose::new(&STANDARD, LENIENT).decode(compact).map_err(SourceError::Base64)
}

/// A file of a bundle.
#[derive(Debug, Clone)]
pub(crate) struct BundleFile {
    folder: PathBuf,
    parts: Vec<String>,
}

/// Identifies a version of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl BundleFile {
    /// Checks the relative path of a file; links are checked when it is opened.
    pub(crate) fn new(folder: PathBuf, file: &str) -> Result<Self, SourceError> {
        let part = |component| match component {
            Component::Normal(part) => part.to_str().map(str::to_owned),
            _ => None,
        };
        let parts: Option<Vec<_>> = Path::new(file).components().map(part).collect();
        match parts {
            Some(parts) if !parts.is_empty() && !file.contains('\0') => Ok(Self { folder, parts }),
            _ => Err(SourceError::Outside),
        }
    }

    /// Reads the file.
    pub(crate) fn read(&self, limit: u64) -> Result<(Vec<u8>, Stamp), SourceError> {
        let (file, stamp) = self.open()?;
        if stamp.size > limit {
            return Err(SourceError::TooLarge(limit));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(stamp.size).unwrap_or_default());
        file.take(limit + 1).read_to_end(&mut bytes).map_err(SourceError::Io)?;
        if bytes.len() as u64 > limit {
            return Err(SourceError::TooLarge(limit));
        }
        Ok((bytes, stamp))
    }

    /// Returns the current stamp.
    pub(crate) fn stamp(&self) -> Result<Stamp, SourceError> {
        self.open().map(|(_, stamp)| stamp)
    }

    /// Opens the path component by component, without following links.
    fn open(&self) -> Result<(File, Stamp), SourceError> {
        const FOLDER: OFlags =
            OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
        const FILE: OFlags =
            OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
        let mut folder: OwnedFd = File::open(&self.folder).map_err(|error| explain(&error))?.into();
        let Some((last, before)) = self.parts.split_last() else { return Err(SourceError::Outside) };
        for part in before {
            folder = rustix::fs::openat(&folder, part, FOLDER, Mode::empty()).map_err(|error| {
                // Opening a link as a folder fails with "not a directory".
                if error == Errno::NOTDIR { SourceError::Link } else { explain(&error.into()) }
            })?;
        }
        let file =
            rustix::fs::openat(&folder, last, FILE, Mode::empty()).map_err(|error| explain(&error.into()))?;
        let file = File::from(file);
        let found = file.metadata().map_err(SourceError::Io)?;
        if !found.is_file() {
            return Err(SourceError::NotAFile);
        }
        let stamp = Stamp {
            device: found.dev(),
            inode: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        };
        Ok((file, stamp))
    }
}

fn explain(error: &io::Error) -> SourceError {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NAMETOOLONG) => SourceError::Missing,
        Some(Errno::LOOP) => SourceError::Link,
        Some(Errno::NXIO | Errno::ISDIR) => SourceError::NotAFile,
        _ => SourceError::Io(io::Error::new(error.kind(), error.to_string())),
    }
}
