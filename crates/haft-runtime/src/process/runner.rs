//! Runs one process of a call.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::executor::CallContext;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::spec::ToolSpec;
use haft_sandbox::{
    Command, File, Input, Level, Limits, ProcessResult, Sandbox, SandboxError, SandboxLayout, Settings,
    Stream,
};

use super::places::Places;
use super::{Account, End, Lines, Spoken, Turn, outcome};

/// How long after the deadline of its call a process may take to be gone, so that there is time to tell what it left.
pub(crate) const STOPS_WITHIN: Duration = Duration::from_secs(3);

/// The most time on processors that is asked for on account of many threads; what a warm interpreter has.
const MAX_COMPUTING: Duration = Duration::from_hours(1);

/// What an installation settles about the processes of tools.
#[derive(Debug, Clone)]
pub struct ProcessSettings {
    /// Where programs are found.
    pub path: String,
    /// What a process may use; time and output come from the tool.
    pub limits: Limits,
    /// The most processes of tools at once; further calls wait for their turn. One caller has at most three
    /// quarters of them.
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

/// The processes of tools. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Processes {
    sandbox: Sandbox,
    settings: Arc<ProcessSettings>,
    places: Arc<Places>,
}

/// One process to run for a call.
pub(crate) struct Job<'a> {
    pub(crate) spec: &'a ToolSpec,
    pub(crate) place: SandboxLayout,
    pub(crate) command_line: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) files: Vec<File>,
    /// Secrets that the tool names and that are not stored.
    pub(crate) missing: Vec<String>,
}

impl Processes {
    /// Makes the processes of tools run in this sandbox.
    pub fn new(sandbox: Sandbox, settings: ProcessSettings) -> Self {
        let places = Places::new(settings.at_once);
        Self { sandbox, settings: Arc::new(settings), places }
    }

    /// Makes the processes of tools run with the usual settings and a folder of the program's own, which none of
    /// them sees.
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

    /// Waits for a turn: a machine runs only so many processes at once.
    pub(crate) async fn turn(&self, account: Account) -> Turn {
        self.places.turn(account).await
    }

    /// Makes the place in which a tool's process runs.
    pub(crate) fn place(&self, spec: &ToolSpec) -> Result<SandboxLayout, CallError> {
        let level = if spec.sandbox { Level::Isolated } else { Level::Host };
        let engine = spec.image.as_ref().map(|_| self.sandbox.container_engine());
        self.sandbox.place(level, engine).map_err(|error| refused(&error))
    }

    /// Returns what a process of a call may use.
    pub(crate) fn limits(&self, spec: &ToolSpec, call: &CallContext) -> Limits {
        let wall = call.deadline.saturating_duration_since(Instant::now());
        let output = usize::try_from(spec.execution.limits.max_response_bytes).unwrap_or(usize::MAX);
        let cpu = computing(wall, self.settings.limits.cpus);
        Limits { wall, cpu, output, ..self.settings.limits.clone() }
    }

    /// Runs a process without input and returns its outcome.
    pub(crate) async fn run(&self, call: &CallContext, job: Job<'_>) -> Outcome {
        self.run_with_input(call, job, Input::Empty).await
    }

    /// Runs a process and returns its outcome.
    pub(crate) async fn run_with_input(&self, call: &CallContext, job: Job<'_>, input: Input) -> Outcome {
        let _turn = self.turn(Account::of(call)).await;
        let files = job.place.files().to_string_lossy().into_owned();
        let mut command = Command::new(job.place, job.command_line);
        command.env = job.env;
        command.input = input;
        command.files = job.files;
        command.network = job.spec.network;
        command.image.clone_from(&job.spec.image);
        command.limits = self.limits(job.spec, call);
        let finished = self.watch(call, command).await?;
        let end = End {
            ending: finished.ending,
            stdout: &finished.stdout,
            stderr: &finished.stderr,
            most: job.spec.execution.limits.max_response_bytes,
            files: &files,
            missing: &job.missing,
        };
        outcome(call, &end, Spoken::Output)
    }

    async fn watch(&self, call: &CallContext, command: Command) -> Result<ProcessResult, CallError> {
        let (mut out, mut err) = (Lines::new(call), Lines::new(call));
        let mut watch = |stream, chunk: &[u8]| match stream {
            Stream::Stdout => out.take(chunk),
            Stream::Stderr => err.take(chunk),
        };
        let finished = self.sandbox.run(command, &mut watch).await;
        out.flush();
        err.flush();
        finished.map_err(|error| refused(&error))
    }
}

/// Returns how long one process may compute within a time on the clock. All its threads count together, so this
/// is more than that time by as many processors as they could use at once.
fn computing(wall: Duration, cpus: f64) -> Duration {
    let of_machine = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let at_once = u32::try_from(of_machine).unwrap_or(u32::MAX).max(cpus.ceil() as u32).max(1);
    let wall = wall.max(Duration::from_secs(1));
    wall.saturating_mul(at_once).min(MAX_COMPUTING.max(wall))
}

/// Turns what kept a process from running to an error of the call.
pub(crate) fn refused(error: &SandboxError) -> CallError {
    use std::error::Error as _;
    let message = error.source().map_or(error.to_string(), |source| format!("{error}: {source}"));
    match error {
        SandboxError::Argument { .. } => CallError::new(ErrorCode::InvalidArguments, message),
        SandboxError::MissingProgram(_) => CallError::new(ErrorCode::NotReady, message),
        SandboxError::Unavailable { .. } | SandboxError::Unsupported { .. } => {
            CallError::new(ErrorCode::SandboxUnavailable, message)
                .for_model("this tool cannot run here at present")
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
    fn threads_that_compute_at_once_do_not_shorten_a_call() {
        let seconds = Duration::from_secs;
        let machine = u32::try_from(std::thread::available_parallelism().unwrap().get()).unwrap();
        let check = |wall: Duration, cpus: f64, expected: Duration| {
            assert_eq!(computing(wall, cpus), expected, "{wall:?} on {cpus}");
        };
        check(seconds(30), 0.5, seconds(30) * machine);
        check(seconds(30), f64::from(machine) + 0.5, seconds(30) * (machine + 1));
        check(seconds(0), 1.0, seconds(1) * machine);
        check(seconds(600), 1000.0, seconds(3600));
        check(seconds(7200), 1000.0, seconds(7200));
        check(seconds(30), f64::NAN, seconds(30) * machine);
    }
}
