//! Objects whose keys have any case.

use serde_json::{Map, Value};

use crate::path::{AttributePath, Schema};
use crate::schema::{Kind, Mutability, ResourceType};

/// Returns the value of a key, whatever its case.
pub(crate) fn get<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    // Objects of haft have the usual case.
    object
        .get(name)
        .or_else(|| object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value))
}

/// Returns the attributes of a body that are stored, under their usual names; `null` is none.
pub(crate) fn stored_attributes(resource: ResourceType, body: &Map<String, Value>) -> Map<String, Value> {
    let mut stored = Map::new();
    for (key, value) in body.iter().filter(|(_, value)| !value.is_null()) {
        let path = AttributePath::parse(key);
        let attribute = path
            .filter(|path| path.schema != Schema::Other && path.sub.is_none())
            .and_then(|path| resource.attribute(&path.name))
            .filter(|attribute| attribute.mutability == Mutability::ReadWrite);
        if let Some(attribute) = attribute {
            stored.insert(attribute.name.to_owned(), with_usual_names(attribute.kind, value));
        }
    }
    stored
}

/// Gives the keys of a value their usual names. Unknown ones and `null` are left out.
pub(crate) fn with_usual_names(kind: Kind, value: &Value) -> Value {
    match (kind, value) {
        (Kind::Multi(_), Value::Array(values)) => {
            values.iter().map(|value| with_usual_names(kind, value)).collect()
        }
        (Kind::Complex(names) | Kind::Multi(names), Value::Object(object)) => {
            let known = names.iter().filter_map(|name| {
                let value = get(object, name).filter(|value| !value.is_null())?;
                Some(((*name).to_owned(), value.clone()))
            });
            Value::Object(known.collect())
        }
        _ => value.clone(),
    }
}

/// Reads a boolean, also as the text that some identity providers send.
pub(crate) fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(boolean) => Some(*boolean),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}
