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
    /// Whether it is itself the first process of a process namespace: then nothing stands beside it that what it
    /// starts could reach, and none of those can end it. Only where [`SandboxLayout::has_own_processes`].
    pub first_process: bool,
}

impl Command {
    /// Makes a command without network, with an empty environment and the usual limits.
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

/// Values of variables, arguments and files may be secret: only their names and sizes are shown.
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

/// What a process reads from its standard input.
#[derive(Clone)]
pub enum Input {
    /// Nothing.
    Empty,
    /// These bytes, then the end.
    Bytes(Bytes),
    /// A pipe that the caller writes.
    Pipe,
    /// A Unix socket that the caller holds the other end of.
    Socket,
}

/// Where a process runs: the engine, and its private folders as it sees them.
#[derive(Debug)]
pub struct SandboxLayout {
    pub(crate) engine: EngineName,
    pub(crate) level: Level,
    pub(crate) work: PathBuf,
    pub(crate) files: PathBuf,
    /// The folders on disk, where the engine needs some; they vanish with the process.
    pub(crate) folder: Option<Folder>,
}

impl SandboxLayout {
    /// Returns the private folder in which the process works.
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// Returns the folder in which it finds its small files.
    pub fn files(&self) -> &Path {
        &self.files
    }

    /// Returns the engine.
    pub fn engine(&self) -> EngineName {
        self.engine
    }

    /// Tells whether the process has a process namespace of its own, in which it can end all others.
    pub fn has_own_processes(&self) -> bool {
        self.engine == EngineName::Bubblewrap
    }

    /// Returns where the process finds a folder of the machine.
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
    /// The machine's files as the server's user may see them, without the server's own folder.
    Host,
    /// An empty root with read-only system folders, and private folders that vanish.
    Isolated,
}

/// A folder of the machine that a process gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// Where it lies.
    pub host: PathBuf,
    /// Where the process finds it, where the engine can move it: see [`SandboxLayout::seen_at`].
    pub guest: PathBuf,
    /// Whether the process may write there.
    pub writable: bool,
}

impl Bind {
    /// Makes a folder visible for reading.
    pub fn read_only(host: impl AsRef<Path>, guest: impl AsRef<Path>) -> Self {
        Self { host: host.as_ref().into(), guest: guest.as_ref().into(), writable: false }
    }

    /// Makes a folder visible for reading and writing.
    pub fn writable(host: impl AsRef<Path>, guest: impl AsRef<Path>) -> Self {
        Self { host: host.as_ref().into(), guest: guest.as_ref().into(), writable: true }
    }
}

/// A small read-only file that a process finds.
#[derive(Clone)]
pub struct File {
    /// Its name, without a slash.
    pub name: &'static str,
    /// What is in it.
    pub content: Bytes,
}

/// What a process and all its children may use.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Time on the clock.
    pub wall: Duration,
    /// Time on a processor, for each process.
    pub cpu: Duration,
    /// Processors at once, where the machine has control groups.
    pub cpus: f64,
    /// Bytes of memory: of all processes where the machine has control groups, else of each.
    pub memory: u64,
    /// Processes and threads at once.
    pub processes: u32,
    /// Bytes of each file that it writes.
    pub file_size: u64,
    /// Bytes in each of its private folders, where the engine keeps them in memory.
    pub work: u64,
    /// Open files of each process.
    pub open_files: u64,
    /// Bytes of output that are kept of each stream.
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
