//! The arguments of a tool: the parameters of path, query, headers, cookies and body, under unique names.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::api::names::argument_name;
use haft_core::problem::{Problem, excerpt};

/// The location of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParamLocation {
    Path,
    Query,
    Header,
    Cookie,
    Body,
}

impl ParamLocation {
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

/// Collects arguments under unique names.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    properties: Map<String, Value>,
    required: Vec<Value>,
    names: HashSet<String>,
    pub(super) renamed: Vec<Problem>,
}

impl Arguments {
    /// Reserves the name of a secret, because a template would prefer an argument of that name.
    pub(super) fn reserve(&mut self, name: &str) {
        self.names.insert(name.to_owned());
    }

    /// Adds an argument and returns its template.
    pub(super) fn add(
        &mut self,
        location: ParamLocation,
        name: &str,
        schema: Value,
        required: bool,
    ) -> String {
        let plain = argument_name(name);
        let argument = self.unique_name(location, &plain);
        if argument != plain {
            let shown = excerpt(name, 60);
            let message = format!(
                "the {} parameter `{shown}` is renamed to `{argument}`, because the name is in use",
                location.as_str()
            );
            self.renamed.push(Problem::new(format!("input_schema.{argument}"), "renamed_argument", message));
        }
        if required {
            self.required.push(json!(argument));
        }
        let schema = describe(schema, (argument != name).then_some((location, name)));
        self.properties.insert(argument.clone(), schema);
        format!("${{{argument}}}")
    }

    fn unique_name(&mut self, location: ParamLocation, plain: &str) -> String {
        if self.names.insert(plain.to_owned()) {
            return plain.to_owned();
        }
        let mut name = format!("{}_{plain}", location.as_str());
        name.truncate(60);
        let mut number = 2;
        while !self.names.insert(name.clone()) {
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

/// Adds the original name of a renamed argument and the default to the description. The default itself is removed:
/// templates would send it, and an update request with the defaults of all omitted fields would overwrite them.
fn describe(schema: Value, renamed: Option<(ParamLocation, &str)>) -> Value {
    let mut map = match schema {
        Value::Object(map) => map,
        Value::Bool(false) => return Value::Bool(false),
        _ => Map::new(),
    };
    let mut words = Vec::new();
    if let Some((location, name)) = renamed {
        words.push(format!("({} parameter `{}`)", location.as_str(), excerpt(name, 80)));
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
