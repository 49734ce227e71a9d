//! The one way a call takes, from whatever surface.
//!
//! First the checks that need no waiting (resolve, gate, authorise, validate, limits) and the idempotency key;
//! then the stages around the execution, within deadline and cancellation; last the record, before anyone
//! learns of the outcome.

mod call;
mod checks;
mod request;

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::{FutureExt as _, poll};
use haft_core::Clock;
use haft_core::bundle::Bundle;
use haft_core::call::{CallRecord, CallStatus};
use haft_core::executor::EventSink;
use haft_core::id::CallId;
use haft_core::ledger::{Ledger, Reservation};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::secret::{Secret, SecretSource};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use self::request::{Caller, Labels, Request, Wanted};

use self::checks::{authorise, plan, unrecordable, unrecorded, validate};
pub(crate) use self::checks::{milliseconds, too_late};
use crate::events::Background;
use crate::function::panicked;
use crate::limits::{Admission, Limits};
use crate::registry::{Entry, Plan, Registry};
use crate::stages::{Next, Stage};
use crate::{clock, depth};

/// The longest time that a caller may ask for.
const LONGEST_CALL: Duration = Duration::from_mins(10);

/// A call that may run.
pub struct Call {
    /// The tool.
    pub entry: Arc<Entry>,
    /// What is compiled of it.
    pub plan: Arc<Plan>,
    /// The record, which also holds the arguments.
    pub record: Arc<CallRecord>,
    /// Who calls.
    pub caller: Caller,
    /// When it was admitted.
    pub started: Instant,
    /// When it must be over.
    pub deadline: Instant,
    /// Stops it alone, where it runs in the background.
    cancel: Option<CancellationToken>,
    /// Who watches it.
    pub events: Option<Arc<dyn EventSink>>,
    /// The folder that it may work in.
    pub workspace: Option<Arc<Path>>,
    /// Which attempt of the tool is the next, counted from 0 over all that stages run again.
    pub(crate) attempt: u32,
    /// Its place among the running calls.
    admission: Admission,
    /// The secrets that it has seen so far.
    pub(crate) exposed: Vec<Secret>,
}

/// A call that may not run.
struct Refused {
    error: CallError,
    /// Where the tool is known.
    record: Option<Arc<CallRecord>>,
    started: Instant,
}

impl Refused {
    /// Nothing is recorded of a tool that is not there.
    fn unknown(error: CallError) -> Box<Self> {
        Box::new(Self { error, record: None, started: clock::now() })
    }
}

/// A call that is over, one way or the other.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The record, outcome included.
    pub record: Arc<CallRecord>,
    /// Whether an earlier call's outcome is given again.
    pub replayed: bool,
}

/// Runs calls.
pub struct Pipeline {
    registry: Arc<Registry>,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    secrets: Arc<dyn SecretSource>,
    stages: Vec<Arc<dyn Stage>>,
    background: Arc<Background>,
    limits: Limits,
    workspace: Option<Arc<Path>>,
    stopping: CancellationToken,
}

/// What a pipeline is made of.
pub struct Parts {
    /// The tools.
    pub registry: Arc<Registry>,
    /// Where calls are kept.
    pub ledger: Arc<dyn Ledger>,
    /// Where `${NAME}` finds its value.
    pub secrets: Arc<dyn SecretSource>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// The stages around the execution, outermost first.
    pub stages: Vec<Arc<dyn Stage>>,
    /// The most calls that run at once.
    pub max_running: usize,
    /// The folder that calls may work in.
    pub workspace: Option<Arc<Path>>,
}

impl Pipeline {
    /// Makes a pipeline.
    pub fn new(parts: Parts) -> Self {
        let Parts { registry, ledger, secrets, clock, stages, max_running, workspace } = parts;
        let limits = Limits::new(max_running);
        let (background, stopping) = (Arc::default(), CancellationToken::new());
        Self { registry, ledger, clock, secrets, stages, background, limits, workspace, stopping }
    }

    /// Makes one with one more stage around all others. It shares everything else, the bound on running calls too.
    #[must_use]
    pub fn layered(&self, stage: Arc<dyn Stage>) -> Self {
        let mut stages = vec![stage];
        stages.extend(self.stages.iter().cloned());
        Self {
            registry: Arc::clone(&self.registry),
            ledger: Arc::clone(&self.ledger),
            clock: Arc::clone(&self.clock),
            secrets: Arc::clone(&self.secrets),
            stages,
            background: Arc::clone(&self.background),
            limits: self.limits.clone(),
            workspace: self.workspace.clone(),
            stopping: self.stopping.clone(),
        }
    }

