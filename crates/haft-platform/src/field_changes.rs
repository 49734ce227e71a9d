//! The fields in which two definitions differ.

use serde::Serialize;
use serde_json::{Map, Value};

/// A field that differs between two definitions.
#[derive(Debug, Clone, Serialize)]
pub struct FieldChange {
    /// The dotted path of the field.
    pub field: String,
    /// The earlier value; `null` if the field is missing there.
    pub before: Value,
    /// The later value; `null` if the field is missing there.
    pub after: Value,
}

/// Collects the fields in which two values differ.
pub fn compare(field: &str, before: &Value, after: &Value, changes: &mut Vec<FieldChange>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for key in keys(old, new) {
                let path = if field.is_empty() { key.clone() } else { format!("{field}.{key}") };
                let (old, new) = (old.get(key).unwrap_or(&Value::Null), new.get(key).unwrap_or(&Value::Null));
                compare(&path, old, new, changes);
            }
        }
        _ => changes.push(FieldChange {
            field: field.to_owned(),
            before: before.clone(),
            after: after.clone(),
        }),
    }
}

fn keys<'a>(old: &'a Map<String, Value>, new: &'a Map<String, Value>) -> impl Iterator<Item = &'a String> {
    old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)))
}
