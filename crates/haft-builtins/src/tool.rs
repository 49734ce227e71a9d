//! What all built-in tools are made of: a definition, and a function with typed arguments.

use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Prepared};
use haft_core::implementation::{Function, Implementation};
use haft_core::name::{NameError, ToolName};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::{Problem, excerpt};
use haft_core::spec::ToolSpec;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A function behind a built-in tool.
pub trait BuiltIn: Send + Sync + 'static {
    /// Its arguments; the schema of the definition says the same.
    type Args: DeserializeOwned + Send;

    /// Runs it once.
    fn call(&self, call: &CallContext, args: Self::Args) -> impl Future<Output = Outcome> + Send;

    /// Makes one that has the settings of a definition; `None` where it takes none.
    fn with_config(&self, _config: &Map<String, Value>) -> Option<Result<Self, Problem>>
    where
        Self: Sized,
    {
        None
    }
}

/// Makes a function with typed arguments one that can be registered.
pub fn function<B: BuiltIn>(built_in: B) -> Arc<dyn Prepared> {
    Arc::new(Typed(built_in))
}

struct Typed<B>(B);

impl<B: BuiltIn> Prepared for Typed<B> {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            // The schema was checked before; this tells of what a schema of someone else's tool let through.
            let args = serde_json::from_value(Value::Object(args.clone()))
                .map_err(|error| invalid(excerpt(&error.to_string(), 300)))?;
            self.0.call(call, args).await
        })
    }

    fn with_config(&self, config: &Map<String, Value>) -> Result<Arc<dyn Prepared>, Problem> {
        match self.0.with_config(config) {
            Some(configured) => Ok(function(configured?)),
            None => Err(Problem::new(
                "implementation.config",
                "unknown_key",
                "this function takes no settings besides its arguments; leave them out",
            )),
        }
    }
}

/// The arguments do not fit.
pub(crate) fn invalid(message: impl Into<String>) -> CallError {
    CallError::new(ErrorCode::InvalidArguments, message)
}

/// The tool ran and failed.
pub(crate) fn failed(message: impl Into<String>) -> CallError {
    CallError::new(ErrorCode::ExecutionFailed, message)
}

/// What a definition says besides how it runs.
pub struct Describe {
    /// The name of the tool, and of its function where it has one.
    pub name: &'static str,
    /// What it does, for a model.
    pub description: &'static str,
    /// The word it is grouped by.
    pub category: &'static str,
    /// Labels.
    pub tags: &'static [&'static str],
    /// The schema of its arguments.
    pub input: Value,
    /// The schema of its value; `null` where anything may come.
    pub output: Value,
}

/// Makes a definition that runs the function of its own name; the caller changes what is special about it.
pub fn describe(about: Describe) -> Result<ToolSpec, NameError> {
    let function = Implementation::Function(Function::new(about.name));
    let mut spec = ToolSpec::new(ToolName::new(about.name)?, function);
    about.description.clone_into(&mut spec.description);
    about.category.clone_into(&mut spec.category);
    spec.tags = about.tags.iter().map(|tag| (*tag).to_owned()).collect();
    spec.input_schema = about.input;
    if !about.output.is_null() {
        spec.output_schema = about.output;
    }
    Ok(spec)
}
