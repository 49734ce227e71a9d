//! A stage that limits the time of the inner stages.

use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::outcome::Outcome;

use crate::clock;
use crate::pipeline::{Call, timed_out};
use crate::stages::{Next, Stage, StageError};

/// Ends the inner stages after a time. It never extends the timeout of the definition.
///
/// Inside, the call has the nearer deadline; outside, for example in a [`Retry`](crate::stages::Retry), it keeps its own.
#[derive(Debug, Clone, Copy)]
pub struct Timeout(Duration);

impl Timeout {
    /// Allows this time to the inner stages.
    pub fn new(time: Duration) -> Result<Self, StageError> {
        if time.is_zero() { Err(StageError::ZeroTimeout) } else { Ok(Self(time)) }
    }
}

impl Stage for Timeout {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let (now, outer) = (clock::now(), call.deadline());
            let Some(nearer) = now.checked_add(self.0).filter(|nearer| *nearer < outer) else {
                return next.run(call).await;
            };
            call.context_mut().deadline = nearer;
            let outcome = tokio::time::timeout_at(nearer.into(), next.run(call)).await;
            call.context_mut().deadline = outer;
            outcome.unwrap_or_else(|_| Err(timed_out(&call.plan.spec, self.0)))
        })
    }
}
