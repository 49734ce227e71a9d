//! The one way a call takes, from whatever surface.
//!
//! First the checks that need no waiting (resolve, gate, authorise, validate, limits) and the idempotency key;
//! then the stages around the execution, within deadline and cancellation; last the record, before anyone
//! learns of the outcome.

mod call;
mod checks;
mod enter;
mod request;
mod unfinished;

use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::poll;
use haft_core::Clock;
use haft_core::call::CallRecord;
use haft_core::catalog::StoreError;
use haft_core::ledger::{Ledger, Reservation};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::secret::SecretSource;
use serde_json::json;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub use self::call::Call;
pub use self::request::{CallTarget, Caller, Labels, Principal, Request};

use self::checks::unrecorded;
pub(crate) use self::checks::{milliseconds, too_late};
use self::enter::Refused;
use self::unfinished::{State, Unfinished};
use crate::depth;
use crate::events::BackgroundCalls;
use crate::function::guarded;
use crate::limits::Limits;
use crate::registry::{Entry, Registry};
use crate::stages::{self, Next, Stage};

/// A call that is over, one way or the other.
#[derive(Debug, Clone)]
pub struct CompletedCall {
    /// The record, outcome included.
    pub record: Arc<CallRecord>,
    /// Whether an earlier call's outcome is given again.
    pub replayed: bool,
}

/// Runs calls.
pub struct Pipeline {
    registry: Arc<Registry>,
    ledger: Option<Arc<dyn Ledger>>,
    clock: Arc<dyn Clock>,
    secrets: Arc<dyn SecretSource>,
    stages: Vec<Arc<dyn Stage>>,
    background: Arc<BackgroundCalls>,
    limits: Arc<Limits>,
    workspace: Option<Arc<Path>>,
    stopping: CancellationToken,
}

