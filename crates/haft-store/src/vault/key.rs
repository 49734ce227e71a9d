//! The key of the credentials.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use haft_core::catalog::StoreError;
use haft_core::secret::Secret;
use zeroize::Zeroizing;

use super::cipher::Cipher;
use crate::files::write::sync_folder;
use crate::settings::StoreSettings;

const FORMAT: &str = "64 hexadecimal digits, e.g. from `openssl rand -hex 32`";

/// Why the key is unavailable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("invalid key: expected {FORMAT}")]
    Format,
    #[error("invalid key in `{}`: expected {FORMAT}", .0.display())]
    FileFormat(PathBuf),
    #[error("cannot read or create the key file `{}`", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the key file `{}` is missing; restore it", .0.display())]
    FileMissing(PathBuf),
    #[error("no key is configured; set `HAFT_KEY` to {FORMAT}")]
    NotConfigured,
}

impl KeyError {
    /// Describes the error together with its cause.
    pub(crate) fn with_cause(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{self}: {source}"),
            Self::Format | Self::FileFormat(_) | Self::FileMissing(_) | Self::NotConfigured => {
                self.to_string()
            }
        }
    }
}

/// Where the keys come from.
#[derive(Clone)]
pub(crate) struct KeySource {
    origin: KeyOrigin,
    /// The configured key that a rotation changes to.
    next: Option<Cipher>,
}

/// Where the current key comes from.
#[derive(Clone)]
enum KeyOrigin {
    Configured(Cipher),
    File(PathBuf),
    None,
}

impl KeySource {
    /// Returns where the settings say that the key is.
    pub(crate) fn of(settings: &StoreSettings) -> Result<Self, StoreError> {
        Self::new(settings.key.as_ref(), settings.new_key.as_ref(), settings.home.as_deref())
            .map_err(|error| StoreError::unavailable("use the configured key", error))
    }

    pub(crate) fn new(
        configured: Option<&Secret>,
        next: Option<&Secret>,
        home: Option<&Path>,
    ) -> Result<Self, KeyError> {
        let read = |key: &Secret| parse(key.expose()).ok_or(KeyError::Format);
        let origin = match (configured, home) {
            (Some(key), _) => KeyOrigin::Configured(read(key)?),
            (None, Some(home)) => KeyOrigin::File(home.join("key")),
            (None, None) => KeyOrigin::None,
        };
        Ok(Self { origin, next: next.map(read).transpose()? })
    }

    /// Describes the source for messages.
    pub(crate) fn describe(&self) -> String {
        match &self.origin {
            KeyOrigin::Configured(_) => "the configured key (`HAFT_KEY`)".into(),
            KeyOrigin::File(path) => format!("the key in `{}`", path.display()),
            KeyOrigin::None => "the missing key".into(),
        }
    }

    /// Returns whether there is neither a configured key nor a place for a key file.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.origin, KeyOrigin::None)
    }

    /// Returns the configured key that a rotation changes to.
    pub(crate) fn next(&self) -> Option<&Cipher> {
        self.next.as_ref()
    }

    /// Returns the key file, if the key is in one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.origin {
            KeyOrigin::File(path) => Some(path),
            KeyOrigin::Configured(_) | KeyOrigin::None => None,
        }
    }

    /// Returns the keys that may be in force, the current one first; at least one. Blocks.
    pub(crate) fn candidates(&self) -> Result<Vec<Cipher>, KeyError> {
        let (current, pending) = match &self.origin {
            KeyOrigin::Configured(cipher) => (Ok(cipher.clone()), None),
            KeyOrigin::None => (Err(KeyError::NotConfigured), None),
            KeyOrigin::File(path) => {
                // Before the key itself: a rotation that ends in between renames this file to that one.
                let pending = read(&new_file(path)).ok();
                (read(path), pending)
            }
        };
        let others: Vec<Cipher> = pending.into_iter().chain(self.next.clone()).collect();
        match current {
            Ok(current) => Ok(std::iter::once(current).chain(others).collect()),
            Err(error) if others.is_empty() => Err(error),
            Err(_) => Ok(others),
        }
    }

    /// Returns the current key, and creates it first if necessary. Blocks.
    pub(crate) fn current_or_new(&self) -> Result<Cipher, KeyError> {
        match (self.candidates(), self.file()) {
            (Err(KeyError::FileMissing(_)), Some(path)) => {
                create(path).map_err(|source| KeyError::Io { path: path.to_owned(), source })
            }
            (candidates, _) => candidates?.into_iter().next().ok_or(KeyError::NotConfigured),
        }
    }
}

/// Returns the file of the key that a rotation changes to.
pub(crate) fn new_file(path: &Path) -> PathBuf {
    path.with_extension("new")
}

