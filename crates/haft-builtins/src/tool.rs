//! The parts of a built-in tool: a definition, and a function with typed arguments.

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

/// The function of a built-in tool.
pub trait BuiltIn: Send + Sync + 'static {
    /// The arguments, which match the schema of the definition.
    type Args: DeserializeOwned + Send;

    /// Whether it reads or writes files in the workspace of the call.
    const WORKS_WITH_FILES: bool = false;

    /// Runs the function.
    fn call(&self, call: &CallContext, args: Self::Args) -> impl Future<Output = Outcome> + Send;

    /// Returns a copy with the `config` of a definition; `None` if the function has no configuration.
    fn with_config(&self, _config: &Map<String, Value>) -> Option<Result<Self, Problem>>
    where
        Self: Sized,
    {
        None
    }
}

/// Makes a built-in function callable.
pub fn function<B: BuiltIn>(built_in: B) -> Arc<dyn Prepared> {
    Arc::new(BuiltInFunction(built_in))
}

struct BuiltInFunction<B>(B);

impl<B: BuiltIn> Prepared for BuiltInFunction<B> {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            // A user's definition may name this function with a schema that allows other arguments.
            let args = serde_json::from_value(Value::Object(args.clone()))
                .map_err(|error| invalid(excerpt(&error.to_string(), 300)))?;
            self.0.call(call, args).await
        })
    }

    fn works_with_files(&self) -> bool {
        B::WORKS_WITH_FILES
    }

    fn with_config(&self, config: &Map<String, Value>) -> Result<Arc<dyn Prepared>, Problem> {
        match self.0.with_config(config) {
            Some(configured) => Ok(function(configured?)),
            None => Err(Problem::new(
                "implementation.config",
                "unknown_key",
                "this function has no configuration; remove `config`",
            )),
        }
    }
}

/// Creates the error for invalid arguments.
pub(crate) fn invalid(message: impl Into<String>) -> CallError {
    CallError::new(ErrorCode::InvalidArguments, message)
}

/// Creates the error of a tool that failed.
pub(crate) fn failed(message: impl Into<String>) -> CallError {
    CallError::new(ErrorCode::ExecutionFailed, message)
}

/// The definition of a built-in tool, apart from its implementation.
pub struct Describe {
    /// The name of the tool and of its function.
    pub name: &'static str,
    /// The description that models read.
    pub description: &'static str,
    /// The category.
    pub category: &'static str,
    /// The tags.
    pub tags: &'static [&'static str],
    /// The schema of the arguments.
    pub input: Value,
    /// The schema of the value; `null` allows any value.
    pub output: Value,
}

/// Creates the spec of a tool that runs the function with the same name; the caller adjusts the rest.
pub fn describe(about: Describe) -> Result<ToolSpec, NameError> {
    let function = Implementation::Function(Function::new(about.name));
    let mut spec = ToolSpec::new(ToolName::new(about.name)?, function);
    about.description.clone_into(&mut spec.description);
    about.category.clone_into(&mut spec.category);
    spec.tags = about.tags.iter().map(|tag| (*tag).to_owned()).collect();
    spec.input_schema = about.input.into();
    if !about.output.is_null() {
        spec.output_schema = about.output.into();
    }
    Ok(spec)
}
