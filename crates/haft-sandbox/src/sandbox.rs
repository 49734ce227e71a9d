//! Runs processes through the engines.

use std::convert::Infallible;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::OnceCell;

use crate::capture::{Capture, CaptureEnd, Stream};
use crate::command::{Command, Input, Level, SandboxLayout};
use crate::ending::{ExitReason, Limit, ProcessResult};
use crate::engine::{self, Bubblewrap, Container, EngineContext, Folder, Landlock};
use crate::error::SandboxError;
use crate::probe_cache::ProbeCache;
use crate::running::{Running, StdinHandle};
use crate::self_test::ProbeReport;
use crate::settings::{EngineName, Settings};

/// The timeout for starting a process, so that an unresponsive disk or service does not block the caller.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs processes in a sandbox. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    context: EngineContext,
    bubblewrap: OnceCell<Bubblewrap>,
    landlock: OnceCell<Landlock>,
    docker: OnceCell<Container>,
    podman: OnceCell<Container>,
    probe_cache: ProbeCache,
}

impl Sandbox {
    /// Opens the sandbox. Engines are located on first use.
    pub fn open(settings: Settings) -> Result<Self, SandboxError> {
        let inner = Inner {
            context: EngineContext::open(settings)?,
            bubblewrap: OnceCell::new(),
            landlock: OnceCell::new(),
            docker: OnceCell::new(),
            podman: OnceCell::new(),
            probe_cache: ProbeCache::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.inner.context.settings
    }

    /// Returns what limits memory and processes on this machine, such as `cgroup v2`.
    pub fn limiter(&self) -> &'static str {
        self.inner.context.control.describe()
    }

    /// Returns the results of probing an engine; the first call runs the probes.
    pub async fn probe_report(&self, engine: EngineName) -> Arc<ProbeReport> {
        self.inner.probe_cache.get(self, engine, None).await
    }

    /// Rejects a command if probes of its engine failed.
    async fn check(&self, command: &Command) -> Result<(), SandboxError> {
        let engine = command.place.engine;
        // Only container engines have images.
        let containers = matches!(engine, EngineName::Docker | EngineName::Podman);
        let image = command.image.as_deref().filter(|_| containers);
        self.inner.probe_cache.get(self, engine, image).await.check(engine)
    }

    /// Returns the container engine: the configured one, or the one that is installed.
    pub fn container_engine(&self) -> EngineName {
        match self.settings().engine {
            engine @ (EngineName::Docker | EngineName::Podman) => engine,
            _ if Container::is_installed(EngineName::Podman)
                && !Container::is_installed(EngineName::Docker) =>
            {
                EngineName::Podman
            }
            _ => EngineName::Docker,
        }
    }

    /// Creates the folders of one process. Containers cannot expose the machine's files, so a process at
    /// [`Level::Host`] runs under bubblewrap.
    pub fn place(&self, level: Level, engine: Option<EngineName>) -> Result<SandboxLayout, SandboxError> {
        let settings = self.settings();
        let engine = match (engine.unwrap_or(settings.engine), level) {
            (EngineName::Docker | EngineName::Podman, Level::Host) => EngineName::Bubblewrap,
            (engine, _) => engine,
        };
        let on_disk = engine != EngineName::Bubblewrap;
        let folder = on_disk.then(|| Folder::create(&settings.scratch)).transpose()?;
        if let Some(folder) = &folder {
            folder.create_sub("work")?;
            folder.create_sub("files")?;
        }
        let base = match (&folder, engine, level) {
            (Some(folder), EngineName::Landlock, _) => Some(folder.path()),
            (_, EngineName::Bubblewrap, Level::Host) => Some(settings.scratch.as_path()),
            _ => None,
        };
        let (work, files) = match base {
            Some(base) => (base.join("work"), base.join("files")),
            None => (engine::WORK.into(), engine::FILES.into()),
        };
        Ok(SandboxLayout { engine, level, work, files, folder })
    }

