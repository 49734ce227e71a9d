//! State and helpers shared by the engines.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};
use std::sync::Arc;

use rustix::process::{Pid, Resource, Rlimit};

use super::hidden::HiddenPaths;
use crate::cgroup::Control;
use crate::command::{Command, Input, Limits};
use crate::error::SandboxError;
use crate::owner;
use crate::running::StdinHandle;
use crate::settings::Settings;
use crate::spawner::Spawner;

/// State shared by the engines.
#[derive(Debug, Clone)]
pub(crate) struct EngineContext {
    pub(crate) settings: Settings,
    hidden: Arc<HiddenPaths>,
    pub(crate) spawner: Spawner,
    pub(crate) control: Control,
}

impl EngineContext {
    pub(crate) fn open(mut settings: Settings) -> Result<Self, SandboxError> {
        let failed = |source| SandboxError::Prepare { path: settings.scratch.clone(), source };
        std::fs::create_dir_all(&settings.scratch).map_err(failed)?;
        // Mounts and rules need the canonical path.
        settings.scratch = settings.scratch.canonicalize().map_err(failed)?;
        owner::end_left_processes();
        super::folder::sweep(&settings.scratch);
        let hidden = HiddenPaths::open(settings.hidden.iter().chain([&settings.scratch]));
        let spawner =
            Spawner::start().map_err(SandboxError::system("start the thread that starts processes"))?;
        Ok(Self { settings, hidden: Arc::new(hidden), spawner, control: Control::default() })
    }

    /// Returns the current paths of hidden folders, including the scratch folder.
    pub(crate) fn hidden(&self) -> io::Result<Vec<PathBuf>> {
        self.hidden.paths()
    }
}

/// The longest argument or variable that Linux accepts, with its terminating zero.
const MAX_ARGUMENT_BYTES: usize = 131_072;
/// The limit of arguments and variables together. Linux allows a quarter of the stack, which is 2 MiB.
const MAX_TOTAL_BYTES: usize = 1 << 20;
/// The limit of arguments, and of variables. bubblewrap accepts 9,000 words, and a variable needs three.
const MAX_ENTRIES: usize = 2_000;

/// Rejects arguments and variables that no process can receive.
pub(crate) fn check(command: &Command) -> Result<(), SandboxError> {
    let reject = |what: String, why| Err(SandboxError::Argument { what, why });
    let problem = |text: &OsStr, more: usize| match text.as_bytes() {
        bytes if bytes.contains(&0) => Some("contains a NUL character"),
        bytes if bytes.len() + more >= MAX_ARGUMENT_BYTES => Some("exceeds the limit of 128 KiB"),
        _ => None,
    };
    for (index, argument) in command.argv.iter().enumerate() {
        if let Some(why) = problem(argument, 0) {
            return reject(format!("argument {index}"), why);
        }
    }
    for (name, value) in &command.env {
        let shown = format!("the variable `{}`", name.to_string_lossy());
        if name.is_empty() || name.as_bytes().contains(&b'=') || name.as_bytes().contains(&0) {
            return reject(shown, "has an invalid name");
        }
        if let Some(why) = problem(value, name.len() + 1) {
            return reject(shown, why);
        }
    }
    // Each has a terminating zero and a pointer; a variable also has an equals sign.
    let arguments = command.argv.iter().map(|argument| argument.len() + 9);
    let variables = command.env.iter().map(|(name, value)| name.len() + value.len() + 10);
    if arguments.len() > MAX_ENTRIES || variables.len() > MAX_ENTRIES {
        let what = if arguments.len() > MAX_ENTRIES { "the command" } else { "the environment" };
        return reject(what.to_owned(), "exceeds the limit of 2,000 entries; pass them in a file");
    }
    if arguments.chain(variables).sum::<usize>() > MAX_TOTAL_BYTES {
        let what = "the arguments and variables together".to_owned();
        return reject(what, "exceed the limit of 1 MiB; pass them in a file");
    }
    if command.argv.is_empty() { reject("the command".to_owned(), "is empty") } else { Ok(()) }
}

/// Connects the standard streams; returns the caller's end of the input, if it is a socket.
pub(crate) fn connect(process: &mut Process, input: &Input) -> io::Result<Option<StdinHandle>> {
    process.stdout(Stdio::piped()).stderr(Stdio::piped());
    match input {
        Input::Empty => process.stdin(Stdio::null()),
        Input::Bytes(_) | Input::Pipe => process.stdin(Stdio::piped()),
        Input::Socket => {
            let (ours, theirs) = UnixStream::pair()?;
            process.stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)));
            return Ok(Some(StdinHandle::Socket(ours)));
        }
    };
    Ok(None)
}

/// Returns the rlimits of each process. Memory and processes are limited here only without control groups.
pub(crate) fn rlimits(limits: &Limits, control: &Control) -> Vec<(Resource, u64, u64)> {
    let seconds = limits.cpu.as_secs_f64().ceil().max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 1; saturates")]
    let seconds = seconds as u64;
    let mut each = vec![
        // The soft limit lets a program exit cleanly; the hard limit kills it.
        (Resource::Cpu, seconds, seconds.saturating_add(1)),
        (Resource::Fsize, limits.file_size, limits.file_size),
        (Resource::Nofile, limits.open_files, limits.open_files),
        // Not 0: the kernel would still run a configured crash handler.
        (Resource::Core, 1, 1),
    ];
    if !control.limits_memory() {
        each.push((Resource::As, limits.memory, limits.memory));
    }
    if !control.limits_processes() {
        let processes = u64::from(limits.processes);
        each.push((Resource::Nproc, processes, processes));
    }
    for (resource, soft, hard) in &mut each {
        // Limits above the server's own would be rejected.
        let own = rustix::process::getrlimit(*resource).maximum.unwrap_or(u64::MAX);
        (*soft, *hard) = ((*soft).min(own), (*hard).min(own));
    }
    each
}

/// Sets the rlimits of a process before it starts its program.
pub(crate) fn limit(pid: Pid, limits: &Limits, control: &Control) -> io::Result<()> {
    for (resource, soft, hard) in rlimits(limits, control) {
        let limit = Rlimit { current: Some(soft), maximum: Some(hard) };
        rustix::process::prlimit(Some(pid), resource, limit)?;
    }
    Ok(())
}

/// Finds a program in the usual folders.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    ["/usr/bin", "/usr/local/bin", "/bin", "/usr/sbin", "/sbin", "/run/current-system/sw/bin"]
        .iter()
        .map(|folder| PathBuf::from(folder).join(name))
        .find(|path| path.is_file())
}
