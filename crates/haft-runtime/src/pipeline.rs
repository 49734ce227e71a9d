//! The steps of a call, the same for every surface.
//!
//! resolve → gate → authorise → validate arguments → admit → idempotency → execute (stages, retries, output
//! validation; within deadline and cancellation) → record → answer.

mod admission;
mod call;
mod checks;
mod record_guard;
mod request;

use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use haft_core::Clock;
use haft_core::call::CallRecord;
use haft_core::catalog::StoreError;
use haft_core::executor::CallContext;
use haft_core::id::CallId;
use haft_core::ledger::{Ledger, Reservation};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::runnable::Mode;
use haft_core::secret::SecretSource;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use self::call::Call;
pub use self::request::{CallTarget, Labels, Principal, Request};

use self::admission::{Admission, admit};
use self::call::Invocation;
use self::checks::{authorise, compiled, ledger_unavailable, not_recorded, validate};
pub(crate) use self::checks::{milliseconds, timed_out};
use self::record_guard::RecordGuard;
use crate::concurrency::ConcurrencyLimit;
use crate::events::BackgroundCalls;
use crate::function::catch_panic;
use crate::registry::{CompiledTool, Entry, Registry, ResolvedTool};
use crate::stages::{Next, Stage};
use crate::{clock, depth};

/// The longest timeout that a request may set.
const MAX_REQUEST_TIMEOUT: Duration = Duration::from_mins(10);

/// A call that has ended.
#[derive(Debug, Clone)]
pub struct CompletedCall {
    /// The record, with the outcome.
    pub record: Arc<CallRecord>,
    /// Whether this is the outcome of an earlier call with the same idempotency key.
    pub replayed: bool,
}

/// A function that receives the record of every call that ran, exactly once, however the call ended. It must not block.
pub type CallObserver = Arc<dyn Fn(&CallRecord) + Send + Sync>;

/// Runs calls.
pub struct Pipeline {
    registry: Arc<Registry>,
    ledger: Option<Arc<dyn Ledger>>,
    observer: Option<CallObserver>,
    clock: Arc<dyn Clock>,
    secrets: Arc<dyn SecretSource>,
    stages: Vec<Arc<dyn Stage>>,
    background: Arc<BackgroundCalls>,
    limit: Arc<ConcurrencyLimit>,
    workspace: Option<Arc<Path>>,
    stopping: CancellationToken,
}

/// The parts of a pipeline.
pub struct PipelineParts {
    /// The tools.
    pub registry: Arc<Registry>,
    /// Where calls are recorded, if anywhere.
    pub ledger: Option<Arc<dyn Ledger>>,
    /// Receives the record of every call that ran, for metrics.
    pub observer: Option<CallObserver>,
    /// The source of `${NAME}` values.
    pub secrets: Arc<dyn SecretSource>,
    /// The clock for the times in records.
    pub clock: Arc<dyn Clock>,
    /// The stages around the execution, outermost first.
    pub stages: Vec<Arc<dyn Stage>>,
    /// The maximum number of calls that run at once.
    pub max_running: usize,
    /// The folder in which calls may work.
    pub workspace: Option<Arc<Path>>,
}

/// A call that failed a check.
struct RejectedCall {
    error: CallError,
    invocation: Invocation,
}

impl Pipeline {
    /// Creates a pipeline.
    pub fn new(parts: PipelineParts) -> Self {
        Self {
            registry: parts.registry,
            ledger: parts.ledger,
            observer: parts.observer,
            clock: parts.clock,
            secrets: parts.secrets,
            stages: parts.stages,
            background: Arc::default(),
            limit: Arc::new(ConcurrencyLimit::new(parts.max_running, 0)),
            workspace: parts.workspace,
            stopping: CancellationToken::new(),
        }
    }

