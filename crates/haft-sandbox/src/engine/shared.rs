//! What every engine works with.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};
use std::sync::Arc;

use rustix::process::{Pid, Resource, Rlimit};

use super::hidden::Hidden;
use crate::cgroup::Control;
use crate::command::{Command, Input, Limits};
use crate::error::SandboxError;
use crate::owner;
use crate::running::StdinHandle;
use crate::settings::Settings;
use crate::spawner::Spawner;

/// What every engine works with.
#[derive(Debug, Clone)]
pub(crate) struct Workshop {
    pub(crate) settings: Settings,
    hidden: Arc<Hidden>,
    pub(crate) spawner: Spawner,
    pub(crate) control: Control,
}

impl Workshop {
    pub(crate) fn open(mut settings: Settings) -> Result<Self, SandboxError> {
        let failed = |source| SandboxError::Prepare { path: settings.scratch.clone(), source };
        std::fs::create_dir_all(&settings.scratch).map_err(failed)?;
        // Mounts and rules are made for the true path.
        settings.scratch = settings.scratch.canonicalize().map_err(failed)?;
        owner::end_left_processes();
        super::folder::sweep(&settings.scratch);
        let hidden = Hidden::open(settings.hidden.iter().chain([&settings.scratch]));
        let spawner =
            Spawner::start().map_err(SandboxError::system("start the thread that starts processes"))?;
        Ok(Self { settings, hidden: Arc::new(hidden), spawner, control: Control::default() })
    }

    /// Returns where the folders are now that no process ever sees, among them the one with what lies on disk.
    pub(crate) fn hidden(&self) -> Vec<PathBuf> {
        self.hidden.paths()
    }
}

/// The longest argument or variable that Linux passes to a process, with its closing zero.
const MAX_LENGTH: usize = 131_072;
/// What arguments and variables may take together. Linux allows a quarter of the stack, which is 2 MiB.
const MAX_COUNT: usize = 1 << 20;
/// How many arguments, and how many variables, a process may have: bubblewrap knows 9,000 words, three for a variable.
const MAX_WORDS: usize = 2_000;

/// Refuses what no process can be given.
pub(crate) fn check(command: &Command) -> Result<(), SandboxError> {
    let refuse = |what: String, why| Err(SandboxError::Argument { what, why });
    let flaw = |text: &OsStr, more: usize| match text.as_bytes() {
        bytes if bytes.contains(&0) => Some("contains a NUL character"),
        bytes if bytes.len() + more >= MAX_LENGTH => {
            Some("is longer than 128 KiB, the most that a process takes")
        }
        _ => None,
    };
    for (index, argument) in command.argv.iter().enumerate() {
        if let Some(why) = flaw(argument, 0) {
            return refuse(format!("argument {index}"), why);
        }
    }
    for (name, value) in &command.env {
        let shown = format!("the variable `{}`", name.to_string_lossy());
        if name.is_empty() || name.as_bytes().contains(&b'=') || name.as_bytes().contains(&0) {
            return refuse(shown, "has no name that a process takes");
        }
        if let Some(why) = flaw(value, name.len() + 1) {
            return refuse(shown, why);
        }
    }
    // Each has a closing zero and a pointer; a variable has an equals sign besides.
    let arguments = command.argv.iter().map(|argument| argument.len() + 9);
    let variables = command.env.iter().map(|(name, value)| name.len() + value.len() + 10);
    if arguments.len() > MAX_WORDS || variables.len() > MAX_WORDS {
        let what = if arguments.len() > MAX_WORDS { "the command" } else { "the environment" };
        return refuse(what.to_owned(), "has more than 2,000 entries; pass them in a file");
    }
    if arguments.chain(variables).sum::<usize>() > MAX_COUNT {
        let what = "the arguments and variables together".to_owned();
        return refuse(what, "are larger than 1 MiB, the most that a process takes; pass them in a file");
    }
    if command.argv.is_empty() { refuse("the command".to_owned(), "is empty") } else { Ok(()) }
}

/// Connects the standard streams; returns what the caller holds of the input, where it is a socket.
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

/// Returns the limits of each process. Those of memory and processes stand in for control groups.
pub(crate) fn limits_of_each(limits: &Limits, control: &Control) -> Vec<(Resource, u64, u64)> {
    let seconds = limits.cpu.as_secs_f64().ceil().max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 1; saturates")]
    let seconds = seconds as u64;
    let mut each = vec![
        // A program may end in order at the first; the second ends it.
        (Resource::Cpu, seconds, seconds.saturating_add(1)),
        (Resource::Fsize, limits.file_size, limits.file_size),
        (Resource::Nofile, limits.open_files, limits.open_files),
        // Not 0: with that, the kernel still runs the program that the machine may have for dumps.
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
        // A server that was given less itself cannot give more.
        let own = rustix::process::getrlimit(*resource).maximum.unwrap_or(u64::MAX);
        (*soft, *hard) = ((*soft).min(own), (*hard).min(own));
    }
    each
}

/// Sets the limits of a process that has not started its program yet.
pub(crate) fn limit(pid: Pid, limits: &Limits, control: &Control) -> io::Result<()> {
    for (resource, soft, hard) in limits_of_each(limits, control) {
        let limit = Rlimit { current: Some(soft), maximum: Some(hard) };
        rustix::process::prlimit(Some(pid), resource, limit)?;
    }
    Ok(())
}

/// Finds a program of the machine in the places where systems keep them.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    ["/usr/bin", "/usr/local/bin", "/bin", "/usr/sbin", "/sbin", "/run/current-system/sw/bin"]
        .iter()
        .map(|folder| PathBuf::from(folder).join(name))
        .find(|path| path.is_file())
}
