//! The steps of a call, the same for every surface.
//!
//! role → resolve → gate (state of the tool, allow-list, rules that deny whatever the arguments are) → validate arguments
//! → authorise (policy rules, the tool's own flag)
//! → idempotency → approval → admit (rate, concurrency) → prepare (the workspace) → execute (stages, retries, output
//! validation; within deadline and cancellation) → snapshot (the workspace) → set a large result aside → record → answer.
//!
//! A call that waits, for approval or in the queue, is a row: it holds no permit and no task. When it runs, on whatever
//! node, it passes the same steps again.

mod account;
mod admission;
mod approved;
mod bound;
mod call;
mod checks;
mod in_flight;
mod nested;
mod queued;
mod record_guard;
mod request;
mod resources;
mod results;
mod stops;
mod waiting;
mod workspace;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use haft_core::Clock;
use haft_core::approval::{ApprovalCause, Approvals};
use haft_core::call::{CallRecord, StepTimes};
use haft_core::catalog::StoreError;
use haft_core::executor::CallContext;
use haft_core::id::{ActorId, CallId};
use haft_core::invocation::Invocation;
use haft_core::large_result::Results;
use haft_core::ledger::{CallQueue, Ledger};
use haft_core::limit::RateStatus;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::policy::Decision;
use haft_core::runnable::Mode;
use haft_core::secret::SecretSource;
use haft_core::tenant::TenantLimits;
use haft_core::workspace::{WorkspaceFolder, Workspaces};
use haft_definition::defaults::ArgumentDefaults;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use self::approved::content_digest;
pub(crate) use self::approved::digest_within;
pub use self::bound::bound_defaults;
pub use self::call::Call;
pub(crate) use self::call::CallParts;
pub use self::checks::check_args;
pub(crate) use self::queued::ClaimedCall;
pub use self::request::{CallOptions, CallTarget, Principal, Request};

use self::admission::{Admission, admit};
use self::bound::CallInputs;
use self::call::{CallDraft, Callee};
use self::checks::{
    above, approval_impossible, cause_of, check_allow_list, check_role, compiled, fill_defaults,
    ledger_unavailable, not_recorded, policy_denied,
};
pub(crate) use self::checks::{milliseconds, timed_out};
use self::in_flight::{InFlight, InFlightGuard};
use self::record_guard::RecordGuard;
use self::stops::CallStops;
use self::waiting::CallReservation;
use crate::concurrency::ConcurrencyLimit;
use crate::events::BackgroundCalls;
use crate::function::catch_panic;
use crate::limits::{AppliedRate, LimitSettings, LimitUsage, LimitedCall, LimitedSubject, Limits};
use crate::policy::{PolicyHandle, PolicyRequest, Subject, acting_agent};
use crate::registry::{CompiledTool, Entry, Registry, ResolvedTool};
use crate::stages::{Next, Stage};
use crate::{clock, depth};

/// The longest timeout that a request may set.
const MAX_REQUEST_TIMEOUT: Duration = Duration::from_mins(10);

/// A call that has ended, or that was put into the queue.
#[derive(Debug, Clone)]
pub struct CompletedCall {
    /// The record, with the outcome.
    pub record: Arc<CallRecord>,
    /// The whole value, if it is stored apart and this node still has it.
    pub whole: Option<Arc<Value>>,
    /// Whether this is the outcome of an earlier call: with the same idempotency key, or one that was approved.
    pub replayed: bool,
    /// Of the rates that counted the call, the one that is closest to its limit.
    pub rate: Option<RateStatus>,
}

impl CompletedCall {
    /// Returns a call that no rate has counted.
    pub fn uncounted(record: Arc<CallRecord>, replayed: bool) -> Self {
        Self { record, whole: None, replayed, rate: None }
    }
}

/// A function that receives the record of every call that ran, exactly once, however the call ended. It must not block.
pub type CallObserver = Arc<dyn Fn(&CallRecord) + Send + Sync>;

