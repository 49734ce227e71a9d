//! A stage that reports every call to an audit sink.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use haft_core::id::{CallId, ToolId};
use haft_core::name::TenantId;
use haft_core::outcome::{ErrorCode, Outcome};
use haft_core::{BoxFuture, Timestamp};

use crate::clock;
use crate::pipeline::Call;
use crate::stages::end_guard::EndGuard;
use crate::stages::{Next, Stage};

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditedCall {
    /// The id of the call.
    pub call: CallId,
    /// The tenant.
    pub tenant: TenantId,
    /// The name of the caller.
    pub caller: String,
    /// The surface: `rest`, `library`, …
    pub surface: String,
    /// The tool, as `bundle:name@version`.
    pub tool: String,
    /// The id of the tool.
    pub tool_id: ToolId,
    /// The revision of the tool.
    pub revision: u32,
    /// When the call started.
    pub started_at: Timestamp,
    /// How long the inner stages took.
    pub duration: Duration,
    /// Success, or the code of the error.
    pub outcome: Result<(), ErrorCode>,
}

/// Receives the calls of [`Audit`]. Every `Fn(AuditedCall)` is one.
pub trait AuditSink: Send + Sync {
    /// Receives a call. It runs on the threads that serve calls and must not block: use a channel.
    fn record(&self, audited: AuditedCall);
}

impl<F: Fn(AuditedCall) + Send + Sync> AuditSink for F {
    fn record(&self, audited: AuditedCall) {
        self(audited);
    }
}

/// Reports every call that reaches it to a sink, exactly once, even if the call is cancelled, times out or panics.
/// Arguments and values are not reported.
#[derive(Clone)]
pub struct Audit(Arc<dyn AuditSink>);

impl Audit {
    /// Reports to this sink.
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
            let guard = EndGuard::new(call.deadline(), move |status| {
                audited.duration = clock::now().saturating_duration_since(started);
                audited.outcome = status;
                // A sink that panics while another panic unwinds would abort the program.
                if catch_unwind(AssertUnwindSafe(|| sink.record(audited))).is_err() {
                    tracing::error!("the sink of `Audit` panicked; the audit record is lost");
                }
            });
            let outcome = next.run(call).await;
            guard.finish(&outcome);
            outcome
        })
    }
}