    /// Returns a pipeline with one more stage around the others. It shares everything else, including the limit on
    /// running calls.
    #[must_use]
    pub fn layered(&self, stage: Arc<dyn Stage>) -> Self {
        let mut stages = vec![stage];
        stages.extend(self.stages.iter().cloned());
        Self {
            registry: Arc::clone(&self.registry),
            ledger: self.ledger.clone(),
            observer: self.observer.clone(),
            clock: Arc::clone(&self.clock),
            secrets: Arc::clone(&self.secrets),
            stages,
            background: Arc::clone(&self.background),
            limit: Arc::clone(&self.limit),
            workspace: self.workspace.clone(),
            stopping: self.stopping.clone(),
        }
    }

    /// Returns the calls that run in the background.
    pub fn background(&self) -> &Arc<BackgroundCalls> {
        &self.background
    }

    /// Returns the number of running calls.
    pub fn running(&self) -> usize {
        self.limit.in_use()
    }

    /// Cancels all running calls and all later ones.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Runs a call to its end. An error is a fault of the request; a tool that fails is a [`CompletedCall`].
    ///
    /// Dropping the future cancels the call, unless it has an idempotency key: a client that sends such a call again
    /// expects the outcome of the first.
    pub async fn call(
        self: &Arc<Self>,
        target: CallTarget,
        request: Request,
    ) -> Result<CompletedCall, CallError> {
        let tool = self.resolve(target, &request).await?;
        let call = match self.check(tool, request) {
            Ok(call) => call,
            Err(rejected) => return Err(self.record_rejection(rejected).await),
        };
        if !call.invocation.has_idempotency_key() {
            return self.run(call).await;
        }
        let pipeline = Arc::clone(self);
        let task = tokio::spawn(async move {
            match pipeline.reserve(&call).await? {
                Some(replay) => Ok(replay),
                None => pipeline.run(call).await,
            }
        });
        task.await
            .unwrap_or_else(|error| Err(CallError::internal(format!("the call's task failed: {error}"))))
    }

    /// Starts a call in the background and returns its record as soon as that is durable.
    pub async fn start(
        self: &Arc<Self>,
        target: CallTarget,
        request: Request,
    ) -> Result<CompletedCall, CallError> {
        let tool = self.resolve(target, &request).await?;
        let call = match self.check(tool, request) {
            Ok(call) => call,
            Err(rejected) => return Err(self.record_rejection(rejected).await),
        };
        let (accepted, answer) = oneshot::channel();
        let pipeline = Arc::clone(self);
        // One task from here on: a call that is recorded as running also runs, even if the client disconnects.
        tokio::spawn(async move {
            match pipeline.accept(&call).await {
                Ok(Some(replay)) => drop(accepted.send(Ok(replay))),
                Err(error) => drop(accepted.send(Err(error))),
                Ok(None) => pipeline.run_in_background(call, accepted).await,
            }
        });
        answer.await.unwrap_or_else(|_| Err(CallError::internal("the call's task failed before it started")))
    }

    /// Checks a call that is not recorded; [`Pipeline::execute`] runs it.
    pub fn begin(&self, tool: ResolvedTool, request: Request) -> Result<Call, CallError> {
        if self.ledger.is_some() {
            return Err(CallError::internal("a pipeline with a ledger runs recorded calls only"));
        }
        self.check(tool, request).map_err(|rejected| rejected.error)
    }

    /// Resolves the target and compiles the tool if necessary. A call of an unknown tool is not recorded.
    async fn resolve(&self, target: CallTarget, request: &Request) -> Result<ResolvedTool, CallError> {
        let tool = match target {
            CallTarget::Resolved(tool) => tool,
            CallTarget::Named(name) => {
                let snapshot = self.registry.current();
                snapshot.resolved(snapshot.resolve_in(&request.principal.tenant, &name, request.mode)?)
            }
        };
        if let Some(ledger) = &self.ledger
            && ledger.is_failing()
        {
            ledger.probe().await.map_err(ledger_unavailable)?;
        }
        self.compile(&tool, request.mode).await;
        Ok(tool)
    }

    /// Compiles a tool before its first call, off the async workers.
    pub async fn compile(&self, tool: &ResolvedTool, mode: Mode) {
        let (entry, revision) = (&tool.entry, mode.into());
        if entry.is_compiled(revision) {
            return;
        }
        if entry.should_recompile(revision) || entry.runnable(tool.bundle_enabled, mode).is_ok() {
            entry.compile(revision, self.registry.executors()).await;
        }
    }