    /// Runs a process to its end or to a limit and returns the result. Dropping the future kills it.
    pub async fn run(
        &self,
        command: Command,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<ProcessResult, SandboxError> {
        self.check(&command).await?;
        self.run_unprobed(command, watch).await
    }

    pub(crate) async fn run_unprobed(
        &self,
        mut command: Command,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<ProcessResult, SandboxError> {
        let limits = command.limits.clone();
        let input =
            if let Input::Bytes(bytes) = &mut command.input { mem::take(bytes) } else { Bytes::new() };
        let mut running = self.start_unprobed(command).await?;
        let (Some(stdout), Some(stderr)) = (running.stdout.take(), running.stderr.take()) else {
            return Err(SandboxError::Engine {
                engine: running.engine,
                message: "the process has no output pipes".to_owned(),
            });
        };
        let stdin = running.stdin.take();
        let feed = async move {
            // A process need not read its input.
            if let Some(StdinHandle::Pipe(mut pipe)) = stdin {
                drop(pipe.write_all(&input).await);
            }
            std::future::pending::<Infallible>().await
        };
        let mut capture = Capture::new(limits.output);
        let read = async {
            let ended = tokio::select! {
                ended = capture.read(stdout, stderr, watch) => ended,
                never = feed => match never {},
            };
            let flooded = matches!(ended, Ok(CaptureEnd::Flooded));
            // The output is no longer read, so the process could block.
            if flooded || ended.is_err() {
                running.kill();
            }
            running.ended().await?;
            ended.map_err(SandboxError::system("read the output of a process"))?;
            Ok(flooded.then_some(Limit::Output))
        };
        let stopped = if let Ok(stopped) = tokio::time::timeout(limits.wall, read).await {
            stopped
        } else {
            running.kill();
            Ok(Some(Limit::Wall))
        };
        // Not part of the wall time: removing its files may take a while.
        let end = running.end().await;
        capture.finish();
        let result: Result<_, SandboxError> = stopped.and_then(|stopped| match (stopped, end) {
            (None, end) => end.map(|end| (end.ending, end.processes_met)),
            // A process that is stopped early may not have been started yet, which the engine reports as an error.
            (Some(limit), end) => Ok((ExitReason::Stopped(limit), end.is_ok_and(|end| end.processes_met))),
        });
        let (ending, processes_met) = result.map_err(|error| error.explained(&capture.stderr.text()))?;
        Ok(ProcessResult {
            ending,
            stdout: capture.stdout,
            stderr: capture.stderr,
            took: running.started.elapsed(),
            processes_met,
        })
    }

    /// Starts a process that runs until it ends or is dropped. The caller handles its timeout and output.
    pub async fn start(&self, command: Command) -> Result<Running, SandboxError> {
        self.check(&command).await?;
        self.start_unprobed(command).await
    }

    /// Starts a process in its own task, so that a dropped caller leaves nothing half-started.
    pub(crate) async fn start_unprobed(&self, command: Command) -> Result<Running, SandboxError> {
        engine::check(&command)?;
        if command.first_process && !command.place.has_own_processes() {
            let what = "run a program as the first process of a PID namespace";
            return Err(SandboxError::Unsupported { engine: command.place.engine, what });
        }
        let engine = command.place.engine;
        let sandbox = self.clone();
        let starting = async move { tokio::time::timeout(START_TIMEOUT, sandbox.start_now(command)).await };
        let failed = |message: String| SandboxError::Engine { engine, message };
        let started = tokio::spawn(starting).await.map_err(|error| failed(error.to_string()))?;
        started.map_err(|_| failed("start timeout (30 s) exceeded".to_owned()))?
    }

    async fn start_now(&self, mut command: Command) -> Result<Running, SandboxError> {
        let (inner, context) = (&*self.inner, &self.inner.context);
        let folder = command.place.folder.take();
        let missing = || SandboxError::Engine {
            engine: command.place.engine,
            message: "the process has no folder".to_owned(),
        };
        match command.place.engine {
            EngineName::Bubblewrap => {
                let engine = inner.bubblewrap.get_or_try_init(|| Bubblewrap::open(context)).await?;
                engine.start(context, &command).await
            }
            EngineName::Landlock => {
                let engine = inner.landlock.get_or_try_init(|| async { Landlock::open() }).await?;
                engine.start(context, &command, folder.ok_or_else(missing)?).await
            }
            name @ (EngineName::Docker | EngineName::Podman) => {
                let cell = if name == EngineName::Docker { &inner.docker } else { &inner.podman };
                let engine = cell.get_or_try_init(|| Container::open(name, context)).await?;
                engine.start(context, &command, folder.ok_or_else(missing)?).await
            }
        }
    }
}
