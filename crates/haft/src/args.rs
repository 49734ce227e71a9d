//! Arguments of functions that carry `#[tool]`.

use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Prepared};
use haft_core::outcome::{CallError, Outcome};
use haft_runtime::function;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::function::{deserialize_args, invalid_arguments};

/// All arguments of a call as one type, for functions with `#[tool]`.
///
/// ```
/// use haft::{Args, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Search {
///     /// The text to search for
///     query: String,
///     /// The maximum number of results
///     limit: Option<u32>,
/// }
///
/// /// Finds pages on the web.
/// #[tool]
/// async fn web_search(Args(search): Args<Search>) -> Vec<String> {
///     vec![search.query]
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Args<T>(pub T);

impl<T: JsonSchema> JsonSchema for Args<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        format!("haft::Args<{}>", T::schema_id()).into()
    }

    /// Returns the schema of the type, closed so that unknown arguments are rejected.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        if schema.as_object().is_none_or(Map::is_empty) {
            // An empty schema accepts any arguments.
            return schema;
        }
        if schema.get("type").is_none() {
            // Model APIs require `"type": "object"`, also for an enum with several variants.
            schema.insert("type".into(), "object".into());
        }
        close(schema.ensure_object());
        schema
    }
}

/// Makes the schema of an object reject unknown properties; for alternatives, closes each of them.
fn close(schema: &mut Map<String, Value>) {
    let has = |schema: &Map<String, Value>, keywords: &[&str]| {
        keywords.iter().any(|keyword| schema.contains_key(*keyword))
    };
    if has(schema, &["additionalProperties", "unevaluatedProperties"]) {
        return;
    }
    if has(schema, &["properties", "$ref", "allOf"]) {
        // `additionalProperties` does not see properties that a composed schema declares elsewhere.
        let is_composed = has(schema, &["$ref", "allOf", "anyOf", "oneOf"]);
        let keyword = if is_composed { "unevaluatedProperties" } else { "additionalProperties" };
        schema.insert(keyword.to_owned(), false.into());
    } else if has(schema, &["anyOf", "oneOf"]) {
        for keyword in ["anyOf", "oneOf"] {
            let choices = schema.get_mut(keyword).and_then(Value::as_array_mut);
            choices.into_iter().flatten().filter_map(Value::as_object_mut).for_each(close);
        }
    } else if schema.get("type").is_some_and(|kind| kind == "object") {
        // With explicit `properties`, the error for an unknown argument names it.
        schema.insert("properties".to_owned(), Map::new().into());
        schema.insert("additionalProperties".to_owned(), false.into());
    }
}

/// The arguments of a call by name.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct CallArgs<'a>(&'a Map<String, Value>);

impl<'a> CallArgs<'a> {
    /// Deserializes one argument, which may be missing if the type allows it.
    pub fn get<T: Deserialize<'a>>(self, name: &str) -> Result<T, CallError> {
        match self.0.get(name) {
            Some(value) => deserialize_arg(name, value),
            None => deserialize_missing().ok_or_else(|| invalid_arguments(&format!("`{name}` is missing"))),
        }
    }

    /// Deserializes one argument, or returns the default if it is missing.
    pub fn get_or<T: Deserialize<'a>>(self, name: &str, default: impl FnOnce() -> T) -> Result<T, CallError> {
        self.0.get(name).map_or_else(|| Ok(default()), |value| deserialize_arg(name, value))
    }

    /// Deserializes all arguments into one type.
    pub fn all<T: Deserialize<'a>>(self) -> Result<T, CallError> {
        deserialize_args(self.0)
    }
}

fn deserialize_arg<'a, T: Deserialize<'a>>(name: &str, value: &'a Value) -> Result<T, CallError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let dot = if path.starts_with('[') { "" } else { "." };
        let path = if path == "." { String::new() } else { format!("{dot}{path}") };
        invalid_arguments(&format!("`{name}{path}`: {}", error.inner()))
    })
}

/// Returns the value of a missing argument if the type has one, such as `None` for an `Option`.
pub(crate) fn deserialize_missing<'de, T: Deserialize<'de>>() -> Option<T> {
    T::deserialize(MissingValue).ok()
}

/// Deserializes as `None`; every other type fails.
struct MissingValue;

impl<'de> serde::Deserializer<'de> for MissingValue {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: serde::de::Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(serde::de::Error::custom("missing"))
    }

    fn deserialize_option<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_none()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Makes an async function callable.
#[doc(hidden)]
pub fn async_function<F>(function: F) -> Arc<dyn Prepared>
where
    F: for<'a> Fn(&'a CallContext, CallArgs<'a>) -> BoxFuture<'a, Outcome> + Send + Sync + 'static,
{
    Arc::new(AsyncFunction(function))
}

/// Makes a blocking function callable; it runs on a blocking thread.
#[doc(hidden)]
pub fn blocking_function<F>(function: F) -> Arc<dyn Prepared>
where
    F: Fn(&CallContext, CallArgs<'_>) -> Outcome + Send + Sync + 'static,
{
    function::blocking(move |call, args| function(call, CallArgs(&args)))
}

struct AsyncFunction<F>(F);

impl<F> Prepared for AsyncFunction<F>
where
    F: for<'a> Fn(&'a CallContext, CallArgs<'a>) -> BoxFuture<'a, Outcome> + Send + Sync,
{
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        (self.0)(call, CallArgs(args))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn get<T: for<'a> Deserialize<'a>>(args: &Value) -> Result<T, String> {
        CallArgs(args.as_object().unwrap()).get("x").map_err(|error| error.message)
    }

    #[test]
    fn errors_name_the_path_of_the_argument() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Filter {
            tags: Vec<String>,
        }
        assert_eq!(get(&json!({"x": 7})), Ok(7));
        assert_eq!(get::<Option<u8>>(&json!({})), Ok(None));
        let none = json!({});
        for (message, expected) in [
            (get::<u8>(&json!({"x": 700})).unwrap_err(), "`x`: invalid value: integer `700`, expected u8"),
            (get::<u8>(&none).unwrap_err(), "`x` is missing"),
            (get::<Value>(&none).unwrap_err(), "`x` is missing"),
            (
                get::<Filter>(&json!({"x": {"tags": ["a", 2]}})).unwrap_err(),
                "`x.tags[1]`: invalid type: integer `2`, expected a string",
            ),
            (
                get::<Vec<u8>>(&json!({"x": [1, "b"]})).unwrap_err(),
                "`x[1]`: invalid type: string \"b\", expected u8",
            ),
        ] {
            assert_eq!(message, format!("invalid arguments: {expected}"));
        }
    }

    #[test]
    fn strings_are_borrowed_from_the_call() {
        let args = json!({"x": "a\nb"});
        let args = CallArgs(args.as_object().unwrap());
        assert_eq!(args.get::<&str>("x"), Ok("a\nb"));
        assert_eq!(args.get::<Option<&str>>("y"), Ok(None));
    }
}
