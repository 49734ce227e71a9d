//! One run of the steps of a tool.
//!
//! Calls start in the order of the list, as soon as the steps that they refer to have ended and a place is free. After a
//! failure that stops the run no call starts; calls that are running end, so that each has a definite outcome.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use haft_core::executor::CallContext;
use haft_core::implementation::{OnFailure, Step};
use haft_core::invocation::NestedCall;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use serde_json::{Map, Value, json};

use super::executor::PreparedSteps;
use super::state::{StepState, described};
use super::values::{Item, StepValues, weight};

/// The surface in the records of the calls.
const SURFACE: &str = "steps";
/// The maximum size of the values of all steps of a run, in bytes.
const MAX_VALUES: usize = 64 * 1024 * 1024;

/// One call: the step, and the position of the item.
type CallKey = (usize, usize);

/// A run.
pub(super) struct StepsRun<'a> {
    prepared: &'a PreparedSteps,
    call: &'a CallContext,
    args: Value,
    states: Vec<StepState>,
    /// The steps that each step still waits for.
    waiting: Vec<BTreeSet<usize>>,
    /// The calls that may start, in the order of the list.
    ready: BTreeSet<CallKey>,
    /// The started steps that have not ended.
    open: BTreeMap<usize, OpenStep>,
    indexes: HashMap<&'a str, usize>,
    /// The size of all values.
    bytes: usize,
    /// The first failure that stops the run, with its step.
    stopped: Option<(usize, CallError)>,
}

/// A step whose calls have not all ended.
struct OpenStep {
    /// The items; `None` without `for_each`.
    items: Option<Vec<Value>>,
    outcomes: Vec<Option<Outcome>>,
}

impl OpenStep {
    fn item(&self, index: usize) -> Option<Item<'_>> {
        self.items.as_ref()?.get(index).map(|value| Item { value, index })
    }
}

impl<'a> StepsRun<'a> {
    pub(super) fn new(prepared: &'a PreparedSteps, call: &'a CallContext, args: &Map<String, Value>) -> Self {
        let steps = &prepared.steps.steps;
        Self {
            prepared,
            call,
            args: prepared.visible(args),
            states: vec![StepState::Waiting; steps.len()],
            waiting: prepared.graph.dependencies.clone(),
            ready: BTreeSet::new(),
            open: BTreeMap::new(),
            indexes: steps.iter().enumerate().map(|(index, step)| (step.id.as_str(), index)).collect(),
            bytes: 0,
            stopped: None,
        }
    }

    /// Runs the steps and returns the output.
    pub(super) async fn execute(mut self) -> Outcome {
        let limit = usize::try_from(self.prepared.steps.parallel()).unwrap_or(1);
        let call = self.call;
        let mut running = FuturesUnordered::new();
        for index in 0..self.states.len() {
            if self.waiting.get(index).is_some_and(BTreeSet::is_empty) {
                self.begin(index);
            }
        }
        loop {
            while self.stopped.is_none() && running.len() < limit {
                let Some(key) = self.ready.pop_first() else { break };
                match self.nested(key) {
                    Some(Ok(nested)) => running.push(async move { (key, call.invoke(nested).await) }),
                    Some(Err(error)) => self.finish_call(key, Err(error)),
                    None => {}
                }
            }
            let Some((key, outcome)) = running.next().await else { break };
            self.finish_call(key, outcome);
            self.report(key.0);
        }
        match self.stopped.take() {
            Some((index, error)) => Err(self.failure(index, &error)),
            None => self.output(),
        }
    }