    /// Returns the calls that run in the background.
    pub fn background(&self) -> &Arc<Background> {
        &self.background
    }

    /// Tells whether no call runs.
    pub fn is_idle(&self) -> bool {
        self.limits.is_idle()
    }

    /// Stops every call that runs, and every one that comes.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Runs a call to its end. An error here is a fault of the request; a tool that fails is an [`Answer`].
    ///
    /// Dropping the future cancels the call, unless it has an idempotency key: whoever sends such a call again
    /// wants its outcome.
    pub async fn call(self: &Arc<Self>, request: Request) -> Result<Answer, CallError> {
        let call = match self.enter(request).await {
            Ok(call) => call,
            Err(refused) => return Err(Box::pin(self.record_refusal(refused)).await),
        };
        if call.record.idempotency_key.is_none() {
            return self.run(call).await;
        }
        let pipeline = Arc::clone(self);
        let task = tokio::spawn(async move {
            match pipeline.reserve(&call).await? {
                Some(replay) => Ok(replay),
                None => pipeline.run(call).await,
            }
        });
        task.await.unwrap_or_else(|error| Err(CallError::internal(format!("a call was lost: {error}"))))
    }

    /// Starts a call in the background and returns its record as soon as that is durable.
    pub async fn start(self: &Arc<Self>, request: Request) -> Result<Answer, CallError> {
        let call = match self.enter(request).await {
            Ok(call) => call,
            Err(refused) => return Err(self.record_refusal(refused).await),
        };
        let (accepted, answer) = oneshot::channel();
        let pipeline = Arc::clone(self);
        // One task from here on: what is recorded as running is also run, whoever goes away.
        tokio::spawn(async move {
            match pipeline.accept(&call).await {
                Ok(Some(replay)) => drop(accepted.send(Ok(replay))),
                Err(error) => drop(accepted.send(Err(error))),
                Ok(None) => pipeline.run_in_background(call, accepted).await,
            }
        });
        answer.await.unwrap_or_else(|_| Err(CallError::internal("a call was lost before it was accepted")))
    }

    async fn accept(&self, call: &Call) -> Result<Option<Answer>, CallError> {
        if call.record.idempotency_key.is_some() {
            return self.reserve(call).await;
        }
        self.ledger.record(Arc::clone(&call.record)).await.map_err(unrecorded)?;
        Ok(None)
    }

    async fn run_in_background(
        &self,
        mut call: Box<Call>,
        accepted: oneshot::Sender<Result<Answer, CallError>>,
    ) {
        let id = call.record.id;
        let (running, entered) =
            self.background.enter(id, call.record.tenant.clone(), self.stopping.child_token());
        call.cancel = Some(running.cancel.clone());
        call.events = Some(running);
        let record = Arc::clone(&call.record);
        // The call runs also where nobody waits for the acceptance any more.
        let _ = accepted.send(Ok(Answer { record, replayed: false }));
        if let Err(error) = self.run(call).await {
            tracing::error!(call = %id, error = %error, "a background call was not recorded");
        }
        drop(entered);
    }

    /// Finds the tool, compiles it where nobody has yet, and makes the checks.
    async fn enter(&self, request: Request) -> Result<Box<Call>, Box<Refused>> {
        let (entry, bundle) = {
            let snapshot = self.registry.snapshot();
            let entry = match &request.tool {
                Wanted::Found(entry) => Arc::clone(entry),
                Wanted::Named(tool) => {
                    let found = snapshot.resolve_in(&request.tenant, tool, request.mode);
                    Arc::clone(found.map_err(|error| Refused::unknown(error.into()))?)
                }
            };
            let bundle = snapshot.bundle(entry.tool.bundle_id).cloned();
            (entry, bundle)
        };
        if self.ledger.is_failing() {
            let probed = self.ledger.probe().await;
            probed.map_err(|error| Refused::unknown(unrecordable(error)))?;
        }
        // A module takes its time, which the checks may not.
        let which = request.mode.into();
        let due = entry.is_due(which)
            || (!entry.is_compiled(which) && entry.runnable(bundle.as_deref(), request.mode).is_ok());
        if due {
            Box::pin(entry.compile(which, &self.registry)).await;
        }
        self.admit(request, entry, bundle.as_deref())
    }

