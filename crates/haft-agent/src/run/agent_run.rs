//! A run that this node has claimed, and its loop.

use std::sync::Arc;

use haft_core::Clock;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::run::{Run, RunEnd, RunLease, RunStatus, RunStep, RunStore, RunStoreError};
use serde_json::Value;

use super::control::{RunControl, Stop};
use super::event::RunEvent;
use super::host::RunHost;
use super::progress::{Next, next};
use super::session::{LoopExit, Session};
use crate::model::Model;

/// A run that this node has claimed.
pub struct AgentRun {
    /// The run.
    pub run: Run,
    /// The steps so far.
    pub steps: Vec<RunStep>,
    /// The right to write to it.
    pub lease: RunLease,
    /// The model of the agent, with its fallback.
    pub model: Arc<dyn Model>,
    /// Tools, calls and watchers.
    pub host: Arc<dyn RunHost>,
    /// Where the steps are stored.
    pub store: Arc<dyn RunStore>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl AgentRun {
    /// Runs until the run has ended, waits for people, or is stopped, and stores how it was left.
    ///
    /// An error means that a step could not be stored; nothing happened after it. Dropping the future cancels what is in
    /// progress and stores nothing: the run continues when it is claimed again.
    pub async fn execute(self, control: RunControl) -> Result<RunEnd, RunStoreError> {
        let mut session = Session::new(self, control);
        session.host.emit(RunEvent::start(session.run.id, &session.run.definition));
        let end = match advance(&mut session).await {
            Ok(output) => RunEnd::Finished { status: RunStatus::Success, output: Some(output), error: None },
            Err(LoopExit::Store(error)) => return Err(error),
            Err(LoopExit::Waiting(calls)) => RunEnd::Waiting(calls),
            Err(LoopExit::Stopped(Stop::Released)) => RunEnd::Released,
            Err(LoopExit::Stopped(Stop::Cancelled)) => RunEnd::Finished {
                status: RunStatus::Cancelled,
                output: None,
                error: Some(CallError::new(ErrorCode::Cancelled, "the run was cancelled")),
            },
            Err(LoopExit::Stopped(Stop::DeadlineExceeded)) => failed(session.deadline_exceeded()),
            Err(LoopExit::Failed(error)) => failed(error),
        };
        session.leave(end).await
    }
}

fn failed(error: CallError) -> RunEnd {
    RunEnd::Finished { status: RunStatus::Error, output: None, error: Some(error) }
}

/// Takes one action after the other until the run has its output.
async fn advance(session: &mut Session) -> Result<Value, LoopExit> {
    session.prepare()?;
    loop {
        match next(&session.steps) {
            Next::Ask => session.ask().await?,
            Next::Calls(answer) => session.run_calls(answer).await?,
            Next::Check(answer) => {
                if let Some(output) = session.check_answer(answer).await? {
                    return Ok(output);
                }
            }
        }
    }
}
