//! `json_transform`: selects and reshapes JSON.
//!
//! It supports `JSONPath` only: a jq interpreter cannot be bounded in time and memory.

use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::excerpt;
use haft_core::spec::ToolSpec;
use haft_executors::jsonpath::JsonPath;
use haft_runtime::function::Args;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::tool::{Describe, describe, failed, invalid};

/// The maximum number of fields of a mapping, including nested ones.
const MAX_FIELDS: usize = 200;
/// The maximum nesting depth of a mapping.
const MAX_DEPTH: usize = 8;
/// The approximate number of bytes that may be copied into the result.
const MAX_COPIED_BYTES: usize = 16 * 1024 * 1024;

pub(crate) fn spec() -> Result<ToolSpec, NameError> {
    let mut spec = describe(Describe {
        name: "json_transform",
        description: "Reshape JSON without writing code: select a part with a JSONPath (`query`), build new objects from it \
                      (`mapping`), keep or drop fields (`pick`, `omit`) and fill in missing fields (`defaults`), in this \
                      order. If the value is an array, mapping, pick, omit and defaults apply to each item. Returns the \
                      new value.",
        category: "data",
        tags: &["json", "transform"],
        input: json!({
            "type": "object",
            "properties": {
                "data": {"description": "The value to transform; a string that contains JSON is parsed"},
                "query": {
                    "type": "string", "maxLength": 1000,
                    "description": "JSONPath (RFC 9535), such as $.items[?@.price < 10]. One match returns the value, several an \
                                    array, none null.",
                },
                "mapping": {
                    "type": "object",
                    "description": "The new fields and their sources: a string that starts with $ is a JSONPath into the value (or \
                                    item), an object is a nested mapping, any other value is a constant. A field whose path \
                                    matches nothing is left out.",
                },
                "pick": {"type": "array", "items": {"type": "string"}, "maxItems": MAX_FIELDS, "description": "Fields to keep"},
                "omit": {"type": "array", "items": {"type": "string"}, "maxItems": MAX_FIELDS, "description": "Fields to drop"},
                "defaults": {"type": "object", "description": "Values for fields that are missing or null"},
            },
            "required": ["data"],
            "additionalProperties": false,
        }),
        output: json!(null),
    })?;
    spec.execution.is_pure = true;
    Ok(spec)
}

#[derive(Deserialize)]
struct Transform {
    data: Value,
    query: Option<String>,
    mapping: Option<Map<String, Value>>,
    pick: Option<Vec<String>>,
    omit: Option<Vec<String>>,
    defaults: Option<Map<String, Value>>,
}

/// Runs the transformation. It can take long, so call it on a blocking thread.
pub(crate) fn run(call: &CallContext, args: Args) -> Outcome {
    let transform: Transform = serde_json::from_value(Value::Object(args))
        .map_err(|error| invalid(excerpt(&error.to_string(), 300)))?;
    let mut budget = CopyBudget(MAX_COPIED_BYTES);
    let data = match transform.data {
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(data) => data,
            Err(error) if text.trim_start().starts_with(['{', '[']) => {
                return Err(invalid(format!("`data` is not valid JSON: {error}")));
            }
            Err(_) => Value::String(text),
        },
        other => other,
    };
    let data = match &transform.query {
        Some(path) => one_or_array(&compile("query", path)?, &data, &mut budget)?.unwrap_or(Value::Null),
        None => data,
    };
    let shape = Shape {
        mapping: transform
            .mapping
            .as_ref()
            .map(|mapping| Mapping::compile(mapping, &mut 0, 0))
            .transpose()?,
        pick: transform.pick,
        omit: transform.omit,
        defaults: transform.defaults,
    };
    match data {
        Value::Array(items) => items
            .into_iter()
            .map(|item| {
                if call.is_cancelled() {
                    return Err(CallError::new(ErrorCode::Cancelled, "the call was cancelled"));
                }
                shape.apply(item, &mut budget)
            })
            .collect::<Result<Vec<_>, _>>()
            .map(Value::Array),
        one => shape.apply(one, &mut budget),
    }
}

/// The transformation of a value, or of each item of an array.
struct Shape {
    mapping: Option<Mapping>,
    pick: Option<Vec<String>>,
    omit: Option<Vec<String>>,
    defaults: Option<Map<String, Value>>,
}

