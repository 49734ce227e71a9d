//! The settings of environments.

use std::time::Duration;

use haft_core::secret::Secret;

/// The settings of an installation for Python packages.
#[derive(Debug, Clone)]
pub struct PythonSettings {
    /// The package index, which may contain credentials; `None` is the default of the installer.
    pub index_url: Option<Secret>,
    /// Whether packages without a wheel are built, which runs their code.
    pub allow_builds: bool,
    /// The time limit of an installation.
    pub build_timeout: Duration,
    /// How long an environment that no tool needs is kept after its last use.
    pub keep_unused: Duration,
    /// The maximum size of an environment in bytes.
    pub max_bytes: u64,
}

impl Default for PythonSettings {
    fn default() -> Self {
        Self {
            index_url: None,
            allow_builds: false,
            build_timeout: Duration::from_mins(5),
            keep_unused: Duration::from_hours(14 * 24),
            max_bytes: 2 << 30,
        }
    }
}
