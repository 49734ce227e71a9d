//! A call on its way: what was asked for, what stages and the tool may know of it, and the record that it becomes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::call::{CallRecord, CallStatus};
use haft_core::executor::{CallArtifacts, CallContext};
use haft_core::id::CallId;
use haft_core::name::TenantId;
use haft_core::outcome::Outcome;
use haft_core::{Clock as _, Timestamp};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::checks::milliseconds;
use super::request::Labels;
use crate::clock::{self, SystemClock};
use crate::limits::Admission;
use crate::registry::{CompiledTool, Entry};

/// A call that may run.
pub struct Call {
    /// What is compiled of the tool.
    pub plan: Arc<CompiledTool>,
    /// Elsewhere, as a call is handed on by many.
    pub(super) asked: Box<Asked>,
    /// Stops it alone, where it runs in the background.
    pub(super) cancel: Option<CancellationToken>,
    /// Which attempt of the tool is the next, counted from 0 over all that stages run again.
    pub(crate) attempt: u32,
    /// Its place among the running calls.
    pub(super) admission: Admission,
    /// What it has left besides its value, if anything.
    pub(crate) left: Option<Box<CallArtifacts>>,
}

/// What was asked for, once it is known of which tool.
pub(super) struct Asked {
    pub(super) entry: Arc<Entry>,
    pub(super) context: CallContext,
    pub(super) args: Value,
    pub(super) revision: u32,
    pub(super) surface: &'static str,
    /// The hash of the arguments, where they have an idempotency key.
    pub(super) args_digest: Option<String>,
    pub(super) labels: Option<Box<Labels>>,
    /// Where somebody keeps it.
    pub(super) started_at: Option<Timestamp>,
}

impl Call {
    /// Returns its identity.
    pub fn id(&self) -> CallId {
        self.asked.context.id
    }

    /// Returns the tool.
    pub fn entry(&self) -> &Arc<Entry> {
        &self.asked.entry
    }

    /// Returns the name of the tool, without its bundle.
    pub fn tool(&self) -> &str {
        self.asked.entry.tool.spec.name.as_str()
    }

    /// Returns which revision of the tool runs.
    pub fn revision(&self) -> u32 {
        self.asked.revision
    }

    /// Returns the arguments: a map, checked against the schema.
    pub fn args(&self) -> &Value {
        &self.asked.args
    }

    /// Returns the hash of the arguments, where somebody has made it already.
    pub(crate) fn args_digest(&self) -> Option<&str> {
        self.asked.args_digest.as_deref()
    }

    /// Returns for whom it runs.
    pub fn tenant(&self) -> &TenantId {
        self.asked.context.tenant()
    }

    /// Returns who calls: the name of a token, or `program`.
    pub fn caller(&self) -> &str {
        &self.asked.context.caller().name
    }

    /// Returns through which surface it came: `rest`, `mcp`, `library`, …
    pub fn surface(&self) -> &'static str {
        self.asked.surface
    }

    /// Returns when it started.
    pub fn started_at(&self) -> Timestamp {
        self.asked.started_at()
    }

    /// Returns the time since the call started.
    pub fn duration(&self) -> Duration {
        clock::since(self.asked.context.started)
    }

    /// Returns when it must be over.
    pub fn deadline(&self) -> Instant {
        self.asked.context.deadline
    }

    /// Returns what the tool may know of it. Not for stages of others: what they learned of it would not be kept out of
    /// the outcome, as each run of the tool starts anew.
    pub(crate) fn context(&self) -> &CallContext {
        &self.asked.context
    }

    /// The same, to change it.
    pub(crate) fn context_mut(&mut self) -> &mut CallContext {
        &mut self.asked.context
    }

    /// Returns what an execution needs, each by itself.
    pub(crate) fn parts(&mut self) -> (&CompiledTool, &mut CallContext, &mut u32, &Value) {
        (&self.plan, &mut self.asked.context, &mut self.attempt, &self.asked.args)
    }

    /// Makes the record of a call that is over.
    pub(super) fn finished(self, outcome: Outcome) -> (CallRecord, Admission) {
        let Call { asked, left, admission, .. } = self;
        let mut record = asked.finished(outcome);
        if let Some(left) = left {
            (record.content, record.process) = (left.content, left.process);
        }
        (record, admission)
    }
}

impl Asked {
    fn started_at(&self) -> Timestamp {
        self.started_at.unwrap_or_else(|| {
            let now = SystemClock.now();
            now.checked_sub(clock::since(self.context.started)).unwrap_or(now)
        })
    }

    pub(super) fn has_key(&self) -> bool {
        self.labels.as_ref().is_some_and(|labels| labels.idempotency_key.is_some())
    }

    /// Makes the record of a call that runs.
    pub(super) fn running(&self) -> CallRecord {
        self.record(self.args.clone(), self.args_digest.clone(), self.labels.clone())
    }

    /// Makes the record of a call that is over.
    pub(super) fn finished(mut self, outcome: Outcome) -> CallRecord {
        let (args, digest, labels) =
            (std::mem::take(&mut self.args), self.args_digest.take(), self.labels.take());
        let mut record = self.record(args, digest, labels);
        let took: Duration = clock::since(self.context.started);
        let finished_at = record.started_at.checked_add(took).unwrap_or(record.started_at);
        record.finish(outcome, finished_at, milliseconds(took));
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
            caller: Arc::clone(&context.caller().name),
            surface: self.surface.into(),
            idempotency_key,
            args_digest,
            request_id,
            chat_id,
            message_id,
            started_at: self.started_at(),
            finished_at: None,
            duration_ms: None,
        }
    }
}
