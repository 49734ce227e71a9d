//! Functions with typed arguments, made callable with JSON.

use std::marker::PhantomData;
use std::sync::Arc;

use haft_core::Work;
use haft_core::executor::{CallContext, Prepared};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_runtime::function;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// An async function of a call and its arguments.
pub(crate) struct Typed<P, F> {
    function: F,
    args: PhantomData<fn(P)>,
}

impl<P, F> Typed<P, F>
where
    P: DeserializeOwned + Send + 'static,
    F: for<'a> Fn(&'a CallContext, P) -> Work<'a, Outcome> + Send + Sync + 'static,
{
    /// Makes it callable.
    pub(crate) fn prepared(function: F) -> Arc<dyn Prepared> {
        Arc::new(Self { function, args: PhantomData })
    }
}

impl<P, F> Prepared for Typed<P, F>
where
    P: DeserializeOwned + Send + 'static,
    F: for<'a> Fn(&'a CallContext, P) -> Work<'a, Outcome> + Send + Sync + 'static,
{
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> Work<'a, Outcome> {
        match read(args) {
            Ok(args) => (self.function)(call, args),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

/// A function that may block, of a call and its arguments.
pub(crate) struct TypedBlocking;

impl TypedBlocking {
    /// Makes it callable, on threads of its own.
    pub(crate) fn prepared<P, F>(function: F) -> Arc<dyn Prepared>
    where
        P: DeserializeOwned,
        F: Fn(&CallContext, P) -> Outcome + Send + Sync + 'static,
    {
        function::blocking(move |call, args| function(call, read(&args)?))
    }
}

/// Reads typed arguments; an error names the field and what was expected there.
pub(crate) fn read<'a, P: Deserialize<'a>>(args: &'a Map<String, Value>) -> Result<P, CallError> {
    P::deserialize(args).map_err(|_| {
        // Once more, with the path, which the quick way does not keep.
        let message = match serde_path_to_error::deserialize::<_, P>(args) {
            Err(error) if error.path().iter().next().is_some() => {
                format!("`{}`: {}", error.path(), error.inner())
            }
            Err(error) => error.inner().to_string(),
            Ok(_) => "they could be read only at the second attempt".to_owned(),
        };
        unfit(&message)
    })
}

/// Says that arguments passed their schema and still are none for the function.
pub(crate) fn unfit(message: &str) -> CallError {
    let message = format!("the arguments do not fit the function: {message}");
    CallError::new(ErrorCode::InvalidArguments, message)
}
