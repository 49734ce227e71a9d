//! Reading files that anyone may have put there.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// The largest definition.
pub(crate) const MAX_BYTES: u64 = 1024 * 1024;

/// Why a file has no text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadFault {
    /// It is not there any more.
    Gone,
    /// It is there and cannot be read; says why.
    Bad(String),
}

/// Reads a regular file, never through a symlink and never waiting for a pipe.
pub(crate) fn text(path: &Path) -> Result<(String, Metadata), ReadFault> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::options()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
        .open(path)
        .map_err(|error| explain(&error))?;
    let metadata = file.metadata().map_err(|error| explain(&error))?;
    if metadata.is_dir() {
        return Err(ReadFault::Bad("it is a folder; a definition is a file".into()));
    }
    if !metadata.is_file() {
        return Err(ReadFault::Bad("it is not a regular file".into()));
    }
    if metadata.len() > MAX_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default() + 1);
    (&file).take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| explain(&error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(too_large());
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text, metadata)),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let line = error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count() + 1;
            Err(ReadFault::Bad(format!("line {line}: it is not valid UTF-8")))
        }
    }
}

fn too_large() -> ReadFault {
    ReadFault::Bad(format!("it is larger than {} KiB, the most that a definition may have", MAX_BYTES / 1024))
}

fn explain(error: &io::Error) -> ReadFault {
    if error.kind() == io::ErrorKind::NotFound {
        return ReadFault::Gone;
    }
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        return ReadFault::Bad("it is a symbolic link; put the file itself here".into());
    }
    if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) {
        return ReadFault::Bad("it is not a regular file".into());
    }
    ReadFault::Bad(format!("it cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &Path, expected: &str) {
        match text(path) {
            Err(ReadFault::Bad(why)) => assert!(why.contains(expected), "{why}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        std::fs::write(path("good"), "text").unwrap();
        assert_eq!(text(&path("good")).unwrap().0, "text");
        assert_eq!(text(&path("none")).unwrap_err(), ReadFault::Gone);
        std::os::unix::fs::symlink(path("good"), path("link")).unwrap();
        check(&path("link"), "symbolic link");
        std::fs::create_dir(path("folder")).unwrap();
        check(&path("folder"), "a folder");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        check(&path("pipe"), "not a regular file");
        File::create(path("large")).unwrap().set_len(MAX_BYTES + 1).unwrap();
        check(&path("large"), "larger than 1024 KiB");
        std::fs::write(path("latin"), b"a\nb\xff").unwrap();
        check(&path("latin"), "line 2: it is not valid UTF-8");
    }
}