/// Writes a new random key to the file of a rotation; the key is on disk when this returns. Blocks.
pub(crate) fn create_new(path: &Path) -> Result<Cipher, KeyError> {
    let path = new_file(path);
    let created = std::fs::remove_file(&path).or_else(ignore_missing).and_then(|()| create(&path));
    created.map_err(|source| KeyError::Io { path, source })
}

/// Ends a rotation: keeps the new key if it is in force, and otherwise removes it if the current one is. Blocks.
pub(crate) fn settle(path: &Path, is_in_force: impl Fn(&Cipher) -> bool) -> Result<(), KeyError> {
    let pending = new_file(path);
    let settled = if read(&pending).is_ok_and(|key| is_in_force(&key)) {
        std::fs::rename(&pending, path)
    } else if read(path).is_ok_and(|key| is_in_force(&key)) {
        std::fs::remove_file(&pending).or_else(ignore_missing)
    } else {
        return Ok(());
    };
    let synced = settled.and_then(|()| path.parent().map_or(Ok(()), sync_folder));
    synced.map_err(|source| KeyError::Io { path: pending, source })
}

fn ignore_missing(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

fn read(path: &Path) -> Result<Cipher, KeyError> {
    match std::fs::read_to_string(path).map(Zeroizing::new) {
        Ok(text) => parse(&text).ok_or_else(|| KeyError::FileFormat(path.to_owned())),
        Err(source) if source.kind() == io::ErrorKind::NotFound => {
            Err(KeyError::FileMissing(path.to_owned()))
        }
        Err(source) => Err(KeyError::Io { path: path.to_owned(), source }),
    }
}

/// Creates a new key file that only its owner may read.
fn create(path: &Path) -> io::Result<Cipher> {
    let mut key = Zeroizing::new([0_u8; 32]);
    getrandom::fill(&mut *key).map_err(io::Error::other)?;
    let text = Zeroizing::new(haft_core::hash::hex(&*key));
    // Atomically: a partial key would make all later credentials unusable.
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = write(&temporary, &text).and_then(|()| std::fs::hard_link(&temporary, path));
    let _ = std::fs::remove_file(&temporary);
    written?;
    path.parent().map_or(Ok(()), sync_folder)?;
    Ok(Cipher::new(&key))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn parse(text: &str) -> Option<Cipher> {
    let digits = text.trim().as_bytes();
    let mut key = Zeroizing::new([0_u8; 32]);
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair.iter().try_fold(0, |sum, digit| {
            let value = char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok())?;
            Some(sum * 16 + value)
        })?;
    }
    Some(Cipher::new(&key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_key_file_is_created_once_and_private() {
        let home = tempfile::tempdir().unwrap();
        let source = KeySource::new(None, None, Some(home.path())).unwrap();
        assert!(matches!(source.candidates(), Err(KeyError::FileMissing(_))));
        let value = Secret::new("v".into());
        let sealed = source.current_or_new().unwrap().seal("t", "n", &value).unwrap();
        assert_eq!(source.current_or_new().unwrap().open("t", "n", &sealed).unwrap(), value);
        let mode = std::fs::metadata(home.path().join("key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(home.path().join("key"), "short").unwrap();
        assert!(matches!(source.current_or_new(), Err(KeyError::FileFormat(_))));
    }

    #[test]
    fn a_configured_key_has_64_digits() {
        for (text, good) in [("a".repeat(64), true), ("a".repeat(63), false), ("g".repeat(64), false)] {
            assert_eq!(KeySource::new(Some(&Secret::new(text)), None, None).is_ok(), good);
        }
    }

    #[test]
    fn a_rotation_is_settled_in_favor_of_the_key_in_force() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("key");
        let value = Secret::new("v".into());
        let seal = |key: &Cipher| key.seal("t", "n", &value).unwrap();
        let (old, new) = (create(&path).unwrap(), create_new(&path).unwrap());
        assert!(new.open("t", "n", &seal(&old)).is_err());
        let matches = |sealed: String| move |key: &Cipher| key.open("t", "n", &sealed).is_ok();
        // Neither is in force: both stay.
        settle(&path, matches(seal(&Cipher::new(&[7; 32])))).unwrap();
        assert!(path.exists() && new_file(&path).exists());
        settle(&path, matches(seal(&new))).unwrap();
        assert!(read(&path).unwrap().open("t", "n", &seal(&new)).is_ok() && !new_file(&path).exists());
        create_new(&path).unwrap();
        settle(&path, matches(seal(&new))).unwrap();
        assert!(read(&path).unwrap().open("t", "n", &seal(&new)).is_ok() && !new_file(&path).exists());
    }
}