/// A function that returns the limits of a tenant. It is called for every call, so it must not block.
pub type TenantLimitSource = Arc<dyn Fn(&TenantId) -> TenantLimits + Send + Sync>;

/// Runs calls.
pub struct Pipeline {
    registry: Arc<Registry>,
    ledger: Option<Arc<dyn Ledger>>,
    waiting: Option<WaitingCalls>,
    policy: Arc<PolicyHandle>,
    observer: Option<CallObserver>,
    rejections: Option<CallObserver>,
    clock: Arc<dyn Clock>,
    secrets: Arc<dyn SecretSource>,
    stages: Vec<Arc<dyn Stage>>,
    background: Arc<BackgroundCalls>,
    in_flight: Arc<InFlight>,
    limit: Arc<ConcurrencyLimit>,
    limits: Arc<Limits>,
    tenant_limits: Option<TenantLimitSource>,
    workspace: Option<Arc<WorkspaceFolder>>,
    workspaces: Option<Arc<dyn Workspaces>>,
    results: Option<Arc<dyn Results>>,
    stopping: CancellationToken,
    call_stops: Arc<CallStops>,
}

/// The parts of a pipeline.
pub struct PipelineParts {
    /// The tools.
    pub registry: Arc<Registry>,
    /// Where calls are recorded, if anywhere.
    pub ledger: Option<Arc<dyn Ledger>>,
    /// Where calls wait. Without it, a call that needs approval is rejected and nothing can be queued.
    pub waiting: Option<WaitingCalls>,
    /// The policy rules.
    pub policy: Arc<PolicyHandle>,
    /// Receives the record of every call that ran, for metrics.
    pub observer: Option<CallObserver>,
    /// Receives the record of every call that was rejected before it ran, for metrics.
    pub rejections: Option<CallObserver>,
    /// The source of `${NAME}` values.
    pub secrets: Arc<dyn SecretSource>,
    /// The clock for the times in records.
    pub clock: Arc<dyn Clock>,
    /// The stages around the execution, outermost first.
    pub stages: Vec<Arc<dyn Stage>>,
    /// The maximum number of calls that run at once.
    pub max_running: usize,
    /// The limits of sessions, and what nodes share.
    pub limits: LimitSettings,
    /// The source of tenant limits; `None` if tenants are unlimited.
    pub tenant_limits: Option<TenantLimitSource>,
    /// The folder that all calls work in, in a program without workspaces.
    pub workspace: Option<Arc<WorkspaceFolder>>,
    /// The workspaces that calls can name.
    pub workspaces: Option<Arc<dyn Workspaces>>,
    /// Where large results are stored; `None` if records hold every result.
    pub results: Option<Arc<dyn Results>>,
}

/// Where calls wait for approval or for their turn.
#[derive(Clone)]
pub struct WaitingCalls {
    /// The approvals.
    pub approvals: Arc<dyn Approvals>,
    /// The queue.
    pub queue: Arc<dyn CallQueue>,
    /// How long an approval can be given.
    pub approval_lifetime: Duration,
    /// The number of calls that a tenant may have in the queue, and the number that may wait for approval.
    pub max_queued: u64,
}

/// A call that passed the checks that need no waiting.
struct CheckedCall {
    entry: Arc<Entry>,
    plan: Arc<CompiledTool>,
    draft: CallDraft,
    needs_approval: Option<ApprovalCause>,
    /// Lets others wait for the call, if its key is reserved.
    listed: Option<InFlightGuard>,
}

/// A call that failed a check.
struct RejectedCall {
    error: CallError,
    draft: CallDraft,
}

