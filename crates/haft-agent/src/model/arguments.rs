//! Parses the arguments of tool calls as models write them.

use serde_json::{Map, Value};

/// Parses the text of arguments.
///
/// An empty text is an empty object. JSON in a JSON string is decoded, and an object that was sent twice is taken once.
/// Anything else that is not an object is returned as a string with the original text, so that the validation of the
/// tool can tell the model what is wrong with it.
pub fn parse_arguments(text: &str) -> Value {
    let text = text.trim();
    if text.is_empty() || text == "null" {
        return Value::Object(Map::new());
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let parsed = match (values.next(), values.next()) {
        (Some(Ok(value)), None) => Some(value),
        (Some(Ok(first)), Some(Ok(second)))
            if first == second && values.all(|more| more.is_ok_and(|more| more == first)) =>
        {
            Some(first)
        }
        _ => None,
    };
    match parsed {
        Some(Value::Object(map)) => Value::Object(map),
        Some(Value::String(inner)) => match serde_json::from_str::<Value>(&inner) {
            Ok(Value::Object(map)) => Value::Object(map),
            _ => Value::String(inner),
        },
        _ => Value::String(text.to_owned()),
    }
}

/// Parses arguments that a server sent as a JSON value instead of a text.
pub(super) fn from_value(value: &Value) -> Value {
    match value {
        Value::Object(_) => value.clone(),
        Value::Null => Value::Object(Map::new()),
        Value::String(text) => parse_arguments(text),
        other => Value::String(other.to_string()),
    }
}
