//! Makes functions with typed arguments callable with JSON.

use std::marker::PhantomData;
use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Prepared};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_runtime::function;
use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// An async function that takes the call context and typed arguments.
pub(crate) struct TypedFunction<P, F> {
    function: F,
    args: PhantomData<fn(P)>,
}

impl<P, F> TypedFunction<P, F>
where
    P: DeserializeOwned + Send + 'static,
    F: for<'a> Fn(&'a CallContext, P) -> BoxFuture<'a, Outcome> + Send + Sync + 'static,
{
    /// Makes the function callable.
    pub(crate) fn prepared(function: F) -> Arc<dyn Prepared> {
        Arc::new(Self { function, args: PhantomData })
    }
}

impl<P, F> Prepared for TypedFunction<P, F>
where
    P: DeserializeOwned + Send + 'static,
    F: for<'a> Fn(&'a CallContext, P) -> BoxFuture<'a, Outcome> + Send + Sync + 'static,
{
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        match deserialize_args(args) {
            Ok(args) => (self.function)(call, args),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

/// Makes a blocking function callable; it runs on a blocking thread.
pub(crate) fn blocking<P, F>(function: F) -> Arc<dyn Prepared>
where
    P: DeserializeOwned,
    F: Fn(&CallContext, P) -> Outcome + Send + Sync + 'static,
{
    function::blocking(move |call, args| function(call, deserialize_args(&args)?))
}

/// Deserializes the arguments of a call; an error names the field.
pub(crate) fn deserialize_args<'a, P: Deserialize<'a>>(args: &'a Map<String, Value>) -> Result<P, CallError> {
    serde_path_to_error::deserialize(ArgsDeserializer(args)).map_err(|error| {
        let is_field = error.path().iter().next().is_some();
        invalid_arguments(&if is_field {
            format!("`{}`: {}", error.path(), error.inner())
        } else {
            error.inner().to_string()
        })
    })
}

/// Deserializes all arguments of a call, also into an `Option`, a newtype or the unit type, which the deserializer of
/// a JSON map does not support.
struct ArgsDeserializer<'a>(&'a Map<String, Value>);

impl<'de> Deserializer<'de> for ArgsDeserializer<'de> {
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

    /// A function without arguments is called with an empty map.
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

/// Creates the error for arguments that match the schema but not the type of the function.
pub(crate) fn invalid_arguments(message: &str) -> CallError {
    CallError::new(ErrorCode::InvalidArguments, format!("invalid arguments: {message}"))
}