impl Pipeline {
    /// Creates a pipeline.
    pub fn new(parts: PipelineParts) -> Self {
        let stopping = CancellationToken::new();
        Self {
            registry: parts.registry,
            ledger: parts.ledger,
            waiting: parts.waiting,
            policy: parts.policy,
            observer: parts.observer,
            rejections: parts.rejections,
            clock: parts.clock,
            secrets: parts.secrets,
            stages: parts.stages,
            background: Arc::default(),
            in_flight: Arc::default(),
            limit: Arc::new(ConcurrencyLimit::new(parts.max_running, 0)),
            limits: Arc::new(Limits::new(parts.limits)),
            tenant_limits: parts.tenant_limits,
            workspace: parts.workspace,
            workspaces: parts.workspaces,
            results: parts.results,
            call_stops: Arc::new(CallStops::new(stopping.clone())),
            stopping,
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
            waiting: self.waiting.clone(),
            policy: Arc::clone(&self.policy),
            observer: self.observer.clone(),
            rejections: self.rejections.clone(),
            clock: Arc::clone(&self.clock),
            secrets: Arc::clone(&self.secrets),
            stages,
            background: Arc::clone(&self.background),
            in_flight: Arc::clone(&self.in_flight),
            limit: Arc::clone(&self.limit),
            limits: Arc::clone(&self.limits),
            tenant_limits: self.tenant_limits.clone(),
            workspace: self.workspace.clone(),
            workspaces: self.workspaces.clone(),
            results: self.results.clone(),
            stopping: self.stopping.clone(),
            call_stops: Arc::clone(&self.call_stops),
        }
    }

    /// Returns the queued calls that run on this node.
    pub fn background(&self) -> &Arc<BackgroundCalls> {
        &self.background
    }

    /// Returns the number of running calls.
    pub fn running(&self) -> usize {
        self.limit.in_use()
    }

    /// Returns how much of the limits is used.
    pub fn limit_usage(&self) -> LimitUsage {
        LimitUsage(Arc::clone(&self.limits))
    }

    /// Cancels all running calls and all later ones.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Cancels the running calls of a tenant on this node.
    pub fn stop_tenant(&self, tenant: &TenantId) {
        self.call_stops.stop_tenant(tenant);
    }

    /// Cancels the running calls of a person or a service account in a tenant on this node.
    pub fn stop_actor(&self, tenant: &TenantId, actor: ActorId) {
        self.call_stops.stop_actor(tenant, actor);
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
        let (waits, resumes) = (request.waits_for_account, request.resumes);
        let checked = self.check(target, request).await?;
        if let Some(approval) = resumes
            && let Some(completed) = Box::pin(self.resumed(&checked, approval)).await?
        {
            return Ok(completed);
        }
        let checked =
            if checked.plan.needs_account { self.check_account(checked, waits).await? } else { checked };
        if checked.needs_approval.is_none() && !checked.draft.has_idempotency_key() {
            return self.run(self.admit(checked).await?).await;
        }
        let pipeline = Arc::clone(self);
        let task = tokio::spawn(async move {
            let reserved = match &checked.needs_approval {
                Some(_) => match pipeline.request_approval(checked).await? {
                    CallReservation::Run(checked) if checked.draft.has_idempotency_key() => {
                        pipeline.reserve(*checked).await?
                    }
                    reserved => reserved,
                },
                None => pipeline.reserve(checked).await?,
            };
            match reserved {
                CallReservation::Run(checked) => Box::pin(pipeline.run_reserved(*checked)).await,
                CallReservation::Replay(completed) => Ok(completed),
            }
        });
        task.await
            .unwrap_or_else(|error| Err(CallError::internal(format!("the call's task failed: {error}"))))
    }

    /// Puts a call into the queue and returns its record as soon as that is durable.
    pub async fn start(
        self: &Arc<Self>,
        target: CallTarget,
        request: Request,
    ) -> Result<CompletedCall, CallError> {
        let checked = self.check(target, request).await?;
        let checked =
            if checked.plan.needs_account { self.check_account(checked, true).await? } else { checked };
        let pipeline = Arc::clone(self);
        // In a task of its own, so that a client that disconnects does not stop between two steps.
        let task = tokio::spawn(async move {
            let checked = match &checked.needs_approval {
                Some(_) => match pipeline.request_approval(checked).await? {
                    CallReservation::Run(checked) => *checked,
                    CallReservation::Replay(completed) => return Ok(completed),
                },
                None => checked,
            };
            pipeline.enqueue(checked).await
        });
        task.await
            .unwrap_or_else(|error| Err(CallError::internal(format!("the call's task failed: {error}"))))
    }

