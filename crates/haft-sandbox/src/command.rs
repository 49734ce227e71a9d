//! What is to run, and how it is confined.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;

use crate::engine::Folder;
use crate::settings::EngineName;

/// One process to run confined.
pub struct Command {
    /// Where it runs: from [`crate::Sandbox::place`].
    pub place: SandboxLayout,
    /// The program, found in the `PATH` of [`Command::env`] unless it has a slash, and its arguments.
    pub argv: Vec<OsString>,
    /// The whole environment: nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// What it reads.
    pub input: Input,
    /// Whether it has the machine's network; without, it has none at all.
    pub network: bool,
    /// Folders of the machine that it gets besides what the level gives.
    pub binds: Vec<Bind>,
    /// Small files that it finds in the folder [`SandboxLayout::files`], read-only.
    pub files: Vec<File>,
    /// Where it starts; `None` means its private working folder, [`SandboxLayout::work`].
    pub directory: Option<PathBuf>,
    /// What it may use.
    pub limits: Limits,
    /// The image, for the engines that have images.
    pub image: Option<String>,
    /// Whether it is the first process of its PID namespace, which its descendants cannot kill. Requires
    /// [`SandboxLayout::has_own_processes`].
    pub first_process: bool,
}

impl Command {
    /// Creates a command without network, with an empty environment and the default limits.
    pub fn new(place: SandboxLayout, argv: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            place,
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            input: Input::Empty,
            network: false,
            binds: Vec::new(),
            files: Vec::new(),
            directory: None,
            limits: Limits::default(),
            image: None,
            first_process: false,
        }
    }

    pub(crate) fn level(&self) -> Level {
        self.place.level
    }

    /// Returns the value of a variable of the environment.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsString> {
        self.env.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Adds a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }
}

/// Values of variables, arguments and files may be secret, so only names are shown.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.argv.first())
            .field("env", &self.env.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("place", &self.place)
            .field("network", &self.network)
            .field("binds", &self.binds)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The standard input of a process.
#[derive(Clone)]
pub enum Input {
    /// Nothing.
    Empty,
    /// These bytes.
    Bytes(Bytes),
    /// A pipe written by the caller.
    Pipe,
    /// A Unix socket connected to the caller.
    Socket,
}

/// The engine of a process, and the paths of its private folders as the process sees them.
#[derive(Debug)]
pub struct SandboxLayout {
    pub(crate) engine: EngineName,
    pub(crate) level: Level,
    pub(crate) work: PathBuf,
    pub(crate) files: PathBuf,
    /// The folders on disk, if the engine needs any; removed with the process.
    pub(crate) folder: Option<Folder>,
}

impl SandboxLayout {
    /// Returns the private working folder.
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// Returns the folder of [`Command::files`].
    pub fn files(&self) -> &Path {
        &self.files
    }

    /// Returns the engine.
    pub fn engine(&self) -> EngineName {
        self.engine
    }

    /// Returns whether the process has its own PID namespace, in which it can kill all others.
    pub fn has_own_processes(&self) -> bool {
        self.engine == EngineName::Bubblewrap
    }

    /// Returns the path of a bound folder as the process sees it.
    pub fn seen_at<'a>(&self, bind: &'a Bind) -> &'a Path {
        match (self.engine, self.level) {
            (EngineName::Landlock, _) | (_, Level::Host) => &bind.host,
            _ => &bind.guest,
        }
    }
}

/// How much of the machine a process sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// The machine's files with the rights of the server's user, except the server's own folder.
    Host,
    /// An empty root with read-only system folders, and temporary private folders.
    Isolated,
}

/// A folder of the machine that a process can access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// Its path on the machine.
    pub host: PathBuf,
    /// Its path in the sandbox, if the engine supports another path: see [`SandboxLayout::seen_at`].
    pub guest: PathBuf,
    /// Whether the process can write to it.
    pub writable: bool,
}

impl Bind {
    /// Binds a folder read-only.
    pub fn read_only(host: impl AsRef<Path>, guest: impl AsRef<Path>) -> Self {
        Self { host: host.as_ref().into(), guest: guest.as_ref().into(), writable: false }
    }

    /// Binds a folder for reading and writing.
    pub fn writable(host: impl AsRef<Path>, guest: impl AsRef<Path>) -> Self {
        Self { host: host.as_ref().into(), guest: guest.as_ref().into(), writable: true }
    }
}

/// A small read-only file for a process.
#[derive(Clone)]
pub struct File {
    /// Its name, without a slash.
    pub name: &'static str,
    /// Its content.
    pub content: Bytes,
}

/// The resource limits of a process and its descendants.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Wall time.
    pub wall: Duration,
    /// CPU time of each process.
    pub cpu: Duration,
    /// Number of CPUs; needs control groups.
    pub cpus: f64,
    /// Bytes of memory: of all processes together with control groups, otherwise of each.
    pub memory: u64,
    /// Number of processes and threads.
    pub processes: u32,
    /// Bytes of each written file.
    pub file_size: u64,
    /// Bytes in each private folder, if the engine keeps them in memory.
    pub work: u64,
    /// Open files of each process.
    pub open_files: u64,
    /// Captured bytes of each output stream.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(30),
            cpu: Duration::from_secs(30),
            cpus: 2.0,
            memory: 512 << 20,
            processes: 128,
            file_size: 64 << 20,
            work: 128 << 20,
            open_files: 1024,
            output: 4 << 20,
        }
    }
}
