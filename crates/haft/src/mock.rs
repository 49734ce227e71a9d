//! [`MockTools`]: tools for tests, with scripted outcomes.

mod report;
mod script;

use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Prepared};
use haft_core::outcome::Outcome;
use haft_core::spec::ToolSpec;
use haft_definition::defaults::ArgumentDefaults;
use haft_executors::egress::EgressRules;
use serde::Serialize;
use serde_json::{Map, Value};

use self::script::{ExpectedCall, ReceivedCall, Script, Times};
pub use self::script::{IntoArgsMatcher, IntoCallError};
use crate::def::ToolDef;
use crate::outcome::to_value;
use crate::resources::Resources;
use crate::tools::Tools;

/// Tools for a test, with scripted outcomes.
///
/// Pass [`MockTools::tools`], a normal [`Tools`], to the code under test. Dropping the mock fails the test if an
/// expectation was not met or a call was unexpected, and reports the differences.
///
/// ```
/// use haft::MockTools;
/// use serde_json::{Value, json};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mock = MockTools::new();
/// mock.on("web_search").with(json!({"query": "rust"})).returns(json!(["rust-lang.org"]));
/// mock.on("web_search").with(|args: &Value| args["query"] == "go").fails("quota exceeded");
///
/// let tools = mock.tools();
/// let found = tools.execute("web_search", json!({"query": "rust"})).await?;
/// assert_eq!(found, json!(["rust-lang.org"]));
/// assert!(tools.execute("web_search", json!({"query": "go"})).await.is_err());
///
/// assert_eq!(mock.calls("web_search"), [json!({"query": "rust"}), json!({"query": "go"})]);
/// # Ok(())
/// # }
/// ```
pub struct MockTools {
    tools: Tools,
    script: SharedScript,
    /// The names of the real tools, for [`MockTools::from_tools`].
    real_names: Option<Vec<String>>,
}

/// The script, shared by the mock and its tools.
#[derive(Clone, Default)]
struct SharedScript(Arc<Mutex<Script>>);

impl SharedScript {
    fn lock(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MockTools {
    fn default() -> Self {
        Self::new()
    }
}

impl MockTools {
    /// Creates a mock without tools. [`MockTools::on`] adds tools that accept any arguments and are not retried when
    /// they fail.
    pub fn new() -> Self {
        Self { tools: Tools::new(), script: SharedScript::default(), real_names: None }
    }

    /// Creates a mock of the tools of a real set, with their names, descriptions, schemas and settings. Arguments and
    /// values are validated as in the real set, and elevated tools are rejected if the set rejects them
    /// ([`Builder::deny_elevated`](crate::Builder::deny_elevated)). The real functions do not run.
    #[track_caller]
    pub fn from_tools(tools: &Tools) -> Self {
        let names = tools.names();
        let entries: Vec<_> = names.iter().filter_map(|name| tools.find(name).ok()).collect();
        let builder = Tools::builder();
        let builder = if tools.set().principal.elevated { builder } else { builder.deny_elevated() };
        let empty = builder.assemble(&Resources::new(EgressRules::default(), None), None);
        let mock = Self { tools: empty, script: SharedScript::default(), real_names: Some(names) };
        for found in entries {
            let spec = ToolSpec::clone(&found.entry.tool.spec);
            let function = mock.function(spec.name.as_str());
            mock.register(ToolDef::from_spec(spec, function));
        }
        mock
    }

    /// Adds an expectation. Defaults: any arguments, at least one call, returns `null`.
    ///
    /// A call uses the first matching expectation that has not reached its number of calls. For example, with
    /// `.fails("busy").times(1)` on the first expectation, the first call fails and later calls use the next one.
    #[track_caller]
    pub fn on(&self, tool: &str) -> Expectation<'_> {
        self.add_tool(tool);
        let real = self.tools.find(tool).ok();
        let defaults = real
            .map(|found| ArgumentDefaults::of(&found.entry.tool.spec).values().clone())
            .unwrap_or_default();
        let mut script = self.script.lock();
        script.expected.push(ExpectedCall::new(tool, Location::caller(), defaults));
        Expectation { index: script.expected.len() - 1, script: &self.script }
    }

    /// Adds a tool with this name unless it exists; in a mock of a real set, it must exist.
    #[track_caller]
    fn add_tool(&self, tool: &str) {
        if let Some(names) = &self.real_names {
            if !names.iter().any(|name| name == tool) {
                fail(&format!("MockTools: tool `{tool}` not found; known tools: {}", names.join(", ")));
            }
        } else if !self.script.lock().expected.iter().any(|expected| expected.tool == tool) {
            let def = ToolDef::from_parts::<Value>(tool, "", self.function(tool));
            // Without retries, each call of the code under test is one call of the mock.
            self.register(def.retry(0, Duration::ZERO));
        }
    }

    #[track_caller]
    fn register(&self, def: ToolDef) {
        if let Err(error) = self.tools.register(def) {
            fail(&format!("MockTools: {error}"));
        }
    }

    fn function(&self, tool: &str) -> Arc<dyn Prepared> {
        Arc::new(MockFunction { tool: tool.to_owned(), script: self.script.clone() })
    }

    /// Returns the tools for the code under test.
    pub fn tools(&self) -> Tools {
        let script = self.script.clone();
        self.tools.with_on_rejected(move |tool, args, error| script.lock().record_rejected(tool, args, error))
    }

    /// Returns the arguments of all calls of a tool in order, expected or not.
    pub fn calls(&self, tool: &str) -> Vec<Value> {
        let script = self.script.lock();
        script.calls.iter().filter(|call| call.tool == tool).map(|call| call.args.clone()).collect()
    }

    /// Fails the test unless every expectation was met and every call was expected. Dropping the mock does the same.
    #[track_caller]
    pub fn verify(&self) {
        let mut script = self.script.lock();
        // Set before the report is written, because a predicate of the test may panic in it.
        if std::mem::replace(&mut script.is_reported, true) {
            return;
        }
        let Some(report) = report::failure_report(&script) else {
            script.is_reported = false;
            return;
        };
        drop(script);
        fail(&report);
    }
}

impl Drop for MockTools {
    fn drop(&mut self) {
        // The test has failed already; a second panic would abort it.
        if !std::thread::panicking() {
            self.verify();
        }
    }
}

impl fmt::Debug for MockTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let script = self.script.lock();
        f.debug_struct("MockTools")
            .field("expectations", &script.expected.len())
            .field("calls", &script.calls.len())
            .finish_non_exhaustive()
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "a mock reports a failure by failing the test")]
fn fail(text: &str) -> ! {
    panic!("{text}")
}

