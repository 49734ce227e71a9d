//! Bounds on calls at once: of the whole server, and of one tool where its definition says so.

use haft_core::Work;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use tokio::sync::Semaphore;

use crate::pipeline::Call;
use crate::stages::{Next, Stage};

/// Refuses calls beyond the bound of the server; lets calls wait for the bound of their tool.
pub struct Limit {
    server: Semaphore,
    most: usize,
}

impl Limit {
    /// Makes the stage with the bound of the server.
    pub fn new(most: usize) -> Self {
        Self { server: Semaphore::new(most.min(Semaphore::MAX_PERMITS)), most }
    }
}

impl Stage for Limit {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> Work<'a, Outcome> {
        Box::pin(async move {
            let Ok(_permit) = self.server.try_acquire() else {
                let message = format!("{} calls are running already; try again later", self.most);
                return Err(CallError::new(ErrorCode::Overloaded, message));
            };
            let plan = std::sync::Arc::clone(&call.plan);
            let Some(parallel) = &plan.parallel else { return next.run(call).await };
            let waiting = tokio::time::timeout_at(call.deadline.into(), parallel.acquire());
            let Ok(Ok(_turn)) = waiting.await else {
                let message =
                    format!("`{}` was busy for longer than the call may take", call.entry.qualified);
                return Err(CallError::new(ErrorCode::Overloaded, message));
            };
            next.run(call).await
        })
    }
}