    /// Starts a step whose dependencies have ended: skips it, or makes its calls ready.
    fn begin(&mut self, index: usize) {
        let Some(step) = self.step(index) else { return };
        if let Some(condition) = &step.when {
            let holds =
                self.with_values(None, |values| condition.holds(&mut |operand| values.operand(operand)));
            if !holds {
                return self.end(index, StepState::Skipped);
            }
        }
        let items = match &step.for_each {
            None => None,
            Some(mapping) => match self.items(step, mapping) {
                Ok(items) => Some(items),
                Err(error) => return self.fail(index, error, None),
            },
        };
        let calls = items.as_ref().map_or(1, Vec::len);
        if calls == 0 {
            return self.end(index, StepState::Succeeded(json!([])));
        }
        self.open.insert(index, OpenStep { items, outcomes: vec![None; calls] });
        self.ready.extend((0..calls).map(|call| (index, call)));
    }

    /// Returns the list of a `for_each`.
    fn items(&self, step: &Step, mapping: &Value) -> Result<Vec<Value>, CallError> {
        let list = self.with_values(None, |values| values.fill(mapping))?;
        let items = match list {
            Value::Array(items) => items,
            Value::Null => Vec::new(),
            _ => {
                let message = format!("`for_each` needs a list, but `{mapping}` is not one");
                return Err(CallError::new(ErrorCode::Template, message));
            }
        };
        let limit = usize::try_from(step.item_limit()).unwrap_or(usize::MAX);
        if items.len() > limit {
            let message = format!("`for_each` has {} items; the limit is {limit} (`max_items`)", items.len());
            return Err(CallError::new(ErrorCode::TooLarge, message));
        }
        Ok(items)
    }

    /// Returns the call of a step, with its arguments filled in.
    fn nested(&self, (index, item): CallKey) -> Option<Result<NestedCall, CallError>> {
        let (step, tool) = (self.step(index)?, self.prepared.tools.get(index)?);
        let item = self.open.get(&index)?.item(item);
        let args = self.with_values(item, |values| values.fill_map(&step.args));
        let nested = |args| NestedCall { tool: tool.clone(), args, surface: SURFACE, request_id: None };
        Some(args.map(nested))
    }

    /// Stores the outcome of a call, and ends its step after the last one.
    fn finish_call(&mut self, (index, item): CallKey, outcome: Outcome) {
        self.bytes = self.bytes.saturating_add(outcome.as_ref().map_or(0, weight));
        let outcome = if self.bytes > MAX_VALUES {
            let message = format!("the values of all steps exceed {MAX_VALUES} bytes");
            Err(CallError::new(ErrorCode::TooLarge, message))
        } else {
            outcome
        };
        let stops = self.step(index).is_some_and(|step| step.on_failure == OnFailure::Stop);
        let Some(open) = self.open.get_mut(&index) else { return };
        let failure = outcome.as_ref().err().cloned();
        if let Some(slot) = open.outcomes.get_mut(item) {
            *slot = Some(outcome);
        }
        if let (Some(error), true) = (failure, stops) {
            self.open.remove(&index);
            return self.fail(index, error, None);
        }
        if open.outcomes.iter().all(Option::is_some)
            && let Some(open) = self.open.remove(&index)
        {
            self.close(index, &open);
        }
    }

    /// Ends a step whose calls have all ended.
    fn close(&mut self, index: usize, open: &OpenStep) {
        let (mut values, mut first_error) = (Vec::with_capacity(open.outcomes.len()), None);
        for (position, outcome) in open.outcomes.iter().enumerate() {
            match outcome {
                Some(Ok(value)) => values.push(value.clone()),
                Some(Err(error)) => {
                    first_error.get_or_insert_with(|| error.clone());
                    values.push(self.fallback(index, open.item(position)));
                }
                None => values.push(Value::Null),
            }
        }
        let value =
            if open.items.is_some() { Value::Array(values) } else { values.pop().unwrap_or_default() };
        match first_error {
            None => self.end(index, StepState::Succeeded(value)),
            Some(error) => {
                let has_value = open.items.is_some()
                    || self.step(index).is_some_and(|step| step.on_failure == OnFailure::Fallback);
                self.fail(index, error, has_value.then_some(value));
            }
        }
    }

