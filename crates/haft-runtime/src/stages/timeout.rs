//! Less time for what is inside than the call has.

use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::outcome::Outcome;

use crate::clock;
use crate::pipeline::{Call, too_late};
use crate::stages::{Next, Stage, StageError};

/// Ends what is inside after a time. It never gives a call more time than its definition does.
///
/// Inside of it the deadline of the call is the nearer one; outside, where a [`Retry`](crate::stages::Retry) may stand,
/// it is what it was.
#[derive(Debug, Clone, Copy)]
pub struct Timeout(Duration);

impl Timeout {
    /// Allows this time to what is inside.
    pub fn new(time: Duration) -> Result<Self, StageError> {
        if time.is_zero() { Err(StageError::NoTime) } else { Ok(Self(time)) }
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
            outcome.unwrap_or_else(|_| Err(too_late(call.tool(), self.0)))
        })
    }
}
