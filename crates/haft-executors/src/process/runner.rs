//! Runs one process of a call.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::executor::{CallContext, CallEvent};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::spec::ToolSpec;
use haft_sandbox::{
    Command, File, Input, Level, Limits, ProcessResult, Sandbox, SandboxError, SandboxLayout, Settings,
    Stream,
};

use super::slots::ProcessSlots;
use super::{Account, OutputLines, ProcessEnd, ProcessSlot, ValueSource, outcome, workspace_bind};

/// How long a process may take to end after the deadline of its call, so that its output can still be recorded.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(3);

/// The maximum CPU time of a process with many threads; the same as that of a warm interpreter.
const MAX_CPU_TIME: Duration = Duration::from_hours(1);

/// The settings of an installation for the processes of tools.
#[derive(Debug, Clone)]
pub struct ProcessSettings {
    /// The `PATH` of processes.
    pub path: String,
    /// The limits of a process; those on time and output come from the tool.
    pub limits: Limits,
    /// The maximum number of processes at once; further calls wait. One caller has at most three quarters of them.
    pub at_once: usize,
}

impl Default for ProcessSettings {
    fn default() -> Self {
        Self {
            path: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
            limits: Limits::default(),
            at_once: 64,
        }
    }
}

/// Runs the processes of tools. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Processes {
    sandbox: Sandbox,
    settings: Arc<ProcessSettings>,
    slots: Arc<ProcessSlots>,
}

/// One process to run for a call.
pub(crate) struct Job<'a> {
    pub(crate) spec: &'a ToolSpec,
    pub(crate) place: SandboxLayout,
    pub(crate) command_line: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) files: Vec<File>,
    /// Secrets that the tool names but that do not exist.
    pub(crate) missing: Vec<String>,
}

impl Processes {
    /// Runs processes in this sandbox.
    pub fn new(sandbox: Sandbox, settings: ProcessSettings) -> Self {
        let slots = ProcessSlots::new(settings.at_once);
        Self { sandbox, settings: Arc::new(settings), slots }
    }

    /// Runs processes with the default settings and a private folder, which is hidden from them.
    pub fn with_folder(folder: &Path) -> Result<Self, SandboxError> {
        let scratch = folder.join("run");
        let settings = Settings { hidden: vec![folder.to_owned()], ..Settings::new(scratch) };
        Ok(Self::new(Sandbox::open(settings)?, ProcessSettings::default()))
    }

    /// Returns the sandbox.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    pub(crate) fn settings(&self) -> &ProcessSettings {
        &self.settings
    }

    /// Waits for a slot to run a process.
    pub(crate) async fn slot(&self, account: Account) -> ProcessSlot {
        self.slots.acquire(account).await
    }

    /// Returns the sandbox layout for a process of a call.
    pub(crate) fn place(&self, spec: &ToolSpec, call: &CallContext) -> Result<SandboxLayout, CallError> {
        let level = level(spec, call.tenant());
        let engine = spec.image.as_ref().map(|_| self.sandbox.container_engine());
        self.sandbox.place(level, engine).map_err(|error| sandbox_error(&error))
    }

    /// Returns the limits of a process of a call.
    pub(crate) fn limits(&self, spec: &ToolSpec, call: &CallContext) -> Limits {
        let wall = call.deadline.saturating_duration_since(Instant::now());
        let output = usize::try_from(spec.execution.limits.max_response_bytes).unwrap_or(usize::MAX);
        let cpu = cpu_time(wall, self.settings.limits.cpus);
        Limits { wall, cpu, output, ..self.settings.limits.clone() }
    }

    /// Runs a process without input and returns its outcome.
    pub(crate) async fn run(&self, call: &CallContext, job: Job<'_>) -> Outcome {
        self.run_with_input(call, job, Input::Empty).await
    }

    /// Runs a process and returns its outcome.
    pub(crate) async fn run_with_input(&self, call: &CallContext, job: Job<'_>, input: Input) -> Outcome {
        let _slot = self.slot(Account::of(call)).await;
        let files = job.place.files().to_string_lossy().into_owned();
        let bind = workspace_bind(call);
        let directory = bind.as_ref().map(|bind| job.place.seen_at(bind).to_owned());
        let mut command = Command::new(job.place, job.command_line);
        command.binds.extend(bind);
        command.directory = directory;
        command.env = job.env;
        command.input = input;
        command.files = job.files;
        command.network = job.spec.network;
        command.image.clone_from(&job.spec.image);
        command.limits = self.limits(job.spec, call);
        let finished = self.watch(call, command).await?;
        let end = ProcessEnd {
            ending: finished.ending,
            stdout: &finished.stdout,
            stderr: &finished.stderr,
            spec: job.spec,
            files: &files,
            missing: &job.missing,
        };
        outcome(call, &end, ValueSource::Stdout)
    }

    async fn watch(&self, call: &CallContext, command: Command) -> Result<ProcessResult, CallError> {
        let mut out = OutputLines::new(call, CallEvent::Value);
        let mut err = OutputLines::new(call, CallEvent::Output);
        let mut watch = |stream, chunk: &[u8]| match stream {
            Stream::Stdout => out.take(chunk),
            Stream::Stderr => err.take(chunk),
        };
        let finished = self.sandbox.run(command, &mut watch).await;
        out.flush();
        err.flush();
        finished.map_err(|error| sandbox_error(&error))
    }
}