    /// Makes the checks that need no waiting: gate, authorise, validate arguments, admit.
    fn check(&self, tool: ResolvedTool, request: Request) -> Result<Call, Box<RejectedCall>> {
        let ResolvedTool { entry, bundle_enabled } = tool;
        let timeout = request.timeout;
        let mut invocation = self.invocation(request, entry);
        match self.check_invocation(&mut invocation, bundle_enabled, timeout) {
            Ok((plan, admission)) => {
                Ok(Call { plan, invocation, cancel: None, attempt: 0, admission, artifacts: None })
            }
            Err(error) => Err(Box::new(RejectedCall { error, invocation })),
        }
    }

    fn check_invocation(
        &self,
        invocation: &mut Invocation,
        bundle_enabled: bool,
        timeout: Option<Duration>,
    ) -> Result<(Arc<CompiledTool>, Admission), CallError> {
        let Invocation { entry, context, args, .. } = invocation;
        entry.runnable(bundle_enabled, context.mode).map_err(|reason| {
            let fault = entry.fault();
            entry.named_error(|tool| reason.to_error(tool, fault.as_deref()))
        })?;
        let plan = compiled(entry, context.mode, &self.registry)?;
        authorise(&plan, context.principal().elevated)?;
        validate(&plan, args)?;
        depth::check(plan.spec.name.as_str())?;
        let admission = admit(&self.limit, entry, &plan, context.tenant())?;
        let timeout = timeout.unwrap_or(plan.deadline).min(MAX_REQUEST_TIMEOUT.max(plan.deadline));
        context.deadline = context.started + timeout;
        Ok((plan, admission))
    }

    fn invocation(&self, request: Request, entry: Arc<Entry>) -> Invocation {
        let Request { principal, args, mode, surface, events, labels, .. } = request;
        let started = clock::now();
        let mut context = CallContext::for_principal(
            CallId(Uuid::now_v7()),
            principal,
            Arc::clone(&self.secrets),
            started..started,
        );
        context.mode = mode;
        context.events = events;
        context.workspace.clone_from(&self.workspace);
        let args = Value::Object(args);
        let has_key = labels.as_ref().is_some_and(|labels| labels.idempotency_key.is_some());
        Invocation {
            revision: entry.definition(mode.into()).map_or(entry.tool.revision, |(number, _)| number),
            entry,
            context,
            args_digest: has_key.then(|| haft_core::hash::of_args(&args)),
            args,
            surface,
            labels,
            started_at: self.clock.now(),
        }
    }

    /// Reserves the idempotency key, or returns the outcome of the call that has it.
    async fn reserve(&self, call: &Call) -> Result<Option<CompletedCall>, CallError> {
        let Some(ledger) = &self.ledger else { return Ok(None) };
        let reservation = ledger.reserve(call.invocation.running_record()).await.map_err(not_recorded)?;
        let Reservation::Existing(earlier) = reservation else { return Ok(None) };
        let conflict = |message| {
            CallError::new(ErrorCode::IdempotencyConflict, message)
                .with_details(json!({"call_id": earlier.id}))
        };
        let same_call =
            earlier.tool_id == call.entry().tool.id && earlier.args_digest.as_deref() == call.args_digest();
        if !same_call {
            return Err(conflict("the Idempotency-Key was used for another tool or other arguments"));
        }
        if !earlier.status.is_final() {
            return Err(conflict("a call with this Idempotency-Key is still running").retryable(true));
        }
        Ok(Some(CompletedCall { record: Arc::from(earlier), replayed: true }))
    }

    /// Records a background call before it is acknowledged.
    async fn accept(&self, call: &Call) -> Result<Option<CompletedCall>, CallError> {
        if call.invocation.has_idempotency_key() {
            return self.reserve(call).await;
        }
        self.record(Arc::new(call.invocation.running_record())).await.map_err(not_recorded)?;
        Ok(None)
    }

