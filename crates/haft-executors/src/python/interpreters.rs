//! Runs python calls: in a warm interpreter if the sandbox has its own processes, otherwise in a new one.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft_core::executor::{CallContext, CallEvent};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::spec::ToolSpec;
use haft_sandbox::{
    CapturedOutput, ExitReason, File, Level, Limit, Limits, ProcessResult, SandboxLayout, Stream,
};
use tokio::time::Instant;

use super::environment::{CallPackages, Dependencies, PythonEnvironments};
use super::pool::{Permits, Pool, PoolSettings};
use super::recipe::{Digest, Key, Mode, Recipe, Source};
use super::request::{Operation, Request};
use super::server::{AfterCall, CallLimits, PythonCall, PythonResult, ServerError};
use crate::process::{Account, OutputLines, Processes, STOP_GRACE, sandbox_error};

/// Python interpreters inside the sandbox. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PythonPool {
    processes: Processes,
    pool: Arc<Pool>,
    environments: Option<PythonEnvironments>,
}

/// One job for an interpreter.
pub(super) struct Job<'a> {
    /// The tenant, unless the job is the same for all.
    pub(super) tenant: Option<TenantId>,
    pub(super) account: Account,
    pub(super) recipe: &'a Recipe,
    /// The digest of the recipe.
    pub(super) digest: Digest,
    pub(super) place: SandboxLayout,
    pub(super) request: Request,
    /// Files for a cold interpreter.
    pub(super) files: Vec<File>,
}

impl PythonPool {
    /// Creates the pool; interpreters are started on demand. Tools with dependencies need
    /// [`PythonPool::with_environments`].
    pub fn new(processes: Processes) -> Self {
        Self::with(processes, PoolSettings::default())
    }

    pub(super) fn with(processes: Processes, settings: PoolSettings) -> Self {
        let pool = Pool::new(processes.sandbox().clone(), settings);
        Self { processes, pool, environments: None }
    }

    /// Installs the packages that tools declare into these environments.
    #[must_use]
    pub fn with_environments(mut self, environments: PythonEnvironments) -> Self {
        self.environments = Some(environments);
        self
    }

    /// Returns the packages that a call needs; the first call waits until they are installed.
    pub(super) async fn packages(
        &self,
        call: &CallContext,
        spec: &ToolSpec,
        dependencies: &Dependencies,
    ) -> Result<CallPackages, CallError> {
        let needs = dependencies.current().await?;
        if needs.requirements.is_empty() {
            return Ok(CallPackages { folder: None, extended: None });
        }
        let Some(environments) = &self.environments else {
            let message = "Python dependencies are not supported here: there is no folder for environments";
            return Err(CallError::new(ErrorCode::NotReady, message));
        };
        environments.packages(call, spec, needs).await
    }

    /// Returns the packages that a definition declares, if they are installed.
    pub(super) async fn installed_packages(&self, spec: &ToolSpec) -> Option<PathBuf> {
        self.environments.as_ref()?.installed(spec).await
    }

    /// Returns how long after its deadline a call may take: the time of an installation is not part of its timeout.
    pub(super) fn grace(&self, dependencies: &Dependencies) -> Duration {
        match &self.environments {
            Some(environments) if !dependencies.is_known_empty() => {
                STOP_GRACE.saturating_add(environments.settings().build_timeout)
            }
            _ => STOP_GRACE,
        }
    }

    pub(super) fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Returns the recipe of the interpreter for a tool.
    pub(super) fn recipe(&self, spec: &ToolSpec, source: Source) -> Recipe {
        Recipe {
            name: spec.name.as_str().to_owned(),
            source,
            level: if spec.sandbox { Level::Isolated } else { Level::Host },
            network: spec.network,
            limits: self.processes.settings().limits.clone(),
            path: self.processes.settings().path.clone(),
            image: spec.image.clone(),
            workspace: None,
            packages: None,
        }
    }

