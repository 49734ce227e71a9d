//! The interpreter that an environment is for, and the installers that are available beside it.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_sandbox::{Command, ExitReason, Level, Limits, SandboxError};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::process::Processes;

/// Reports the interpreter and the installers as JSON.
const PROBE: &str = r#"
import importlib.util, json, platform, shutil, sys, sysconfig
has = lambda name: importlib.util.find_spec(name) is not None
print(json.dumps({
    "tag": sys.implementation.cache_tag, "platform": sysconfig.get_platform(), "libc": " ".join(platform.libc_ver()),
    "uv": shutil.which("uv"), "pip": has("pip"), "venv": has("venv") and has("ensurepip"),
}))
"#;
/// The timeout of the probe.
const TIMEOUT: Duration = Duration::from_secs(20);

/// An interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// Such as `cpython-311`.
    pub(super) tag: String,
    /// Such as `linux-x86_64`.
    pub(super) platform: String,
    /// Such as `glibc 2.36`: packages with compiled parts depend on it.
    pub(super) libc: String,
    /// The path of the program `uv`.
    pub(super) uv: Option<String>,
    pub(super) has_pip: bool,
    /// Whether it can create virtual environments that contain `pip`.
    pub(super) has_venv: bool,
    /// The container image that it is in.
    pub(super) image: Option<String>,
}

impl Interpreter {
    /// Returns what decides which packages it can use.
    pub(super) fn identity(&self) -> String {
        let image = self.image.as_deref().unwrap_or_default();
        format!("{} {} {} {image}", self.tag, self.platform, self.libc)
    }
}

/// Why the interpreter is unknown.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeError {
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error("python3 failed: {0}")]
    Failed(String),
    #[error(
        "python3 outside of the sandbox is {outside}, but inside it is {inside}, which installs the packages; set \
         `sandbox: true`, or add the folder of the former to `sandbox.read_only`"
    )]
    Differs { outside: String, inside: String },
}

/// The interpreters that were probed.
#[derive(Debug, Default)]
pub(super) struct Interpreters {
    known: Mutex<HashMap<ProbeKey, Arc<OnceCell<Arc<Interpreter>>>>>,
}

/// What an interpreter is found by. One that was updated is probed again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ProbeKey {
    level: Level,
    image: Option<String>,
    program: Option<(PathBuf, u64, i64)>,
    installer: Option<PathBuf>,
}

impl Interpreters {
    /// Returns the interpreter of tools at a level of isolation. Packages are installed inside the sandbox, so the same
    /// one must be there.
    pub(super) async fn get(
        &self,
        processes: &Processes,
        level: Level,
        image: Option<&str>,
    ) -> Result<Arc<Interpreter>, ProbeError> {
        let inside = self.probed(processes, Level::Isolated, image).await?;
        if level == Level::Host {
            let outside = self.probed(processes, level, image).await?;
            if outside.identity() != inside.identity() {
                let (outside, inside) = (outside.tag.clone(), inside.tag.clone());
                return Err(ProbeError::Differs { outside, inside });
            }
        }
        Ok(inside)
    }

    async fn probed(
        &self,
        processes: &Processes,
        level: Level,
        image: Option<&str>,
    ) -> Result<Arc<Interpreter>, ProbeError> {
        let path = &processes.settings().path;
        let key = ProbeKey {
            level,
            image: image.map(str::to_owned),
            program: find(path, "python3").and_then(|program| {
                let about = std::fs::metadata(&program).ok()?;
                Some((program, about.ino(), about.ctime()))
            }),
            installer: find(path, "uv"),
        };
        let cell = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.retain(|earlier, _| {
                (earlier.level, &earlier.image) != (key.level, &key.image) || *earlier == key
            });
            Arc::clone(known.entry(key).or_default())
        };
        cell.get_or_try_init(|| probe(processes, level, image)).await.cloned()
    }
}

/// Finds a program in the search path of tools.
fn find(path: &str, name: &str) -> Option<PathBuf> {
    let folders = path.split(':').filter(|folder| !folder.is_empty());
    folders.map(|folder| Path::new(folder).join(name)).find(|program| program.is_file())
}

async fn probe(
    processes: &Processes,
    level: Level,
    image: Option<&str>,
) -> Result<Arc<Interpreter>, ProbeError> {
    let sandbox = processes.sandbox();
    let place = sandbox.place(level, image.map(|_| sandbox.container_engine()))?;
    let mut command = Command::new(place, ["python3", "-I", "-B", "-c", PROBE]);
    command = command.env("PATH", &processes.settings().path).env("LANG", "C.UTF-8");
    command.image = image.map(str::to_owned);
    let settings = processes.settings().limits.clone();
    command.limits = Limits { wall: TIMEOUT, cpu: TIMEOUT, output: 64 * 1024, ..settings };
    let finished = sandbox.run(command, &mut |_, _| {}).await?;
    let report: Option<Value> = serde_json::from_slice(&finished.stdout.bytes).ok();
    match (finished.ending, report) {
        (ExitReason::Exited(0), Some(report)) => {
            let text = |name: &str| report.get(name).and_then(Value::as_str).map(str::to_owned);
            let flag = |name: &str| report.get(name).and_then(Value::as_bool).unwrap_or(false);
            Ok(Arc::new(Interpreter {
                tag: text("tag").unwrap_or_default(),
                platform: text("platform").unwrap_or_default(),
                libc: text("libc").unwrap_or_default(),
                uv: text("uv"),
                has_pip: flag("pip"),
                has_venv: flag("venv"),
                image: image.map(str::to_owned),
            }))
        }
        (ending, _) => {
            let stderr = finished.stderr.text();
            let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
            let reason = last.map_or_else(|| format!("{ending:?}"), |line| line.chars().take(300).collect());
            Err(ProbeError::Failed(reason))
        }
    }
}
