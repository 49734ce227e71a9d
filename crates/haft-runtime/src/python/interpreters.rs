//! The way to run something in python: warm where the sandbox allows it, else cold.

use std::sync::Arc;

use bytes::Bytes;
use haft_core::executor::CallContext;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::spec::ToolSpec;
use haft_sandbox::{
    CapturedOutput, ExitReason, File, Level, Limit, Limits, ProcessResult, SandboxLayout, Stream,
};
use tokio::time::Instant;

use super::pool::{Errand, Pool, PoolSettings, Turns};
use super::recipe::{Digest, Key, Mode, Recipe, Source};
use super::request::{Request, Wanted};
use super::server::{Bounds, Done, Next, Order, ServerError};
use crate::process::{Account, Lines, Processes, refused};

/// Python interpreters inside the sandbox. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PythonPool {
    processes: Processes,
    pool: Arc<Pool>,
}

/// One thing to run.
pub(super) struct Job<'a> {
    /// For whom, where it is for anyone in particular.
    pub(super) tenant: Option<TenantId>,
    pub(super) account: Account,
    pub(super) recipe: &'a Recipe,
    /// The recipe's own, made once.
    pub(super) digest: Digest,
    pub(super) place: SandboxLayout,
    pub(super) request: Request,
    /// Small files of a cold interpreter.
    pub(super) files: Vec<File>,
}

impl PythonPool {
    /// Makes the interpreters of a sandbox; they are started when they are needed.
    pub fn new(processes: Processes) -> Self {
        Self::with(processes, PoolSettings::default())
    }

    pub(super) fn with(processes: Processes, settings: PoolSettings) -> Self {
        let pool = Pool::new(processes.sandbox().clone(), settings);
        Self { processes, pool }
    }

    pub(super) fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Returns how an interpreter for a tool is made.
    pub(super) fn recipe(&self, spec: &ToolSpec, source: Source) -> Recipe {
        Recipe {
            name: spec.name.as_str().to_owned(),
            source,
            level: if spec.sandbox { Level::Isolated } else { Level::Host },
            network: spec.network,
            limits: self.processes.settings().limits.clone(),
            path: self.processes.settings().path.clone(),
            image: spec.image.clone(),
        }
    }

    /// Runs one call of a tool; those who watch see its output.
    pub(super) async fn call(
        &self,
        call: &CallContext,
        spec: &ToolSpec,
        job: Job<'_>,
    ) -> Result<Done, CallError> {
        let (mut out, mut err) = (Lines::new(call), Lines::new(call));
        let mut watch = |stream, chunk: &[u8]| match stream {
            Stream::Stdout => out.take(chunk),
            Stream::Stderr => err.take(chunk),
        };
        let bounds = || {
            let Limits { wall, cpu, output, .. } = self.processes.limits(spec, call);
            Bounds { until: Instant::now() + wall, cpu, output }
        };
        let done = self.run(job, bounds, &mut watch).await;
        out.flush();
        err.flush();
        done
    }

    /// Runs one thing; its bounds are asked for when its turn has come.
    pub(super) async fn run(
        &self,
        job: Job<'_>,
        bounds: impl FnOnce() -> Bounds,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<Done, CallError> {
        let done = if job.place.has_own_processes() {
            let key = Key::new(job.tenant, job.digest);
            // The turn of its kind comes first: who waits for that keeps nobody else waiting.
            let of_its_kind = self.pool.turn(&key).await;
            let turns = Turns { of_its_kind, place: self.processes.turn(job.account).await };
            let order = Order { request: &job.request, bounds: bounds() };
            self.pool.call(&key, job.recipe, Errand { order, turns }, watch).await
        } else {
            let _turn = self.processes.turn(job.account.clone()).await;
            self.cold(job, &bounds(), watch).await
        };
        done.map_err(|error| failure(&error))
    }

    async fn cold(
        &self,
        job: Job<'_>,
        bounds: &Bounds,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<Done, ServerError> {
        let call = Bytes::from(job.request.json(None).to_string());
        let mut command = job.recipe.command(job.place, Mode::Once(call));
        command.files.extend(job.files);
        let wall = bounds.until.saturating_duration_since(Instant::now());
        command.limits = Limits { wall, cpu: bounds.cpu, output: bounds.output, ..command.limits };
        let finished = self.processes.sandbox().run(command, watch).await?;
        Ok(sorted(finished, &job.request.wanted))
    }
}

/// Sorts what a cold interpreter said: where there is a result, that is its standard output.
fn sorted(finished: ProcessResult, wanted: &Wanted) -> Done {
    let ProcessResult { mut ending, stdout, stderr, .. } = finished;
    // A result that was cut is none.
    if stdout.left_out > 0 && !matches!(wanted, Wanted::Script { .. }) {
        ending = ExitReason::Stopped(Limit::Output);
    }
    let (stdout, result) = match wanted {
        Wanted::Script { .. } => (stdout, Vec::new()),
        Wanted::Function { .. } | Wanted::Check { .. } => (CapturedOutput::default(), stdout.bytes),
    };
    Done { ending, stdout, stderr, result, next: Next::Over }
}

/// Turns what kept a call from running to its error.
fn failure(error: &ServerError) -> CallError {
    match error {
        ServerError::Sandbox(error) => refused(error),
        ServerError::Start(_) => CallError::new(ErrorCode::NotReady, error.to_string())
            .for_model("this tool cannot run here at present"),
        ServerError::Wire(source) => {
            CallError::new(ErrorCode::SandboxUnavailable, format!("{error}: {source}"))
                .for_model("the tool could not be started")
        }
        ServerError::NotTaken => CallError::new(ErrorCode::SandboxUnavailable, error.to_string())
            .for_model("the tool could not be started"),
    }
}
