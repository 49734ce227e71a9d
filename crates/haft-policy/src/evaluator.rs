//! Evaluates conditions within bounds. A condition never panics, and its time and memory are limited.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use cel::extractors::This;
use cel::objects::{Key, Map};
use cel::{Context, ExecutionError, Value};
use haft_core::problem::excerpt;
use regex::Regex;
use serde_json::Value as Json;

use super::attributes::CallAttributes;
use super::condition::{Condition, ENVIRONMENT};

/// The maximum size of the arguments that conditions see.
pub(super) const MAX_ARGS_BYTES: usize = 64 * 1024;
/// The maximum number of iterations of all loops of a condition.
const MAX_STEPS: u32 = 10_000;
/// How long all conditions of a question may run.
const MAX_TIME: Duration = Duration::from_millis(500);
/// What a value without text counts towards the size of the arguments.
const VALUE_BYTES: usize = 16;

/// The variables of a condition.
pub(super) const VARIABLES: [&str; 4] = ["args", "tool", "principal", "surface"];
/// The function that counts an iteration. Its name cannot be written in a condition.
pub(super) const STEP: &str = "@step";

/// The regular expressions of all conditions. The engine takes time linear in the text.
pub(super) type Patterns = HashMap<String, Regex>;

/// Why a condition has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    #[error("the arguments exceed {MAX_ARGS_BYTES} bytes")]
    ArgumentsTooLarge,
    #[error("the condition exceeded {MAX_STEPS} iterations")]
    Steps,
    #[error("the conditions ran longer than {} ms", MAX_TIME.as_millis())]
    Time,
    #[error("the condition is not true or false, but of type `{0}`")]
    NotBoolean(String),
    #[error("`{0}` is missing")]
    MissingKey(String),
    #[error("{0}")]
    Error(String),
    #[error("the condition failed internally")]
    Panicked,
}

/// Evaluates the conditions for one call; the arguments are converted once, when the first condition needs them.
pub(super) struct Evaluator<'a> {
    attributes: CallAttributes<'a>,
    patterns: &'a Arc<Patterns>,
    context: OnceCell<Result<Prepared, Failure>>,
}

struct Prepared {
    context: Context<'static, 'static>,
    budget: Arc<Budget>,
}

impl<'a> Evaluator<'a> {
    /// Creates an evaluator.
    pub(super) fn new(attributes: &CallAttributes<'a>, patterns: &'a Arc<Patterns>) -> Self {
        Self { attributes: *attributes, patterns, context: OnceCell::new() }
    }

    /// Returns the value of a condition.
    pub(super) fn evaluate(&self, condition: &Condition) -> Result<bool, Failure> {
        let prepared = self.context.get_or_init(|| self.prepare());
        prepared.as_ref().map_err(Clone::clone)?.evaluate(condition)
    }

    fn prepare(&self) -> Result<Prepared, Failure> {
        let attributes = &self.attributes;
        let args = attributes.args.unwrap_or(&Json::Null);
        if !fits(args, &mut 0) {
            return Err(Failure::ArgumentsTooLarge);
        }
        let mut prepared = Prepared::new(self.patterns)?;
        let context = &mut prepared.context;
        context.add_variable_from_value("args", convert(args));
        context.add_variable_from_value("surface", text(attributes.surface));
        let tags = attributes.tags.iter().map(|tag| text(tag)).collect::<Vec<_>>();
        let tool = [
            ("name", text(attributes.tool)),
            ("bundle", text(attributes.bundle)),
            ("tags", Value::List(tags.into())),
        ];
        context.add_variable_from_value("tool", object(tool));
        let groups = attributes.actor.groups().into_iter().map(text).collect::<Vec<_>>();
        let principal = [
            ("name", text(attributes.token)),
            ("role", text(attributes.role)),
            ("tenant", text(attributes.tenant)),
            ("elevated", Value::Bool(attributes.elevated)),
            ("person", text(&attributes.actor.person())),
            ("groups", Value::List(groups.into())),
        ];
        context.add_variable_from_value("principal", object(principal));
        Ok(prepared)
    }
}

impl Prepared {
    /// Creates a context with the functions of conditions, and without variables.
    fn new(patterns: &Arc<Patterns>) -> Result<Self, Failure> {
        let budget = Arc::new(Budget::new());
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        let (counter, patterns) = (Arc::clone(&budget), Arc::clone(patterns));
        let step = move || counter.step();
        let matches = move |This(subject): This<Arc<String>>, pattern: Arc<String>| {
            let known = patterns.get(pattern.as_str()).map(|pattern| Value::Bool(pattern.is_match(&subject)));
            known.ok_or_else(|| ExecutionError::function_error("matches", "unknown pattern"))
        };
        let declared =
            context.add_function(STEP, step).and_then(|()| context.add_function("matches", matches));
        declared.map_err(|error| Failure::Error(error.to_string()))?;
        Ok(Self { context, budget })
    }