    /// Checks and admits a call that is not recorded; [`Pipeline::execute`] runs it.
    pub fn begin(self: &Arc<Self>, tool: ResolvedTool, request: Request) -> Result<Call, CallError> {
        if self.ledger.is_some() {
            return Err(CallError::internal("a pipeline with a ledger runs recorded calls only"));
        }
        check_role(&request.principal)?;
        let checked =
            self.check_resolved(tool, request, CallInputs::none()).map_err(|rejected| rejected.error)?;
        if let Some(cause) = &checked.needs_approval {
            return Err(approval_impossible(checked.plan.spec.name.as_str(), cause));
        }
        self.admit_now(checked).map_err(|rejected| rejected.error)
    }

    /// Resolves the tool and makes all checks that need no waiting. A call of somebody who may not call anything is not
    /// recorded.
    async fn check(self: &Arc<Self>, target: CallTarget, request: Request) -> Result<CheckedCall, CallError> {
        check_role(&request.principal)?;
        let tool = self.resolve(target, &request).await?;
        let inputs = self.read_inputs(&tool, request.mode, &request.principal, request.args.values()).await;
        match self.check_resolved(tool, request, inputs) {
            Ok(checked) => Ok(checked),
            Err(rejected) => Err(self.record_rejection(rejected).await),
        }
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
        self.check_ledger().await?;
        self.compile(&tool, request.mode).await;
        Ok(tool)
    }

