//! The keywords of schemas: what each holds, so that only what is well-formed is taken over.

use haft_core::schema::walk::{self, Subschemas};
use serde_json::Value;

/// What stands behind a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// Schemas.
    Subschemas(Subschemas),
    /// Any value.
    Data,
    /// A list of values, not empty.
    Choices,
    Number,
    Count,
    Flag,
    Text,
    Names,
    Pattern,
}

/// Returns what a keyword holds; `None` for one that means nothing to JSON Schema 2020-12, or that is handled apart.
pub(super) fn holds(keyword: &str) -> Option<Holds> {
    if let Some(subschemas) = walk::subschemas(keyword) {
        // Definitions are written where references need them.
        return Some(Holds::Subschemas(subschemas)).filter(|_| !matches!(keyword, "$defs" | "definitions"));
    }
    Some(match keyword {
        "const" | "default" => Holds::Data,
        "enum" => Holds::Choices,
        "minimum" | "maximum" | "multipleOf" => Holds::Number,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => Holds::Count,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => Holds::Flag,
        "title" | "description" | "format" | "contentEncoding" | "contentMediaType" => Holds::Text,
        "required" => Holds::Names,
        "pattern" => Holds::Pattern,
        _ => return None,
    })
}

/// Tells whether a plain value is what its keyword holds.
pub(super) fn fits(holds: Holds, keyword: &str, value: &Value) -> bool {
    match holds {
        Holds::Number if keyword == "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
        Holds::Number => value.is_number(),
        Holds::Count => value.is_u64(),
        Holds::Flag => value.is_boolean(),
        Holds::Text | Holds::Pattern => value.is_string(),
        Holds::Choices => value.as_array().is_some_and(|list| !list.is_empty()),
        Holds::Names => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
        Holds::Data => true,
        Holds::Subschemas(_) => false,
    }
}

/// Returns the types of a schema that JSON Schema knows; `None` where it names none of them.
pub(super) fn types(value: &Value) -> Option<Value> {
    const KNOWN: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
    let known = |value: &Value| value.as_str().is_some_and(|text| KNOWN.contains(&text));
    match value {
        Value::String(_) if known(value) => Some(value.clone()),
        Value::Array(list) if !list.is_empty() && list.iter().all(known) => {
            let mut unique: Vec<Value> = Vec::new();
            for item in list {
                if !unique.contains(item) {
                    unique.push(item.clone());
                }
            }
            Some(Value::Array(unique))
        }
        _ => None,
    }
}
