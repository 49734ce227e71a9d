//! A call in the pipeline, and the record it becomes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::Timestamp;
use haft_core::call::{CallRecord, CallStatus};
use haft_core::executor::{CallArtifacts, CallContext};
use haft_core::id::CallId;
use haft_core::name::TenantId;
use haft_core::outcome::Outcome;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::admission::Admission;
use super::checks::milliseconds;
use super::request::Labels;
use crate::clock;
use crate::registry::{CompiledTool, Entry};

/// A call that passed all checks.
pub struct Call {
    /// The compiled tool.
    pub plan: Arc<CompiledTool>,
    pub(super) invocation: Invocation,
    /// Cancels this call alone, if it runs in the background.
    pub(super) cancel: Option<CancellationToken>,
    /// The number of the next attempt, counted from 0 across all retries.
    pub(crate) attempt: u32,
    pub(super) admission: Admission,
    /// What the tool produced besides its value.
    pub(crate) artifacts: Option<Box<CallArtifacts>>,
}

/// A request together with the tool it resolved to.
pub(super) struct Invocation {
    pub(super) entry: Arc<Entry>,
    pub(super) context: CallContext,
    pub(super) args: Value,
    pub(super) revision: u32,
    pub(super) surface: &'static str,
    /// The hash of the arguments, if there is an idempotency key.
    pub(super) args_digest: Option<String>,
    pub(super) labels: Option<Box<Labels>>,
    pub(super) started_at: Timestamp,
}

impl Call {
    /// Returns the id of the call.
    pub fn id(&self) -> CallId {
        self.invocation.context.id
    }

    /// Returns the tool.
    pub fn entry(&self) -> &Arc<Entry> {
        &self.invocation.entry
    }

    /// Returns the name of the tool, without its bundle.
    pub fn tool(&self) -> &str {
        self.invocation.entry.tool.spec.name.as_str()
    }

    /// Returns the revision of the tool that runs.
    pub fn revision(&self) -> u32 {
        self.invocation.revision
    }

    /// Returns the arguments: an object, validated against the schema.
    pub fn args(&self) -> &Value {
        &self.invocation.args
    }

    /// Returns the hash of the arguments, if it was computed.
    pub(crate) fn args_digest(&self) -> Option<&str> {
        self.invocation.args_digest.as_deref()
    }

    /// Returns the tenant for which it runs.
    pub fn tenant(&self) -> &TenantId {
        self.invocation.context.tenant()
    }

    /// Returns the name of the caller: that of a token, or `program`.
    pub fn caller(&self) -> &str {
        &self.invocation.context.principal().name
    }

    /// Returns the surface: `rest`, `mcp`, `library`, …
    pub fn surface(&self) -> &'static str {
        self.invocation.surface
    }

    /// Returns when it started.
    pub fn started_at(&self) -> Timestamp {
        self.invocation.started_at
    }

    /// Returns the time since it started.
    pub fn elapsed(&self) -> Duration {
        clock::since(self.invocation.context.started)
    }

    /// Returns its deadline.
    pub fn deadline(&self) -> Instant {
        self.invocation.context.deadline
    }

    /// Returns the context that the tool sees. It is not public: each run of the tool resets it, so secrets that a
    /// stage read through it would not be redacted in the outcome.
    pub(crate) fn context(&self) -> &CallContext {
        &self.invocation.context
    }

    /// Returns the context for changes.
    pub(crate) fn context_mut(&mut self) -> &mut CallContext {
        &mut self.invocation.context
    }

    /// Borrows the parts that an execution needs.
    pub(crate) fn parts(&mut self) -> (&CompiledTool, &mut CallContext, &mut u32, &Value) {
        (&self.plan, &mut self.invocation.context, &mut self.attempt, &self.invocation.args)
    }

    /// Ends the call; returns its final record.
    pub(super) fn finish(self, outcome: Outcome) -> (CallRecord, Admission) {
        let Call { invocation, artifacts, admission, .. } = self;
        let mut record = invocation.finished_record(outcome);
        if let Some(artifacts) = artifacts {
            (record.content, record.process) = (artifacts.content, artifacts.process);
        }
        (record, admission)
    }
}

impl Invocation {
    pub(super) fn has_idempotency_key(&self) -> bool {
        self.labels.as_ref().is_some_and(|labels| labels.idempotency_key.is_some())
    }

    /// Returns the record of the running call.
    pub(super) fn running_record(&self) -> CallRecord {
        self.record(self.args.clone(), self.args_digest.clone(), self.labels.clone())
    }

    /// Returns the record of the call with its outcome.
    pub(super) fn finished_record(mut self, outcome: Outcome) -> CallRecord {
        let (args, digest, labels) =
            (std::mem::take(&mut self.args), self.args_digest.take(), self.labels.take());
        let mut record = self.record(args, digest, labels);
        let elapsed = clock::since(self.context.started);
        let finished_at = record.started_at.checked_add(elapsed).unwrap_or(record.started_at);
        record.finish(outcome, finished_at, milliseconds(elapsed));
        record
    }

    fn record(&self, args: Value, args_digest: Option<String>, labels: Option<Box<Labels>>) -> CallRecord {
        let Labels { idempotency_key, request_id, chat_id, message_id } =
            labels.map(|labels| *labels).unwrap_or_default();
        let Self { entry, context, .. } = self;
        CallRecord {
            id: context.id,
            tenant: context.tenant().clone(),
            tool_id: entry.tool.id,
            tool: Arc::clone(&entry.qualified),
            revision: self.revision,
            mode: context.mode,
            status: CallStatus::Running,
            args,
            value: None,
            error: None,
            content: Vec::new(),
            process: None,
            caller: Arc::clone(&context.principal().name),
            surface: self.surface.into(),
            idempotency_key,
            args_digest,
            request_id,
            chat_id,
            message_id,
            started_at: self.started_at,
            finished_at: None,
            duration_ms: None,
            body_removed: false,
        }
    }
}
