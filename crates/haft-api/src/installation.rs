//! The installation itself.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A finished rotation of the key.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct KeyRotationView {
    /// The number of keys so far.
    #[schema(example = 2)]
    pub generation: i64,
    /// The number of credentials that were encrypted again.
    #[schema(example = 12)]
    pub credentials: usize,
    /// The next manual step; `null` if none is needed.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_step: Option<Cow<'static, str>>,
}

/// The effective configuration.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SettingList {
    /// In the order of the documentation; empty if a program embeds the server and configures it in code.
    pub settings: Vec<EffectiveSetting>,
}

/// A configuration value and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EffectiveSetting {
    /// The key, or the name of an environment variable.
    #[schema(example = "server.max_body_bytes")]
    pub key: String,
    /// The value; `***` for a secret.
    #[schema(value_type = Value, example = 8_388_608)]
    pub value: Value,
    /// Where it comes from.
    pub source: SettingSource,
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "Maximum size of a request body in bytes.")]
    pub description: Option<String>,
}

/// Where a configuration value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingSource {
    /// It is the default.
    Default,
    /// `haft.toml`.
    File,
    /// An environment variable.
    Environment,
    /// An option of the command line.
    Flag,
}

/// The checks of an installation.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DoctorReport {
    pub checks: Vec<Check>,
    /// The version of haft.
    #[schema(example = "0.1.0")]
    pub version: Cow<'static, str>,
    #[schema(example = "bubblewrap")]
    pub sandbox_engine: Cow<'static, str>,
    /// `SQLite` or `PostgreSQL`.
    #[schema(example = "SQLite")]
    pub store: Cow<'static, str>,
}

/// One check of an installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DoctorCheck)]
pub struct Check {
    /// The name of the check.
    #[schema(example = "disk space")]
    pub name: String,
    /// The result.
    pub status: CheckStatus,
    /// The finding.
    #[schema(example = "51200 MiB free")]
    pub message: String,
    /// The fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// No problem was found.
    Ok,
    /// It works, but needs attention.
    Warning,
    /// It does not work.
    Error,
}

impl Check {
    /// Creates a check.
    pub fn new(name: impl Into<String>, status: CheckStatus, message: impl Into<String>) -> Self {
        Self { name: name.into(), status, message: message.into(), fix: None }
    }

    /// Sets the fix.
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}