/// An expected call. It takes effect when it is created; the methods refine it.
pub struct Expectation<'a> {
    script: &'a SharedScript,
    index: usize,
}

impl Expectation<'_> {
    fn change(self, change: impl FnOnce(&mut ExpectedCall)) -> Self {
        if let Some(expected) = self.script.lock().expected.get_mut(self.index) {
            change(expected);
        }
        self
    }

    /// Sets the expected arguments: a JSON object that must be equal, or a predicate. Arguments that the object leaves
    /// out may have the default of the real tool's schema.
    #[expect(clippy::return_self_not_must_use, reason = "the expectation is already in effect")]
    pub fn with(self, arguments: impl IntoArgsMatcher) -> Self {
        self.change(|expected| expected.arguments = arguments.into_args_matcher())
    }

    /// Sets the value that the call returns.
    #[expect(clippy::return_self_not_must_use, reason = "the expectation is already in effect")]
    pub fn returns(self, value: impl Serialize) -> Self {
        self.change(|expected| expected.outcomes = vec![to_value(&value)])
    }

    /// Sets the values that successive calls return. As many calls as values are expected, unless
    /// [`Expectation::times`] sets another number; further calls return the last value.
    #[expect(clippy::return_self_not_must_use, reason = "the expectation is already in effect")]
    pub fn returns_in_turn<V: Serialize>(self, values: impl IntoIterator<Item = V>) -> Self {
        let outcomes: Vec<Outcome> = values.into_iter().map(|value| to_value(&value)).collect();
        self.change(|expected| {
            if expected.times == Times::AtLeastOnce {
                expected.times = Times::Exactly(outcomes.len());
            }
            expected.outcomes = outcomes;
        })
    }

    /// Makes the call fail with a message, a [`Failure`](crate::Failure), or a [`CallError`](crate::CallError).
    #[expect(clippy::return_self_not_must_use, reason = "the expectation is already in effect")]
    pub fn fails(self, failure: impl IntoCallError) -> Self {
        self.change(|expected| expected.outcomes = vec![Err(failure.into_call_error())])
    }

    /// Expects haft to reject the call before it reaches the tool, for example because the arguments do not match the
    /// real schema ([`MockTools::from_tools`]).
    #[expect(clippy::return_self_not_must_use, reason = "the expectation is already in effect")]
    pub fn rejected(self) -> Self {
        self.change(|expected| expected.is_rejected = true)
    }

    /// Sets how long the call takes.
    #[expect(clippy::return_self_not_must_use, reason = "the expectation is already in effect")]
    pub fn delay(self, delay: Duration) -> Self {
        self.change(|expected| expected.delay = delay)
    }

    /// Expects exactly this number of calls.
    #[expect(clippy::return_self_not_must_use, reason = "the expectation is already in effect")]
    pub fn times(self, calls: usize) -> Self {
        self.change(|expected| expected.times = Times::Exactly(calls))
    }

    /// Expects no calls.
    #[expect(clippy::return_self_not_must_use, reason = "the expectation is already in effect")]
    pub fn never(self) -> Self {
        self.times(0)
    }

    /// Allows any number of calls, including none.
    #[expect(clippy::return_self_not_must_use, reason = "the expectation is already in effect")]
    pub fn any_times(self) -> Self {
        self.change(|expected| expected.times = Times::Any)
    }
}

/// Runs instead of a tool.
struct MockFunction {
    tool: String,
    script: SharedScript,
}

impl Prepared for MockFunction {
    fn run<'a>(&'a self, _call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        let args = Value::Object(args.clone());
        let call = ReceivedCall { tool: self.tool.clone(), args, ..ReceivedCall::default() };
        let (outcome, delay) = self.script.lock().respond(&call);
        Box::pin(async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            outcome
        })
    }
}

#[cfg(test)]
#[path = "mock_tests.rs"]
mod tests;