/// What a pipeline is made of.
pub struct PipelineParts {
    /// The tools.
    pub registry: Arc<Registry>,
    /// Where calls are kept, if anywhere.
    pub ledger: Option<Arc<dyn Ledger>>,
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
    pub fn new(parts: PipelineParts) -> Self {
        let PipelineParts { registry, ledger, secrets, clock, stages, max_running, workspace } = parts;
        let limits = Arc::new(Limits::new(max_running));
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
            ledger: self.ledger.clone(),
            clock: Arc::clone(&self.clock),
            secrets: Arc::clone(&self.secrets),
            stages,
            background: Arc::clone(&self.background),
            limits: Arc::clone(&self.limits),
            workspace: self.workspace.clone(),
            stopping: self.stopping.clone(),
        }
    }

    /// Returns the calls that run in the background.
    pub fn background(&self) -> &Arc<BackgroundCalls> {
        &self.background
    }

    /// Returns for whom calls of this caller run.
    pub fn principal(&self, tenant: TenantId, caller: Caller) -> Arc<Principal> {
        Arc::new(Principal::new(tenant, caller, Arc::clone(&self.secrets)))
    }

    /// Tells whether no call runs.
    pub fn is_idle(&self) -> bool {
        self.limits.is_idle()
    }

    /// Stops every call that runs, and every one that comes.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Runs a call to its end. An error here is a fault of the request; a tool that fails is an [`CompletedCall`].
    ///
    /// Dropping the future cancels the call, unless it has an idempotency key: whoever sends such a call again
    /// wants its outcome.
    pub async fn call(
        self: &Arc<Self>,
        tool: CallTarget,
        request: Request,
    ) -> Result<CompletedCall, CallError> {
        let found = self.find(tool, &request).await?;
        let call = match self.admit(request, found) {
            Ok(call) => call,
            Err(refused) => return Err(Box::pin(self.record_refusal(refused)).await),
        };
        if !call.asked.has_key() {
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
    pub async fn start(
        self: &Arc<Self>,
        tool: CallTarget,
        request: Request,
    ) -> Result<CompletedCall, CallError> {
        let found = self.find(tool, &request).await?;
        let call = match self.admit(request, found) {
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

    async fn accept(&self, call: &Call) -> Result<Option<CompletedCall>, CallError> {
        if call.asked.has_key() {
            return self.reserve(call).await;
        }
        self.record(Arc::new(call.asked.running())).await.map_err(|error| unrecorded(&error))?;
        Ok(None)
    }

    async fn run_in_background(
        &self,
        mut call: Call,
        accepted: oneshot::Sender<Result<CompletedCall, CallError>>,
    ) {
        let (id, record) = (call.id(), Arc::new(call.asked.running()));
        let (running, entered) =
            self.background.enter(id, call.tenant().clone(), self.stopping.child_token());
        call.cancel = Some(running.cancel.clone());
        call.asked.context.events = Some(running);
        // The call runs also where nobody waits for the acceptance any more.
        let _ = accepted.send(Ok(CompletedCall { record, replayed: false }));
        if let Err(error) = self.run(call).await {
            tracing::error!(call = %id, error = %error, "a background call was not recorded");
        }
        drop(entered);
    }

    async fn record(&self, record: Arc<CallRecord>) -> Result<(), StoreError> {
        match &self.ledger {
            Some(ledger) => ledger.record(record).await,
            None => Ok(()),
        }
    }

    /// Records the refusal of a known tool; returns what to answer.
    async fn record_refusal(&self, refused: Box<Refused>) -> CallError {
        let Refused { error, mut asked } = *refused;
        // A refused call never ran, so its key stays free for the corrected one.
        if let Some(labels) = &mut asked.labels {
            labels.idempotency_key = None;
        }
        let record = Arc::new(asked.finished(Err(error.clone())));
        self.record(record).await.map_or_else(|failure| unrecorded(&failure), |()| error)
    }

    /// Takes the idempotency key, or finds the call that has it.
    async fn reserve(&self, call: &Call) -> Result<Option<CompletedCall>, CallError> {
        let Some(ledger) = &self.ledger else { return Ok(None) };
        let reservation = ledger.reserve(call.asked.running()).await.map_err(|error| unrecorded(&error))?;
        let Reservation::Existing(earlier) = reservation else { return Ok(None) };
        let same =
            earlier.tool_id == call.entry().tool.id && earlier.args_digest.as_deref() == call.args_digest();
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
        Ok(Some(CompletedCall { record: Arc::from(earlier), replayed: true }))
    }

    /// Runs the stages and records what they came to, before anyone learns of it.
    async fn run(&self, call: Call) -> Result<CompletedCall, CallError> {
        self.registry.count(call.entry(), call.started_at());
        let mut unfinished = Unfinished { state: State::Running(call), ledger: self.ledger.as_ref() };
        let outcome = match &mut unfinished.state {
            State::Running(call) => self.outcome(call).await,
            State::Over(..) | State::Recorded => Err(CallError::internal("a call ran twice")),
        };
        let record = unfinished.finish(outcome)?;
        let recorded = self.record(Arc::clone(&record)).await;
        unfinished.state = State::Recorded;
        recorded.map_err(|error| {
            let error = unrecorded(&error).retryable(false);
            tracing::error!(call = %record.id, tool = %record.tool, error = %error, "a call ran and was not recorded");
            CallError { message: format!("the tool ran, but {}", error.message), ..error }
                .for_model("the tool ran, but the call could not be recorded")
        })?;
        Ok(CompletedCall { record, replayed: false })
    }

    /// Runs the stages within deadline and cancellation; a panic in one of them is an outcome. Dropping the future
    /// cancels the call.
    pub async fn outcome(&self, call: &mut Call) -> Outcome {
        let (deadline, cancel) = (call.deadline(), call.cancel.take());
        let grace = call.plan.prepared.grace();
        let ended = {
            let mut stages = pin!(async {
                call.admission.turn().await?;
                if self.stages.is_empty() {
                    return stages::execute(call).await;
                }
                Next::new(&self.stages).run(call).await
            });
            let depth = depth::current() + 1;
            let mut deeper = poll_fn(|context| {
                let _at = depth::at(depth);
                guarded(|| stages.as_mut().poll(context))
            });
            // One that is over at once needs no timer, nor asks whether it was cancelled.
            if let Poll::Ready(outcome) = poll!(&mut deeper) {
                return outcome;
            }
            tokio::select! {
                biased;
                outcome = deeper => return outcome,
                () = tokio::time::sleep_until((deadline + grace).into()) => ErrorCode::Timeout,
                () = cancel.as_ref().unwrap_or(&self.stopping).cancelled() => ErrorCode::Cancelled,
            }
        };
        Err(match ended {
            ErrorCode::Timeout => {
                too_late(call.tool(), deadline.saturating_duration_since(call.context().started))
            }
            _ => self.cancelled(call.entry()),
        })
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