    /// Runs one call of a tool and emits its output as events.
    pub(super) async fn call(
        &self,
        call: &CallContext,
        spec: &ToolSpec,
        job: Job<'_>,
    ) -> Result<PythonResult, CallError> {
        let is_script = matches!(job.request.operation, Operation::Script { .. });
        // A cold interpreter writes all results to its standard output.
        let is_value = is_script || !job.place.has_own_processes();
        let mut out = OutputLines::new(call, if is_value { CallEvent::Value } else { CallEvent::Printed });
        let mut err = OutputLines::new(call, CallEvent::Output);
        let mut watch = |stream, chunk: &[u8]| match stream {
            Stream::Stdout => out.take(chunk),
            Stream::Stderr => err.take(chunk),
        };
        let limits = || {
            let Limits { wall, cpu, output, .. } = self.processes.limits(spec, call);
            CallLimits { deadline: Instant::now() + wall, cpu, output }
        };
        let result = self.run(job, limits, &mut watch).await;
        out.flush();
        err.flush();
        result
    }

    /// Runs one job; its limits are computed after it has its permits.
    pub(super) async fn run(
        &self,
        job: Job<'_>,
        limits: impl FnOnce() -> CallLimits,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<PythonResult, CallError> {
        let result = if job.place.has_own_processes() {
            let key = Key::new(job.tenant, job.digest);
            // The permit of the key comes first, so that a call that waits for it holds no process slot.
            let ticket = self.pool.acquire(&key).await;
            let permits = Permits { key: ticket, slot: self.processes.slot(job.account).await };
            let call = PythonCall { request: &job.request, limits: limits() };
            self.pool.call(&key, job.recipe, (call, permits), watch).await
        } else {
            let _slot = self.processes.slot(job.account.clone()).await;
            self.run_cold(job, &limits(), watch).await
        };
        result.map_err(|error| call_error(&error))
    }

    async fn run_cold(
        &self,
        job: Job<'_>,
        limits: &CallLimits,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<PythonResult, ServerError> {
        let call = Bytes::from(job.request.json(None).to_string());
        let mut command = job.recipe.command(job.place, Mode::Once(call));
        command.files.extend(job.files);
        let wall = limits.deadline.saturating_duration_since(Instant::now());
        command.limits = Limits { wall, cpu: limits.cpu, output: limits.output, ..command.limits };
        let finished = self.processes.sandbox().run(command, watch).await?;
        Ok(cold_result(finished, &job.request.operation))
    }
}

/// Returns the result of a cold interpreter, which writes results to its standard output.
fn cold_result(finished: ProcessResult, operation: &Operation) -> PythonResult {
    let ProcessResult { mut ending, stdout, stderr, .. } = finished;
    // A truncated result is invalid.
    if stdout.left_out > 0 && !matches!(operation, Operation::Script { .. }) {
        ending = ExitReason::Stopped(Limit::Output);
    }
    let (stdout, result) = match operation {
        Operation::Script { .. } => (stdout, Vec::new()),
        Operation::Function { .. } | Operation::Check { .. } => (CapturedOutput::default(), stdout.bytes),
    };
    PythonResult { ending, stdout, stderr, result, after: AfterCall::Ended }
}

/// Converts an error of the interpreter.
fn call_error(error: &ServerError) -> CallError {
    match error {
        ServerError::Sandbox(error) => sandbox_error(error),
        ServerError::Start(_) => {
            CallError::new(ErrorCode::NotReady, error.to_string()).for_model("this tool is unavailable")
        }
        ServerError::Wire(source) => {
            CallError::new(ErrorCode::SandboxUnavailable, format!("{error}: {source}"))
                .for_model("the tool could not be started")
        }
        ServerError::NotAccepted => CallError::new(ErrorCode::SandboxUnavailable, error.to_string())
            .for_model("the tool could not be started"),
    }
}
