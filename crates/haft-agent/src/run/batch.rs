//! Runs the calls of a batch at the same time, within the limits of the agent and of their groups.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use haft_core::BoxFuture;
use haft_core::call::CallStatus;
use haft_core::id::CallId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::run::{StepBody, WaitingStep};
use serde_json::{Map, Value};

use super::call_task::CallTask;
use super::calls::{CallInfo, FinishedCall};
use super::event::RunEvent;
use super::host::{BoundTool, ToolReply, ToolRequest};
use super::plan::{PlannedCall, Target};
use super::session::{LoopExit, Session};

/// A call of a bound tool that has not started.
struct ReadyCall {
    about: CallInfo,
    tool: Arc<BoundTool>,
    args: Map<String, Value>,
}

/// The calls of a batch.
#[derive(Default)]
struct Batch {
    ready: VecDeque<ReadyCall>,
    running: FuturesUnordered<BoxFuture<'static, FinishedCall>>,
    /// How many calls of a group run.
    groups: HashMap<String, u32>,
    /// The calls that wait for people.
    waiting: Vec<CallId>,
    /// Why no more calls start.
    halt: Option<LoopExit>,
}

impl Batch {
    /// Takes the first call that may start now.
    fn next(&mut self, max_running: usize) -> Option<ReadyCall> {
        if self.running.len() >= max_running {
            return None;
        }
        let is_free = |call: &ReadyCall| {
            let running = self.groups.get(&call.tool.concurrency_group).copied().unwrap_or_default();
            running < call.tool.max_concurrency.max(1)
        };
        let at = self.ready.iter().position(is_free)?;
        self.ready.remove(at)
    }

    /// Starts no more calls.
    fn halt(&mut self, halt: LoopExit) {
        self.ready.clear();
        self.halt.get_or_insert(halt);
    }
}

impl Session {
    /// Runs a batch; each result is stored when its call ends.
    pub(super) async fn run_batch(&mut self, answer: u32, calls: Vec<PlannedCall>) -> Result<(), LoopExit> {
        let mut batch = Batch::default();
        for call in calls {
            self.admit(answer, call, &mut batch).await?;
        }
        let max_running = self.definition().max_parallel_tools.max(1) as usize;
        let stop = self.stop.clone();
        let interrupted = stop.interrupted();
        tokio::pin!(interrupted);
        loop {
            while let Some(call) = batch.next(max_running) {
                match self.may_start(batch.running.len()) {
                    Ok(()) => self.start(call, &mut batch),
                    Err(halt) => batch.halt(halt),
                }
            }
            if batch.running.is_empty() {
                break;
            }
            // Returning drops the calls in progress, which cancels them.
            let finished = tokio::select! {
                biased;
                stop = &mut interrupted => return Err(LoopExit::Stopped(stop)),
                finished = batch.running.next() => finished,
            };
            if let Some(finished) = finished {
                self.store_reply(finished, &mut batch).await?;
            }
        }
        match batch.halt {
            Some(halt) => Err(halt),
            None if batch.waiting.is_empty() => Ok(()),
            None => Err(LoopExit::Waiting(batch.waiting)),
        }
    }

    /// Sorts out calls that have an answer already.
    async fn admit(&mut self, answer: u32, call: PlannedCall, batch: &mut Batch) -> Result<(), LoopExit> {
        let about = CallInfo::new(answer, &call);
        if let Some(waiting) = call.waiting {
            let call_id = waiting.call_id;
            if !self.settle(waiting).await? {
                batch.waiting.push(call_id);
            }
            return Ok(());
        }
        match call.target {
            Target::Tool { tool, args } => batch.ready.push_back(ReadyCall { about, tool, args }),
            Target::Rejected { error, .. } => {
                let result = about.failed(&error, CallStatus::Error);
                self.append(self.start_timer(), vec![StepBody::Result(result)]).await?;
            }
        }
        Ok(())
    }

    fn may_start(&self, in_progress: usize) -> Result<(), LoopExit> {
        self.check_stop()?;
        Ok(self.check_call(in_progress)?)
    }

    fn start(&self, call: ReadyCall, batch: &mut Batch) {
        let ReadyCall { about, tool, args } = call;
        let group = tool.concurrency_group.clone();
        *batch.groups.entry(group.clone()).or_default() += 1;
        self.host.emit(started(&about));
        let key = format!("run:{}:{}:{}", self.run.id, about.answer, about.index);
        let task = CallTask {
            host: Arc::clone(&self.host),
            request: ToolRequest {
                tool: tool.id,
                args,
                idempotency_key: (!tool.is_pure).then_some(key),
                timeout: self.definition().tool_timeout_ms.map(Duration::from_millis),
                budget: self.remaining(),
            },
            is_pure: tool.is_pure,
            supervision: self.definition().supervision,
        };
        let timer = self.start_timer();
        batch.running.push(Box::pin(async move {
            let reply = task.run().await;
            FinishedCall { about, timer, group, reply }
        }));
    }

    async fn store_reply(&mut self, finished: FinishedCall, batch: &mut Batch) -> Result<(), LoopExit> {
        let FinishedCall { about, timer, group, reply } = finished;
        if let Some(running) = batch.groups.get_mut(&group) {
            *running = running.saturating_sub(1);
        }
        let body = match reply {
            Ok(ToolReply::Ended(ended)) => StepBody::Result(about.ended(*ended)),
            Ok(ToolReply::AwaitingApproval { call_id, approval_id, expires_at }) => {
                batch.waiting.push(call_id);
                let CallInfo { answer, index, id, name, tool, args } = about;
                StepBody::Waiting(WaitingStep {
                    answer,
                    index,
                    id,
                    name,
                    tool,
                    args,
                    call_id,
                    approval_id,
                    expires_at,
                })
            }
            Err(error) => StepBody::Result(about.failed(&error, status_of(&error))),
        };
        self.append(timer, vec![body]).await
    }
}

/// Returns the status of a call that the pipeline rejected.
fn status_of(error: &CallError) -> CallStatus {
    match error.code {
        ErrorCode::Cancelled => CallStatus::Cancelled,
        ErrorCode::Interrupted => CallStatus::Interrupted,
        ErrorCode::ApprovalDenied => CallStatus::Denied,
        ErrorCode::ApprovalExpired => CallStatus::Expired,
        _ => CallStatus::Error,
    }
}

fn started(about: &CallInfo) -> RunEvent {
    let CallInfo { answer, index, id, name, tool, args } = about.clone();
    RunEvent::ToolUse {
        answer,
        index,
        id,
        name,
        tool,
        args,
        status: CallStatus::Running,
        call_id: None,
        output: None,
        error: None,
        duration_ms: None,
    }
}
