//! The resolved configuration: the settings, and where each value comes from.

use std::collections::BTreeMap;

use haft_core::mcp::McpServer;
use haft_core::secret::MASK;
use haft_server::settings::{
    DeclaredSecretCommand, SecretFileSettings, SettingSource, Settings, VaultSettings,
};

use super::keys::Key;
use super::value::{InvalidValue, Value};

/// The resolved configuration.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    /// The settings of the server.
    pub(crate) settings: Settings,
    /// The log settings.
    pub(crate) log: LogSettings,
    /// Names of environment variables that `${NAME}` may read.
    pub(super) secret_names: Vec<String>,
    /// The commands whose output is a secret.
    pub(super) secret_commands: Vec<DeclaredSecretCommand>,
    /// The MCP servers that the file declares.
    pub(super) mcp_servers: Vec<McpServer>,
    /// Warnings.
    pub(crate) warnings: Vec<String>,
    /// The values that are not defaults, by key, with secrets masked, and where each comes from.
    pub(super) origins: BTreeMap<&'static str, (Value, SettingSource)>,
}

/// The log settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogSettings {
    /// A filter such as `info` or `haft_server=debug,warn`.
    pub(crate) level: String,
    /// The format of log lines.
    pub(crate) format: LogFormat,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Text.
    Text,
    /// One JSON object per line.
    Json,
}

impl Resolved {
    /// Sets the value of a key, and notes where it comes from.
    pub(super) fn set(&mut self, key: &Key, value: Value, source: SettingSource) -> Result<(), InvalidValue> {
        (key.set)(self, &value)?;
        let is_secret = SECRET_KEYS.contains(&key.full) && value != Value::Text(String::new());
        let shown = if is_secret { Value::Text(MASK.to_owned()) } else { value };
        self.origins.insert(key.full, (shown, source));
        Ok(())
    }

    /// Returns the settings of Vault.
    pub(super) fn vault(&mut self) -> &mut VaultSettings {
        &mut self.settings.secrets.sources.vault
    }

    /// Returns the settings of the folder whose files are secrets.
    pub(super) fn secret_files(&mut self) -> &mut SecretFileSettings {
        &mut self.settings.secrets.sources.files
    }

    /// Returns the defaults.
    pub(super) fn new(settings: Settings) -> Self {
        let log = LogSettings { level: "info".to_owned(), format: LogFormat::Text };
        Self {
            settings,
            log,
            secret_names: Vec::new(),
            secret_commands: Vec::new(),
            mcp_servers: Vec::new(),
            warnings: Vec::new(),
            origins: BTreeMap::new(),
        }
    }
}

/// Keys whose values contain credentials.
const SECRET_KEYS: [&str; 5] = [
    "database_url",
    "blobs.secret_access_key",
    "secrets.vault.token",
    "secrets.vault.secret_id",
    "python.index_url",
];
