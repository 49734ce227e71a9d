//! Reads a small file of a folder as a whole, for haft itself and not for tools.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use super::beneath;
use super::error::FileError;
use super::roots::{Root, WORKSPACE};

/// Why a small file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SmallFileError {
    /// It is larger than allowed.
    TooLarge,
    /// It cannot be opened or read; the text follows the name of the file.
    Unusable(String),
}

/// Reads a regular file beneath a folder; blocks. Links may not lead out of the folder. A hidden file counts as missing,
/// also if a link leads to it.
pub(crate) fn read_small(
    folder: &Path,
    path: &str,
    max: usize,
    hidden: &[PathBuf],
) -> Result<Vec<u8>, SmallFileError> {
    let unusable = |error: FileError| {
        SmallFileError::Unusable(match error {
            FileError::Escapes { .. } => "is outside of the folder".to_owned(),
            FileError::Unusable { message, .. } => message,
            FileError::Root { source, .. } => format!("is in a folder that cannot be opened: {source}"),
            FileError::Empty | FileError::ReadOnly(_) | FileError::Base64(_) => error.to_string(),
        })
    };
    let identities = || {
        let stats = hidden.iter().filter_map(|hidden| rustix::fs::stat(hidden.as_path()).ok());
        stats.map(|stat| (stat.st_dev, stat.st_ino)).collect::<Vec<_>>()
    };
    let root = Root::new(WORKSPACE, folder.to_owned()).open().map_err(unusable)?;
    // Before and after: another program may replace a hidden file while this one is opened.
    let before = identities();
    let (file, stat) = beneath::open_file(root.as_fd(), path).map_err(unusable)?;
    let opened = (stat.st_dev, stat.st_ino);
    if before.contains(&opened) || identities().contains(&opened) {
        return Err(SmallFileError::Unusable("does not exist".to_owned()));
    }
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    let read = file.take(limit).read_to_end(&mut bytes);
    read.map_err(|error| SmallFileError::Unusable(format!("cannot be read: {error}")))?;
    if bytes.len() > max { Err(SmallFileError::TooLarge) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_the_folder_are_read() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("passwd"), "root").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("..data/db")).unwrap();
        std::fs::write(at("..data/db/password"), "hunter2").unwrap();
        // As Kubernetes mounts secrets: links that stay in the folder.
        std::os::unix::fs::symlink("..data/db", at("db")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("passwd"), at("out")).unwrap();
        std::os::unix::fs::symlink(outside.path(), at("folder")).unwrap();
        let read = |path: &str| read_small(folder.path(), path, 8, &[]);
        let unusable = |text: &str| Err(SmallFileError::Unusable(text.to_owned()));
        assert_eq!(read("db/password"), Ok(b"hunter2".to_vec()));
        for path in ["out", "folder/passwd", "../x", "/etc/passwd"] {
            assert_eq!(read(path), unusable("is outside of the folder"), "{path}");
        }
        assert_eq!(read("none"), unusable("does not exist"));
        assert_eq!(read("db"), unusable("is a folder"));
        std::fs::write(at("large"), "123456789").unwrap();
        assert_eq!(read("large"), Err(SmallFileError::TooLarge));
    }

    #[test]
    fn a_hidden_file_counts_as_missing() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("..data")).unwrap();
        std::fs::write(at("..data/token"), "hvs.t").unwrap();
        std::fs::write(at("other"), "o").unwrap();
        std::os::unix::fs::symlink("..data/token", at("token")).unwrap();
        std::os::unix::fs::symlink("token", at("link")).unwrap();
        std::fs::hard_link(at("..data/token"), at("hard")).unwrap();
        let hidden = [at("absent"), at("token")];
        let read = |path: &str| read_small(folder.path(), path, 8, &hidden);
        for path in ["token", "..data/token", "link", "hard", "none"] {
            assert_eq!(read(path), Err(SmallFileError::Unusable("does not exist".to_owned())), "{path}");
        }
        assert_eq!(read("other"), Ok(b"o".to_vec()));
    }
}
