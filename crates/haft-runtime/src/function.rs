//! The `function` executor: registered Rust functions.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Poll;

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Executor, Prepared};
use haft_core::implementation::{Implementation, Kind};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::depth;

/// The arguments of a call.
pub type Args = Map<String, Value>;

/// Limits how many blocking functions run at once. One that hangs keeps its permit, so hanging functions cannot use up
/// the threads that the rest of the program needs.
static BLOCKING_PERMITS: Semaphore = Semaphore::const_new(64);

/// The functions that definitions may name; only registered functions can run. Clones share the same set.
#[derive(Clone, Default)]
pub struct Functions {
    by_name: Arc<RwLock<HashMap<String, Arc<dyn Prepared>>>>,
}

impl Functions {
    /// Registers an async function.
    #[must_use]
    pub fn with_async<F, R>(self, name: &str, function: F) -> Self
    where
        F: Fn(Args) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        self.insert(name, Arc::new(AsyncFunction(function)));
        self
    }

    /// Registers a function that may block; it runs on the blocking threads.
    #[must_use]
    pub fn with_blocking<F>(self, name: &str, function: F) -> Self
    where
        F: Fn(Args) -> Outcome + Send + Sync + 'static,
    {
        self.insert(name, blocking(move |_, args| function(args)));
        self
    }

    /// Registers a prepared function; returns the one that had the name before.
    pub fn insert(&self, name: &str, function: Arc<dyn Prepared>) -> Option<Arc<dyn Prepared>> {
        self.by_name.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), function)
    }

    /// Returns the function with this name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Prepared>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Registers the functions of another set whose names are free here.
    pub fn fill_from(&self, other: &Functions) {
        let other = other.by_name.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut own = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        for (name, function) in other {
            own.entry(name).or_insert(function);
        }
    }

    /// Removes a function. Tools that are already compiled keep it.
    pub fn remove(&self, name: &str) {
        self.by_name.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    fn find(&self, spec: &ToolSpec) -> Result<Arc<dyn Prepared>, Problem> {
        let Implementation::Function(function) = &spec.implementation else {
            return Err(Problem::new("implementation.type", "wrong_type", "expected `function`"));
        };
        self.get(&function.function).ok_or_else(|| {
            let message = format!("function `{}` is not registered in this program", function.function);
            Problem::new("implementation.function", "unknown_function", message)
        })
    }
}

/// Prepares a function that may block.
pub fn blocking<F>(function: F) -> Arc<dyn Prepared>
where
    F: Fn(&CallContext, Args) -> Outcome + Send + Sync + 'static,
{
    Arc::new(Blocking(Arc::new(function)))
}

/// Runs registered functions.
pub struct FunctionExecutor {
    functions: Functions,
}

impl FunctionExecutor {
    /// Creates the executor of these functions.
    pub fn new(functions: Functions) -> Self {
        Self { functions }
    }
}

impl Executor for FunctionExecutor {
    fn kind(&self) -> Kind {
        Kind::Function
    }

    fn available(&self, spec: &ToolSpec) -> Result<(), Problem> {
        self.functions.find(spec).map(|_| ())
    }

    fn prepare(
        &self,
        spec: &Arc<ToolSpec>,
        _folder: Option<&str>,
    ) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let mut function = self.functions.find(spec).map_err(|problem| vec![problem])?;
        if let Implementation::Function(named) = &spec.implementation
            && !named.config.is_empty()
        {
            function = function.with_config(&named.config).map_err(|problem| vec![problem])?;
        }
        Ok(function)
    }
}

/// An async function without access to its call.
struct AsyncFunction<F>(F);

impl<F, R> Prepared for AsyncFunction<F>
where
    F: Fn(Args) -> R + Send + Sync,
    R: Future<Output = Outcome> + Send + 'static,
{
    fn run<'a>(&'a self, _call: &'a CallContext, args: &'a Args) -> BoxFuture<'a, Outcome> {
        Box::pin((self.0)(args.clone()))
    }
}

/// A function that may block.
struct Blocking<F>(Arc<F>);

impl<F> Prepared for Blocking<F>
where
    F: Fn(&CallContext, Args) -> Outcome + Send + Sync + 'static,
{
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Args) -> BoxFuture<'a, Outcome> {
        let (function, call, args) = (Arc::clone(&self.0), call.clone(), args.clone());
        Box::pin(run_blocking(move || function(&call, args)))
    }
}

async fn run_blocking(work: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
    let permit = BLOCKING_PERMITS.acquire().await.map_err(|error| CallError::internal(error.to_string()))?;
    let depth = depth::current();
    let work = move || {
        let _permit = permit;
        // Calls that the function makes on this thread are nested in its own call.
        let _depth = depth::enter(depth);
        work()
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => Err(panicked(error.into_panic().as_ref())),
        Err(_) => Err(CallError::new(ErrorCode::Cancelled, "the program is shutting down")),
    }
}

/// Polls a future; a panic becomes an outcome.
pub(crate) fn catch_panic(poll: impl FnOnce() -> Poll<Outcome>) -> Poll<Outcome> {
    catch_unwind(AssertUnwindSafe(poll))
        .unwrap_or_else(|payload| Poll::Ready(Err(panicked(payload.as_ref()))))
}

/// Turns a panic into an error: the operator sees its message, the model only that it happened.
pub fn panicked(payload: &(dyn std::any::Any + Send)) -> CallError {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    CallError::new(ErrorCode::Panicked, format!("the function panicked: {text}"))
        .for_model("the tool failed unexpectedly")
}
