//! A tool as a program defines it: what it is, and the function behind it.

use std::sync::Arc;
use std::time::Duration;

use haft_core::executor::{CallContext, Prepared};
use haft_core::implementation::{Function, Implementation};
use haft_core::name::{NameError, ToolName};
use haft_core::spec::{Execution, Policy, Retry, ToolSpec};
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
    pub(crate) description: String,
    pub(crate) input_schema: Value,
    /// The schema of the type that the function takes, where `input_schema` was said by hand.
    pub(crate) of_type: Option<Value>,
    pub(crate) output_schema: Value,
    pub(crate) execution: Execution,
    pub(crate) policy: Policy,
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
        Self::with_context(name, move |_, args| function(args))
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

    /// Makes a tool of its parts, for the code that `#[tool]` writes.
    #[doc(hidden)]
    pub fn of_type<P: JsonSchema>(name: &str, description: &str, function: Arc<dyn Prepared>) -> Self {
        Self::of(name.to_owned(), schema::of_arguments::<P>(), function).description(description)
    }

    fn of(name: String, input_schema: Value, function: Arc<dyn Prepared>) -> Self {
        Self {
            name,
            description: String::new(),
            input_schema,
            of_type: None,
            output_schema: haft_core::spec::empty_schema(),
            execution: Execution::default(),
            policy: Policy::default(),
            function,
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the schema of the arguments.
    pub fn schema(&self) -> &Value {
        &self.input_schema
    }

    /// Says what the tool does, to the model.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Says the parameters one by one, instead of what the function's type tells.
    pub fn params(self, params: Params) -> Self {
        self.input_schema(params.schema())
    }

    /// Says the schema of the arguments, instead of what the function's type tells.
    pub fn input_schema(mut self, schema: Value) -> Self {
        let of_type = std::mem::replace(&mut self.input_schema, schema);
        self.of_type.get_or_insert(of_type);
        self
    }

    /// Says the schema of the value; one that does not fit becomes a failure.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = schema;
        self
    }

    /// Says that the same arguments always give the same value, without side effects: it may be cached.
    pub fn pure(mut self) -> Self {
        self.execution.is_pure = true;
        self
    }

    /// Bounds the time of one call, repetitions included.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.execution.timeout_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Says how often a failure that is marked retryable is tried again, and the first wait, which doubles.
    pub fn retry(mut self, attempts: u32, backoff: Duration) -> Self {
        let backoff_ms = u64::try_from(backoff.as_millis()).unwrap_or(u64::MAX);
        self.execution.retry = Some(Retry { attempts, backoff_ms });
        self
    }

    /// Bounds how many calls of it run at once.
    pub fn max_parallel(mut self, most: u32) -> Self {
        self.execution.limits.max_parallel = Some(most);
        self
    }

    /// Says that only callers who are trusted with it may run it.
    pub fn elevated(mut self) -> Self {
        self.policy = Policy::Elevated;
        self
    }

    /// Returns the definition behind it.
    pub(crate) fn spec(&self) -> Result<ToolSpec, NameError> {
        let function = Function { function: self.name.clone() };
        let mut spec = ToolSpec::new(ToolName::new(&self.name)?, Implementation::Function(function));
        spec.description.clone_from(&self.description);
        spec.input_schema.clone_from(&self.input_schema);
        spec.output_schema.clone_from(&self.output_schema);
        spec.execution.clone_from(&self.execution);
        spec.policy = self.policy;
        Ok(spec)
    }
}
