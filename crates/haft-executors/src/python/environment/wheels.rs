//! Wheels in the folder `wheels` beside a definition: packages that are installed without network access.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use super::key::hex;

/// The folder with the wheels.
pub(super) const FOLDER: &str = "wheels";
/// The maximum number of wheels.
const MAX_WHEELS: usize = 500;
/// The maximum size of all wheels together, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// A wheel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wheel {
    /// The name of the file.
    pub(super) name: String,
    /// The hash of its content.
    pub(super) sha256: String,
}

/// The hashes of wheels, so that a file is read again only if it changes.
#[derive(Debug, Default)]
pub(super) struct WheelHashes {
    known: Mutex<HashMap<String, (FileStamp, String)>>,
}

/// Size, inode, and times of modification and change.
type FileStamp = (u64, u64, (i64, i64), (i64, i64));

impl WheelHashes {
    /// Returns the wheels of a folder, sorted by name; none if the folder does not exist.
    pub(super) fn list(&self, folder: &Path) -> io::Result<Vec<Wheel>> {
        let entries = match std::fs::read_dir(folder.join(FOLDER)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let (mut wheels, mut bytes) = (Vec::new(), 0_u64);
        for entry in entries {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().filter(|name| is_wheel(name)).map(str::to_owned)
            else {
                continue;
            };
            // Not that of the target of a link, which may be anywhere.
            let about = entry.metadata()?;
            if !about.is_file() {
                return Err(io::Error::other(format!("`{FOLDER}/{name}` is not a file")));
            }
            bytes = bytes.saturating_add(about.len());
            if wheels.len() >= MAX_WHEELS || bytes > MAX_BYTES {
                let message =
                    format!("`{FOLDER}` exceeds the limit of {MAX_WHEELS} wheels or {MAX_BYTES} bytes");
                return Err(io::Error::other(message));
            }
            let times = ((about.mtime(), about.mtime_nsec()), (about.ctime(), about.ctime_nsec()));
            let stamp = (about.size(), about.ino(), times.0, times.1);
            wheels.push(Wheel { sha256: self.hash(&entry.path(), &name, stamp)?, name });
        }
        wheels.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(wheels)
    }

    fn hash(&self, path: &Path, name: &str, stamp: FileStamp) -> io::Result<String> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, hash)) = known().get(name).filter(|(earlier, _)| *earlier == stamp) {
            return Ok(hash.clone());
        }
        let hash = copy(path, &mut io::sink())?;
        let mut known = known();
        if known.len() >= MAX_WHEELS {
            known.clear();
        }
        known.insert(name.to_owned(), (stamp, hash.clone()));
        Ok(hash)
    }
}

/// Copies wheels; fails if one of them has changed since it was listed.
pub(super) fn copy_all(wheels: &[Wheel], from: &Path, to: &Path) -> io::Result<()> {
    for wheel in wheels {
        let mut target = std::fs::File::create_new(to.join(&wheel.name))?;
        if copy(&from.join(FOLDER).join(&wheel.name), &mut target)? != wheel.sha256 {
            return Err(io::Error::other(format!(
                "`{FOLDER}/{}` changed during the installation",
                wheel.name
            )));
        }
    }
    Ok(())
}

/// Copies a file and returns the hash of its content.
fn copy(path: &Path, to: &mut impl io::Write) -> io::Result<String> {
    let mut file = std::fs::File::open(path)?.take(MAX_BYTES);
    let (mut digest, mut buffer) = (Sha256::new(), vec![0; 64 * 1024]);
    loop {
        let length = file.read(&mut buffer)?;
        let chunk = buffer.get(..length).unwrap_or_default();
        if chunk.is_empty() {
            to.flush()?;
            let digest: [u8; 32] = digest.finalize().into();
            return Ok(hex(&digest));
        }
        digest.update(chunk);
        to.write_all(chunk)?;
    }
}

/// Returns whether a file name is that of a wheel, such as `rich-13.0-py3-none-any.whl`.
fn is_wheel(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '!');
    name.to_ascii_lowercase().ends_with(".whl") && name.chars().all(fits) && !name.starts_with(['-', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_are_listed_with_their_hashes_and_copied_unchanged() {
        let home = tempfile::tempdir().unwrap();
        let (from, to) = (home.path().join("set"), home.path().join("to"));
        std::fs::create_dir_all(from.join("wheels")).unwrap();
        std::fs::create_dir_all(&to).unwrap();
        let hashes = WheelHashes::default();
        assert_eq!(hashes.list(home.path()).unwrap(), []);
        for (name, text) in [("b-1-py3-none-any.whl", "b"), ("a-1-py3-none-any.whl", "a"), ("notes.txt", "x")]
        {
            std::fs::write(from.join("wheels").join(name), text).unwrap();
        }
        let wheels = hashes.list(&from).unwrap();
        let names: Vec<&str> = wheels.iter().map(|wheel| wheel.name.as_str()).collect();
        assert_eq!(names, ["a-1-py3-none-any.whl", "b-1-py3-none-any.whl"]);
        assert_eq!(hashes.list(&from).unwrap(), wheels);
        copy_all(&wheels, &from, &to).unwrap();
        assert_eq!(std::fs::read(to.join("a-1-py3-none-any.whl")).unwrap(), b"a");

        std::fs::write(from.join("wheels/a-1-py3-none-any.whl"), "other").unwrap();
        assert_ne!(hashes.list(&from).unwrap(), wheels);
        std::fs::remove_dir_all(&to).unwrap();
        std::fs::create_dir_all(&to).unwrap();
        let error = copy_all(&wheels, &from, &to).unwrap_err();
        assert_eq!(error.to_string(), "`wheels/a-1-py3-none-any.whl` changed during the installation");

        std::os::unix::fs::symlink("/etc/passwd", from.join("wheels/link.whl")).unwrap();
        assert_eq!(hashes.list(&from).unwrap_err().to_string(), "`wheels/link.whl` is not a file");
    }
}
