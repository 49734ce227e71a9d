//! What a mock expects and what it has seen.

use std::panic::Location;
use std::time::Duration;

use haft_core::outcome::{CallError, ErrorCode, Outcome};
use serde_json::{Map, Value};

use super::report;
use crate::answer::Failure;

/// Everything a mock knows.
#[derive(Default)]
pub(super) struct Script {
    pub(super) expected: Vec<Expected>,
    pub(super) calls: Vec<Call>,
    /// Whether it was said already what is wrong.
    pub(super) is_told: bool,
}

/// A call that came.
#[derive(Clone, Default)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) args: Value,
    pub(super) is_expected: bool,
    /// Why it got to no tool, where it did not.
    pub(super) refusal: Option<String>,
}

/// A call that is to come.
pub(super) struct Expected {
    pub(super) tool: String,
    /// Where the test says so.
    pub(super) place: &'static Location<'static>,
    pub(super) arguments: Arguments,
    /// What the tool's schema says of arguments that a call leaves out.
    pub(super) defaults: Map<String, Value>,
    /// Whether it is to be refused before it gets to the tool.
    pub(super) is_refused: bool,
    pub(super) answers: Vec<Outcome>,
    pub(super) delay: Duration,
    pub(super) times: Times,
    pub(super) count: usize,
}

/// How often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    OnceOrMore,
    Exactly(usize),
    Any,
}

impl Times {
    /// Tells whether one call more than these is one too many.
    fn is_full(self, count: usize) -> bool {
        matches!(self, Self::Exactly(most) if count >= most)
    }

    /// Tells whether so many calls are enough.
    pub(super) fn is_met(self, count: usize) -> bool {
        match self {
            Self::OnceOrMore => count > 0,
            Self::Exactly(exactly) => count == exactly,
            Self::Any => true,
        }
    }
}

/// Which arguments.
#[doc(hidden)]
pub enum Arguments {
    /// Whatever they are.
    Any,
    /// These.
    Equal(Value),
    /// Those that a function says yes to.
    Like(Box<dyn Fn(&Value) -> bool + Send>),
}

impl Expected {
    pub(super) fn new(tool: &str, place: &'static Location<'static>, defaults: Map<String, Value>) -> Self {
        Self {
            tool: tool.to_owned(),
            place,
            arguments: Arguments::Any,
            defaults,
            is_refused: false,
            answers: Vec::new(),
            delay: Duration::ZERO,
            times: Times::OnceOrMore,
            count: 0,
        }
    }

    /// Tells whether these are the arguments.
    pub(super) fn fits(&self, args: &Value) -> bool {
        match &self.arguments {
            Arguments::Any => true,
            Arguments::Equal(expected) => expected == args || self.with_defaults(expected) == *args,
            Arguments::Like(predicate) => predicate(args),
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

    /// Returns the answer to the next call.
    fn next(&mut self) -> Outcome {
        let answer = self.answers.get(self.count).or(self.answers.last());
        self.count += 1;
        answer.cloned().unwrap_or(Ok(Value::Null))
    }
}

impl Script {
    /// Keeps a call and returns how it is answered, and after which time.
    pub(super) fn answer(&mut self, call: &Call) -> (Outcome, Duration) {
        let index = self.keep(call.clone());
        if let Some(expected) = self.fitting(call) {
            let answer = (expected.next(), expected.delay);
            self.met(index);
            return answer;
        }
        let message = format!("MockTools did not expect this call\n{}", report::unexpected(self, call));
        (Err(CallError::new(ErrorCode::ExecutionFailed, message)), Duration::ZERO)
    }

    /// Keeps a call before anything else: what a test says of its arguments may panic.
    fn keep(&mut self, call: Call) -> usize {
        self.calls.push(call);
        self.calls.len() - 1
    }

    fn met(&mut self, index: usize) {
        if let Some(call) = self.calls.get_mut(index) {
            call.is_expected = true;
        }
    }

    /// Keeps a call that got to no tool.
    pub(super) fn keep_refused(&mut self, tool: &str, args: Value, error: &CallError) {
        let refusal = Some(error.message.clone());
        let call = Call { tool: tool.to_owned(), args, refusal, is_expected: false };
        let index = self.keep(call.clone());
        if let Some(expected) = self.fitting(&call) {
            expected.count += 1;
            self.met(index);
        }
    }

    /// Returns the expectation that a call meets.
    fn fitting(&mut self, call: &Call) -> Option<&mut Expected> {
        self.expected.iter_mut().find(|expected| {
            expected.tool == call.tool
                && expected.is_refused == call.refusal.is_some()
                && !expected.times.is_full(expected.count)
                && expected.fits(&call.args)
        })
    }
}

/// What says which arguments an expectation is about.
pub trait Matches {
    #[doc(hidden)]
    fn arguments(self) -> Arguments;
}

impl Matches for Value {
    fn arguments(self) -> Arguments {
        Arguments::Equal(self)
    }
}

impl<F: Fn(&Value) -> bool + Send + 'static> Matches for F {
    fn arguments(self) -> Arguments {
        Arguments::Like(Box::new(self))
    }
}

/// What a call can fail with.
pub trait Fails {
    #[doc(hidden)]
    fn error(self) -> CallError;
}

impl Fails for CallError {
    fn error(self) -> CallError {
        self
    }
}

impl Fails for Failure {
    fn error(self) -> CallError {
        self.into()
    }
}

impl Fails for &str {
    fn error(self) -> CallError {
        Failure::new(self).into()
    }
}

impl Fails for String {
    fn error(self) -> CallError {
        Failure::new(self).into()
    }
}
