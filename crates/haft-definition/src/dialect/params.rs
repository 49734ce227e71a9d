//! Converts the `params` list of YAML definitions to JSON Schema and back.

use serde_json::{Map, Value, json};

use super::fields::{Fields, Report, describe, item_path, join, unknown};
use haft_core::problem::{excerpt, nearest_type};

const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "array", "object"];

/// Keywords of JSON Schema that a parameter may use.
const KEYWORDS: [&str; 20] = [
    "title",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "additionalProperties",
    "const",
    "examples",
    "anyOf",
    "oneOf",
];

/// Builds the schema of a list of parameters.
pub(super) fn to_schema(entries: Vec<Fields<'_>>) -> Value {
    let mut object = Object::default();
    for mut entry in entries {
        let Some(name) = entry.required_text("name", "the name of the parameter") else {
            entry.rest();
            continue;
        };
        if object.properties.contains_key(&name) {
            let message = format!("duplicate parameter `{}`; remove one of them", excerpt(&name, 60));
            entry.error("name", "duplicate_key", message);
        }
        object.add(name, &mut entry);
    }
    Value::Object(object.into_schema(Map::from_iter([("type".to_owned(), json!("object"))])))
}

#[derive(Default)]
struct Object {
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Object {
    fn add(&mut self, name: String, entry: &mut Fields<'_>) {
        let order = entry.keys();
        // A list is the `required` keyword of JSON Schema, for the properties of an object.
        let mut own = None;
        match entry.value("required") {
            Some(Value::Bool(true)) => self.required.push(json!(name)),
            None | Some(Value::Bool(false)) => {}
            Some(Value::Array(list)) => own = Some(Value::Array(list)),
            Some(other) => {
                entry.error(
                    "required",
                    "wrong_type",
                    format!("expected `true` or `false`, found {}", describe(&other)),
                );
            }
        }
        let mut schema = parameter(entry);
        if let Some(own) = own {
            schema.insert("required".to_owned(), own);
        }
        self.properties.insert(name, Value::Object(in_order(schema, &order)));
    }

    fn into_schema(self, mut schema: Map<String, Value>) -> Map<String, Value> {
        schema.insert("properties".to_owned(), Value::Object(self.properties));
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), Value::Array(self.required));
        }
        schema
    }
}

/// Builds the schema of one parameter, without its name and `required`.
fn parameter(entry: &mut Fields<'_>) -> Map<String, Value> {
    let mut schema = Map::new();
    if let Some(kind) = entry.text("type") {
        if TYPES.contains(&kind.as_str()) {
            schema.insert("type".to_owned(), json!(kind));
        } else {
            let message = match nearest_type(&kind) {
                Some(near) => format!("unknown type `{}`; did you mean `{near}`?", excerpt(&kind, 40)),
                None => unknown("type", &kind, &TYPES),
            };
            entry.error("type", "invalid_value", message);
        }
    }
    if let Some(description) = entry.text("description") {
        schema.insert("description".to_owned(), json!(description));
    }
    if let Some(values) = entry.list("enum") {
        schema.insert("enum".to_owned(), Value::Array(values));
    }
    if let Some(default) = entry.raw("default") {
        schema.insert("default".to_owned(), default);
    }
    if let Some(items) = items(entry) {
        schema.insert("items".to_owned(), items);
    }
    for word in KEYWORDS {
        if let Some(value) = entry.raw(word) {
            schema.insert(word.to_owned(), value);
        }
    }
    match properties(entry) {
        Some(object) => object.into_schema(schema),
        None => schema,
    }
}

/// Sorts the keywords of a schema in the order of the source text.
fn in_order(mut schema: Map<String, Value>, order: &[String]) -> Map<String, Value> {
    let mut sorted = Map::with_capacity(schema.len());
    for key in order {
        if let Some(value) = schema.shift_remove(key) {
            sorted.insert(key.clone(), value);
        }
    }
    sorted.extend(schema);
    sorted
}

fn items(entry: &mut Fields<'_>) -> Option<Value> {
    if entry.has("items") {
        let mut items = entry.nested("items")?;
        let order = items.keys();
        let required = items.value("required").filter(Value::is_array);
        let mut schema = parameter(&mut items);
        if let Some(required) = required {
            schema.insert("required".to_owned(), required);
        }
        return Some(Value::Object(in_order(schema, &order)));
    }
    None
}

/// Reads nested properties: a map of parameters by name, or a list like `params`.
fn properties(entry: &mut Fields<'_>) -> Option<Object> {
    let report: &Report = entry.report();
    let path = entry.path("properties");
    let mut object = Object::default();
    match entry.value("properties")? {
        Value::Object(map) => {
            for (name, value) in map {
                let path = join(&path, &excerpt(&name, 60));
                match value {
                    Value::Object(map) => object.add(name, &mut Fields::new(path, map, report)),
                    other => report.error(
                        path,
                        "wrong_type",
                        format!("expected a map, found {}", describe(&other)),
                    ),
                }
            }
        }
        Value::Array(list) => {
            for (index, value) in list.into_iter().enumerate() {
                let path = item_path(&path, index);
                let Value::Object(map) = value else {
                    report.error(path, "wrong_type", "expected a map with a `name`");
                    continue;
                };
                let mut nested = Fields::new(path, map, report);
                match nested.required_text("name", "the name of the property") {
                    Some(name) => object.add(name, &mut nested),
                    None => drop(nested.rest()),
                }
            }
        }
        other => report.error(path, "wrong_type", format!("expected a map, found {}", describe(&other))),
    }
    Some(object)
}

/// Converts a schema to a `params` list; `None` if the list would not convert back to the same schema.
pub(super) fn from_schema(schema: &Value) -> Option<Value> {
    let map = schema.as_object()?;
    let properties = map.get("properties")?.as_object()?;
    let required = match map.get("required") {
        Some(required) => required.as_array()?.clone(),
        None => Vec::new(),
    };
    let mut list = Vec::with_capacity(properties.len());
    for (name, property) in properties {
        let mut entry = Map::from_iter([("name".to_owned(), json!(name))]);
        let property = property.as_object()?;
        if property.contains_key("name") {
            return None;
        }
        for key in ["type", "description"] {
            if let Some(value) = property.get(key) {
                entry.insert(key.to_owned(), value.clone());
            }
        }
        if required.iter().any(|other| other == name) {
            if property.contains_key("required") {
                return None;
            }
            entry.insert("required".to_owned(), json!(true));
        }
        for (key, value) in property {
            entry.entry(key.clone()).or_insert_with(|| value.clone());
        }
        list.push(Value::Object(entry));
    }
    let list = Value::Array(list);
    reads_back(&list, schema).then_some(list)
}

fn reads_back(list: &Value, schema: &Value) -> bool {
    let report = Report::default();
    let map = Map::from_iter([("params".to_owned(), list.clone())]);
    let read = {
        let mut fields = Fields::new("", map, &report);
        fields.nested_list("params").map(to_schema)
    };
    let (errors, warnings) = report.into_parts();
    errors.is_empty() && warnings.is_empty() && read.as_ref() == Some(schema)
}
