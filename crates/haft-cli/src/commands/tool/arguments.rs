//! Arguments of a call on the command line, converted by the schema of the tool.

use std::collections::BTreeSet;
use std::path::Path;

use clap::Args;
use haft_api::tool::ToolView;
use haft_core::problem::nearest;
use haft_core::runnable::Mode;
use haft_core::schema::RawSchema;
use serde_json::{Map, Value};

use crate::client::{Client, Request, tool_segment};
use crate::error::CliError;
use crate::input;
use crate::output::Output;
use crate::view;

/// Parses a mode.
pub(crate) fn parse_mode(text: &str) -> Result<Mode, &'static str> {
    Mode::parse(text).ok_or("expected `debug` or `production`")
}

/// The arguments of a call.
#[derive(Debug, Args)]
pub(crate) struct CallArguments {
    /// Argument, converted to the type in the schema; `KEY:=JSON` for JSON (repeatable)
    #[arg(short = 'a', long = "arg", value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    /// All arguments as a JSON object; `@FILE` reads a file, `-` stdin
    #[arg(long = "args", value_name = "JSON|@FILE|-")]
    object: Option<String>,
}

impl CallArguments {
    /// Returns the arguments, and warns of those that the tool does not declare. Loads the schema only if it is needed.
    pub(crate) async fn read(&self, tool: &str, client: &Client, output: &Output) -> Result<Value, CliError> {
        let mut arguments = self.object()?;
        if !self.pairs.is_empty() {
            let data = client.data(Request::get(format!("/api/tools/{}", tool_segment(tool)))).await?;
            let ToolView { input_schema, .. } = view::read(&data)?;
            let schema = input_schema.as_ref().map(RawSchema::value).unwrap_or_default();
            self.add_pairs(&schema, &mut arguments)?;
            for warning in undeclared(&schema, &arguments) {
                output.warn(&warning);
            }
        }
        Ok(Value::Object(arguments))
    }

    fn object(&self) -> Result<Map<String, Value>, CliError> {
        let text = match self.object.as_deref() {
            None => return Ok(Map::new()),
            Some("-") => input::read_text(Path::new("-"))?,
            Some(text) => match text.strip_prefix('@') {
                Some(path) => input::read_text(Path::new(path))?,
                None => text.to_owned(),
            },
        };
        let example = "expected a JSON object such as `{\"city\": \"Paris\"}`";
        match serde_json::from_str(&text) {
            Ok(Value::Object(arguments)) => Ok(arguments),
            Ok(other) => {
                let found = type_of(&other);
                Err(CliError::usage(format!("invalid `--args`: {example}, got {found}")))
            }
            Err(error) => Err(CliError::usage(format!("invalid `--args`: {example}: {error}"))),
        }
    }

    fn add_pairs(&self, schema: &Value, arguments: &mut Map<String, Value>) -> Result<(), CliError> {
        let mut keys = BTreeSet::new();
        for pair in &self.pairs {
            let Some((key, text)) = pair.split_once('=') else {
                return Err(CliError::usage(format!("invalid `-a {pair}`: expected `-a KEY=VALUE`")));
            };
            let (key, value) = match key.strip_suffix(':') {
                Some(key) => (key, parse_json(key, text)?),
                None => (key, convert(schema, key, text)?),
            };
            if !keys.insert(key) {
                return Err(CliError::usage(format!(
                    "argument `{key}` is given twice; for a list, write `-a '{key}:=[\"a\", \"b\"]'`"
                )));
            }
            arguments.insert(key.to_owned(), value);
        }
        Ok(())
    }
}

/// Returns a warning for each argument that an open schema accepts but does not declare; a closed schema rejects it.
fn undeclared(schema: &Value, arguments: &Map<String, Value>) -> Vec<String> {
    let is_open = matches!(schema.get("additionalProperties"), None | Some(Value::Bool(true)))
        && ["patternProperties", "$ref", "allOf", "anyOf", "oneOf"]
            .iter()
            .all(|key| schema.get(key).is_none());
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|_| is_open) else {
        return Vec::new();
    };
    let unknown = arguments.keys().filter(|name| !properties.contains_key(*name));
    unknown
        .map(|name| match nearest(name, properties.keys().map(String::as_str)) {
            Some(declared) => {
                format!("the tool does not declare the argument `{name}`; did you mean `{declared}`?")
            }
            None => format!("the tool does not declare the argument `{name}`"),
        })
        .collect()
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn parse_json(key: &str, text: &str) -> Result<Value, CliError> {
    serde_json::from_str(text)
        .map_err(|error| CliError::usage(format!("argument `{key}`: not valid JSON: {error}")))
}

/// Converts a value to the type in the schema; without a type, to JSON if it parses, otherwise to a string.
fn convert(schema: &Value, key: &str, text: &str) -> Result<Value, CliError> {
    let property = schema.get("properties").and_then(|properties| properties.get(key));
    let types = property.map(type_names).unwrap_or_default();
    let allows = |name: &str| types.iter().any(|other| other == name);
    if types == ["string"] {
        return Ok(Value::from(text));
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) if types.is_empty() || types.iter().any(|name| has_type(&value, name)) => Ok(value),
        _ if types.is_empty() || allows("string") => Ok(Value::from(text)),
        _ => Err(CliError::usage(format!("argument `{key}`: expected {}, got `{text}`", types.join(" or ")))),
    }
}

