//! The engines `docker` and `podman`, used through their command line programs.
//!
//! Supports only isolated processes: a container does not expose the machine's files. The values of variables are passed
//! in the environment of the command line program, not in its arguments, which every user can list.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::runtime::Handle;

use super::{EngineContext, Folder, mounts, shared};
use crate::command::{Command, Input, Level};
use crate::error::SandboxError;
use crate::running::{Running, RunningTree, StdinHandle, TreeHandle};
use crate::settings::EngineName;
use crate::spawner::Spawner;

/// The engine.
#[derive(Debug)]
pub(crate) struct Container {
    name: EngineName,
    program: PathBuf,
    /// Identifies the containers of this installation.
    label: String,
}

impl Container {
    /// Returns whether the program is installed.
    pub(crate) fn is_installed(name: EngineName) -> bool {
        shared::find_program(name.as_str()).is_some()
    }

    /// Finds the program, and removes containers left by a killed server.
    pub(crate) async fn open(name: EngineName, context: &EngineContext) -> Result<Self, SandboxError> {
        let unavailable = |reason| SandboxError::Unavailable { engine: name, reason };
        let program = shared::find_program(name.as_str())
            .ok_or_else(|| unavailable(format!("program `{name}` not found; install it")))?;
        let label = format!("haft.sandbox={}", context.settings.scratch.display());
        let engine = Self { name, program, label };
        let filter = format!("label={}", engine.label);
        let left = engine.query(context, &["ps", "--all", "--quiet", "--filter", &filter]).await?;
        for container in left.split_whitespace() {
            // Without this, Podman waits ten seconds for a clean exit.
            drop(engine.query(context, &["kill", container]).await);
            engine.query(context, &["rm", "--force", container]).await?;
        }
        Ok(engine)
    }

    async fn query(&self, context: &EngineContext, arguments: &[&str]) -> Result<String, SandboxError> {
        let mut process = new_process(&self.program);
        process.args(arguments);
        shared::connect(&mut process, &Input::Empty).map_err(SandboxError::system("open a pipe"))?;
        let child = context.spawner.spawn(process, Vec::new()).await;
        let child = child.map_err(SandboxError::system("start the container program"))?;
        let output = child.wait_with_output().await.map_err(SandboxError::system("read from a program"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let message = String::from_utf8_lossy(&output.stderr).trim().chars().take(500).collect();
        Err(SandboxError::Unavailable { engine: self.name, reason: message })
    }

    /// Starts a process whose files are in `folder`.
    pub(crate) async fn start(
        &self,
        context: &EngineContext,
        command: &Command,
        folder: Folder,
    ) -> Result<Running, SandboxError> {
        if command.level() == Level::Host {
            let what = "expose the machine's files; set `sandbox: true`, or use another engine";
            return Err(SandboxError::Unsupported { engine: self.name, what });
        }
        let image = command.image.as_ref().or(context.settings.image.as_ref());
        let what = "run without an image; set `sandbox.image`, or `image` in the tool";
        let image = image.ok_or(SandboxError::Unsupported { engine: self.name, what })?;
        if !image.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return Err(SandboxError::Argument {
                what: format!("the image `{image}`"),
                why: "looks like an option",
            });
        }
        let hosts = command.binds.iter().flat_map(|bind| [bind.host.as_path(), &bind.guest]);
        if !hosts.chain([folder.path()]).all(is_mountable) {
            let what = "mount a path that contains a comma or a quotation mark; rename the folder";
            return Err(SandboxError::Unsupported { engine: self.name, what });
        }
        folder.write_files(&command.files)?;
        let container = unique_name();
        let mut process = new_process(&self.program);
        process.args([
            "run",
            "--rm",
            "--init",
            "--interactive",
            "--name",
            &container,
            "--label",
            &self.label,
        ]);
        confine(&mut process, command, &folder.path().join("files"), self.user());
        process.arg(image).args(&command.argv);
        let socket =
            shared::connect(&mut process, &command.input).map_err(SandboxError::system("open a socket"))?;
        let started = Instant::now();
        let child = context.spawner.spawn(process, Vec::new()).await;
        let mut child = child.map_err(SandboxError::system("start the container program"))?;
        let removal = ContainerKill {
            program: self.program.clone(),
            spawner: context.spawner.clone(),
            container: Some(container),
            ended: Arc::default(),
        };
        Ok(Running {
            stdin: child.stdin.take().map(StdinHandle::Pipe).or(socket),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            started,
            engine: self.name,
            tree: Some(RunningTree {
                child,
                killed: false,
                handle: TreeHandle::Container(removal),
                group: None,
                folder: Some(folder),
            }),
        })
    }
}

/// The user of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    /// The server's user, who owns the bound folders and is not root.
    Server {
        user: u32,
        group: u32,
    },
    /// The same, for a rootless engine, which would map that user to root.
    RootlessServer {
        user: u32,
        group: u32,
    },
    Nobody,
}

impl Container {
    fn user(&self) -> User {
        let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        match self.name {
            _ if user == 0 => User::Nobody,
            EngineName::Podman => User::RootlessServer { user, group },
            _ => User::Server { user, group },
        }
    }
}

