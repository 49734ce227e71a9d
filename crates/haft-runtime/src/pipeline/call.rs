//! A call in the pipeline, and the record it becomes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::Timestamp;
use haft_core::call::{CallDecision, CallRecord, CallStatus, StepTimes};
use haft_core::executor::{CallArtifacts, CallContext, Prepared};
use haft_core::id::{CallId, ToolId};
use haft_core::invocation::Invocation;
use haft_core::name::TenantId;
use haft_core::outcome::Outcome;
use haft_core::principal::Principal;
use haft_core::render;
use haft_core::runnable::Mode;
use haft_core::workspace::WorkspaceUse;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::admission::Admission;
use super::bound::Bound;
use super::checks::milliseconds;
use super::record_guard::Running;
use super::results::LoadedResults;
use crate::clock;
use crate::registry::{CompiledTool, Entry};

/// A call that passed all checks and may run.
pub struct Call {
    /// The compiled tool.
    pub plan: Arc<CompiledTool>,
    pub(super) entry: Arc<Entry>,
    pub(super) draft: CallDraft,
    /// Cancels this call alone, if it comes from the queue.
    pub(super) cancel: Option<CancellationToken>,
    /// The number of the next attempt, counted from 0 across all retries.
    pub(crate) attempt: u32,
    pub(super) admission: Admission,
    /// What the tool produced besides its value.
    pub(crate) artifacts: Option<Box<CallArtifacts>>,
    /// What it did in its workspace.
    pub(super) workspace_use: Option<Box<WorkspaceUse>>,
    /// The size of its result, if that is stored apart.
    pub(super) stored_bytes: Option<u64>,
}

/// The parts of a call that its execution needs.
pub(crate) struct CallParts<'a> {
    pub(crate) plan: &'a CompiledTool,
    pub(crate) prepared: &'a dyn Prepared,
    pub(crate) context: &'a mut CallContext,
    pub(crate) attempt: &'a mut u32,
    pub(crate) args: &'a Value,
}

/// The callee in the record of a call: a tool, an agent or a retrieval pipeline.
pub(super) struct Callee {
    pub(super) id: ToolId,
    pub(super) name: Arc<str>,
    pub(super) revision: u32,
}

impl Callee {
    pub(super) fn of(entry: &Entry, mode: Mode) -> Self {
        let revision = entry.definition(mode.into()).map_or(entry.tool.revision, |(number, _)| number);
        Self { id: entry.tool.id, name: Arc::clone(&entry.qualified), revision }
    }
}

/// A request together with what it calls.
pub(super) struct CallDraft {
    pub(super) invocation: Invocation,
    /// The results that the arguments refer to, until they are checked.
    pub(super) loaded: Option<LoadedResults>,
    /// The arguments with results in place of their handles, if there are any; the record keeps the handles.
    pub(super) full_args: Option<Box<Value>>,
    /// The bound tool, if it is stored outside the definition.
    pub(super) bound: Option<Bound>,
    pub(super) context: CallContext,
    /// Cancels the call although it runs on without its client.
    pub(super) stop: Option<CancellationToken>,
    pub(super) started_at: Timestamp,
    pub(super) decision: Option<Box<CallDecision>>,
    pub(super) steps: StepTimes,
    /// When the current step started.
    pub(super) step_started: Instant,
}

impl Call {
    /// Creates an admitted call.
    pub(super) fn new(
        entry: Arc<Entry>,
        plan: Arc<CompiledTool>,
        draft: CallDraft,
        admission: Admission,
    ) -> Self {
        Self {
            plan,
            entry,
            draft,
            cancel: None,
            attempt: 0,
            admission,
            artifacts: None,
            workspace_use: None,
            stored_bytes: None,
        }
    }

    /// Returns the id of the call.
    pub fn id(&self) -> CallId {
        self.draft.invocation.id
    }

    /// Returns the tool.
    pub fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    /// Returns the name of the tool, without its bundle.
    pub fn tool(&self) -> &str {
        self.entry.tool.spec.name.as_str()
    }

    /// Returns the revision of the tool that runs.
    pub fn revision(&self) -> u32 {
        self.draft.invocation.revision
    }

