//! The calls of one answer: what is left of them is run, settled or waited for.

use haft_core::call::CallStatus;
use haft_core::outcome::CallError;
use haft_core::run::{DecidedStep, ResultStep, RunUsage, StepBody, WaitingStep};
use serde_json::Value;

use super::events_of::step_error;
use super::host::EndedCall;
use super::plan::{PlannedCall, Target, batches};
use super::progress::{answers, call_states};
use super::result_text::{error_text, result_text};
use super::session::{LoopExit, Session, StepTimer};

impl Session {
    /// Runs the calls of an answer that have no result, batch by batch.
    pub(super) async fn run_calls(&mut self, answer: u32) -> Result<(), LoopExit> {
        self.check_stop()?;
        if answers(&self.steps).count() >= self.definition().max_iterations as usize {
            return Err(self.too_many_answers().into());
        }
        if self.tools.is_none() {
            self.refresh_tools().await?;
        }
        let tools = self.tools.clone().unwrap_or_default();
        let open = call_states(&self.steps, answer).into_iter().filter(|state| !state.has_result);
        let planned = open.map(|state| PlannedCall::new(state, &tools)).collect();
        for batch in batches(planned, self.definition().tool_execution) {
            self.run_batch(answer, batch).await?;
        }
        Ok(())
    }

    /// Stores what became of a call that waited; `false` if it still waits.
    pub(super) async fn settle(&mut self, waiting: WaitingStep) -> Result<bool, LoopExit> {
        let timer = self.start_timer();
        let ended = match self.host.ended(waiting.call_id).await {
            Ok(Some(ended)) => ended,
            Ok(None) => return Ok(false),
            // The decision of a person must not be lost because the store is busy.
            Err(error) if error.retryable => return Ok(false),
            Err(error) => EndedCall {
                call_id: Some(waiting.call_id),
                status: CallStatus::Error,
                value: None,
                images: Vec::new(),
                error: Some(error),
                usage: RunUsage::default(),
            },
        };
        let approved =
            !matches!(ended.status, CallStatus::Denied | CallStatus::Expired | CallStatus::Cancelled);
        let WaitingStep { answer, index, id, name, tool, args, call_id, approval_id, .. } = waiting;
        let about = CallInfo { answer, index, id, name, tool, args };
        let decided = DecidedStep { approval_id, call_id, approved };
        let result = about.ended(EndedCall { call_id: Some(call_id), ..ended });
        self.append(timer, vec![StepBody::Decided(decided), StepBody::Result(result)]).await?;
        Ok(true)
    }
}

/// What all steps of a call have.
#[derive(Debug, Clone)]
pub(super) struct CallInfo {
    pub(super) answer: u32,
    pub(super) index: u32,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) tool: Option<String>,
    pub(super) args: Value,
}

impl CallInfo {
    pub(super) fn new(answer: u32, call: &PlannedCall) -> Self {
        let (tool, args) = match &call.target {
            Target::Tool { tool, args } => (Some(tool.qualified.clone()), Value::Object(args.clone())),
            Target::Rejected { tool, args, .. } => (tool.clone(), args.clone()),
        };
        Self { answer, index: call.index, id: call.id.clone(), name: call.name.clone(), tool, args }
    }

    /// Returns the step of a call that has ended.
    pub(super) fn ended(self, ended: EndedCall) -> ResultStep {
        let text = result_text(&ended);
        let images = ended.images.iter().filter_map(|image| serde_json::to_value(image).ok()).collect();
        ResultStep {
            answer: self.answer,
            index: self.index,
            id: self.id,
            name: self.name,
            tool: self.tool,
            args: self.args,
            call_id: ended.call_id,
            status: ended.status,
            text,
            value: ended.value,
            images,
            error: ended.error.as_ref().map(step_error),
            usage: ended.usage,
        }
    }

    /// Returns the step of a call that did not run, or whose end is not known.
    pub(super) fn failed(self, error: &CallError, status: CallStatus) -> ResultStep {
        ResultStep {
            answer: self.answer,
            index: self.index,
            id: self.id,
            name: self.name,
            tool: self.tool,
            args: self.args,
            call_id: error.call_id,
            status,
            text: error_text(error, status),
            value: None,
            images: Vec::new(),
            error: Some(step_error(error)),
            usage: RunUsage::default(),
        }
    }
}

/// A call that has just ended, or waits.
pub(super) struct FinishedCall {
    pub(super) about: CallInfo,
    pub(super) timer: StepTimer,
    pub(super) group: String,
    pub(super) reply: Result<super::host::ToolReply, CallError>,
}
