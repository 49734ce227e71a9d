//! The key of the credentials.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use haft_core::secret::Secret;
use zeroize::Zeroizing;

use super::cipher::Cipher;
use crate::files::write::sync_folder;

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
    #[error("the key file `{}` is missing; restore it, or delete the stored credentials", .0.display())]
    FileMissing(PathBuf),
    #[error("no key is configured; set `HAFT_KEY` to {FORMAT}")]
    NotConfigured,
}

/// Where the key comes from.
#[derive(Clone)]
pub(crate) enum KeySource {
    Configured(Cipher),
    File(PathBuf),
    None,
}

/// What to do if the key file is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfMissing {
    Create,
    Fail,
}

impl KeySource {
    pub(crate) fn new(configured: Option<&Secret>, home: Option<&Path>) -> Result<Self, KeyError> {
        match (configured, home) {
            (Some(key), _) => Ok(KeySource::Configured(parse(key.expose()).ok_or(KeyError::Format)?)),
            (None, Some(home)) => Ok(KeySource::File(home.join("key"))),
            (None, None) => Ok(KeySource::None),
        }
    }

    /// Describes the source for messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            KeySource::Configured(_) => "the configured key (`HAFT_KEY`)".into(),
            KeySource::File(path) => format!("the key in `{}`", path.display()),
            KeySource::None => "the missing key".into(),
        }
    }

    /// Returns the key. Blocks.
    pub(crate) fn cipher(&self, if_missing: IfMissing) -> Result<Cipher, KeyError> {
        match self {
            KeySource::Configured(cipher) => Ok(cipher.clone()),
            KeySource::None => Err(KeyError::NotConfigured),
            KeySource::File(path) => match std::fs::read_to_string(path).map(Zeroizing::new) {
                Ok(text) => parse(&text).ok_or_else(|| KeyError::FileFormat(path.clone())),
                Err(source) if source.kind() == io::ErrorKind::NotFound => match if_missing {
                    IfMissing::Fail => Err(KeyError::FileMissing(path.clone())),
                    IfMissing::Create => {
                        create(path).map_err(|source| KeyError::Io { path: path.clone(), source })
                    }
                },
                Err(source) => Err(KeyError::Io { path: path.clone(), source }),
            },
        }
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
        let source = KeySource::new(None, Some(home.path())).unwrap();
        assert!(matches!(source.cipher(IfMissing::Fail), Err(KeyError::FileMissing(_))));
        let value = Secret::new("v".into());
        let sealed = source.cipher(IfMissing::Create).unwrap().seal("t", "n", &value).unwrap();
        assert_eq!(source.cipher(IfMissing::Create).unwrap().open("t", "n", &sealed).unwrap(), value);
        let mode = std::fs::metadata(home.path().join("key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(home.path().join("key"), "short").unwrap();
        assert!(matches!(source.cipher(IfMissing::Create), Err(KeyError::FileFormat(_))));
    }

    #[test]
    fn a_configured_key_has_64_digits() {
        for (text, good) in [("a".repeat(64), true), ("a".repeat(63), false), ("g".repeat(64), false)] {
            assert_eq!(KeySource::new(Some(&Secret::new(text)), None).is_ok(), good);
        }
    }
}