/// Returns the isolation of the processes of a tool. Host files are those of the default tenant: the processes of other
/// tenants are always isolated.
pub(crate) fn level(spec: &ToolSpec, tenant: &TenantId) -> Level {
    if spec.sandbox || !tenant.is_default() { Level::Isolated } else { Level::Host }
}

/// Returns the CPU time of a process for a wall-clock time. All its threads count together, so it is the wall-clock
/// time multiplied by the processors that they can use at once.
fn cpu_time(wall: Duration, cpus: f64) -> Duration {
    let of_machine = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let at_once = u32::try_from(of_machine).unwrap_or(u32::MAX).max(cpus.ceil() as u32).max(1);
    let wall = wall.max(Duration::from_secs(1));
    wall.saturating_mul(at_once).min(MAX_CPU_TIME.max(wall))
}

/// Turns an error of the sandbox into an error of the call.
pub(crate) fn sandbox_error(error: &SandboxError) -> CallError {
    use std::error::Error as _;
    let message = error.source().map_or(error.to_string(), |source| format!("{error}: {source}"));
    match error {
        SandboxError::Argument { .. } => CallError::new(ErrorCode::InvalidArguments, message),
        SandboxError::MissingProgram(_) => CallError::new(ErrorCode::NotReady, message),
        SandboxError::Unavailable { .. } | SandboxError::Unsupported { .. } => {
            CallError::new(ErrorCode::SandboxUnavailable, message).for_model("this tool is unavailable")
        }
        SandboxError::Engine { .. } | SandboxError::Prepare { .. } | SandboxError::System { .. } => {
            CallError::new(ErrorCode::SandboxUnavailable, message).for_model("the tool could not be started")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows_with_the_number_of_processors() {
        let seconds = Duration::from_secs;
        let machine = u32::try_from(std::thread::available_parallelism().unwrap().get()).unwrap();
        let check = |wall: Duration, cpus: f64, expected: Duration| {
            assert_eq!(cpu_time(wall, cpus), expected, "{wall:?} on {cpus}");
        };
        check(seconds(30), 0.5, seconds(30) * machine);
        check(seconds(30), f64::from(machine) + 0.5, seconds(30) * (machine + 1));
        check(seconds(0), 1.0, seconds(1) * machine);
        check(seconds(600), 1000.0, seconds(3600));
        check(seconds(7200), 1000.0, seconds(7200));
        check(seconds(30), f64::NAN, seconds(30) * machine);
    }
}
