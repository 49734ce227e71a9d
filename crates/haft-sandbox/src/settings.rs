//! Settings of the sandbox.

use std::fmt;
use std::path::PathBuf;

/// Settings of the sandbox.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The default engine.
    pub engine: EngineName,
    /// A private folder for files of running processes. It is created if missing.
    pub scratch: PathBuf,
    /// Folders hidden from every process, such as the server's own.
    pub hidden: Vec<PathBuf>,
    /// Further folders that isolated processes can read.
    pub read_only: Vec<PathBuf>,
    /// The default image of container engines.
    pub image: Option<String>,
}

impl Settings {
    /// Returns the default settings with this scratch folder.
    pub fn new(scratch: impl Into<PathBuf>) -> Self {
        Self {
            engine: EngineName::Bubblewrap,
            scratch: scratch.into(),
            hidden: Vec::new(),
            read_only: Vec::new(),
            image: None,
        }
    }
}

/// A sandbox engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineName {
    /// bubblewrap: Linux namespaces, seccomp and control groups.
    Bubblewrap,
    /// Landlock and seccomp without namespaces.
    Landlock,
    /// Docker containers.
    Docker,
    /// Podman containers.
    Podman,
}

impl EngineName {
    /// All engines.
    pub const ALL: [EngineName; 4] =
        [EngineName::Bubblewrap, EngineName::Landlock, EngineName::Docker, EngineName::Podman];

    /// Returns the name used in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            EngineName::Bubblewrap => "bubblewrap",
            EngineName::Landlock => "landlock",
            EngineName::Docker => "docker",
            EngineName::Podman => "podman",
        }
    }

    /// Parses the name used in the configuration.
    pub fn parse(text: &str) -> Option<EngineName> {
        EngineName::ALL.into_iter().find(|engine| engine.as_str() == text)
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
