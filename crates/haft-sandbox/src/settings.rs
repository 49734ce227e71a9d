//! What an installation settles about its sandbox.

use std::fmt;
use std::path::PathBuf;

/// What an installation settles about its sandbox.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The engine that serves unless a tool asks for another.
    pub engine: EngineName,
    /// A folder of the server's own, for what must lie on disk while a process runs. It is made.
    pub scratch: PathBuf,
    /// Folders that no process ever sees, above all the server's own.
    pub hidden: Vec<PathBuf>,
    /// Further folders that isolated processes may read.
    pub read_only: Vec<PathBuf>,
    /// The image of container engines, where a tool names none.
    pub image: Option<String>,
}

impl Settings {
    /// Returns the usual settings with this folder for what must lie on disk.
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

/// What confines processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineName {
    /// bubblewrap: Linux namespaces, seccomp, control groups.
    Bubblewrap,
    /// Landlock and seccomp without namespaces.
    Landlock,
    /// Containers by Docker's command line.
    Docker,
    /// Containers by Podman's command line.
    Podman,
}

impl EngineName {
    /// Every engine.
    pub const ALL: [EngineName; 4] =
        [EngineName::Bubblewrap, EngineName::Landlock, EngineName::Docker, EngineName::Podman];

    /// Returns the spelling used in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            EngineName::Bubblewrap => "bubblewrap",
            EngineName::Landlock => "landlock",
            EngineName::Docker => "docker",
            EngineName::Podman => "podman",
        }
    }

    /// Reads the spelling used in the configuration.
    pub fn parse(text: &str) -> Option<EngineName> {
        EngineName::ALL.into_iter().find(|engine| engine.as_str() == text)
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