fn type_names(property: &Value) -> Vec<String> {
    match property.get("type") {
        Some(Value::String(name)) => vec![name.clone()],
        Some(Value::Array(names)) => names.iter().map(view::readable).collect(),
        _ => Vec::new(),
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || (name == "integer" && !number.is_f64()),
        Value::String(_) => false, // A string is used as typed, including quotes.
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_converted_by_the_schema() {
        let schema = json!({"properties": {
            "city": {"type": "string"}, "days": {"type": "integer"}, "ratio": {"type": "number"},
            "metric": {"type": "boolean"}, "tags": {"type": "array"}, "maybe": {"type": ["integer", "null"]},
            "either": {"type": ["string", "number"]}, "any": {},
        }});
        for (pair, expected) in [
            ("city=12", json!({"city": "12"})),
            ("city=", json!({"city": ""})),
            ("city=a=b", json!({"city": "a=b"})),
            ("days=3", json!({"days": 3})),
            ("ratio=3", json!({"ratio": 3})),
            ("ratio=0.5", json!({"ratio": 0.5})),
            ("metric=true", json!({"metric": true})),
            ("tags=[1,\"x\"]", json!({"tags": [1, "x"]})),
            ("maybe=null", json!({"maybe": null})),
            ("either=7", json!({"either": 7})),
            ("either=seven", json!({"either": "seven"})),
            ("either=\"7\"", json!({"either": "\"7\""})),
            ("any=7", json!({"any": 7})),
            ("any=hello", json!({"any": "hello"})),
            ("undeclared=x y", json!({"undeclared": "x y"})),
            ("city:=12", json!({"city": 12})),
        ] {
            let arguments = CallArguments { pairs: vec![pair.to_owned()], object: None };
            let mut map = Map::new();
            arguments.add_pairs(&schema, &mut map).unwrap();
            assert_eq!(Value::Object(map), expected, "{pair}");
        }
    }

    #[test]
    fn invalid_values_are_named() {
        let schema = json!({"properties": {"days": {"type": "integer"}, "metric": {"type": "boolean"}}});
        for (pair, expected) in [
            ("days=soon", "argument `days`: expected integer, got `soon`"),
            ("days=1.5", "argument `days`: expected integer, got `1.5`"),
            ("metric=yes", "argument `metric`: expected boolean, got `yes`"),
            ("days", "invalid `-a days`: expected `-a KEY=VALUE`"),
            ("days:={", "argument `days`: not valid JSON: EOF while parsing an object at line 1 column 1"),
        ] {
            let arguments = CallArguments { pairs: vec![pair.to_owned()], object: None };
            let error = arguments.add_pairs(&schema, &mut Map::new()).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn args_must_be_one_object() {
        let read = |text: &str| CallArguments { pairs: Vec::new(), object: Some(text.to_owned()) }.object();
        assert_eq!(read(r#"{"a": 1}"#).unwrap().len(), 1);
        for (bad, reason) in
            [("[1]", ", got an array"), ("7", ", got a number"), ("{", ": EOF while"), ("", ": EOF while")]
        {
            let message = read(bad).unwrap_err().to_string();
            let start = r#"invalid `--args`: expected a JSON object such as `{"city": "Paris"}`"#;
            assert!(message.strip_prefix(start).is_some_and(|rest| rest.starts_with(reason)), "{message}");
        }
    }

    #[test]
    fn an_argument_is_given_once() {
        for pairs in [["text=a", "text=b"], ["text=a", "text:=1"]] {
            let arguments = CallArguments { pairs: pairs.map(str::to_owned).to_vec(), object: None };
            let error = arguments.add_pairs(&Value::Null, &mut Map::new()).unwrap_err();
            assert_eq!(
                error.to_string(),
                r#"argument `text` is given twice; for a list, write `-a 'text:=["a", "b"]'`"#
            );
        }
        // `-a` overrides a value of `--args`.
        let arguments =
            CallArguments { pairs: vec!["a=2".to_owned()], object: Some(r#"{"a": 1}"#.to_owned()) };
        let mut map = arguments.object().unwrap();
        arguments.add_pairs(&Value::Null, &mut map).unwrap();
        assert_eq!(Value::Object(map), json!({"a": 2}));
    }

    #[test]
    fn undeclared_arguments_of_an_open_schema_are_reported() {
        let arguments = |name: &str| Map::from_iter([(name.to_owned(), json!(1))]);
        let open = json!({"properties": {"text": {}}});
        assert_eq!(
            undeclared(&open, &arguments("txt")),
            ["the tool does not declare the argument `txt`; did you mean `text`?"]
        );
        assert_eq!(undeclared(&open, &arguments("zzz")), ["the tool does not declare the argument `zzz`"]);
        assert!(undeclared(&open, &arguments("text")).is_empty());
        for closed in [
            json!({"properties": {"text": {}}, "additionalProperties": false}),
            json!({"properties": {"text": {}}, "additionalProperties": {"type": "integer"}}),
            json!({"properties": {"text": {}}, "patternProperties": {"^t": {}}}),
            json!({"type": "object"}),
        ] {
            assert!(undeclared(&closed, &arguments("txt")).is_empty(), "{closed}");
        }
    }
}
