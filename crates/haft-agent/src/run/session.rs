//! The state of a run while this node runs it.

use std::collections::HashSet;
use std::sync::Arc;

use haft_core::Clock;
use haft_core::Timestamp;
use haft_core::agent::AgentDefinition;
use haft_core::id::CallId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::run::{
    MAX_STEPS, Run, RunEnd, RunLease, RunStatus, RunStep, RunStore, RunStoreError, RunUsage, StepBody,
};
use haft_core::schema::Schema;
use serde_json::Value;
use tokio::time::{Duration, Instant};

use super::agent_run::AgentRun;
use super::control::{RunControl, Stop, StopWatch};
use super::event::RunEvent;
use super::events_of::step_error;
use super::host::{BoundTool, RunHost};
use super::instructions::render_instructions;
use super::progress::{answers, call_states};
use super::tokens;
use super::usage::Meter;
use crate::model::{Model, ModelMessage};

/// Why the loop does not go on.
#[derive(Debug)]
pub(super) enum LoopExit {
    /// A step could not be stored.
    Store(RunStoreError),
    Failed(CallError),
    /// These calls wait for people.
    Waiting(Vec<CallId>),
    Stopped(Stop),
}

impl From<RunStoreError> for LoopExit {
    fn from(error: RunStoreError) -> Self {
        Self::Store(error)
    }
}

impl From<CallError> for LoopExit {
    fn from(error: CallError) -> Self {
        Self::Failed(error)
    }
}

/// When a step began.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepTimer {
    at: Timestamp,
    instant: Instant,
}

pub(super) struct Session {
    pub(super) run: Run,
    pub(super) steps: Vec<RunStep>,
    lease: RunLease,
    pub(super) model: Arc<dyn Model>,
    pub(super) host: Arc<dyn RunHost>,
    store: Arc<dyn RunStore>,
    clock: Arc<dyn Clock>,
    pub(super) stop: StopWatch,
    meter: Meter,
    /// What the run had used when this node claimed it, for the time that no step has.
    active_before: Duration,
    started: Instant,
    /// The conversation before the first step.
    pub(super) input: Vec<ModelMessage>,
    /// The instructions with their variables filled in.
    pub(super) system: String,
    pub(super) output_schema: Option<Schema>,
    /// The tools of the last request.
    pub(super) tools: Option<Arc<[BoundTool]>>,
    /// The size of their definitions, in tokens.
    pub(super) tools_size: u64,
    /// The size of all steps, in tokens, if nothing were removed.
    pub(super) steps_size: u64,
    /// The ids of all calls of the conversation.
    pub(super) call_ids: HashSet<String>,
}

impl Session {
    pub(super) fn new(agent: AgentRun, control: RunControl) -> Self {
        let AgentRun { run, steps, lease, model, host, store, clock } = agent;
        let started = Instant::now();
        let active_before = Duration::from_millis(run.usage.active_ms);
        let limit = run.budget.time_ms.map(Duration::from_millis);
        let deadline = limit.and_then(|limit| started.checked_add(limit.saturating_sub(active_before)));
        Self {
            stop: StopWatch { control, deadline },
            meter: Meter::of(&steps),
            active_before,
            started,
            input: Vec::new(),
            system: String::new(),
            output_schema: None,
            tools: None,
            tools_size: 0,
            steps_size: steps.iter().map(|step| tokens::at_most(&step.body)).sum(),
            call_ids: HashSet::new(),
            run,
            steps,
            lease,
            model,
            host,
            store,
            clock,
        }
    }

    /// Reads what the run was started with.
    pub(super) fn prepare(&mut self) -> Result<(), CallError> {
        self.input = read_input(&self.run.input)?;
        self.call_ids =
            self.input.iter().flat_map(ModelMessage::tool_calls).map(|call| call.id.clone()).collect();
        for (number, _) in answers(&self.steps) {
            self.call_ids.extend(call_states(&self.steps, number).into_iter().map(|state| state.call.id));
        }
        self.system = render_instructions(&self.run.definition, &self.run.variables)?;
        if let Some(schema) = &self.run.definition.output_schema {
            let compiled = Schema::compile("output_schema", schema).map_err(|problems| {
                CallError::new(ErrorCode::InvalidDefinition, haft_core::problem::join(&problems))
            })?;
            self.output_schema = Some(compiled);
        }
        Ok(())
    }

    pub(super) fn definition(&self) -> &AgentDefinition {
        &self.run.definition
    }

    /// Returns what the run has used so far.
    pub(super) fn usage(&self) -> RunUsage {
        let active = self.active_before.saturating_add(self.started.elapsed());
        let mut usage = self.meter.usage().clone();
        usage.active_ms = u64::try_from(active.as_millis()).unwrap_or(u64::MAX);
        usage
    }

    pub(super) fn start_timer(&self) -> StepTimer {
        StepTimer { at: self.clock.now(), instant: Instant::now() }
    }

    /// Returns the number that the next step gets.
    pub(super) fn next_number(&self) -> u32 {
        self.steps.last().map_or(0, |step| step.number).saturating_add(1)
    }

    /// Stores steps, then shows them to those who watch.
    pub(super) async fn append(&mut self, timer: StepTimer, bodies: Vec<StepBody>) -> Result<(), LoopExit> {
        let first = self.next_number();
        let duration_ms = timer.instant.elapsed().as_secs_f64() * 1000.0;
        let steps: Vec<RunStep> = (first..)
            .zip(bodies)
            .map(|(number, body)| RunStep { number, body, started_at: timer.at, duration_ms })
            .collect();
        for step in &steps {
            self.meter.add(&step.body);
            self.steps_size += tokens::at_most(&step.body);
        }
        let usage = self.usage();
        self.store.append_steps(&self.lease, steps.clone(), &usage).await?;
        for step in &steps {
            self.host.emit_step(step);
        }
        self.steps.extend(steps);
        Ok(())
    }

    /// Checks that the run may go on.
    pub(super) fn check_stop(&self) -> Result<(), LoopExit> {
        if let Some(stop) = self.stop.reason() {
            return Err(LoopExit::Stopped(stop));
        }
        if self.next_number() > MAX_STEPS {
            let message = format!("stopped after {MAX_STEPS} steps, the limit of one run");
            return Err(CallError::new(ErrorCode::BudgetExceeded, message).into());
        }
        Ok(())
    }

    /// Stores how the run is left, then shows it to those who watch.
    pub(super) async fn leave(&mut self, end: RunEnd) -> Result<RunEnd, RunStoreError> {
        if let RunEnd::Finished { .. } = end
            && let Err(LoopExit::Store(error)) = self.close_calls().await
        {
            return Err(error);
        }
        let usage = self.usage();
        self.store.release_run(&self.lease, end.clone(), &usage).await?;
        let (status, output, error) = match &end {
            RunEnd::Finished { status, output, error } => (*status, output.clone(), error.as_ref()),
            RunEnd::Waiting(_) => (RunStatus::AwaitingApproval, None, None),
            RunEnd::Released => return Ok(end),
        };
        let error = error.map(step_error);
        self.host.emit(RunEvent::End { run_id: self.run.id, status, output, error, usage });
        Ok(end)
    }
}

/// Reads the conversation before the first step; a text is a message of a person.
fn read_input(input: &Value) -> Result<Vec<ModelMessage>, CallError> {
    if let Value::String(text) = input {
        return Ok(vec![ModelMessage::user(text.clone())]);
    }
    serde_json::from_value(input.clone()).map_err(|error| {
        CallError::new(ErrorCode::InvalidRequest, format!("`input`: expected a list of messages: {error}"))
    })
}
