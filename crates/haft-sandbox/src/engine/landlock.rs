//! The engine `landlock`: for machines without user namespaces; used only if configured.
//!
//! Landlock confines files and signals, seccomp sockets and process groups, rlimits and control groups the rest. There
//! is no namespace: a supervisor kills the tree by its process group, which no process can leave. The private folders
//! are on disk while it runs.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::Instant;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};

use rustix::process::Resource;

use super::child::{self, Confinement};
use super::{EngineContext, Folder, mounts, shared};
use crate::command::{Command, Level};
use crate::error::SandboxError;
use crate::fds;
use crate::running::{Running, RunningTree, StdinHandle, TreeHandle};
use crate::seccomp::{self, FilterOptions, Metadata, Sockets};
use crate::settings::EngineName;

const NAME: EngineName = EngineName::Landlock;

/// The requested set of rights; an older kernel enforces what it supports.
const NEWEST: ABI = ABI::V7;

/// The first Landlock version that confines signals and abstract sockets.
const ABI_WITH_SIGNALS: i32 = 6;

/// The first Landlock version that controls truncation of files.
const ABI_WITH_TRUNCATE: i32 = 3;

/// Kernel interfaces. Root could write settings there without any capability, and so escape.
const KERNEL: [&str; 2] = ["/proc", "/sys"];

/// The devices of every process. Others are disks, terminals and kernel interfaces.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The engine.
#[derive(Debug)]
pub(crate) struct Landlock {
    version: i32,
}

impl Landlock {
    /// Checks the Landlock version of the kernel.
    pub(crate) fn open() -> Result<Self, SandboxError> {
        let version = child::landlock_version();
        let unavailable =
            |reason: &str| Err(SandboxError::Unavailable { engine: NAME, reason: reason.to_owned() });
        match version {
            ..1 => unavailable("the kernel does not support Landlock, or it is disabled at boot"),
            1..ABI_WITH_TRUNCATE => {
                unavailable("the Landlock version of the kernel is too old; Linux 6.2 or newer is required")
            }
            ABI_WITH_TRUNCATE.. => Ok(Self { version }),
        }
    }

    /// Starts a process whose private folders are in `folder`.
    pub(crate) async fn start(
        &self,
        context: &EngineContext,
        command: &Command,
        folder: Folder,
    ) -> Result<Running, SandboxError> {
        let system = SandboxError::system;
        let failed = |what: String| SandboxError::Engine { engine: NAME, message: what };
        folder.write_files(&command.files)?;
        let hidden = context.hidden().map_err(system("read the mounts"))?;
        let rules =
            rules_for(context, command, &folder, hidden).map_err(|error| failed(error.to_string()))?;
        let rules: Option<OwnedFd> = rules.into();
        let rules = rules.ok_or_else(|| failed("the kernel returned no ruleset".to_owned()))?;
        let filters =
            seccomp::filters(self.filter_options(command)).map_err(|error| failed(error.to_string()))?;
        let group = context.control.group(&command.limits).map_err(system("make a control group"))?;
        let (held, lifeline) = fds::pipe().map_err(system("open a pipe"))?;
        let confinement = Confinement {
            lifeline: held,
            join_files: group.join_files().map_err(system("open a control group"))?,
            limits: rlimits_for(command, context),
            rules,
            filters,
        };
        let directory = command.directory.clone().unwrap_or_else(|| folder.path().join("work"));
        let mut process = process_of(command, &directory)?;
        let socket = shared::connect(&mut process, &command.input).map_err(system("open a socket"))?;
        confine(&mut process, confinement);
        let started = Instant::now();
        let spawned = context.spawner.spawn_supervised(process).await;
        let mut child = spawned.map_err(|error| not_started(command, error))?;
        Ok(Running {
            stdin: child.stdin.take().map(StdinHandle::Pipe).or(socket),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            started,
            engine: NAME,
            tree: Some(RunningTree {
                child,
                killed: false,
                handle: TreeHandle::Supervisor { lifeline: Some(lifeline) },
                group: Some(group),
                folder: Some(folder),
            }),
        })
    }

    fn filter_options(&self, command: &Command) -> FilterOptions {
        FilterOptions {
            sockets: match (command.network, command.level()) {
                (false, _) => Sockets::None,
                // Landlock does not control Unix sockets with a path.
                (true, Level::Isolated) => Sockets::NoUnix,
                (true, Level::Host) => Sockets::All,
            },
            sees_processes: true,
            no_signals: self.version < ABI_WITH_SIGNALS,
            metadata: match command.level() {
                Level::Isolated => Metadata::Ignored,
                Level::Host => Metadata::ByDescriptor,
            },
        }
    }
}

