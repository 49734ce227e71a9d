//! Who called what, when, and what came of it, handed to whoever keeps it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use haft_core::id::{CallId, ToolId};
use haft_core::name::TenantId;
use haft_core::outcome::{ErrorCode, Outcome};
use haft_core::{BoxFuture, Timestamp};

use crate::clock;
use crate::pipeline::Call;
use crate::stages::ending::Ended;
use crate::stages::{Next, Stage};

/// One call that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditedCall {
    /// The call.
    pub call: CallId,
    /// For whom it ran.
    pub tenant: TenantId,
    /// Who called.
    pub caller: String,
    /// Through which surface: `rest`, `library`, …
    pub surface: String,
    /// Which tool, as `bundle:name@version`.
    pub tool: String,
    /// The identity of the tool.
    pub tool_id: ToolId,
    /// Which revision of it.
    pub revision: u32,
    /// When it was admitted.
    pub started_at: Timestamp,
    /// How long it took from here on inwards.
    pub duration: Duration,
    /// What came of it: well, or with this code.
    pub outcome: Result<(), ErrorCode>,
}

/// Keeps what [`Audit`] tells. Every `Fn(AuditedCall)` is one.
pub trait AuditSink: Send + Sync {
    /// Takes a record. It is called on the threads that serve calls and must not block: send it to a channel.
    fn record(&self, audited: AuditedCall);
}

impl<F: Fn(AuditedCall) + Send + Sync> AuditSink for F {
    fn record(&self, audited: AuditedCall) {
        self(audited);
    }
}

/// Tells a sink of every call that reaches it, exactly once, also where the call was cancelled, timed out or panicked.
/// Arguments and values are never told.
#[derive(Clone)]
pub struct Audit(Arc<dyn AuditSink>);

impl Audit {
    /// Tells this sink.
    pub fn new(sink: impl AuditSink + 'static) -> Self {
        Self(Arc::new(sink))
    }
}

impl Stage for Audit {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let (sink, entry, started) = (&self.0, call.entry(), clock::now());
            let mut audited = AuditedCall {
                call: call.id(),
                tenant: call.tenant().clone(),
                caller: call.caller().to_owned(),
                surface: call.surface().to_owned(),
                tool: entry.qualified.to_string(),
                tool_id: entry.tool.id,
                revision: call.revision(),
                started_at: call.started_at(),
                duration: Duration::ZERO,
                outcome: Ok(()),
            };
            let ended = Ended::new(call.deadline(), move |ending| {
                audited.duration = clock::now().saturating_duration_since(started);
                audited.outcome = ending;
                // A sink that panics while a panic unwinds would end the program.
                if catch_unwind(AssertUnwindSafe(|| sink.record(audited))).is_err() {
                    tracing::error!("the sink of `Audit` panicked; a record was lost");
                }
            });
            let outcome = next.run(call).await;
            ended.with(&outcome);
            outcome
        })
    }
}