    fn evaluate(&self, condition: &Condition) -> Result<bool, Failure> {
        self.budget.start()?;
        let resolve = || Value::resolve(&condition.expression, &self.context);
        let value = catch_unwind(AssertUnwindSafe(resolve)).map_err(|_| Failure::Panicked)?;
        // Also if another operand of `||` hid the error.
        self.budget.exceeded()?;
        match value {
            Ok(Value::Bool(value)) => Ok(value),
            Ok(other) => Err(Failure::NotBoolean(other.type_of().to_string())),
            Err(error) => Err(describe(&error)),
        }
    }
}

/// Evaluates a condition over one value of that name.
pub(super) fn evaluate_over(
    condition: &Condition,
    (name, value): (&str, &Json),
    patterns: &Arc<Patterns>,
) -> Result<bool, Failure> {
    if !fits(value, &mut 0) {
        return Err(Failure::ArgumentsTooLarge);
    }
    let mut prepared = Prepared::new(patterns)?;
    prepared.context.add_variable_from_value(name, convert(value));
    prepared.evaluate(condition)
}

/// The work that remains for the conditions of a question.
struct Budget {
    steps: AtomicU32,
    deadline: Instant,
    exceeded: AtomicU8,
}

const WITHIN: u8 = 0;
const OUT_OF_STEPS: u8 = 1;
const OUT_OF_TIME: u8 = 2;

impl Budget {
    fn new() -> Self {
        Self {
            steps: AtomicU32::new(0),
            deadline: Instant::now() + MAX_TIME,
            exceeded: AtomicU8::new(WITHIN),
        }
    }

    /// Begins the next condition. The steps are per condition, so that its value does not depend on other rules.
    fn start(&self) -> Result<(), Failure> {
        self.steps.store(0, Ordering::Relaxed);
        self.exceeded.store(WITHIN, Ordering::Relaxed);
        if Instant::now() > self.deadline { Err(Failure::Time) } else { Ok(()) }
    }

    fn step(&self) -> Result<Value, ExecutionError> {
        let reason = if self.steps.fetch_add(1, Ordering::Relaxed) >= MAX_STEPS {
            OUT_OF_STEPS
        } else if Instant::now() > self.deadline {
            OUT_OF_TIME
        } else {
            return Ok(Value::Bool(true));
        };
        self.exceeded.store(reason, Ordering::Relaxed);
        Err(ExecutionError::InternalError("limit exceeded".to_owned()))
    }

    fn exceeded(&self) -> Result<(), Failure> {
        match self.exceeded.load(Ordering::Relaxed) {
            WITHIN => Ok(()),
            OUT_OF_STEPS => Err(Failure::Steps),
            _ => Err(Failure::Time),
        }
    }
}

fn describe(error: &ExecutionError) -> Failure {
    match error {
        ExecutionError::NoSuchKey(key) => Failure::MissingKey(excerpt(key, 60)),
        error => Failure::Error(excerpt(&error.to_string(), 200)),
    }
}

/// Returns whether a value is within the size limit; `size` is what precedes it.
fn fits(value: &Json, size: &mut usize) -> bool {
    *size += VALUE_BYTES;
    match value {
        Json::String(text) => *size += text.len(),
        Json::Array(items) => return *size <= MAX_ARGS_BYTES && items.iter().all(|item| fits(item, size)),
        Json::Object(map) => {
            return map.iter().all(|(key, item)| {
                *size += key.len();
                fits(item, size)
            });
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
    *size <= MAX_ARGS_BYTES
}

/// Converts a JSON value. Whole numbers become `int` where they fit, so that they can be compared and added to literals.
fn convert(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Int(number),
            (None, Some(number)) => Value::UInt(number),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(value) => text(value),
        Json::Array(items) => Value::List(items.iter().map(convert).collect::<Vec<_>>().into()),
        Json::Object(map) => object(map.iter().map(|(key, value)| (key.as_str(), convert(value)))),
    }
}

fn text(text: &str) -> Value {
    Value::String(Arc::new(text.to_owned()))
}

fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let map = fields.into_iter().map(|(key, value)| (Key::from(key), value)).collect::<HashMap<_, _>>();
    Value::Map(Map { map: Arc::new(map) })
}
