//! The arguments of a tool: what stands in path, query, headers, cookies and body, joined under names of their own.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::names::of_argument;
use haft_core::problem::{Problem, excerpt};

/// Where an argument goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
    Header,
    Cookie,
    Body,
}

impl Place {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
            Self::Body => "body",
        }
    }
}

/// Collects arguments.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    properties: Map<String, Value>,
    required: Vec<Value>,
    taken: HashSet<String>,
    pub(super) renamed: Vec<Problem>,
}

impl Arguments {
    /// Keeps a name free of arguments: a template would find the argument where the secret is meant.
    pub(super) fn reserve(&mut self, name: &str) {
        self.taken.insert(name.to_owned());
    }

    /// Adds an argument and returns the template that stands for it.
    pub(super) fn add(&mut self, place: Place, name: &str, schema: Value, required: bool) -> String {
        let plain = of_argument(name);
        let argument = self.free(place, &plain);
        if argument != plain {
            let shown = excerpt(name, 60);
            let message = format!(
                "the {} parameter `{shown}` is the argument `{argument}`: the name was taken",
                place.as_str()
            );
            self.renamed.push(Problem::new(format!("input_schema.{argument}"), "renamed_argument", message));
        }
        if required {
            self.required.push(json!(argument));
        }
        let schema = told(schema, (argument != name).then_some((place, name)));
        self.properties.insert(argument.clone(), schema);
        format!("${{{argument}}}")
    }

    fn free(&mut self, place: Place, plain: &str) -> String {
        if self.taken.insert(plain.to_owned()) {
            return plain.to_owned();
        }
        let mut name = format!("{}_{plain}", place.as_str());
        name.truncate(60);
        let mut number = 2;
        while !self.taken.insert(name.clone()) {
            name = format!("{}_{number}", plain.get(..plain.len().min(50)).unwrap_or(plain));
            number += 1;
        }
        name
    }

    /// Returns the input schema.
    pub(super) fn schema(self, definitions: Map<String, Value>) -> Value {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(self.properties));
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), Value::Array(self.required));
        }
        schema.insert("additionalProperties".to_owned(), json!(false));
        if !definitions.is_empty() {
            schema.insert("$defs".to_owned(), Value::Object(definitions));
        }
        Value::Object(schema)
    }
}

/// Says in the description what a reader of the schema cannot see: the real name of a renamed argument, and the
/// default. The default itself is taken away: templates would send it, and to change a thing with the defaults of
/// everything that was not named would undo what others had set.
fn told(schema: Value, renamed: Option<(Place, &str)>) -> Value {
    let mut map = match schema {
        Value::Object(map) => map,
        Value::Bool(false) => return Value::Bool(false),
        _ => Map::new(),
    };
    let mut words = Vec::new();
    if let Some((place, name)) = renamed {
        words.push(format!("({} parameter `{}`)", place.as_str(), excerpt(name, 80)));
    }
    if let Some(Value::String(text)) = map.shift_remove("description") {
        words.push(text);
    }
    if let Some(default) = map.shift_remove("default") {
        words.push(format!("Default: `{}`.", excerpt(&default.to_string(), 100)));
    }
    if !words.is_empty() {
        map.insert("description".to_owned(), json!(words.join(" ")));
    }
    Value::Object(map)
}