    /// Makes the checks that need no waiting.
    fn admit(
        &self,
        mut request: Request,
        entry: Arc<Entry>,
        bundle: Option<&Bundle>,
    ) -> Result<Box<Call>, Box<Refused>> {
        let started = clock::now();
        let revision =
            entry.definition(request.mode.into()).map_or(entry.tool.revision, |(number, _)| number);
        let (timeout, caller, mode) = (request.timeout, request.caller.clone(), request.mode);
        let events = request.events.take();
        let mut record = Arc::new(self.new_record(request, &entry, revision));

        let admitted = entry
            .runnable(bundle, mode)
            .map_err(|refusal| refusal.to_error(&entry.qualified, entry.fault().as_deref()))
            .and_then(|()| plan(&entry, mode, &self.registry))
            .and_then(|plan| authorise(&plan, caller.elevated).map(|()| plan))
            .and_then(|plan| validate(&plan, &mut Arc::make_mut(&mut record).args).map(|()| plan))
            .and_then(|plan| depth::check(plan.spec.name.as_str()).map(|()| plan))
            .and_then(|plan| self.limits.admit(&entry, &plan).map(|admission| (plan, admission)));
        match admitted {
            Ok((plan, admission)) => {
                let time = timeout.unwrap_or(plan.deadline).min(LONGEST_CALL.max(plan.deadline));
                let deadline = started + time;
                Ok(Box::new(Call {
                    entry,
                    plan,
                    record,
                    caller,
                    started,
                    deadline,
                    cancel: None,
                    events,
                    workspace: self.workspace.clone(),
                    attempt: 0,
                    admission,
                    exposed: Vec::new(),
                }))
            }
            Err(error) => {
                let error = entry.for_model(error);
                Err(Box::new(Refused { error, record: Some(record), started }))
            }
        }
    }

    fn new_record(&self, request: Request, entry: &Entry, revision: u32) -> CallRecord {
        let args = Value::Object(request.args);
        CallRecord {
            id: CallId(Uuid::now_v7()),
            tenant: request.tenant,
            tool_id: entry.tool.id,
            tool: Arc::clone(&entry.qualified),
            revision,
            mode: request.mode,
            status: CallStatus::Running,
            args_digest: request.idempotency_key.is_some().then(|| haft_core::hash::of_args(&args)),
            args,
            value: None,
            error: None,
            content: Vec::new(),
            process: None,
            caller: request.caller.name,
            surface: request.surface.into(),
            idempotency_key: request.idempotency_key,
            request_id: request.labels.request_id,
            chat_id: request.labels.chat_id,
            message_id: request.labels.message_id,
            started_at: self.clock.now(),
            finished_at: None,
            duration_ms: None,
        }
    }

    /// Records the refusal of a known tool; returns what to answer.
    async fn record_refusal(&self, refused: Box<Refused>) -> CallError {
        let Refused { error, record, started } = *refused;
        let Some(mut record) = record else { return error };
        // A refused call never ran, so its key stays free for the corrected one.
        Arc::make_mut(&mut record).idempotency_key = None;
        finish(&mut record, Err(error.clone()), started);
        self.ledger.record(record).await.map_or_else(unrecorded, |()| error)
    }

    /// Takes the idempotency key, or finds the call that has it.
    async fn reserve(&self, call: &Call) -> Result<Option<Answer>, CallError> {
        let reservation = self.ledger.reserve((*call.record).clone()).await.map_err(unrecorded)?;
        let Reservation::Existing(earlier) = reservation else { return Ok(None) };
        let same = earlier.tool_id == call.record.tool_id && earlier.args_digest == call.record.args_digest;
        if !same {
            let message = "the Idempotency-Key was used for a call with another tool or other arguments";
            return Err(CallError::new(ErrorCode::IdempotencyConflict, message)
                .with_details(json!({"call_id": earlier.id})));
        }
        if !earlier.status.is_final() {
            let message = "a call with this Idempotency-Key is still running";
            return Err(CallError::new(ErrorCode::IdempotencyConflict, message)
                .retryable(true)
                .with_details(json!({"call_id": earlier.id})));
        }
        Ok(Some(Answer { record: Arc::from(earlier), replayed: true }))
    }

