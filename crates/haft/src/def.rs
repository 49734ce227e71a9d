//! [`ToolDef`]: a tool that is defined in the program.

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

use crate::function::{self, TypedFunction};
use crate::outcome::IntoOutcome;
use crate::params::Params;
use crate::schema::input_schema;

/// A tool: its name, its description, its schema, and the function that runs.
///
/// `#[tool]` generates it from a function's signature. Without the macro, the arguments are a struct:
///
/// ```
/// use haft::ToolDef;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Greet {
///     /// The person to greet
///     name: String,
/// }
///
/// let greet = ToolDef::new("greet", |args: Greet| async move { format!("Hello, {}!", args.name) })
///     .description("Greets someone by name.");
/// ```
#[derive(Clone)]
#[must_use = "a tool definition does nothing until it is registered"]
pub struct ToolDef {
    pub(crate) name: String,
    /// The definition, or the error of an invalid name.
    pub(crate) spec: Result<ToolSpec, NameError>,
    /// The schema of the type that the function takes, if the input schema is hand-written.
    pub(crate) type_schema: Option<Value>,
    pub(crate) function: Arc<dyn Prepared>,
}

impl ToolDef {
    /// Creates a tool from an async function.
    pub fn new<P, F, R>(name: impl Into<String>, function: F) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(P) -> R + Send + Sync + 'static,
        R: Future<Output: IntoOutcome> + Send + 'static,
    {
        let prepared = TypedFunction::<P, _>::prepared(move |_: &CallContext, args| {
            let future = function(args);
            Box::pin(async move { future.await.into_outcome() })
        });
        Self::with_schema(name.into(), input_schema::<P>(), prepared)
    }

    /// Creates a tool from an async function that also takes the context of the call.
    pub fn with_context<P, F, R>(name: impl Into<String>, function: F) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(CallContext, P) -> R + Send + Sync + 'static,
        R: Future<Output: IntoOutcome> + Send + 'static,
    {
        let prepared = TypedFunction::<P, _>::prepared(move |call: &CallContext, args| {
            let future = function(call.clone(), args);
            Box::pin(async move { future.await.into_outcome() })
        });
        Self::with_schema(name.into(), input_schema::<P>(), prepared)
    }

    /// Creates a tool from a function that may block; it runs on a blocking thread.
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
        A: IntoOutcome,
    {
        Self::blocking_with_context(name, move |_, args| function(args))
    }

    /// Creates a tool from a function that may block and also takes the context of the call.
    pub fn blocking_with_context<P, F, A>(name: impl Into<String>, function: F) -> Self
    where
        P: DeserializeOwned + JsonSchema,
        F: Fn(&CallContext, P) -> A + Send + Sync + 'static,
        A: IntoOutcome,
    {
        let prepared = function::blocking(move |call, args: P| function(call, args).into_outcome());
        Self::with_schema(name.into(), input_schema::<P>(), prepared)
    }

    /// Creates a tool from an existing definition and a function, which replaces the definition's implementation.
    pub fn from_spec(mut spec: ToolSpec, function: Arc<dyn Prepared>) -> Self {
        let name = spec.name.as_str().to_owned();
        spec.implementation = Implementation::Function(Function::new(name.as_str()));
        Self { name, spec: Ok(spec), type_schema: None, function }
    }

    /// Creates a tool whose arguments are of type `P`, for the code that `#[tool]` generates.
    #[doc(hidden)]
    pub fn from_parts<P: JsonSchema>(name: &str, description: &str, function: Arc<dyn Prepared>) -> Self {
        Self::with_schema(name.to_owned(), input_schema::<P>(), function).description(description)
    }

    fn with_schema(name: String, input_schema: Value, function: Arc<dyn Prepared>) -> Self {
        let spec = ToolName::new(&name).map(|tool| {
            let implementation = Implementation::Function(Function::new(name.as_str()));
            ToolSpec { input_schema: input_schema.into(), ..ToolSpec::new(tool, implementation) }
        });
        Self { name, spec, type_schema: None, function }
    }

    /// Changes the definition; does nothing if the name is invalid, which `register` reports.
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
    pub fn schema(&self) -> Value {
        self.spec.as_ref().map(|spec| spec.input_schema.value()).unwrap_or_default()
    }

    /// Sets the description that the model reads.
    pub fn description(self, text: impl Into<String>) -> Self {
        self.set(|spec| spec.description = text.into())
    }

    /// Sets the parameters one by one, instead of those of the function's type.
    ///
    /// [`Tools::register`](crate::Tools::register) rejects parameters that the type does not accept.
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

    /// Sets the schema of the arguments, instead of that of the function's type.
    pub fn input_schema(mut self, schema: Value) -> Self {
        if let Ok(spec) = &mut self.spec {
            let type_schema = std::mem::replace(&mut spec.input_schema, schema.into());
            self.type_schema.get_or_insert_with(|| type_schema.value());
        }
        self
    }

    /// Sets the schema of the value; a call whose value does not match fails.
    pub fn output_schema(self, schema: Value) -> Self {
        self.set(|spec| spec.output_schema = schema.into())
    }

    /// Declares that the tool has no side effects and that equal arguments give equal values: it may be cached.
    pub fn pure(self) -> Self {
        self.set(|spec| spec.execution.is_pure = true)
    }

    /// Sets the timeout of a call, including retries. Default: 30 seconds; maximum: one hour.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set(|spec| spec.execution.timeout_ms = Some(milliseconds(timeout)))
    }

    /// Sets how often a retryable failure is retried, and the delay before the first retry, which then doubles.
    pub fn retry(self, attempts: u32, backoff: Duration) -> Self {
        self.set(|spec| spec.execution.retry = Some(Retry { attempts, backoff_ms: milliseconds(backoff) }))
    }

    /// Limits the number of concurrent calls of the tool.
    pub fn max_parallel(self, max: u32) -> Self {
        self.set(|spec| spec.execution.limits.max_parallel = Some(max))
    }

    /// Restricts the tool to callers with elevated rights.
    pub fn elevated(self) -> Self {
        self.set(|spec| spec.policy = Policy::Elevated)
    }
}

impl fmt::Debug for ToolDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolDef").field("name", &self.name).finish_non_exhaustive()
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