    async fn run_in_background(
        &self,
        mut call: Call,
        accepted: oneshot::Sender<Result<CompletedCall, CallError>>,
    ) {
        let (id, record) = (call.id(), Arc::new(call.invocation.running_record()));
        let (background, listed) =
            self.background.insert(id, call.tenant().clone(), self.stopping.child_token());
        call.cancel = Some(background.cancel.clone());
        call.invocation.context.events = Some(background);
        // The call runs even if the client no longer waits for the acknowledgement.
        let _ = accepted.send(Ok(CompletedCall { record, replayed: false }));
        if let Err(error) = self.run(call).await {
            tracing::error!(call = %id, error = %error, "background call not recorded");
        }
        drop(listed);
    }

    /// Executes a call and records its outcome before the outcome is returned.
    async fn run(&self, call: Call) -> Result<CompletedCall, CallError> {
        self.registry.count(call.entry(), call.started_at());
        let mut guard = RecordGuard::new(call, self.ledger.as_ref(), self.observer.as_ref());
        let outcome = match guard.call() {
            Some(call) => self.execute(call).await,
            None => Err(CallError::internal("the call has already ended")),
        };
        let record = guard.finish(outcome)?;
        let recorded = self.record(Arc::clone(&record)).await;
        guard.disarm();
        recorded.map_err(|error| {
            let error = not_recorded(error).retryable(false);
            tracing::error!(call = %record.id, tool = %record.tool, error = %error, "the tool ran, but the call was not recorded");
            CallError { message: format!("the tool ran, but {}", error.message), ..error }
                .for_model("the tool ran, but the call could not be recorded")
        })?;
        Ok(CompletedCall { record, replayed: false })
    }

    /// Runs the stages and the tool within deadline and cancellation; a panic becomes an outcome. Dropping the future
    /// cancels the call.
    pub async fn execute(&self, call: &mut Call) -> Outcome {
        let (deadline, cancel) = (call.deadline(), call.cancel.take());
        let grace = call.plan.prepared.grace();
        let interruption = {
            let mut work = pin!(async {
                call.admission.acquire().await;
                Next::new(&self.stages).run(call).await
            });
            let depth = depth::current() + 1;
            let work = poll_fn(|context| {
                let _depth = depth::enter(depth);
                catch_panic(|| work.as_mut().poll(context))
            });
            tokio::select! {
                biased;
                outcome = work => return outcome,
                () = tokio::time::sleep_until((deadline + grace).into()) => ErrorCode::Timeout,
                () = cancel.as_ref().unwrap_or(&self.stopping).cancelled() => ErrorCode::Cancelled,
            }
        };
        Err(match interruption {
            ErrorCode::Timeout => {
                timed_out(&call.plan.spec, deadline.saturating_duration_since(call.context().started))
            }
            _ => self.cancelled(call.entry()),
        })
    }

    /// Returns the error of a cancelled call. Its effects are unknown, so only a pure tool may be retried after a
    /// shutdown.
    fn cancelled(&self, entry: &Entry) -> CallError {
        if !self.stopping.is_cancelled() {
            return CallError::new(ErrorCode::Cancelled, "the call was cancelled");
        }
        CallError::new(ErrorCode::Cancelled, "the server shut down before the call ended")
            .retryable(entry.tool.spec.execution.is_pure)
    }

    /// Records a call that failed a check; returns the error to answer with.
    async fn record_rejection(&self, rejected: Box<RejectedCall>) -> CallError {
        let RejectedCall { error, mut invocation } = *rejected;
        // The call did not run, so its key stays free for the corrected call.
        if let Some(labels) = &mut invocation.labels {
            labels.idempotency_key = None;
        }
        let record = Arc::new(invocation.finished_record(Err(error.clone())));
        let error = CallError { call_id: Some(record.id), ..error };
        self.record(record).await.map_or_else(not_recorded, |()| error)
    }

    async fn record(&self, record: Arc<CallRecord>) -> Result<(), StoreError> {
        match &self.ledger {
            Some(ledger) => ledger.record(record).await,
            None => Ok(()),
        }
    }
}