fn rules_for(
    context: &EngineContext,
    command: &Command,
    folder: &Folder,
    hidden: Vec<PathBuf>,
) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?;
    rules = rules.scope(Scope::from_all(NEWEST))?;
    if !command.network {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut rules = rules.create()?;
    let (read, all) = (AccessFs::from_read(NEWEST), AccessFs::from_all(NEWEST));
    match command.level() {
        Level::Isolated => {
            let network: &[&str] = if command.network { &mounts::NETWORK } else { &[] };
            let folders = [mounts::SYSTEM.as_slice(), &mounts::STORES, &mounts::SETTINGS, network];
            let own = context.settings.read_only.iter().map(PathBuf::as_path);
            let shown = folders.into_iter().flat_map(mounts::present).chain(own);
            for path in shown.flat_map(|path| all_but(path, &hidden)) {
                rules = allow(rules, &path, read)?;
            }
        }
        Level::Host => {
            for path in KERNEL.map(Path::new) {
                rules = allow(rules, path, read)?;
            }
            rules = allow(rules, Path::new("/dev/shm"), all)?;
            let apart = KERNEL.into_iter().chain(["/dev"]).map(PathBuf::from);
            let hidden = hidden.into_iter().chain(apart).collect::<Vec<_>>();
            for path in all_but(Path::new("/"), &hidden) {
                rules = allow(rules, &path, all)?;
            }
        }
    }
    for device in DEVICES.map(Path::new) {
        rules = allow(rules, device, all)?;
    }
    rules = allow(rules, &folder.path().join("files"), read)?;
    rules = allow(rules, &folder.path().join("work"), all)?;
    for bind in &command.binds {
        rules = allow(rules, &bind.host, if bind.writable { all } else { read })?;
    }
    Ok(rules)
}

/// Without a namespace the kernel counts all processes and threads of the user, so existing ones are added.
fn rlimits_for(command: &Command, context: &EngineContext) -> Vec<(Resource, u64, u64)> {
    let mut limits = command.limits.clone();
    if !context.control.limits_processes() {
        limits.processes = limits.processes.saturating_add(tasks_of_this_user());
    }
    shared::rlimits(&limits, &context.control)
}

fn tasks_of_this_user() -> u32 {
    let user = rustix::process::getuid().as_raw();
    let tasks = |folder: &Path| {
        let status = fs::read_to_string(folder.join("status")).ok()?;
        let value =
            |name| status.lines().find_map(|line: &str| line.strip_prefix(name)?.split_whitespace().next());
        (value("Uid:")?.parse() == Ok(user)).then_some(())?;
        value("Threads:")?.parse::<u32>().ok()
    };
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    folders.filter_map(|folder| tasks(&folder.path())).sum()
}

/// Allows access to a path; a missing path needs no rule.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(handle) = PathFd::new(path) else { return Ok(rules) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    rules.add_rule(PathBeneath::new(handle, access))
}

/// Returns paths that cover a folder except the hidden ones, because Landlock has no deny rules.
fn all_but(folder: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    fn walk(folder: &Path, hidden: &[PathBuf], found: &mut Vec<PathBuf>) {
        if hidden.iter().any(|hidden| folder == hidden) {
            return;
        }
        if !hidden.iter().any(|hidden| hidden.starts_with(folder)) {
            found.push(folder.to_owned());
            return;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // The target of a link has its own rule, or none.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                walk(&entry.path(), hidden, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, hidden, &mut found);
    found
}

#[expect(clippy::disallowed_methods, reason = "this is the crate that starts processes")]
fn process_of(command: &Command, directory: &Path) -> Result<Process, SandboxError> {
    let name = command.argv.first().cloned().unwrap_or_default();
    // Looked up here: the standard library would search the `PATH` of the server.
    let program = find(command, Path::new(&name))
        .ok_or_else(|| SandboxError::MissingProgram(name.to_string_lossy().into_owned()))?;
    let mut process = Process::new(program);
    process.arg0(&name).args(command.argv.iter().skip(1)).env_clear().current_dir(directory);
    process.envs(command.env.iter().map(|(name, value)| (name, value)));
    Ok(process)
}

fn find(command: &Command, name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return Some(name.to_owned());
    }
    let path = command.variable("PATH")?;
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

#[expect(unsafe_code, reason = "the closure runs between fork and exec and makes system calls only")]
fn confine(process: &mut Process, confinement: Confinement) {
    // SAFETY: `enter` neither allocates nor locks: everything it needs was created before the fork.
    unsafe { process.pre_exec(move || confinement.enter()) };
}

fn not_started(command: &Command, error: io::Error) -> SandboxError {
    if error.kind() == io::ErrorKind::NotFound {
        let name = command.argv.first().cloned().unwrap_or_default();
        return SandboxError::MissingProgram(name.to_string_lossy().into_owned());
    }
    SandboxError::System { operation: "start a process", source: error }
}
