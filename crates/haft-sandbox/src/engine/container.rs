//! The engines `docker` and `podman`: containers, by their command line.
//!
//! Only isolated processes: a container does not show the machine's files. The values of variables go through
//! the environment of the command line program, never through its arguments, which every user can list.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::runtime::Handle;

use super::{Folder, Workshop, mounts, shared};
use crate::command::{Command, Input, Level};
use crate::error::SandboxError;
use crate::running::{Hold, Rest, Running, StdinOf};
use crate::settings::EngineName;
use crate::spawner::Spawner;

/// The engine.
#[derive(Debug)]
pub(crate) struct Container {
    name: EngineName,
    program: PathBuf,
    /// By which containers of this installation are known.
    label: String,
}

impl Container {
    /// Tells whether the program is there.
    pub(crate) fn is_installed(name: EngineName) -> bool {
        shared::find_program(name.as_str()).is_some()
    }

    /// Finds the program, and removes containers that a server which was killed left behind.
    pub(crate) async fn open(name: EngineName, workshop: &Workshop) -> Result<Self, SandboxError> {
        let unavailable = |reason| SandboxError::Unavailable { engine: name, reason };
        let program = shared::find_program(name.as_str())
            .ok_or_else(|| unavailable(format!("the program `{name}` was not found; install it")))?;
        let label = format!("haft.sandbox={}", workshop.settings.scratch.display());
        let engine = Self { name, program, label };
        let filter = format!("label={}", engine.label);
        let left = engine.ask(workshop, &["ps", "--all", "--quiet", "--filter", &filter]).await?;
        for container in left.split_whitespace() {
            engine.ask(workshop, &["rm", "--force", container]).await?;
        }
        Ok(engine)
    }

    async fn ask(&self, workshop: &Workshop, arguments: &[&str]) -> Result<String, SandboxError> {
        let mut process = new_process(&self.program);
        process.args(arguments);
        shared::connect(&mut process, &Input::Empty).map_err(SandboxError::system("open a pipe"))?;
        let child = workshop.spawner.spawn(process, Vec::new()).await;
        let child = child.map_err(SandboxError::system("start the container program"))?;
        let output = child.wait_with_output().await.map_err(SandboxError::system("read from a program"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().chars().take(500).collect();
        Err(SandboxError::Unavailable { engine: self.name, reason: said })
    }

    /// Starts a process whose files are in `folder`.
    pub(crate) async fn start(
        &self,
        workshop: &Workshop,
        command: &Command,
        folder: Folder,
    ) -> Result<Running, SandboxError> {
        if command.level() == Level::Host {
            let what = "show a tool the machine's files; set `sandbox: true`, or another engine";
            return Err(SandboxError::Unsupported { engine: self.name, what });
        }
        let image = command.image.as_ref().or(workshop.settings.image.as_ref());
        let what = "run without an image; set `sandbox.image`, or `image` in the tool";
        let image = image.ok_or(SandboxError::Unsupported { engine: self.name, what })?;
        if !image.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return Err(SandboxError::Argument {
                what: format!("the image `{image}`"),
                why: "looks like an option",
            });
        }
        for file in &command.files {
            let path = folder.path().join("files").join(file.name);
            fs::write(&path, &file.content).map_err(|source| SandboxError::Prepare { path, source })?;
        }
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
        confine(&mut process, command, &folder);
        process.arg(image).args(&command.argv);
        let socket =
            shared::connect(&mut process, &command.input).map_err(SandboxError::system("open a socket"))?;
        let started = Instant::now();
        let child = workshop.spawner.spawn(process, Vec::new()).await;
        let mut child = child.map_err(SandboxError::system("start the container program"))?;
        let removal = Removal {
            program: self.program.clone(),
            spawner: workshop.spawner.clone(),
            container: Some(container),
        };
        Ok(Running {
            stdin: child.stdin.take().map(StdinOf::Pipe).or(socket),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            started,
            engine: self.name,
            rest: Some(Rest { child, hold: Hold::Container(removal), group: None, folder: Some(folder) }),
        })
    }
}

fn confine(process: &mut Process, command: &Command, folder: &Folder) {
    let limits = &command.limits;
    let seconds = limits.cpu.as_secs().max(1);
    process.args(["--network", if command.network { "bridge" } else { "none" }]);
    process.args(["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only"]);
    process.args(["--user", &format!("{0}:{0}", mounts::NOBODY), "--hostname", "sandbox"]);
    process.args(["--memory", &limits.memory.to_string(), "--memory-swap", &limits.memory.to_string()]);
    process.args(["--pids-limit", &limits.processes.to_string(), "--cpus", &limits.cpus.to_string()]);
    process.args(["--ulimit", &format!("cpu={seconds}:{}", seconds + 1), "--ulimit", "core=0"]);
    process.args(["--ulimit", &format!("fsize={}", limits.file_size)]);
    process.args(["--ulimit", &format!("nofile={}", limits.open_files)]);
    for private in ["/tmp", mounts::WORK] {
        process.args(["--tmpfs", &format!("{private}:rw,exec,nosuid,nodev,mode=1777,size={}", limits.work)]);
    }
    mount(process, &folder.path().join("files"), Path::new(mounts::FILES), false);
    for bind in &command.binds {
        mount(process, &bind.host, &bind.guest, bind.writable);
    }
    process.arg("--workdir").arg(command.directory.as_deref().unwrap_or(command.place.work()));
    for (name, value) in &command.env {
        process.arg("--env");
        if OWN.iter().any(|own| name == own) {
            let mut both = name.clone();
            both.push("=");
            both.push(value);
            process.arg(both);
        } else {
            process.env(name, value).arg(name);
        }
    }
}

/// Variables that the command line program itself reads: they cannot go through its environment. Their values
/// are the server's, and no secret.
const OWN: [&str; 6] = ["PATH", "HOME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR", "DOCKER_HOST"];

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
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    #[expect(clippy::disallowed_methods, reason = "a name that no earlier server has used")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("haft-{}-{now:x}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Removes a container by its name.
#[derive(Debug)]
pub(crate) struct Removal {
    program: PathBuf,
    spawner: Spawner,
    container: Option<String>,
}

impl Removal {
    /// Starts removing; the process that waits for the container then ends by itself.
    pub(crate) fn start(&mut self) {
        let (Some(container), Ok(runtime)) = (self.container.take(), Handle::try_current()) else { return };
        let mut process = new_process(&self.program);
        process.args(["rm", "--force", &container]);
        let spawner = self.spawner.clone();
        runtime.spawn(async move {
            if shared::connect(&mut process, &Input::Empty).is_err() {
                return;
            }
            match spawner.spawn(process, Vec::new()).await {
                Ok(child) => drop(child.wait_with_output().await),
                Err(error) => tracing::warn!(%error, container, "failed to remove a container"),
            }
        });
    }

    /// The container has ended and was removed by its engine.
    pub(crate) fn forget(&mut self) {
        self.container = None;
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the crate that starts processes")]
fn new_process(program: &Path) -> Process {
    let mut process = Process::new(program);
    // Where the engine's socket and its settings are is the server's own environment to say.
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