    /// Returns the arguments: an object, validated against the schema.
    pub fn args(&self) -> &Value {
        self.draft.args()
    }

    /// Returns the tenant for which it runs.
    pub fn tenant(&self) -> &TenantId {
        self.draft.context.tenant()
    }

    /// Returns who calls.
    pub fn principal(&self) -> &Principal {
        self.draft.context.principal()
    }

    /// Returns the name of the caller: that of a token, or `program`.
    pub fn caller(&self) -> &str {
        &self.draft.context.principal().name
    }

    /// Returns the surface: `rest`, `mcp`, `library`, …
    pub fn surface(&self) -> &str {
        &self.draft.invocation.surface
    }

    /// Returns when it started.
    pub fn started_at(&self) -> Timestamp {
        self.draft.started_at
    }

    /// Returns the time since it started.
    pub fn elapsed(&self) -> Duration {
        clock::since(self.draft.context.started)
    }

    /// Returns its deadline.
    pub fn deadline(&self) -> Instant {
        self.draft.context.deadline
    }

    /// Returns the context that the tool sees. It is not public: each run of the tool resets it, so secrets that a
    /// stage read through it would not be redacted in the outcome.
    pub(crate) fn context(&self) -> &CallContext {
        &self.draft.context
    }

    /// Returns the context for changes.
    pub(crate) fn context_mut(&mut self) -> &mut CallContext {
        &mut self.draft.context
    }

    /// Borrows the parts that an execution needs.
    pub(crate) fn parts(&mut self) -> CallParts<'_> {
        let CallDraft { context, invocation, full_args, bound, .. } = &mut self.draft;
        CallParts {
            plan: &self.plan,
            prepared: &**bound.as_ref().map_or(&self.plan.prepared, |bound| &bound.prepared),
            context,
            attempt: &mut self.attempt,
            args: full_args.as_deref().unwrap_or(&invocation.args),
        }
    }
}

impl Running for Call {
    fn finish(self, outcome: Outcome) -> (CallRecord, Admission) {
        let Call { mut draft, artifacts, admission, workspace_use, stored_bytes, plan, .. } = self;
        // A call in a workspace has executed before the snapshot.
        if workspace_use.is_none() {
            draft.steps.execute_ms = draft.step();
        }
        if let Some(artifacts) = &artifacts {
            let installing = milliseconds(artifacts.preparation).min(draft.steps.execute_ms);
            draft.steps.prepare_ms += installing;
            draft.steps.execute_ms -= installing;
        }
        let mut record = draft.finished_record(outcome);
        (record.workspace_use, record.stored_bytes) = (workspace_use, stored_bytes);
        record.renderer = render::select(&plan.spec.renderers).cloned().map(Box::new);
        if let Some(artifacts) = artifacts {
            (record.content, record.process) = (artifacts.content, artifacts.process);
        }
        (record, admission)
    }
}

impl CallDraft {
    /// Returns the arguments that the tool gets.
    pub(super) fn args(&self) -> &Value {
        self.full_args.as_deref().unwrap_or(&self.invocation.args)
    }

    pub(super) fn has_idempotency_key(&self) -> bool {
        self.invocation.idempotency_key.is_some()
    }

    /// Ends a step and returns its duration in milliseconds.
    pub(super) fn step(&mut self) -> f64 {
        let now = clock::now();
        let started = std::mem::replace(&mut self.step_started, now);
        milliseconds(now.saturating_duration_since(started))
    }

    /// Returns the record of the call before it has ended.
    pub(super) fn open_record(&self, status: CallStatus) -> CallRecord {
        let mut record = CallRecord::open(self.invocation.clone(), status, self.started_at);
        (record.decision, record.steps) = (self.decision.clone(), self.steps);
        record
    }

    /// Returns the record of the call with its outcome.
    pub(super) fn finished_record(self, outcome: Outcome) -> CallRecord {
        let elapsed = clock::since(self.context.started);
        let finished_at = self.started_at.checked_add(elapsed).unwrap_or(self.started_at);
        let mut record = CallRecord::open(self.invocation, CallStatus::Running, self.started_at);
        (record.decision, record.steps) = (self.decision, self.steps);
        record.finish(outcome, finished_at, milliseconds(elapsed));
        record
    }
}
