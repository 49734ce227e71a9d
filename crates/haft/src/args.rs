//! What a call gives to a function that `#[tool]` is on.

use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Prepared};
use haft_core::outcome::{CallError, Outcome};
use haft_runtime::function;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::function::{read, unfit};

/// All arguments of a call as one type, for functions with `#[tool]`.
///
/// ```
/// use haft::{Args, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Search {
///     /// What to look for
///     query: String,
///     /// The most results
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

    /// Returns the schema of the type, which also refuses what it does not name.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        if schema.as_object().is_none_or(Map::is_empty) {
            // What takes everything takes every argument.
            return schema;
        }
        if schema.get("type").is_none() {
            // Arguments are an object, also where the type is one of several; models' interfaces want to read it.
            schema.insert("type".into(), "object".into());
        }
        close(schema.ensure_object());
        schema
    }
}

/// Makes the schema of an object refuse what it does not name; one of several objects, each of them.
fn close(schema: &mut Map<String, Value>) {
    let has = |schema: &Map<String, Value>, keywords: &[&str]| {
        keywords.iter().any(|keyword| schema.contains_key(*keyword))
    };
    if has(schema, &["additionalProperties", "unevaluatedProperties"]) {
        return;
    }
    if has(schema, &["properties", "$ref", "allOf"]) {
        // What stands elsewhere is known to a validator only after it has looked there.
        let is_composed = has(schema, &["$ref", "allOf", "anyOf", "oneOf"]);
        let keyword = if is_composed { "unevaluatedProperties" } else { "additionalProperties" };
        schema.insert(keyword.to_owned(), false.into());
    } else if has(schema, &["anyOf", "oneOf"]) {
        for keyword in ["anyOf", "oneOf"] {
            let choices = schema.get_mut(keyword).and_then(Value::as_array_mut);
            choices.into_iter().flatten().filter_map(Value::as_object_mut).for_each(close);
        }
    } else if schema.get("type").is_some_and(|kind| kind == "object") {
        // Said, so that a call with more is told which argument is too much.
        schema.insert("properties".to_owned(), Map::new().into());
        schema.insert("additionalProperties".to_owned(), false.into());
    }
}

/// The arguments that a call has given, by name.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Given<'a>(&'a Map<String, Value>);

impl<'a> Given<'a> {
    /// Reads one; what can be read of nothing may be missing.
    pub fn get<T: Deserialize<'a>>(self, name: &str) -> Result<T, CallError> {
        match self.0.get(name) {
            Some(value) => read_one(name, value),
            None => absent().ok_or_else(|| unfit(&format!("`{name}` is missing"))),
        }
    }

    /// Reads one, or takes the default.
    pub fn get_or<T: Deserialize<'a>>(self, name: &str, default: impl FnOnce() -> T) -> Result<T, CallError> {
        self.0.get(name).map_or_else(|| Ok(default()), |value| read_one(name, value))
    }

    /// Reads all of them as one type.
    pub fn all<T: Deserialize<'a>>(self) -> Result<T, CallError> {
        read(self.0)
    }
}

fn read_one<'a, T: Deserialize<'a>>(name: &str, value: &'a Value) -> Result<T, CallError> {
    T::deserialize(value).map_err(|_| {
        // Once more, with the path, which the quick way does not keep.
        let message = match serde_path_to_error::deserialize::<_, T>(value) {
            Err(error) => {
                let path = error.path().to_string();
                let dot = if path.starts_with('[') { "" } else { "." };
                let path = if path == "." { String::new() } else { format!("{dot}{path}") };
                format!("`{name}{path}`: {}", error.inner())
            }
            Ok(_) => format!("`{name}` could be read only at the second attempt"),
        };
        unfit(&message)
    })
}

/// Returns what a type makes of an argument that is not there: `None` of an `Option`, nothing of others.
pub(crate) fn absent<'de, T: Deserialize<'de>>() -> Option<T> {
    T::deserialize(Absent).ok()
}

/// What is not there.
struct Absent;

impl<'de> serde::Deserializer<'de> for Absent {
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
pub fn asynchronous<F>(function: F) -> Arc<dyn Prepared>
where
    F: for<'a> Fn(&'a CallContext, Given<'a>) -> BoxFuture<'a, Outcome> + Send + Sync + 'static,
{
    Arc::new(Asynchronous(function))
}

/// Makes a function that may block callable, on threads of its own.
#[doc(hidden)]
pub fn blocking<F>(function: F) -> Arc<dyn Prepared>
where
    F: Fn(&CallContext, Given<'_>) -> Outcome + Send + Sync + 'static,
{
    function::blocking(move |call, args| function(call, Given(&args)))
}

struct Asynchronous<F>(F);

impl<F> Prepared for Asynchronous<F>
where
    F: for<'a> Fn(&'a CallContext, Given<'a>) -> BoxFuture<'a, Outcome> + Send + Sync,
{
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        (self.0)(call, Given(args))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn get<T: for<'a> Deserialize<'a>>(args: &Value) -> Result<T, String> {
        Given(args.as_object().unwrap()).get("x").map_err(|error| error.message)
    }

    #[test]
    fn an_argument_that_does_not_fit_is_told_by_its_path() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Filter {
            tags: Vec<String>,
        }
        assert_eq!(get(&json!({"x": 7})), Ok(7));
        assert_eq!(get::<Option<u8>>(&json!({})), Ok(None));
        let none = json!({});
        for (found, expected) in [
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
            assert_eq!(found, format!("the arguments do not fit the function: {expected}"));
        }
    }

    #[test]
    fn a_text_is_borrowed_of_the_call() {
        let args = json!({"x": "a\nb"});
        let given = Given(args.as_object().unwrap());
        assert_eq!(given.get::<&str>("x"), Ok("a\nb"));
        assert_eq!(given.get::<Option<&str>>("y"), Ok(None));
    }
}
