//! Tools for tests, which answer as the test says.

mod expected;
mod report;

use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Prepared};
use haft_core::outcome::Outcome;
use haft_core::spec::ToolSpec;
use haft_runtime::egress::EgressRules;
use haft_runtime::function::defaults;
use serde::Serialize;
use serde_json::{Map, Value};

use self::expected::{Call, Expected, Script, Times};
pub use self::expected::{Fails, Matches};
use crate::answer::to_value;
use crate::def::ToolDef;
use crate::resources::Resources;
use crate::tools::Tools;

/// Tools for a test: they answer as the test says, and say what came instead where a call was not as expected.
///
/// The code under test takes [`MockTools::tools`], which is a [`Tools`] like any other. When the mock is dropped, every
/// expectation has to be met, and every call to have been expected; if not, the test fails and says why.
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
    script: Shared,
    /// The names that there are, where the tools are those of a real set.
    real: Option<Vec<String>>,
}

/// What the mock and its tools share.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Script>>);

impl Shared {
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
    /// Starts without any tool. Those that [`MockTools::on`] names take whatever arguments a call has, and are not tried
    /// again when they fail.
    pub fn new() -> Self {
        Self { tools: Tools::new(), script: Shared::default(), real: None }
    }

    /// Starts with the tools of a real set: names, descriptions, schemas and settings are theirs, and arguments and
    /// values are checked as they are in real life, and elevated tools are refused where the set refuses them
    /// ([`Builder::refuse_elevated`](crate::Builder::refuse_elevated)). Nothing of theirs runs.
    #[track_caller]
    pub fn over(tools: &Tools) -> Self {
        let names = tools.names();
        let entries: Vec<_> = names.iter().filter_map(|name| tools.find(name).ok()).collect();
        let builder = Tools::builder();
        let builder = if tools.set().caller.elevated { builder } else { builder.refuse_elevated() };
        let same = builder.assemble(&Resources::new(EgressRules::default(), None), None);
        let mock = Self { tools: same, script: Shared::default(), real: Some(names) };
        for found in entries {
            let spec = ToolSpec::clone(&found.entry.tool.spec);
            let function = mock.function(spec.name.as_str());
            mock.register(ToolDef::from_spec(spec, function));
        }
        mock
    }

    /// Begins an expectation. What is not said is: with whatever arguments, once or more, and `null` is returned.
    ///
    /// Of several that fit a call, the first that was not called as often as it may be answers. So the first call
    /// of a tool fails and the next ones do not when the first expectation has `.fails("busy").times(1)`.
    #[track_caller]
    pub fn on(&self, tool: &str) -> Expectation<'_> {
        self.ensure(tool);
        let real = self.tools.find(tool).ok();
        let defaults = real.map(|found| defaults(&found.entry.tool.spec)).unwrap_or_default();
        let mut script = self.script.lock();
        script.expected.push(Expected::new(tool, Location::caller(), defaults));
        Expectation { index: script.expected.len() - 1, script: &self.script }
    }

    /// Makes sure that there is a tool of this name.
    #[track_caller]
    fn ensure(&self, tool: &str) {
        if let Some(names) = &self.real {
            if !names.iter().any(|name| name == tool) {
                fail(&format!(
                    "MockTools: there is no tool `{tool}` to mock; there are: {}",
                    names.join(", ")
                ));
            }
        } else if !self.script.lock().expected.iter().any(|expected| expected.tool == tool) {
            let def = ToolDef::of_type::<Value>(tool, "", self.function(tool));
            // One call is one call, also where it fails in a way that would be tried again.
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
        Arc::new(Mocked { tool: tool.to_owned(), script: self.script.clone() })
    }

    /// Returns the tools, for the code under test.
    pub fn tools(&self) -> Tools {
        let script = self.script.clone();
        self.tools.telling_refused(move |tool, args, error| script.lock().keep_refused(tool, args, error))
    }

    /// Returns the arguments of every call of a tool so far, in their order, whether it was expected or not.
    pub fn calls(&self, tool: &str) -> Vec<Value> {
        let script = self.script.lock();
        script.calls.iter().filter(|call| call.tool == tool).map(|call| call.args.clone()).collect()
    }

    /// Fails the test unless every expectation was met and every call was expected. Dropping the mock does the same.
    #[track_caller]
    pub fn verify(&self) {
        let mut script = self.script.lock();
        // Before the report, in which what a test says of arguments may panic.
        if std::mem::replace(&mut script.is_told, true) {
            return;
        }
        let Some(report) = report::of(&script) else {
            script.is_told = false;
            return;
        };
        drop(script);
        fail(&report);
    }
}

