//! A stage that limits how many calls run at once: of all tools, of each tool, or of each group of tools.

use haft_core::BoxFuture;
use haft_core::outcome::{CallError, ErrorCode, Outcome};

use crate::concurrency::KeyedConcurrencyLimit;
use crate::pipeline::Call;
use crate::stages::{Next, Stage, StageError};

/// The default number of calls that may wait.
const MAX_WAITING: usize = 64;

/// Limits how many calls run at once. Further calls wait in the order of their arrival; when the queue is full, a call
/// is rejected with `overloaded`. A call that is cancelled or times out leaves the queue at once.
///
/// ```
/// use haft_runtime::stages::Concurrency;
///
/// # fn main() -> Result<(), haft_runtime::stages::StageError> {
/// let stage = Concurrency::each_tool(4)?.max_waiting(100);
/// # drop(stage);
/// assert!(Concurrency::global(0).is_err());
/// # Ok(())
/// # }
/// ```
pub struct Concurrency {
    scope: Scope,
    limit: KeyedConcurrencyLimit<String>,
}

#[derive(Debug, Clone, Copy)]
enum Scope {
    All,
    EachTool,
    EachGroup,
}

impl Concurrency {
    /// Runs at most this many calls at once.
    pub fn global(max: usize) -> Result<Self, StageError> {
        Self::with(Scope::All, max)
    }

    /// Runs at most this many calls of each tool at once.
    pub fn each_tool(max: usize) -> Result<Self, StageError> {
        Self::with(Scope::EachTool, max)
    }

    /// Runs at most this many calls at once of a tenant's tools with the same `concurrency_group`.
    pub fn each_group(max: usize) -> Result<Self, StageError> {
        Self::with(Scope::EachGroup, max)
    }

    fn with(scope: Scope, max: usize) -> Result<Self, StageError> {
        if max == 0 {
            return Err(StageError::ZeroConcurrency);
        }
        Ok(Self { scope, limit: KeyedConcurrencyLimit::new(max, MAX_WAITING) })
    }

    /// Sets how many calls may wait in each queue.
    #[must_use]
    pub fn max_waiting(mut self, max: usize) -> Self {
        self.limit.set_max_queued(max);
        self
    }

    fn key(&self, call: &Call) -> String {
        match self.scope {
            Scope::All => String::new(),
            Scope::EachTool => call.entry().qualified.to_string(),
            Scope::EachGroup => format!("{}/{}", call.tenant(), call.plan.spec.execution.concurrency_group),
        }
    }

    fn queue_full(&self, call: &Call) -> CallError {
        let error = |subject: &str| {
            let message = format!("too many calls are waiting for {subject}; retry later");
            CallError::new(ErrorCode::Overloaded, message)
        };
        match self.scope {
            Scope::All => error("a permit to run"),
            Scope::EachTool => call.entry().named_error(|tool| error(&format!("`{tool}`"))),
            Scope::EachGroup => {
                error(&format!("the concurrency group `{}`", call.plan.spec.execution.concurrency_group))
            }
        }
    }
}

impl Stage for Concurrency {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let mut ticket = self.limit.enqueue(self.key(call)).ok_or_else(|| self.queue_full(call))?;
            ticket.acquire().await;
            next.run(call).await
        })
    }
}
