//! The one place where processes are run.

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
use crate::engine::{self, Bubblewrap, Container, Folder, Landlock, Workshop};
use crate::error::SandboxError;
use crate::running::{Running, StdinHandle};
use crate::self_test::ProbeReport;
use crate::settings::{EngineName, Settings};
use crate::verdicts::Verdicts;

/// How long an engine may take to start a process: a disk or a service that is gone shall not hold the caller.
const START: Duration = Duration::from_secs(30);

/// Runs processes confined. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    workshop: Workshop,
    bubblewrap: OnceCell<Bubblewrap>,
    landlock: OnceCell<Landlock>,
    docker: OnceCell<Container>,
    podman: OnceCell<Container>,
    verdicts: Verdicts,
}

impl Sandbox {
    /// Prepares; engines are looked for when they are first needed.
    pub fn open(settings: Settings) -> Result<Self, SandboxError> {
        let inner = Inner {
            workshop: Workshop::open(settings)?,
            bubblewrap: OnceCell::new(),
            landlock: OnceCell::new(),
            docker: OnceCell::new(),
            podman: OnceCell::new(),
            verdicts: Verdicts::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns what the settings ask for.
    pub fn settings(&self) -> &Settings {
        &self.inner.workshop.settings
    }

    /// Says in words what limits memory and processes here.
    pub fn limiter(&self) -> &'static str {
        self.inner.workshop.control.describe()
    }

    /// Returns what real probes found about an engine; the first caller waits for them.
    pub async fn verdict(&self, engine: EngineName) -> Arc<ProbeReport> {
        self.inner.verdicts.of(self, engine, None).await
    }

    /// Refuses to run what would not be confined.
    async fn check(&self, command: &Command) -> Result<(), SandboxError> {
        let engine = command.place.engine;
        // An image counts only where there are images; the others share one verdict.
        let containers = matches!(engine, EngineName::Docker | EngineName::Podman);
        let image = command.image.as_deref().filter(|_| containers);
        self.inner.verdicts.of(self, engine, image).await.check(engine)
    }

    /// Returns the engine that runs images: the configured one where it does, else the one that is installed.
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

    /// Makes the place for one process. Containers cannot show the machine's files, so a process that shall see
    /// them runs under bubblewrap there.
    pub fn place(&self, level: Level, engine: Option<EngineName>) -> Result<SandboxLayout, SandboxError> {
        let settings = self.settings();
        let engine = match (engine.unwrap_or(settings.engine), level) {
            (EngineName::Docker | EngineName::Podman, Level::Host) => EngineName::Bubblewrap,
            (engine, _) => engine,
        };
        let on_disk = engine != EngineName::Bubblewrap;
        let folder = on_disk.then(|| Folder::make(&settings.scratch)).transpose()?;
        if let Some(folder) = &folder {
            folder.sub("work")?;
            folder.sub("files")?;
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

    /// Runs a process to its end, or to its limits, and tells what happened. Dropping the future ends it.
    pub async fn run(
        &self,
        command: Command,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<ProcessResult, SandboxError> {
        self.check(&command).await?;
        self.run_unexamined(command, watch).await
    }

    pub(crate) async fn run_unexamined(
        &self,
        mut command: Command,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<ProcessResult, SandboxError> {
        let limits = command.limits.clone();
        let input =
            if let Input::Bytes(bytes) = &mut command.input { mem::take(bytes) } else { Bytes::new() };
        let mut running = self.start_unexamined(command).await?;
        let (Some(stdout), Some(stderr)) = (running.stdout.take(), running.stderr.take()) else {
            return Err(SandboxError::Engine { engine: running.engine, message: "no output".to_owned() });
        };
        let stdin = running.stdin.take();
        let feed = async move {
            // A process that does not read its input has its reasons.
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
            // Nobody reads any more.
            if flooded || ended.is_err() {
                running.kill();
            }
            running.ended().await?;
            ended.map_err(SandboxError::system("read the output of a process"))?;
            Ok(flooded.then_some(Limit::Output))
        };
        let told = if let Ok(told) = tokio::time::timeout(limits.wall, read).await {
            told
        } else {
            running.kill();
            Ok(Some(Limit::Wall))
        };
        // Outside of its time: what it left may take a while to remove.
        let end = running.end().await;
        capture.finish();
        let told: Result<_, SandboxError> = told.and_then(|stopped| Ok((end?, stopped)));
        let (end, stopped) = told.map_err(|error| error.explained(&capture.stderr.text()))?;
        Ok(ProcessResult {
            ending: stopped.map_or(end.ending, ExitReason::Stopped),
            stdout: capture.stdout,
            stderr: capture.stderr,
            took: running.started.elapsed(),
            processes_met: end.processes_met,
        })
    }

    /// Starts a process that goes on until it ends, or is dropped. The caller minds the time and the output.
    pub async fn start(&self, command: Command) -> Result<Running, SandboxError> {
        self.check(&command).await?;
        self.start_unexamined(command).await
    }

    /// Starts a process in a task of its own: a caller that goes away in between leaves nothing half done.
    pub(crate) async fn start_unexamined(&self, command: Command) -> Result<Running, SandboxError> {
        engine::check(&command)?;
        if command.first_process && !command.place.has_own_processes() {
            let what = "make a process the first one of a namespace";
            return Err(SandboxError::Unsupported { engine: command.place.engine, what });
        }
        let engine = command.place.engine;
        let sandbox = self.clone();
        let starting = async move { tokio::time::timeout(START, sandbox.start_now(command)).await };
        let failed = |message: String| SandboxError::Engine { engine, message };
        let started = tokio::spawn(starting).await.map_err(|error| failed(error.to_string()))?;
        started.map_err(|_| failed("no process was started within 30 s".to_owned()))?
    }

    async fn start_now(&self, mut command: Command) -> Result<Running, SandboxError> {
        let (inner, workshop) = (&*self.inner, &self.inner.workshop);
        let folder = command.place.folder.take();
        let missing =
            || SandboxError::Engine { engine: command.place.engine, message: "no folder".to_owned() };
        match command.place.engine {
            EngineName::Bubblewrap => {
                let engine = inner.bubblewrap.get_or_try_init(|| Bubblewrap::open(workshop)).await?;
                engine.start(workshop, &command).await
            }
            EngineName::Landlock => {
                let engine = inner.landlock.get_or_try_init(|| async { Landlock::open() }).await?;
                engine.start(workshop, &command, folder.ok_or_else(missing)?).await
            }
            name @ (EngineName::Docker | EngineName::Podman) => {
                let cell = if name == EngineName::Docker { &inner.docker } else { &inner.podman };
                let engine = cell.get_or_try_init(|| Container::open(name, workshop)).await?;
                engine.start(workshop, &command, folder.ok_or_else(missing)?).await
            }
        }
    }
}
