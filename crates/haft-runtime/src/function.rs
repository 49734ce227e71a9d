//! The `function` executor: registered Rust functions.

use std::collections::HashMap;
use std::sync::Arc;

use haft_core::Work;
use haft_core::executor::{CallContext, Executor, Prepared};
use haft_core::implementation::{Implementation, Kind};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

/// The arguments of a call.
pub type Args = Map<String, Value>;

type AsyncFunction = dyn Fn(Args) -> Work<'static, Outcome> + Send + Sync;
type SyncFunction = dyn Fn(Args) -> Outcome + Send + Sync;

/// How many blocking functions run at once. One that hangs keeps its place, so that it cannot use up the
/// threads that everything else in the program needs.
const BLOCKING: usize = 64;

#[derive(Clone)]
enum Registered {
    Async(Arc<AsyncFunction>),
    Blocking(Arc<SyncFunction>),
}

/// The functions that definitions may name. Only what is registered can run.
#[derive(Clone, Default)]
pub struct Functions {
    by_name: HashMap<String, Registered>,
}

impl Functions {
    /// Registers an async function.
    #[must_use]
    pub fn with_async<F, R>(mut self, name: &str, function: F) -> Self
    where
        F: Fn(Args) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        let boxed = move |args| -> Work<'static, Outcome> { Box::pin(function(args)) };
        self.by_name.insert(name.to_owned(), Registered::Async(Arc::new(boxed)));
        self
    }

    /// Registers a function that may block; it runs on threads of its own.
    #[must_use]
    pub fn with_blocking<F>(mut self, name: &str, function: F) -> Self
    where
        F: Fn(Args) -> Outcome + Send + Sync + 'static,
    {
        self.by_name.insert(name.to_owned(), Registered::Blocking(Arc::new(function)));
        self
    }
}

/// Runs registered functions.
pub struct FunctionExecutor {
    functions: Functions,
    places: Arc<Semaphore>,
}

impl FunctionExecutor {
    /// Makes the executor of these functions.
    pub fn new(functions: Functions) -> Self {
        Self { functions, places: Arc::new(Semaphore::new(BLOCKING)) }
    }

    fn find(&self, spec: &ToolSpec) -> Result<&Registered, Problem> {
        let Implementation::Function(function) = &spec.implementation else {
            return Err(Problem::new("implementation.type", "wrong_type", "expected `function`"));
        };
        self.functions.by_name.get(&function.function).ok_or_else(|| {
            let message = format!("no function `{}` is registered in this program", function.function);
            Problem::new("implementation.function", "unknown_function", message)
        })
    }
}

impl Executor for FunctionExecutor {
    fn kind(&self) -> Kind {
        Kind::Function
    }

    fn available(&self, spec: &ToolSpec) -> Result<(), Problem> {
        self.find(spec).map(|_| ())
    }

    fn prepare(
        &self,
        spec: &Arc<ToolSpec>,
        _folder: Option<&str>,
    ) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let function = self.find(spec).map_err(|problem| vec![problem])?;
        Ok(Arc::new(Ready { function: function.clone(), places: Arc::clone(&self.places) }))
    }
}

struct Ready {
    function: Registered,
    places: Arc<Semaphore>,
}

impl Prepared for Ready {
    fn run<'a>(&'a self, _call: &'a CallContext, args: &'a Args) -> Work<'a, Outcome> {
        match &self.function {
            Registered::Async(function) => function(args.clone()),
            Registered::Blocking(function) => {
                Box::pin(run_blocking(Arc::clone(function), args.clone(), Arc::clone(&self.places)))
            }
        }
    }
}

async fn run_blocking(function: Arc<SyncFunction>, args: Args, places: Arc<Semaphore>) -> Outcome {
    let place = places.acquire_owned().await.map_err(|error| CallError::internal(error.to_string()))?;
    let work = move || {
        let _place = place;
        function(args)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => Err(panicked(error.into_panic().as_ref())),
        Err(_) => Err(CallError::new(ErrorCode::Cancelled, "the program is stopping")),
    }
}

/// Turns a panic to an outcome: the operator reads its message, the model only that it happened.
pub(crate) fn panicked(payload: &(dyn std::any::Any + Send)) -> CallError {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    CallError::new(ErrorCode::Panicked, format!("the function panicked: {text}"))
        .for_model("the tool failed unexpectedly")
}
