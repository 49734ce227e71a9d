//! The chain of stages.

use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::outcome::Outcome;

use crate::pipeline::Call;
use crate::stages::execute;

/// One stage. It runs the next stages and may inspect or replace their outcome, or returns its own.
pub trait Stage: Send + Sync {
    /// Handles a call.
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome>;
}

impl<S: Stage + ?Sized> Stage for Arc<S> {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        S::call(self, call, next)
    }
}

/// The remaining stages; the last one is the execution.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    stages: &'a [Arc<dyn Stage>],
}

impl<'a> Next<'a> {
    pub(crate) fn new(stages: &'a [Arc<dyn Stage>]) -> Self {
        Self { stages }
    }

    /// Runs them.
    pub fn run<'b>(self, call: &'b mut Call) -> BoxFuture<'b, Outcome>
    where
        'a: 'b,
    {
        match self.stages.split_first() {
            Some((stage, rest)) => stage.call(call, Next { stages: rest }),
            None => Box::pin(execute(call)),
        }
    }
}
