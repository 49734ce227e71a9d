//! The engine `bubblewrap`: Linux namespaces.
//!
//! Options are passed in an anonymous file, not on the command line, so that neither the process list of the machine nor
//! the confined process shows paths or values. The child is blocked until its limits are set.

use std::ffi::{OsStr, OsString};
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::Instant;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::Child;

use super::{mounts, shared};
use crate::cgroup::Group;
use crate::command::{Command, Level};
use crate::engine::EngineContext;
use crate::error::SandboxError;
use crate::fds;
use crate::owner;
use crate::running::{Running, RunningTree, StdinHandle, TreeHandle};
use crate::seccomp::{self, FilterOptions, Sockets};
use crate::settings::EngineName;

const NAME: EngineName = EngineName::Bubblewrap;

/// The engine.
#[derive(Debug)]
pub(crate) struct Bubblewrap {
    program: PathBuf,
    /// The features of the installed version.
    features: Features,
    filters: Vec<Vec<u8>>,
    /// For processes that could reach Unix sockets of the machine.
    filters_without_unix: Vec<Vec<u8>>,
}

/// Features of later bubblewrap versions.
#[derive(Debug, Clone, Copy)]
struct Features {
    disable_userns: bool,
    sizes: bool,
}

impl Bubblewrap {
    /// Finds the program and its features.
    pub(crate) async fn open(context: &EngineContext) -> Result<Self, SandboxError> {
        let missing = |reason: &str| SandboxError::Unavailable { engine: NAME, reason: reason.to_owned() };
        let program = shared::find_program("bwrap")
            .ok_or_else(|| missing("program `bwrap` not found; install the package `bubblewrap`"))?;
        let mut process = new_process(&program);
        process.arg("--help");
        shared::connect(&mut process, &crate::Input::Empty).map_err(SandboxError::system("open a pipe"))?;
        let child = context.spawner.spawn(process, Vec::new()).await;
        let child = child.map_err(|error| missing(&format!("failed to start `bwrap`: {error}")))?;
        let output = child.wait_with_output().await.map_err(SandboxError::system("read from `bwrap`"))?;
        let help = [output.stdout, output.stderr].concat();
        let help = String::from_utf8_lossy(&help);
        if !help.contains("--add-seccomp-fd") {
            return Err(missing("`bwrap` is older than version 0.5; install a newer version"));
        }
        let features =
            Features { disable_userns: help.contains("--disable-userns"), sizes: help.contains("--size") };
        let filters = |sockets| {
            let filters = seccomp::filters(FilterOptions { sockets, ..FilterOptions::default() });
            let filters =
                filters.map_err(|error| missing(&format!("no seccomp filter for this machine: {error}")))?;
            Ok::<_, SandboxError>(filters.iter().map(seccomp::bytes).collect())
        };
        let (filters, filters_without_unix) = (filters(Sockets::All)?, filters(Sockets::NoUnix)?);
        Ok(Self { program, features, filters, filters_without_unix })
    }

    /// Starts a process.
    pub(crate) async fn start(
        &self,
        context: &EngineContext,
        command: &Command,
    ) -> Result<Running, SandboxError> {
        let system = SandboxError::system;
        let mut inherited = Vec::new();
        let (blocked, unblock) = fds::pipe().map_err(system("open a pipe"))?;
        // bubblewrap also continues at the end of the pipe. It keeps the write end open itself, so that this does not
        // happen if the server is killed before it has set the limits.
        let open = unblock.try_clone().map_err(system("open a pipe"))?;
        let (status, status_writer) = fds::pipe().map_err(system("open a pipe"))?;
        let options = self
            .options(context, command, &mut inherited)
            .map_err(system("prepare the options of `bwrap`"))?;
        let mut options = options;
        options.pair("--block-fd", fds::number(&blocked));
        options.pair("--sync-fd", fds::number(&open));
        options.pair("--json-status-fd", fds::number(&status_writer));
        let options = fds::file_of(c"options", &options.bytes).map_err(system("make an anonymous file"))?;
        let mut process = new_process(&self.program);
        process.env(owner::VARIABLE, owner::mark());
        process.arg("--args").arg(fds::number(&options)).arg("--").args(&command.argv);
        inherited.extend([blocked, open, status_writer, options]);
        let socket = shared::connect(&mut process, &command.input).map_err(system("open a socket"))?;
        let group = context.control.group(&command.limits).map_err(system("make a control group"))?;
        let started = Instant::now();
        let child = context.spawner.spawn(process, inherited).await.map_err(system("start `bwrap`"))?;
        let starting = BlockedChild { child, status, unblock, socket, group };
        starting.unblock(context, command, started).await
    }

    /// The machine's network exposes abstract Unix sockets, and its files expose sockets with a path. An isolated process
    /// must reach no services of the machine, and one without network none at all.
    fn filters_for(&self, command: &Command) -> &[Vec<u8>] {
        match (command.level(), command.network) {
            (Level::Isolated, true) | (Level::Host, false) => &self.filters_without_unix,
            (Level::Isolated, false) | (Level::Host, true) => &self.filters,
        }
    }