impl Shape {
    fn apply(&self, value: Value, budget: &mut CopyBudget) -> Result<Value, CallError> {
        let mut value = match &self.mapping {
            Some(mapping) => Value::Object(mapping.apply(&value, budget)?),
            None => value,
        };
        // The other steps apply to objects only.
        let Value::Object(fields) = &mut value else { return Ok(value) };
        if let Some(pick) = &self.pick {
            fields.retain(|name, _| pick.contains(name));
        }
        if let Some(omit) = &self.omit {
            fields.retain(|name, _| !omit.contains(name));
        }
        for (name, default) in self.defaults.iter().flatten() {
            if fields.get(name).is_none_or(Value::is_null) {
                fields.insert(name.clone(), budget.copy(default)?);
            }
        }
        Ok(value)
    }
}

/// A compiled mapping.
struct Mapping(Vec<(String, Source)>);

enum Source {
    Path(JsonPath),
    Nested(Mapping),
    Constant(Value),
}

impl Mapping {
    fn compile(mapping: &Map<String, Value>, fields: &mut usize, depth: usize) -> Result<Self, CallError> {
        if depth > MAX_DEPTH {
            return Err(invalid(format!("`mapping` exceeds the nesting limit of {MAX_DEPTH} levels")));
        }
        let mut compiled = Vec::with_capacity(mapping.len());
        for (name, source) in mapping {
            *fields += 1;
            if *fields > MAX_FIELDS {
                return Err(invalid(format!("`mapping` exceeds the limit of {MAX_FIELDS} fields")));
            }
            let source = match source {
                Value::String(path) if path.starts_with('$') => {
                    Source::Path(compile(&format!("mapping.{}", excerpt(name, 60)), path)?)
                }
                Value::Object(inner) => Source::Nested(Self::compile(inner, fields, depth + 1)?),
                constant => Source::Constant(constant.clone()),
            };
            compiled.push((name.clone(), source));
        }
        Ok(Self(compiled))
    }

    fn apply(&self, value: &Value, budget: &mut CopyBudget) -> Result<Map<String, Value>, CallError> {
        let mut object = Map::new();
        for (name, source) in &self.0 {
            let field = match source {
                Source::Path(path) => one_or_array(path, value, budget)?,
                Source::Nested(mapping) => Some(Value::Object(mapping.apply(value, budget)?)),
                Source::Constant(constant) => Some(budget.copy(constant)?),
            };
            if let Some(field) = field {
                object.insert(name.clone(), field);
            }
        }
        Ok(object)
    }
}

fn compile(field: &str, path: &str) -> Result<JsonPath, CallError> {
    JsonPath::compile(path).map_err(|why| invalid(format!("`{field}`: {why}")))
}

fn one_or_array(path: &JsonPath, value: &Value, budget: &mut CopyBudget) -> Result<Option<Value>, CallError> {
    let matches = path.find(value).map_err(|_| {
        failed(format!("the data is too large for the path `{}`", excerpt(path.as_str(), 100)))
    })?;
    match matches.as_slice() {
        [] => Ok(None),
        [one] => budget.copy(one).map(Some),
        several => several.iter().map(|value| budget.copy(value)).collect::<Result<_, _>>().map(Some),
    }
}

/// The number of bytes that may still be copied.
struct CopyBudget(usize);

impl CopyBudget {
    fn copy(&mut self, value: &Value) -> Result<Value, CallError> {
        let mut pending = vec![value];
        while let Some(value) = pending.pop() {
            let size = match value {
                Value::Null | Value::Bool(_) | Value::Number(_) => 16,
                Value::String(text) => text.len() + 24,
                Value::Array(items) => {
                    pending.extend(items);
                    24
                }
                Value::Object(map) => {
                    pending.extend(map.values());
                    map.keys().map(|key| key.len() + 40).sum::<usize>() + 48
                }
            };
            self.0 = self.0.checked_sub(size).ok_or_else(|| {
                failed(
                    "the result exceeds the limit of 16 MiB; select less with `query`, `mapping` or `pick`",
                )
            })?;
        }
        Ok(value.clone())
    }
}

#[cfg(test)]
#[path = "json_transform_tests.rs"]
mod tests;
