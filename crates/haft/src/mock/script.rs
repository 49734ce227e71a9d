//! The expected and the received calls of a mock.

use std::panic::Location;
use std::time::Duration;

use haft_core::outcome::{CallError, ErrorCode, Outcome};
use serde_json::{Map, Value};

use super::report;
use crate::outcome::Failure;

/// The state of a mock.
#[derive(Default)]
pub(super) struct Script {
    pub(super) expected: Vec<ExpectedCall>,
    pub(super) calls: Vec<ReceivedCall>,
    /// Whether the failure has been reported.
    pub(super) is_reported: bool,
}

/// A call that the mock received.
#[derive(Clone, Default)]
pub(super) struct ReceivedCall {
    pub(super) tool: String,
    pub(super) args: Value,
    pub(super) is_expected: bool,
    /// The error of a call that was rejected before it reached the tool.
    pub(super) rejection: Option<String>,
}

/// A call that the test expects.
pub(super) struct ExpectedCall {
    pub(super) tool: String,
    /// The line of the test that added the expectation.
    pub(super) location: &'static Location<'static>,
    pub(super) arguments: ArgsMatcher,
    /// The defaults in the tool's schema.
    pub(super) defaults: Map<String, Value>,
    /// Whether the call is expected to be rejected before it reaches the tool.
    pub(super) is_rejected: bool,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) delay: Duration,
    pub(super) times: Times,
    pub(super) count: usize,
}

/// The expected number of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    AtLeastOnce,
    Exactly(usize),
    Any,
}

impl Times {
    /// Returns whether a further call would be one too many.
    fn is_exhausted(self, count: usize) -> bool {
        matches!(self, Self::Exactly(expected) if count >= expected)
    }

    /// Returns whether this number of calls meets the expectation.
    pub(super) fn is_met(self, count: usize) -> bool {
        match self {
            Self::AtLeastOnce => count > 0,
            Self::Exactly(expected) => count == expected,
            Self::Any => true,
        }
    }
}

/// Decides whether the arguments of a call are expected.
#[doc(hidden)]
pub enum ArgsMatcher {
    /// Any arguments.
    Any,
    /// Equal arguments.
    Equal(Value),
    /// Arguments for which the predicate returns true.
    Predicate(Box<dyn Fn(&Value) -> bool + Send>),
}

impl ExpectedCall {
    pub(super) fn new(
        tool: &str,
        location: &'static Location<'static>,
        defaults: Map<String, Value>,
    ) -> Self {
        Self {
            tool: tool.to_owned(),
            location,
            arguments: ArgsMatcher::Any,
            defaults,
            is_rejected: false,
            outcomes: Vec::new(),
            delay: Duration::ZERO,
            times: Times::AtLeastOnce,
            count: 0,
        }
    }

    /// Returns whether the arguments match.
    pub(super) fn matches(&self, args: &Value) -> bool {
        match &self.arguments {
            ArgsMatcher::Any => true,
            ArgsMatcher::Equal(expected) => expected == args || self.with_defaults(expected) == *args,
            ArgsMatcher::Predicate(predicate) => predicate(args),
        }
    }

    fn with_defaults(&self, expected: &Value) -> Value {
        let mut expected = expected.clone();
        if let Value::Object(map) = &mut expected {
            for (name, value) in &self.defaults {
                map.entry(name).or_insert_with(|| value.clone());
            }
        }
        expected
    }

    /// Returns the outcome of the next call.
    fn next_outcome(&mut self) -> Outcome {
        let outcome = self.outcomes.get(self.count).or(self.outcomes.last());
        self.count += 1;
        outcome.cloned().unwrap_or(Ok(Value::Null))
    }
}

impl Script {
    /// Records a call and returns its outcome and delay.
    pub(super) fn respond(&mut self, call: &ReceivedCall) -> (Outcome, Duration) {
        let index = self.record(call.clone());
        if let Some(expected) = self.matching(call) {
            let response = (expected.next_outcome(), expected.delay);
            self.mark_expected(index);
            return response;
        }
        let message = format!("MockTools: unexpected call\n{}", report::explain_unexpected(self, call));
        (Err(CallError::new(ErrorCode::ExecutionFailed, message)), Duration::ZERO)
    }

    /// Records a call. This comes first, because a predicate of the test may panic.
    fn record(&mut self, call: ReceivedCall) -> usize {
        self.calls.push(call);
        self.calls.len() - 1
    }

    fn mark_expected(&mut self, index: usize) {
        if let Some(call) = self.calls.get_mut(index) {
            call.is_expected = true;
        }
    }

    /// Records a call that was rejected before it reached its tool.
    pub(super) fn record_rejected(&mut self, tool: &str, args: Value, error: &CallError) {
        let rejection = Some(error.message.clone());
        let call = ReceivedCall { tool: tool.to_owned(), args, rejection, is_expected: false };
        let index = self.record(call.clone());
        if let Some(expected) = self.matching(&call) {
            expected.count += 1;
            self.mark_expected(index);
        }
    }

    /// Returns the expectation that a call matches.
    fn matching(&mut self, call: &ReceivedCall) -> Option<&mut ExpectedCall> {
        self.expected.iter_mut().find(|expected| {
            expected.tool == call.tool
                && expected.is_rejected == call.rejection.is_some()
                && !expected.times.is_exhausted(expected.count)
                && expected.matches(&call.args)
        })
    }
}

/// The arguments of an [`Expectation`](crate::Expectation): a JSON object or a predicate.
pub trait IntoArgsMatcher {
    #[doc(hidden)]
    fn into_args_matcher(self) -> ArgsMatcher;
}

impl IntoArgsMatcher for Value {
    fn into_args_matcher(self) -> ArgsMatcher {
        ArgsMatcher::Equal(self)
    }
}

impl<F: Fn(&Value) -> bool + Send + 'static> IntoArgsMatcher for F {
    fn into_args_matcher(self) -> ArgsMatcher {
        ArgsMatcher::Predicate(Box::new(self))
    }
}

/// The error of an [`Expectation`](crate::Expectation) that fails.
pub trait IntoCallError {
    #[doc(hidden)]
    fn into_call_error(self) -> CallError;
}

impl IntoCallError for CallError {
    fn into_call_error(self) -> CallError {
        self
    }
}

impl IntoCallError for Failure {
    fn into_call_error(self) -> CallError {
        self.into()
    }
}

impl IntoCallError for &str {
    fn into_call_error(self) -> CallError {
        Failure::new(self).into()
    }
}

impl IntoCallError for String {
    fn into_call_error(self) -> CallError {
        Failure::new(self).into()
    }
}
