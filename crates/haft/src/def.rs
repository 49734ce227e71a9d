//! A tool as a program defines it: what it is, and the function behind it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haft_core::executor::{CallContext, Prepared};
use haft_core::implementation::{Function, Implementation};
use haft_core::name::{NameError, ToolName};
use haft_core::spec::{Policy, Retry, ToolSpec};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::answer::Answer;
use crate::function::{Typed, TypedBlocking};
use crate::params::Params;
use crate::schema;

/// A tool: its name, its description, its schema, and the function that runs.
///
/// `#[tool]` writes one of a function's signature. By hand, the arguments are a type:
///
/// ```
/// use haft::ToolDef;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Greet {
///     /// Whom to greet
///     name: String,
/// }
///
/// let greet = ToolDef::new("greet", |args: Greet| async move { format!("Hello, {}!", args.name) })
///     .description("Greets someone by name.");
/// ```
#[derive(Clone)]
#[must_use = "a tool does nothing until it is registered"]
pub struct ToolDef {
    pub(crate) name: String,
    /// The definition, unless the name is not one.
    pub(crate) spec: Result<ToolSpec, NameError>,
    /// The schema of the type that the function takes, where the schema was said by hand.
    pub(crate) of_type: Option<Value>,
    pub(crate) function: Arc<dyn Prepared>,
}

impl ToolDef {
    /// Makes a tool of an async function.
    pub fn new<P, F, R>(name: impl Into<String>, function: F) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(P) -> R + Send + Sync + 'static,
        R: Future<Output: Answer> + Send + 'static,
    {
        let prepared = Typed::<P, _>::prepared(move |_: &CallContext, args| {
            let work = function(args);
            Box::pin(async move { work.await.outcome() })
        });
        Self::of(name.into(), schema::of_arguments::<P>(), prepared)
    }

    /// Makes a tool of an async function that also takes the context of its call.
    pub fn with_context<P, F, R>(name: impl Into<String>, function: F) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(CallContext, P) -> R + Send + Sync + 'static,
        R: Future<Output: Answer> + Send + 'static,
    {
        let prepared = Typed::<P, _>::prepared(move |call: &CallContext, args| {
            let work = function(call.clone(), args);
            Box::pin(async move { work.await.outcome() })
        });
        Self::of(name.into(), schema::of_arguments::<P>(), prepared)
    }

    /// Makes a tool of a function that may block; it runs on threads of its own.
    ///
    /// ```
    /// use haft::{Failure, ToolDef};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Count {
    ///     path: String,
    /// }
    ///
    /// let count = ToolDef::blocking("count_lines", |args: Count| -> Result<usize, Failure> {
    ///     Ok(std::fs::read_to_string(args.path)?.lines().count())
    /// });
    /// ```
    pub fn blocking<P, F, A>(name: impl Into<String>, function: F) -> Self
    where
        P: DeserializeOwned + JsonSchema,
        F: Fn(P) -> A + Send + Sync + 'static,
        A: Answer,
    {
        Self::blocking_with_context(name, move |_, args| function(args))
    }

    /// Makes a tool of a function that may block and also takes the context of its call.
    pub fn blocking_with_context<P, F, A>(name: impl Into<String>, function: F) -> Self
    where
        P: DeserializeOwned + JsonSchema,
        F: Fn(&CallContext, P) -> A + Send + Sync + 'static,
        A: Answer,
    {
        let prepared = TypedBlocking::prepared(move |call, args: P| function(call, args).outcome());
        Self::of(name.into(), schema::of_arguments::<P>(), prepared)
    }

    /// Makes a tool of a definition that exists already, and of what runs it. The definition's own implementation
    /// does not matter.
    pub fn from_spec(mut spec: ToolSpec, function: Arc<dyn Prepared>) -> Self {
        let name = spec.name.as_str().to_owned();
        spec.implementation = Implementation::Function(Function::new(name.as_str()));
        Self { name, spec: Ok(spec), of_type: None, function }
    }

    /// Makes a tool of its parts, for the code that `#[tool]` writes.
    #[doc(hidden)]
    pub fn of_type<P: JsonSchema>(name: &str, description: &str, function: Arc<dyn Prepared>) -> Self {
        Self::of(name.to_owned(), schema::of_arguments::<P>(), function).description(description)
    }

    fn of(name: String, input_schema: Value, function: Arc<dyn Prepared>) -> Self {
        let spec = ToolName::for_program(&name).map(|tool| {
            let implementation = Implementation::Function(Function::new(name.as_str()));
            ToolSpec { input_schema, ..ToolSpec::new(tool, implementation) }
        });
        Self { name, spec, of_type: None, function }
    }

    /// Changes the definition; one whose name is not a name is refused anyway.
    fn set(mut self, change: impl FnOnce(&mut ToolSpec)) -> Self {
        if let Ok(spec) = &mut self.spec {
            change(spec);
        }
        self
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the schema of the arguments.
    pub fn schema(&self) -> &Value {
        static NONE: Value = Value::Null;
        self.spec.as_ref().map_or(&NONE, |spec| &spec.input_schema)
    }

    /// Says what the tool does, to the model.
    pub fn description(self, text: impl Into<String>) -> Self {
        self.set(|spec| spec.description = text.into())
    }

    /// Says the parameters one by one, instead of what the function's type tells.
    ///
    /// Parameters that the type cannot take are refused when the tool is registered.
    ///
    /// ```
    /// use haft::{Param, Params, ToolDef};
    /// use serde_json::Value;
    ///
    /// let def = ToolDef::new("complex_tool", |args: Value| async move { args })
    ///     .description("A tool with complex schema")
    ///     .params(
    ///         Params::new()
    ///             .with("action", Param::string().required().one_of(["create", "update", "delete"]))
    ///             .with("data", Param::object(Params::new().with("id", Param::string()))),
    ///     );
    /// ```
    pub fn params(self, params: Params) -> Self {
        self.input_schema(params.schema())
    }

    /// Says the schema of the arguments, instead of what the function's type tells.
    pub fn input_schema(mut self, schema: Value) -> Self {
        if let Ok(spec) = &mut self.spec {
            let of_type = std::mem::replace(&mut spec.input_schema, schema);
            self.of_type.get_or_insert(of_type);
        }
        self
    }

    /// Says the schema of the value; one that does not fit becomes a failure.
    pub fn output_schema(self, schema: Value) -> Self {
        self.set(|spec| spec.output_schema = schema)
    }

    /// Says that the same arguments always give the same value, without side effects: it may be cached.
    pub fn pure(self) -> Self {
        self.set(|spec| spec.execution.is_pure = true)
    }

    /// Bounds the time of one call, repetitions included: 30 seconds where nothing is said, at most an hour.
    pub fn timeout(self, time: Duration) -> Self {
        self.set(|spec| spec.execution.timeout_ms = Some(milliseconds(time)))
    }

    /// Says how often a failure that is marked retryable is tried again, and the first wait, which doubles.
    pub fn retry(self, attempts: u32, backoff: Duration) -> Self {
        self.set(|spec| spec.execution.retry = Some(Retry { attempts, backoff_ms: milliseconds(backoff) }))
    }

    /// Bounds how many calls of it run at once.
    pub fn max_parallel(self, most: u32) -> Self {
        self.set(|spec| spec.execution.limits.max_parallel = Some(most))
    }

    /// Says that only callers who are trusted with it may run it.
    pub fn elevated(self) -> Self {
        self.set(|spec| spec.policy = Policy::Elevated)
    }
}

impl fmt::Debug for ToolDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolDef").field("name", &self.name).finish_non_exhaustive()
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