    /// Ends a step that failed, by its policy.
    fn fail(&mut self, index: usize, error: CallError, value: Option<Value>) {
        let policy = self.step(index).map(|step| step.on_failure).unwrap_or_default();
        let value = match (value, policy) {
            (None, OnFailure::Fallback) => Some(self.fallback(index, None)),
            (value, _) => value,
        };
        let stops = policy == OnFailure::Stop;
        if stops && self.stopped.is_none() {
            self.stopped = Some((index, error.clone()));
        }
        if stops {
            if let Some(state) = self.states.get_mut(index) {
                *state = StepState::Failed { error, value };
            }
        } else {
            self.end(index, StepState::Failed { error, value });
        }
    }

    /// Returns the value of a call that failed; `null` without `fallback`.
    fn fallback(&self, index: usize, item: Option<Item<'_>>) -> Value {
        let Some(mapping) = self.step(index).and_then(|step| step.fallback.as_ref()) else {
            return Value::Null;
        };
        self.with_values(item, |values| values.operand(mapping))
    }

    /// Stores the state of a step, and starts the steps that waited for it alone.
    fn end(&mut self, index: usize, state: StepState) {
        if let Some(slot) = self.states.get_mut(index) {
            *slot = state;
        }
        if self.stopped.is_some() {
            return;
        }
        let mut free = Vec::new();
        for (other, waiting) in self.waiting.iter_mut().enumerate() {
            if waiting.remove(&index) && waiting.is_empty() {
                free.push(other);
            }
        }
        for other in free {
            self.begin(other);
        }
    }

    fn report(&self, index: usize) {
        let (ended, all) =
            (self.states.iter().filter(|s| !matches!(s, StepState::Waiting)).count(), self.states.len());
        if let Some(step) = self.step(index) {
            #[expect(clippy::cast_precision_loss, reason = "there are at most 100 steps")]
            let fraction = ended as f64 / all.max(1) as f64;
            self.call.progress(fraction, format!("step `{}`", step.id));
        }
    }

    fn output(&self) -> Outcome {
        match &self.prepared.steps.output {
            Some(mapping) => self.with_values(None, |values| values.fill(mapping)),
            None => Ok(self.states.last().and_then(StepState::value).cloned().unwrap_or_default()),
        }
    }

    /// Returns the error of a run that a step stopped.
    fn failure(&self, index: usize, error: &CallError) -> CallError {
        let (id, tool) =
            self.step(index).map(|step| (step.id.as_str(), step.tool.as_str())).unwrap_or_default();
        let states = self.states.iter().zip(&self.prepared.steps.steps);
        let states: Vec<Value> = states.map(|(state, step)| state.summary(&step.id, &step.tool)).collect();
        // Other codes would say that the request for this call was wrong.
        let code = match error.code {
            code @ (ErrorCode::Timeout | ErrorCode::Cancelled | ErrorCode::TooDeep) => code,
            _ => ErrorCode::ExecutionFailed,
        };
        let for_model = error.for_model.as_ref().map(|text| format!("step `{id}` failed: {text}"));
        let message = format!("step `{id}` (`{tool}`) failed: {}", error.message);
        let details = json!({"step": id, "tool": tool, "error": described(error), "steps": states});
        CallError { for_model, retry_after: error.retry_after, ..CallError::new(code, message) }
            .retryable(error.retryable)
            .with_details(details)
    }

    fn step(&self, index: usize) -> Option<&'a Step> {
        self.prepared.steps.steps.get(index)
    }

    fn with_values<T>(&self, item: Option<Item<'_>>, use_values: impl FnOnce(StepValues<'_>) -> T) -> T {
        let state = |id: &str| self.states.get(*self.indexes.get(id)?);
        use_values(StepValues {
            args: &self.args,
            step: &|id| state(id).map(StepState::seen),
            step_value: &|id| state(id).and_then(StepState::value),
            item,
        })
    }
}