    /// Runs the stages and records what they came to, before anyone learns of it.
    async fn run(&self, call: Box<Call>) -> Result<Answer, CallError> {
        self.registry.count(&call.entry, call.record.started_at);
        let mut unfinished = Unfinished { state: State::Running(call), pipeline: self };
        let outcome = match &mut unfinished.state {
            State::Running(call) => self.outcome(call).await,
            State::Over(..) | State::Recorded => Err(CallError::internal("a call ran twice")),
        };
        let record = unfinished.finish(outcome)?;
        let recorded = self.ledger.record(Arc::clone(&record)).await;
        unfinished.state = State::Recorded;
        recorded.map_err(|error| {
            let error = unrecorded(error).retryable(false);
            tracing::error!(call = %record.id, tool = %record.tool, error = %error, "a call ran and was not recorded");
            CallError { message: format!("the tool ran, but {}", error.message), ..error }
                .for_model("the tool ran, but the call could not be recorded")
        })?;
        Ok(Answer { record, replayed: false })
    }

    /// Runs the stages within deadline and cancellation; a panic in one of them is an outcome.
    async fn outcome(&self, call: &mut Call) -> Outcome {
        let (deadline, cancel) = (call.deadline, call.cancel.clone());
        let allowed = deadline.saturating_duration_since(call.started);
        let (entry, grace) = (Arc::clone(&call.entry), call.plan.prepared.grace());
        let stages = async {
            call.admission.turn().await?;
            Next::new(&self.stages, &self.secrets).run(call).await
        };
        let mut guarded = pin!(AssertUnwindSafe(stages).catch_unwind());
        let caught = |caught: std::thread::Result<Outcome>| {
            caught.unwrap_or_else(|payload| Err(panicked(payload.as_ref())))
        };
        let depth = depth::current() + 1;
        let mut deeper = poll_fn(|context| {
            let _at = depth::at(depth);
            guarded.as_mut().poll(context)
        });
        // One that is over at once needs no timer, nor asks whether it was cancelled.
        if let Poll::Ready(outcome) = poll!(&mut deeper) {
            return caught(outcome);
        }
        tokio::select! {
            biased;
            outcome = deeper => caught(outcome),
            () = tokio::time::sleep_until((deadline + grace).into()) => {
                Err(too_late(entry.tool.spec.name.as_str(), allowed))
            }
            () = cancel.as_ref().unwrap_or(&self.stopping).cancelled() => {
                Err(self.cancelled(&entry))
            }
        }
    }

    /// Says who ended a call: whoever asked for it, or the end of the server. What had been done by then is not
    /// known, so that only a tool without effects may be called again just so.
    fn cancelled(&self, entry: &Entry) -> CallError {
        if !self.stopping.is_cancelled() {
            return CallError::new(ErrorCode::Cancelled, "the call was cancelled");
        }
        CallError::new(ErrorCode::Cancelled, "the server shut down before the call was over")
            .retryable(entry.tool.spec.execution.is_pure)
    }
}

/// Enters what a call came to.
fn finish(record: &mut Arc<CallRecord>, outcome: Outcome, started: Instant) {
    let (record, took) = (Arc::make_mut(record), clock::since(started));
    let finished_at = record.started_at.checked_add(took).unwrap_or(record.started_at);
    record.finish(outcome, finished_at, milliseconds(took));
}

/// Where a call is between its start and its record.
enum State {
    Running(Box<Call>),
    /// The place is kept: a call without a record still counts as running.
    Over(Arc<CallRecord>, Admission),
    Recorded,
}

/// Makes sure of the record when the future of a call is dropped, as happens when a client goes away.
struct Unfinished<'a> {
    state: State,
    pipeline: &'a Pipeline,
}

impl Unfinished<'_> {
    /// Enters the outcome; returns the record, which is not durable yet.
    fn finish(&mut self, outcome: Outcome) -> Result<Arc<CallRecord>, CallError> {
        let State::Running(call) = std::mem::replace(&mut self.state, State::Recorded) else {
            return Err(CallError::internal("a call ended twice"));
        };
        let Call { mut record, started, admission, .. } = *call;
        finish(&mut record, outcome, started);
        self.state = State::Over(Arc::clone(&record), admission);
        Ok(record)
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let State::Running(_) = &self.state {
            let gone = CallError::new(ErrorCode::Cancelled, "the caller went away before the call was over");
            // It is running, so this enters the outcome.
            let _ = self.finish(Err(gone));
        }
        let State::Over(record, admission) = std::mem::replace(&mut self.state, State::Recorded) else {
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let ledger = Arc::clone(&self.pipeline.ledger);
        runtime.spawn(async move {
            if let Err(error) = ledger.record(record).await {
                tracing::error!(error = %error, "a cancelled call was not recorded");
            }
            drop(admission);
        });
    }
}