    /// Checks that calls can be recorded.
    async fn check_ledger(&self) -> Result<(), CallError> {
        match &self.ledger {
            Some(ledger) if ledger.is_failing() => ledger.probe().await.map_err(ledger_unavailable),
            _ => Ok(()),
        }
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

    fn check_resolved(
        self: &Arc<Self>,
        tool: ResolvedTool,
        request: Request,
        CallInputs { loaded, bound }: CallInputs,
    ) -> Result<CheckedCall, Box<RejectedCall>> {
        let (is_test, callee) = (request.is_test, Callee::of(&tool.entry, request.mode));
        let mut draft = self.draft(request, callee);
        draft.bound = bound;
        let checked = loaded.and_then(|loaded| {
            draft.loaded = loaded;
            self.check_draft(&tool, &mut draft, is_test)
        });
        match checked {
            Ok((plan, needs_approval)) => {
                Ok(CheckedCall { entry: tool.entry, plan, draft, needs_approval, listed: None })
            }
            Err(error) => Err(Box::new(RejectedCall { error, draft })),
        }
    }

    /// Gate, validate arguments, authorise.
    fn check_draft(
        &self,
        tool: &ResolvedTool,
        draft: &mut CallDraft,
        is_test: bool,
    ) -> Result<(Arc<CompiledTool>, Option<ApprovalCause>), CallError> {
        let entry = &tool.entry;
        let runnable = entry.runnable(tool.bundle_enabled, draft.context.mode);
        runnable.map_err(|reason| entry.not_runnable(reason))?;
        check_allow_list(entry, draft.context.principal())?;
        let subject = Subject::from(&entry.tool);
        // Asked only if there is an error that would tell a denied caller about the tool: every other call is authorised
        // below by the same rules.
        let plan = self
            .validate(entry, draft)
            .map_err(|error| self.certain_denial(draft, subject).unwrap_or(error))?;
        // A person who tries the tool overrides its own flag.
        let decision = self.authorise(draft, subject);
        let needs_approval = cause_of(&decision, &plan.spec, is_test || draft.context.principal().elevated)?;
        let CallDraft { context, invocation, .. } = &mut *draft;
        invocation.is_pure = plan.spec.execution.is_pure;
        let timeout = invocation.timeout_ms.map_or(plan.deadline, Duration::from_millis);
        context.deadline = context.started + timeout.min(MAX_REQUEST_TIMEOUT.max(plan.deadline));
        draft.steps.check_ms = draft.step();
        Ok((plan, needs_approval))
    }

    /// Checks the request against the definition: workspace, depth, arguments.
    fn validate(&self, entry: &Entry, draft: &mut CallDraft) -> Result<Arc<CompiledTool>, CallError> {
        let CallDraft { context, invocation, loaded, full_args, bound, .. } = draft;
        let plan = compiled(entry, context.mode, &self.registry)?;
        self.check_workspace(invocation)?;
        depth::check(plan.spec.name.as_str(), context.lineage.depth.max(depth::current()))?;
        // Of the arguments as requested: a default that changes later does not make a retry another call.
        if invocation.idempotency_key.is_some() && invocation.args_digest.is_none() {
            invocation.args_digest = Some(haft_core::hash::of_args(&invocation.args));
        }
        if let Some(loaded) = loaded.take() {
            *full_args = Some(Box::new(loaded.inserted_into(&invocation.args, &plan.input_schema)?));
        }
        let unbound = ArgumentDefaults::default();
        let bound_defaults = bound.as_ref().map_or(&unbound, |bound| &bound.defaults);
        check_args(&plan, bound_defaults, full_args.as_deref_mut().unwrap_or(&mut invocation.args))?;
        if full_args.is_some() {
            fill_defaults(&plan, bound_defaults, &mut invocation.args);
        }
        Ok(plan)
    }

    /// Returns the error of a call that the rules deny whatever its arguments are.
    fn certain_denial(&self, draft: &mut CallDraft, subject: Subject<'_>) -> Option<CallError> {
        let invocation = &draft.invocation;
        let above = &invocation.lineage.surfaces;
        let policy = self.policy.load();
        let denial = policy.certain_denial(draft.context.principal(), subject, &invocation.surface, above)?;
        let rule = denial.rule.as_deref();
        draft.decision.get_or_insert_default().rule = rule.map(str::to_owned);
        Some(policy_denied(rule, denial.reason.as_deref()))
    }

    /// Asks the policy rules, and notes the rule that decides.
    fn authorise(&self, draft: &mut CallDraft, subject: Subject<'_>) -> Decision {
        let decision = self.decide(&PolicyRequest {
            principal: draft.context.principal(),
            subject,
            surface: &draft.invocation.surface,
            agent: acting_agent(draft.context.principal()),
            args: draft.args(),
            above: above(&draft.invocation),
        });
        if let Some(rule) = &decision.rule {
            draft.decision.get_or_insert_default().rule = Some(rule.to_string());
        }
        decision
    }

    fn decide(&self, request: &PolicyRequest<'_>) -> Decision {
        let policy = self.policy.load();
        if policy.is_empty() { Decision::no_match() } else { policy.decide(request) }
    }

    /// Returns why a call that waits needs approval as the rules are now and with these arguments; an error if a rule
    /// denies it.
    pub fn current_cause(
        &self,
        call: &CallRecord,
        tool: &haft_core::tool::Tool,
        plan: &CompiledTool,
        args: &Value,
    ) -> Result<Option<ApprovalCause>, CallError> {
        let principal = &*call.invocation.principal;
        let surface = &call.invocation.surface;
        let agent = acting_agent(principal);
        let above = above(&call.invocation);
        let decision =
            self.decide(&PolicyRequest { principal, subject: tool.into(), surface, agent, args, above });
        cause_of(&decision, &plan.spec, principal.elevated)
    }

    fn draft(self: &Arc<Self>, request: Request, callee: Callee) -> CallDraft {
        let Request {
            principal,
            args,
            mode,
            surface,
            events,
            options,
            lineage,
            timeout,
            workspace,
            cancel,
            ..
        } = request;
        let options = options.map(|options| *options).unwrap_or_default();
        let args = Value::Object(args);
        let session = options.session.or_else(|| options.chat_id.as_deref().map(Arc::from));
        let invocation = Invocation {
            id: CallId(Uuid::now_v7()),
            lineage,
            principal,
            surface: surface.into(),
            tool_id: callee.id,
            tool: callee.name,
            revision: callee.revision,
            definition_hash: None,
            mode,
            args_digest: None,
            args,
            idempotency_key: options.idempotency_key,
            request_id: options.request_id,
            chat_id: options.chat_id,
            message_id: options.message_id,
            workspace: options.workspace,
            session,
            webhook: options.webhook,
            timeout_ms: timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            is_pure: false,
            fence: 0,
        };
        let mut draft = self.draft_of(invocation);
        draft.context.events = events;
        draft.stop = cancel;
        if workspace.is_some() {
            draft.context.workspace = workspace;
        }
        draft
    }

    /// Prepares an invocation to run from now on.
    fn draft_of(self: &Arc<Self>, invocation: Invocation) -> CallDraft {
        let started = clock::now();
        let mut context = CallContext::for_principal(
            invocation.id,
            Arc::clone(&invocation.principal),
            Arc::clone(&self.secrets),
            started..started,
        );
        context.mode = invocation.mode;
        context.surface.clone_from(&invocation.surface);
        context.lineage.clone_from(&invocation.lineage);
        context.workspace.clone_from(&self.workspace);
        context.workspace_name.clone_from(&invocation.workspace);
        context.idempotency_key = invocation.idempotency_key.as_deref().map(Arc::from);
        context.session.clone_from(&invocation.session);
        context.invoker = Some(Arc::clone(self) as _);
        CallDraft {
            invocation,
            context,
            loaded: None,
            full_args: None,
            bound: None,
            stop: None,
            started_at: self.clock.now(),
            decision: None,
            steps: StepTimes::default(),
            step_started: started,
        }
    }

    /// Admits a call, or rejects and records it.
    async fn admit(&self, checked: CheckedCall) -> Result<Call, CallError> {
        match self.try_admit(checked).await {
            Ok(call) => Ok(call),
            Err(rejected) => Err(self.record_rejection(rejected).await),
        }
    }

    /// Admits a call by the limits of all nodes.
    async fn try_admit(&self, checked: CheckedCall) -> Result<Call, Box<RejectedCall>> {
        if !self.limits.is_shared() {
            return self.admit_now(checked);
        }
        let CheckedCall { entry, plan, draft, .. } = checked;
        let admitted = match self.admit_uncounted(LimitedSubject::Tool(&entry, &plan), &draft) {
            Ok((admission, rates)) if rates.is_empty() => Ok(admission),
            Ok((admission, rates)) => Box::pin(self.count_shared(admission, &rates)).await,
            Err(error) => Err(error),
        };
        match admitted {
            Ok(admission) => Ok(Call::new(entry, plan, draft, admission)),
            Err(error) => Err(Box::new(RejectedCall { error, draft })),
        }
    }

    /// Admits a call by the limits of this node.
    fn admit_now(&self, checked: CheckedCall) -> Result<Call, Box<RejectedCall>> {
        let CheckedCall { entry, plan, draft, .. } = checked;
        let admitted = self.admit_uncounted(LimitedSubject::Tool(&entry, &plan), &draft);
        match admitted.and_then(|(admission, rates)| self.count(admission, &rates)) {
            Ok(admission) => Ok(Call::new(entry, plan, draft, admission)),
            Err(error) => Err(Box::new(RejectedCall { error, draft })),
        }
    }

    /// Admits a call; returns the rates that have to count it.
    fn admit_uncounted(
        &self,
        subject: LimitedSubject<'_>,
        draft: &CallDraft,
    ) -> Result<(Admission, Vec<AppliedRate>), CallError> {
        let invocation = &draft.invocation;
        let tenant_limits = self.limits_of(invocation.tenant());
        admit(&self.limit, &self.limits, &LimitedCall { subject, invocation, tenant_limits })
    }

    /// Counts a call by the rates of this node.
    fn count(&self, mut admission: Admission, rates: &[AppliedRate]) -> Result<Admission, CallError> {
        admission.rate = self.limits.take(rates)?;
        Ok(admission)
    }

    /// Counts a call by the rates of all nodes.
    async fn count_shared(
        &self,
        mut admission: Admission,
        rates: &[AppliedRate],
    ) -> Result<Admission, CallError> {
        admission.rate = self.limits.take_shared(rates).await?;
        Ok(admission)
    }

    /// Returns the limits of a tenant.
    fn limits_of(&self, tenant: &TenantId) -> TenantLimits {
        self.tenant_limits.as_ref().map_or_else(TenantLimits::default, |limits| limits(tenant))
    }

    /// Executes a call and records its outcome before the outcome is returned.
    async fn run(self: &Arc<Self>, call: Call) -> Result<CompletedCall, CallError> {
        if call.workspace_entry().is_some() {
            return Box::pin(self.run_in_workspace(call)).await;
        }
        self.run_to_record(call).await
    }

    async fn run_to_record(&self, call: Call) -> Result<CompletedCall, CallError> {
        self.registry.count(call.entry(), call.started_at());
        let rate = call.admission.rate;
        let mut guard = RecordGuard::new(call, self.ledger.as_ref(), self.observer.as_ref());
        let outcome = match guard.call() {
            Some(call) if call.workspace_entry().is_some() => Box::pin(self.execute_in_workspace(call)).await,
            Some(call) => self.execute(call).await,
            None => Err(CallError::internal("the call has already ended")),
        };
        let (outcome, whole) = match guard.call() {
            Some(call) => self.offload_large_result(call, outcome).await,
            None => (outcome, None),
        };
        let record = guard.finish(outcome)?;
        let recorded = self.record(Arc::clone(&record)).await;
        guard.disarm();
        recorded.map_err(|error| {
            let error = not_recorded(error).retryable(false);
            let invocation = &record.invocation;
            tracing::error!(call = %invocation.id, tool = %invocation.tool, error = %error, "the tool ran, but the call was not recorded");
            CallError { message: format!("the tool ran, but {}", error.message), ..error }
                .for_model("the tool ran, but the call could not be recorded")
        })?;
        Ok(CompletedCall { record, whole, replayed: false, rate })
    }

    /// Runs the stages and the tool within deadline and cancellation; a panic becomes an outcome. Dropping the future
    /// cancels the call.
    pub async fn execute(&self, call: &mut Call) -> Outcome {
        let deadline = call.deadline();
        let cancel = call.cancel.take().unwrap_or_else(|| self.call_stops.token(call.principal()));
        let grace = call.plan.prepared.grace();
        let interruption = {
            let mut work = pin!(async {
                if call.admission.may_wait() {
                    call.admission.acquire().await?;
                    call.draft.steps.admit_ms = call.draft.step();
                }
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
                () = cancel.cancelled() => ErrorCode::Cancelled,
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
        let RejectedCall { error, mut draft } = *rejected;
        // The call did not run, so its key stays free for the corrected call.
        draft.invocation.idempotency_key = None;
        let record = Arc::new(draft.finished_record(Err(error.clone())));
        if let Some(observer) = &self.rejections {
            observer(&record);
        }
        let error = CallError { call_id: Some(record.id()), ..error };
        self.record(record).await.map_or_else(not_recorded, |()| error)
    }

    async fn record(&self, record: Arc<CallRecord>) -> Result<(), StoreError> {
        match &self.ledger {
            Some(ledger) => ledger.record(record).await,
            None => Ok(()),
        }
    }
}
