//! Reads the fields of a request: unknown ones are ignored, wrong types are errors that name the field.

use haft_core::problem::excerpt;
use serde_json::{Map, Value};

use super::error::OpenAiError;

/// The fields of an object, and where it is in the request.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: String,
}

impl<'a> Fields<'a> {
    /// Reads the body of a request.
    pub(super) fn of_body(body: &'a Value) -> Result<Self, OpenAiError> {
        match body {
            Value::Object(map) => Ok(Self { map, path: String::new() }),
            other => {
                let message = format!("the request body must be a JSON object, not {}", kind(other));
                Err(OpenAiError::bad_request(message))
            }
        }
    }

    /// Reads an object at a path.
    pub(super) fn of(value: &'a Value, path: impl Into<String>) -> Result<Self, OpenAiError> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Self { map, path }),
            other => Err(wrong(path, "an object", other)),
        }
    }

    /// Returns the path of a field.
    pub(super) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Returns a field; `null` is a missing one.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Returns the error of a missing field.
    pub(super) fn missing(&self, name: &str) -> OpenAiError {
        OpenAiError::invalid(self.path(name), "missing required parameter")
    }

    /// Returns a text.
    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, OpenAiError> {
        self.typed(name, "a string", Value::as_str)
    }

    /// Returns a text that must be there.
    pub(super) fn required_text(&self, name: &str) -> Result<&'a str, OpenAiError> {
        self.text(name)?.ok_or_else(|| self.missing(name))
    }

    /// Returns a flag; a missing one is `false`.
    pub(super) fn flag(&self, name: &str) -> Result<bool, OpenAiError> {
        Ok(self.typed(name, "a boolean", Value::as_bool)?.unwrap_or_default())
    }

    /// Returns a number.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, OpenAiError> {
        self.typed(name, "a number", Value::as_f64)
    }

    /// Returns a whole number that is not negative.
    pub(super) fn count(&self, name: &str) -> Result<Option<u64>, OpenAiError> {
        self.typed(name, "a whole number", Value::as_u64)
    }

    /// Returns a list.
    pub(super) fn list(&self, name: &str) -> Result<Option<&'a [Value]>, OpenAiError> {
        self.typed(name, "an array", |value| value.as_array().map(Vec::as_slice))
    }

    /// Returns an object.
    pub(super) fn object(&self, name: &str) -> Result<Option<Self>, OpenAiError> {
        self.get(name).map(|value| Self::of(value, self.path(name))).transpose()
    }

    fn typed<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, OpenAiError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| wrong(self.path(name), expected, value))
    }
}

/// Returns the error of a value of the wrong type.
pub(super) fn wrong(path: impl Into<String>, expected: &str, value: &Value) -> OpenAiError {
    OpenAiError::invalid(path, format!("expected {expected}, not {}", kind(value)))
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => format!("the boolean `{flag}`"),
        Value::Number(number) => format!("the number `{number}`"),
        Value::String(text) => format!("the string `{}`", excerpt(text, 40)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