    fn options(
        &self,
        context: &EngineContext,
        command: &Command,
        inherited: &mut Vec<OwnedFd>,
    ) -> io::Result<Options> {
        let mut options = Options { bytes: Vec::new(), sizes: self.features.sizes };
        options.all(["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]);
        options.all(["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv"]);
        options.pair("--cap-drop", "ALL");
        if self.features.disable_userns {
            options.one("--disable-userns");
        }
        if !command.network {
            options.one("--unshare-net");
        }
        if command.first_process {
            options.one("--as-pid-1");
        }
        for filter in self.filters_for(command) {
            let file = fds::file_of(c"filter", filter)?;
            options.pair("--add-seccomp-fd", fds::number(&file));
            inherited.push(file);
        }
        match command.level() {
            Level::Isolated => isolated(&mut options, context, command, inherited)?,
            Level::Host => host(&mut options, context, command, inherited)?,
        }
        for (name, value) in &command.env {
            options.triple("--setenv", name, value);
        }
        options.pair("--chdir", command.directory.as_deref().unwrap_or(command.place.work()));
        Ok(options)
    }
}

/// Sets up an empty root with read-only system folders and private folders in memory.
fn isolated(
    options: &mut Options,
    context: &EngineContext,
    command: &Command,
    inherited: &mut Vec<OwnedFd>,
) -> io::Result<()> {
    options.pair("--uid", mounts::NOBODY.to_string());
    options.pair("--gid", mounts::NOBODY.to_string());
    options.pair("--hostname", "sandbox");
    for folder in mounts::present(&mounts::SYSTEM) {
        match mounts::link_of(folder) {
            Some(target) => options.triple("--symlink", target, folder),
            None => options.triple("--ro-bind", folder, folder),
        }
    }
    let network: &[&str] = if command.network { &mounts::NETWORK } else { &[] };
    let read_only = [mounts::STORES.as_slice(), &mounts::SETTINGS, network];
    for path in read_only.into_iter().flat_map(mounts::present) {
        options.triple("--ro-bind", path, path);
    }
    let read_only = context.settings.read_only.iter().filter(|path| path.exists());
    for path in read_only.clone() {
        options.triple("--ro-bind", path, path);
    }
    let system = mounts::SYSTEM.iter().chain(&mounts::STORES).map(Path::new);
    let shown: Vec<&Path> = system.chain(read_only.map(PathBuf::as_path)).collect();
    for path in context.hidden()?.iter().filter(|path| shown.iter().any(|shown| path.starts_with(shown))) {
        hide(options, path);
    }
    options.file(mounts::PASSWD.as_bytes(), Path::new("/etc/passwd"), inherited)?;
    options.file(mounts::GROUP.as_bytes(), Path::new("/etc/group"), inherited)?;
    devices(options, command);
    options.private("/tmp", command.limits.work);
    options.private(command.place.work(), command.limits.work);
    small_files(options, command, inherited)?;
    binds(options, command);
    options.pair("--remount-ro", "/");
    Ok(())
}

/// Exposes the machine's files, except the server's own.
fn host(
    options: &mut Options,
    context: &EngineContext,
    command: &Command,
    inherited: &mut Vec<OwnedFd>,
) -> io::Result<()> {
    options.triple("--bind", "/", "/");
    // Root could write here without any capability, and so escape.
    if Path::new("/sys").exists() {
        options.triple("--ro-bind", "/sys", "/sys");
    }
    devices(options, command);
    context.hidden()?.iter().for_each(|path| hide(options, path));
    // Again, because it may be inside a hidden folder.
    options.private(&context.settings.scratch, 1 << 20);
    options.private(command.place.work(), command.limits.work);
    small_files(options, command, inherited)?;
    binds(options, command);
    Ok(())
}

/// Covers a folder or a file.
fn hide(options: &mut Options, path: &Path) {
    if path.is_dir() {
        options.private(path, 1 << 20);
    } else {
        options.triple("--ro-bind", "/dev/null", path);
    }
}

/// Sets up a minimal `/dev` and its own `/proc`. `/proc` is read-only: root could otherwise write kernel settings and
/// escape.
fn devices(options: &mut Options, command: &Command) {
    options.pair("--dev", "/dev");
    options.private("/dev/shm", command.limits.work);
    options.pair("--remount-ro", "/dev");
    options.pair("--proc", "/proc");
    options.pair("--remount-ro", "/proc");
}

fn small_files(options: &mut Options, command: &Command, inherited: &mut Vec<OwnedFd>) -> io::Result<()> {
    let folder = command.place.files();
    options.pair("--dir", folder);
    command.files.iter().try_for_each(|file| options.file(&file.content, &folder.join(file.name), inherited))
}

fn binds(options: &mut Options, command: &Command) {
    for bind in &command.binds {
        let option = if bind.writable { "--bind" } else { "--ro-bind" };
        options.triple(option, &bind.host, command.place.seen_at(bind));
    }
}

/// Options in the format that bubblewrap reads from a file: each ends with a zero byte.
struct Options {
    bytes: Vec<u8>,
    sizes: bool,
}

impl Options {
    fn one(&mut self, word: impl AsRef<OsStr>) {
        self.bytes.extend_from_slice(word.as_ref().as_bytes());
        self.bytes.push(0);
    }

    fn all<const N: usize>(&mut self, words: [&str; N]) {
        for word in words {
            self.one(word);
        }
    }

    fn pair(&mut self, option: &str, value: impl AsRef<OsStr>) {
        self.one(option);
        self.one(value);
    }

    fn triple(&mut self, option: &str, first: impl AsRef<OsStr>, second: impl AsRef<OsStr>) {
        self.pair(option, first);
        self.one(second);
    }

    /// Adds a folder in memory with a size limit.
    fn private(&mut self, path: impl AsRef<OsStr>, bytes: u64) {
        if self.sizes {
            self.pair("--size", bytes.to_string());
        }
        self.pair("--tmpfs", path);
    }

    fn file(&mut self, content: &[u8], path: &Path, inherited: &mut Vec<OwnedFd>) -> io::Result<()> {
        let file = fds::file_of(c"file", content)?;
        self.pair("--perms", "0444");
        self.triple("--file", fds::number(&file), path);
        inherited.push(file);
        Ok(())
    }
}

/// A child that is blocked before it starts its program.
struct BlockedChild {
    child: Child,
    status: OwnedFd,
    unblock: OwnedFd,
    socket: Option<StdinHandle>,
    group: Group,
}

impl BlockedChild {
    /// Sets the limits of the first process and unblocks it.
    async fn unblock(
        mut self,
        context: &EngineContext,
        command: &Command,
        started: Instant,
    ) -> Result<Running, SandboxError> {
        let system = SandboxError::system;
        let mut status = pipe::Receiver::from_owned_fd(self.status).map_err(system("watch a pipe"))?;
        let Some(pid) = first_process(&mut status).await else {
            return Err(failure(self.child).await);
        };
        let guard = BlockedProcess(pid);
        let init = pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from);
        let init = init.and_then(fds::watch).map_err(system("open a process"))?;
        shared::limit(pid, &command.limits, &context.control).map_err(system("limit a process"))?;
        let number = pid.as_raw_nonzero().get().unsigned_abs();
        self.group.add(number).map_err(system("put a process in a control group"))?;
        rustix::io::write(&self.unblock, b"1").map_err(io::Error::from).map_err(system("start a process"))?;
        mem::forget(guard);
        let stdin = self.child.stdin.take().map(StdinHandle::Pipe).or(self.socket);
        Ok(Running {
            stdin,
            stdout: self.child.stdout.take(),
            stderr: self.child.stderr.take(),
            started,
            engine: NAME,
            tree: Some(RunningTree {
                child: self.child,
                killed: false,
                handle: TreeHandle::Namespace { init, pid, status },
                group: Some(self.group),
                folder: None,
            }),
        })
    }
}

/// The first process of a namespace while it is blocked. Killed on drop, because it would wait forever.
struct BlockedProcess(Pid);

impl Drop for BlockedProcess {
    fn drop(&mut self) {
        // Its parent, the engine, still runs, so the pid is not reused.
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// Reads the pid of the first process; `None` where the setup failed.
async fn first_process(status: &mut pipe::Receiver) -> Option<Pid> {
    let mut line = Vec::with_capacity(256);
    while !line.contains(&b'\n') && line.len() < 4096 {
        if status.read_buf(&mut line).await.ok()? == 0 {
            return None;
        }
    }
    let line = line.split(|byte| *byte == b'\n').next()?;
    let report: serde_json::Value = serde_json::from_slice(line).ok()?;
    Pid::from_raw(i32::try_from(report.get("child-pid")?.as_i64()?).ok()?)
}

/// Returns the error of a failed setup.
async fn failure(child: Child) -> SandboxError {
    match child.wait_with_output().await {
        Ok(output) => engine_failure(&String::from_utf8_lossy(&output.stderr)),
        Err(source) => SandboxError::System { operation: "read from `bwrap`", source },
    }
}

/// Parses the standard error of bubblewrap, which has no other way to report why it did not start the program.
pub(crate) fn engine_failure(stderr: &str) -> SandboxError {
    let line = stderr.lines().rev().find_map(|line| line.strip_prefix("bwrap: ")).unwrap_or(stderr).trim();
    match line.strip_prefix("execvp ").and_then(|rest| rest.rsplit_once(": ")) {
        Some((program, "No such file or directory")) => SandboxError::MissingProgram(program.to_owned()),
        _ => SandboxError::Engine { engine: NAME, message: line.chars().take(500).collect() },
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the crate that starts processes")]
fn new_process(program: &Path) -> Process {
    let mut process = Process::new(program);
    process.env_clear().current_dir("/");
    // bubblewrap itself gets no other variables, such as a library path.
    process.env("PATH", OsString::from("/usr/bin:/bin"));
    process
}