impl Drop for MockTools {
    fn drop(&mut self) {
        // A test that fails anyway says why by itself.
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
#[expect(clippy::panic, reason = "a mock lives in a test, and fails it")]
fn fail(text: &str) -> ! {
    panic!("{text}")
}

/// An expectation, as it is being said. It holds from the beginning; the methods change it.
pub struct Expectation<'a> {
    script: &'a Shared,
    index: usize,
}

impl Expectation<'_> {
    fn change(self, change: impl FnOnce(&mut Expected)) -> Self {
        if let Some(expected) = self.script.lock().expected.get_mut(self.index) {
            change(expected);
        }
        self
    }

    /// Says the arguments: exactly those of a JSON object, or whatever a function of them says yes to. What the object
    /// leaves out and the schema of a real tool gives a default may be that default.
    #[expect(clippy::return_self_not_must_use, reason = "the expectation holds already")]
    pub fn with(self, arguments: impl Matches) -> Self {
        self.change(|expected| expected.arguments = arguments.arguments())
    }

    /// Says the value that is returned.
    #[expect(clippy::return_self_not_must_use, reason = "the expectation holds already")]
    pub fn returns(self, value: impl Serialize) -> Self {
        self.change(|expected| expected.answers = vec![to_value(&value)])
    }

    /// Says the values that are returned, one for each call. As many calls as values are expected, unless
    /// [`Expectation::times`] says more, which get the last value again.
    #[expect(clippy::return_self_not_must_use, reason = "the expectation holds already")]
    pub fn returns_in_turn<V: Serialize>(self, values: impl IntoIterator<Item = V>) -> Self {
        let answers: Vec<Outcome> = values.into_iter().map(|value| to_value(&value)).collect();
        self.change(|expected| {
            if expected.times == Times::OnceOrMore {
                expected.times = Times::Exactly(answers.len());
            }
            expected.answers = answers;
        })
    }

    /// Says that the call fails: with a text, a [`Failure`](crate::Failure), or a [`CallError`](crate::CallError).
    #[expect(clippy::return_self_not_must_use, reason = "the expectation holds already")]
    pub fn fails(self, failure: impl Fails) -> Self {
        self.change(|expected| expected.answers = vec![Err(failure.error())])
    }

    /// Says that the call is refused before it gets to the tool, as arguments are that do not fit the real schema
    /// ([`MockTools::over`]).
    #[expect(clippy::return_self_not_must_use, reason = "the expectation holds already")]
    pub fn refused(self) -> Self {
        self.change(|expected| expected.is_refused = true)
    }

    /// Says how long the answer takes.
    #[expect(clippy::return_self_not_must_use, reason = "the expectation holds already")]
    pub fn delay(self, time: Duration) -> Self {
        self.change(|expected| expected.delay = time)
    }

    /// Says how often it is called, exactly.
    #[expect(clippy::return_self_not_must_use, reason = "the expectation holds already")]
    pub fn times(self, calls: usize) -> Self {
        self.change(|expected| expected.times = Times::Exactly(calls))
    }

    /// Says that it is not called.
    #[expect(clippy::return_self_not_must_use, reason = "the expectation holds already")]
    pub fn never(self) -> Self {
        self.times(0)
    }

    /// Says that it may be called or not, as often as it likes.
    #[expect(clippy::return_self_not_must_use, reason = "the expectation holds already")]
    pub fn any_times(self) -> Self {
        self.change(|expected| expected.times = Times::Any)
    }
}

/// What runs instead of a tool.
struct Mocked {
    tool: String,
    script: Shared,
}

impl Prepared for Mocked {
    fn run<'a>(&'a self, _call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        let call = Call { tool: self.tool.clone(), args: Value::Object(args.clone()), ..Call::default() };
        let (outcome, delay) = self.script.lock().answer(&call);
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