fn confine(process: &mut Process, command: &Command, files: &Path, user: User) {
    let limits = &command.limits;
    let seconds = limits.cpu.as_secs().max(1);
    process.args(["--network", if command.network { "bridge" } else { "none" }]);
    process.args(["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only"]);
    if matches!(user, User::RootlessServer { .. }) {
        process.args(["--userns", "keep-id"]);
    }
    let (user, group) = match user {
        User::Server { user, group } | User::RootlessServer { user, group } => (user, group),
        User::Nobody => (mounts::NOBODY, mounts::NOBODY),
    };
    process.args(["--user", &format!("{user}:{group}"), "--hostname", "sandbox"]);
    process.args(["--memory", &limits.memory.to_string(), "--memory-swap", &limits.memory.to_string()]);
    process.args(["--pids-limit", &limits.processes.to_string(), "--cpus", &limits.cpus.to_string()]);
    process.args(["--ulimit", &format!("cpu={seconds}:{}", seconds + 1), "--ulimit", "core=0"]);
    process.args(["--ulimit", &format!("fsize={0}:{0}", limits.file_size)]);
    process.args(["--ulimit", &format!("nofile={0}:{0}", limits.open_files)]);
    // `--pids-limit` is the effective limit; without this one the engine may request more than it is allowed.
    process.args(["--ulimit", "nproc=16384:16384"]);
    // Some engines copy the mode of an existing folder of the image.
    for private in ["/tmp", mounts::WORK] {
        process.args(["--tmpfs", &format!("{private}:rw,exec,nosuid,nodev,mode=1777,size={}", limits.work)]);
    }
    mount(process, files, Path::new(mounts::FILES), false);
    for bind in &command.binds {
        mount(process, &bind.host, &bind.guest, bind.writable);
    }
    process.arg("--workdir").arg(command.directory.as_deref().unwrap_or(command.place.work()));
    for (name, value) in &command.env {
        process.arg("--env");
        if is_read_by_engine(name) {
            let mut both = name.clone();
            both.push("=");
            both.push(value);
            process.arg(both);
        } else {
            process.env(name, value).arg(name);
        }
    }
}

/// Returns whether the command line program or its libraries read a variable. Such a variable is passed as an argument:
/// in the environment, a tool could load code into the program, outside of the sandbox. Its value is not a secret.
fn is_read_by_engine(name: &OsStr) -> bool {
    const NAMES: [&str; 8] = ["PATH", "HOME", "LANG", "TMPDIR", "TZ", "USER", "NLSPATH", "LOCPATH"];
    const PREFIXES: [&str; 18] = [
        "LD_",
        "LC_",
        "XDG_",
        "DOCKER",
        "CONTAINER",
        "_CONTAINER",
        "PODMAN",
        "BUILDAH",
        "STORAGE_",
        "REGISTR",
        "GO",
        "SSL_",
        "SSH_",
        "GNUPG",
        "DBUS_",
        "NOTIFY_",
        "LISTEN_",
        "GLIBC",
    ];
    const LIBC_PREFIXES: [&str; 5] = ["GCONV", "MALLOC", "RES", "HOSTALIASES", "GETCONF"];
    let name = name.to_string_lossy().to_uppercase();
    NAMES.contains(&name.as_str())
        || name.ends_with("_PROXY")
        || PREFIXES.iter().chain(&LIBC_PREFIXES).any(|prefix| name.starts_with(prefix))
}

/// Mount options are comma-separated values, so a path must not contain separators.
fn is_mountable(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    !path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b',' | b'"' | b'\n'))
}

fn mount(process: &mut Process, host: &Path, guest: &Path, writable: bool) {
    let mut value = OsString::from("type=bind,source=");
    value.push(host);
    value.push(",target=");
    value.push(guest);
    if !writable {
        value.push(",readonly");
    }
    process.arg("--mount").arg(value);
}

fn unique_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    #[expect(clippy::disallowed_methods, reason = "a name that no earlier server has used")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("haft-{}-{now:x}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Kills a container by its name.
#[derive(Debug)]
pub(crate) struct ContainerKill {
    program: PathBuf,
    spawner: Spawner,
    container: Option<String>,
    /// Whether the container has ended.
    ended: Arc<AtomicBool>,
}

impl ContainerKill {
    /// Kills the container in the background; the engine then removes it. Retries, because the container may not exist
    /// yet.
    pub(crate) fn start(&mut self) {
        const ATTEMPTS: u32 = 100;
        let (Some(container), Ok(runtime)) = (self.container.take(), Handle::try_current()) else { return };
        let (program, spawner, ended) = (self.program.clone(), self.spawner.clone(), self.ended.clone());
        runtime.spawn(async move {
            for _ in 0..ATTEMPTS {
                if ended.load(Ordering::Relaxed) || kill(&program, &spawner, &container).await {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            tracing::warn!(container, "failed to kill a container");
        });
    }

    /// Records that the container has ended.
    pub(crate) fn set_ended(&mut self) {
        self.container = None;
        self.ended.store(true, Ordering::Relaxed);
    }
}

impl Drop for ContainerKill {
    fn drop(&mut self) {
        self.set_ended();
    }
}

async fn kill(program: &Path, spawner: &Spawner, container: &str) -> bool {
    let mut process = new_process(program);
    process.args(["kill", container]);
    if shared::connect(&mut process, &Input::Empty).is_err() {
        return false;
    }
    match spawner.spawn(process, Vec::new()).await {
        Ok(child) => child.wait_with_output().await.is_ok_and(|output| output.status.success()),
        Err(_) => false,
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the crate that starts processes")]
fn new_process(program: &Path) -> Process {
    let mut process = Process::new(program);
    // The server's environment locates the socket and the settings of the engine.
    let kept = [
        "PATH",
        "HOME",
        "XDG_RUNTIME_DIR",
        "XDG_CONFIG_HOME",
        "DOCKER_HOST",
        "DOCKER_CONFIG",
        "CONTAINER_HOST",
    ];
    let kept = kept.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    process.env_clear().envs(kept).current_dir("/");
    process
}

#[cfg(test)]
#[path = "container_tests.rs"]
mod tests;
