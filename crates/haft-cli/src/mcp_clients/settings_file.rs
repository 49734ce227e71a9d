//! The configuration file of a client: read whole, changed as text, replaced at once. The first change keeps a backup.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::client::{Format, McpClient};
use super::{json, toml, yaml};
use crate::environment::Environment;

/// The largest configuration. That of Claude Code has the history of its projects, too.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The permissions of a new file: it may have a token.
const PRIVATE: u32 = 0o600;

/// The configuration of a client cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    /// The home folder of the user is unknown.
    #[error("no folder for the configuration: `HOME` is not set")]
    NoHome,
    /// Reading or writing failed.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file cannot be changed safely.
    #[error("`{}` cannot be changed: {reason}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// The configuration file of a client.
pub(crate) struct SettingsFile {
    client: McpClient,
    path: PathBuf,
    /// Its content; `None` if it does not exist.
    text: Option<String>,
}

impl SettingsFile {
    /// Reads the configuration of a client; a missing file is empty.
    pub(crate) fn read(client: McpClient, environment: &Environment) -> Result<Self, SettingsError> {
        let path = client.path(environment).ok_or(SettingsError::NoHome)?;
        let mut text = String::new();
        let read =
            std::fs::File::open(&path).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
        let text = match read {
            Ok(count) if count as u64 > MAX_BYTES => {
                return Err(SettingsError::Unsupported {
                    path,
                    reason: "it is larger than 64 MiB".to_owned(),
                });
            }
            Ok(_) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(source) => return Err(SettingsError::Io { action: "read", path, source }),
        };
        Ok(Self { client, path, text })
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the client seems to be installed: the file, or the folder that it makes for its files, exists.
    pub(crate) fn is_client_present(&self) -> bool {
        self.text.is_some()
            || self.path.parent().is_some_and(|folder| self.client.has_own_folder() && folder.is_dir())
    }

    /// Returns the text of an entry.
    pub(crate) fn entry(&self, name: &str) -> Result<Option<String>, SettingsError> {
        let (text, section) = (self.text.as_deref().unwrap_or_default(), self.client.section());
        let found = match self.client.format() {
            Format::Json => json::get(text, section, name),
            Format::Toml => toml::get(text, section, name),
            Format::Yaml => yaml::get(text, section, name),
        };
        found.map_err(|reason| self.unsupported(reason))
    }

    /// Returns the content with an entry, without writing it.
    pub(crate) fn with_entry(&self, name: &str, entry: &Value) -> Result<String, SettingsError> {
        put(self.text.as_deref().unwrap_or_default(), self.client, name, entry)
            .map_err(|reason| self.unsupported(reason))
    }

    /// Returns a configuration that has nothing but an entry.
    pub(crate) fn only_entry(client: McpClient, name: &str, entry: &Value) -> String {
        put("", client, name, entry).unwrap_or_default()
    }

    /// Returns the content without an entry, without writing it.
    pub(crate) fn without_entry(&self, name: &str) -> Result<String, SettingsError> {
        let (text, section) = (self.text.as_deref().unwrap_or_default(), self.client.section());
        let changed = match self.client.format() {
            Format::Json => json::remove(text, section, name),
            Format::Toml => toml::remove(text, section, name),
            Format::Yaml => yaml::remove(text, section, name),
        };
        changed.map_err(|reason| self.unsupported(reason))
    }

    /// Replaces the content; returns the path of the backup, if there was a file.
    pub(crate) fn write(&self, text: &str) -> Result<Option<PathBuf>, SettingsError> {
        // A link is followed, so that settings that are kept elsewhere stay there.
        let path = std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let failed = |action| move |source| SettingsError::Io { action, path: self.path.clone(), source };
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(failed("create the folder of"))?;
        let backup = self.text.as_deref().map(|text| back_up(&path, text)).transpose()?;
        let mode = std::fs::metadata(&path).map_or(PRIVATE, |metadata| metadata.permissions().mode());
        replace(folder, &path, text, mode).map_err(failed("write"))?;
        Ok(backup)
    }

    fn unsupported(&self, reason: String) -> SettingsError {
        SettingsError::Unsupported { path: self.path.clone(), reason }
    }
}

fn put(text: &str, client: McpClient, name: &str, entry: &Value) -> Result<String, String> {
    match client.format() {
        Format::Json => json::put(text, client.section(), name, entry),
        Format::Toml => toml::put(text, client.section(), name, entry),
        Format::Yaml => yaml::put(text, client.section(), name, entry),
    }
}

/// Keeps the content as it was read.
fn back_up(path: &Path, text: &str) -> Result<PathBuf, SettingsError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".haft-backup");
    let backup = path.with_file_name(name);
    let folder = backup.parent().unwrap_or(Path::new("."));
    replace(folder, &backup, text, PRIVATE).map_err(|source| SettingsError::Io {
        action: "write",
        path: backup.clone(),
        source,
    })?;
    Ok(backup)
}

/// Replaces a file at once, so that the client never reads a part of it.
fn replace(folder: &Path, path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
