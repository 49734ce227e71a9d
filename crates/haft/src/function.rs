//! Functions with typed arguments, made callable with JSON.

use std::marker::PhantomData;
use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Prepared};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_runtime::function;
use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// An async function of a call and its arguments.
pub(crate) struct Typed<P, F> {
    function: F,
    args: PhantomData<fn(P)>,
}

impl<P, F> Typed<P, F>
where
    P: DeserializeOwned + Send + 'static,
    F: for<'a> Fn(&'a CallContext, P) -> BoxFuture<'a, Outcome> + Send + Sync + 'static,
{
    /// Makes it callable.
    pub(crate) fn prepared(function: F) -> Arc<dyn Prepared> {
        Arc::new(Self { function, args: PhantomData })
    }
}

impl<P, F> Prepared for Typed<P, F>
where
    P: DeserializeOwned + Send + 'static,
    F: for<'a> Fn(&'a CallContext, P) -> BoxFuture<'a, Outcome> + Send + Sync + 'static,
{
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
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
    P::deserialize(Whole(args)).map_err(|_| {
        // Once more, with the path, which the quick way does not keep.
        let message = match serde_path_to_error::deserialize::<_, P>(Whole(args)) {
            Err(error) if error.path().iter().next().is_some() => {
                format!("`{}`: {}", error.path(), error.inner())
            }
            Err(error) => error.inner().to_string(),
            Ok(_) => "they could be read only at the second attempt".to_owned(),
        };
        unfit(&message)
    })
}

/// All arguments of a call. The library reads a map as a map only; here it may also be what is wrapped around one.
struct Whole<'a>(&'a Map<String, Value>);

impl<'de> Deserializer<'de> for Whole<'de> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    /// A function that takes no arguments is called with an empty map.
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// Says that arguments passed their schema and still are none for the function.
pub(crate) fn unfit(message: &str) -> CallError {
    let message = format!("the arguments do not fit the function: {message}");
    CallError::new(ErrorCode::InvalidArguments, message)
}
