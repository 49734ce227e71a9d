//! Arguments of a call as a person types them, made values by the schema of the tool.

use std::path::Path;

use clap::Args;
use haft_core::runnable::Mode;
use serde_json::{Map, Value};

use crate::client::{Client, Request, segment};
use crate::error::CliError;
use crate::input;
use crate::view;

/// Reads the name of a mode.
pub(crate) fn read_mode(text: &str) -> Result<Mode, &'static str> {
    Mode::parse(text).ok_or("the modes are `debug` and `production`")
}

/// The arguments of a call.
#[derive(Debug, Args)]
pub(crate) struct CallArguments {
    /// An argument as `KEY=VALUE`, read by the type that the schema says; `KEY:=JSON` takes JSON
    #[arg(short = 'a', long = "arg", value_name = "KEY=VALUE")]
    single: Vec<String>,
    /// All arguments as a JSON object, from a file as `@FILE`, or from stdin as `-`
    #[arg(long = "args", value_name = "JSON|@FILE|-")]
    whole: Option<String>,
}

impl CallArguments {
    /// Returns the arguments; the schema is asked for only where it is needed.
    pub(crate) async fn read(&self, tool: &str, client: &Client) -> Result<Value, CliError> {
        let mut arguments = self.whole()?;
        if self.single.iter().any(|pair| !is_json(pair)) {
            let data = client.data(Request::get(format!("/api/tools/{}", segment(tool)))).await?;
            let schema = data.get("input_schema").cloned().unwrap_or_default();
            self.enter(&schema, &mut arguments)?;
        } else {
            self.enter(&Value::Null, &mut arguments)?;
        }
        Ok(Value::Object(arguments))
    }

    fn whole(&self) -> Result<Map<String, Value>, CliError> {
        let text = match self.whole.as_deref() {
            None => return Ok(Map::new()),
            Some("-") => input::read_text(Path::new("-"))?,
            Some(text) => match text.strip_prefix('@') {
                Some(path) => input::read_text(Path::new(path))?,
                None => text.to_owned(),
            },
        };
        serde_json::from_str(&text)
            .map_err(|error| CliError::Usage(format!("`--args` must be a JSON object: {error}")))
    }

    fn enter(&self, schema: &Value, arguments: &mut Map<String, Value>) -> Result<(), CliError> {
        for pair in &self.single {
            let Some((key, text)) = pair.split_once('=') else {
                return Err(CliError::Usage(format!("write `-a KEY=VALUE`, not `-a {pair}`")));
            };
            let (key, value) = match key.strip_suffix(':') {
                Some(key) => (key, parse(key, text)?),
                None => (key, typed(schema, key, text)?),
            };
            arguments.insert(key.to_owned(), value);
        }
        Ok(())
    }
}

fn is_json(pair: &str) -> bool {
    pair.split_once('=').is_some_and(|(key, _)| key.ends_with(':'))
}

fn parse(key: &str, text: &str) -> Result<Value, CliError> {
    serde_json::from_str(text).map_err(|error| CliError::Usage(format!("`{key}` must be JSON: {error}")))
}

/// Reads a value by the type that the schema says; where it says none, JSON if it parses, else a text.
fn typed(schema: &Value, key: &str, text: &str) -> Result<Value, CliError> {
    let property = schema.get("properties").and_then(|properties| properties.get(key));
    let types = property.map(type_names).unwrap_or_default();
    let takes = |name: &str| types.iter().any(|other| other == name);
    if types == ["string"] {
        return Ok(Value::from(text));
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) if types.is_empty() || types.iter().any(|name| fits(&value, name)) => Ok(value),
        _ if types.is_empty() || takes("string") => Ok(Value::from(text)),
        _ => Err(CliError::Usage(format!(
            "`{key}` must be of type {}, and `{text}` is not",
            types.join(" or ")
        ))),
    }
}

fn type_names(property: &Value) -> Vec<String> {
    match property.get("type") {
        Some(Value::String(name)) => vec![name.clone()],
        Some(Value::Array(_)) => view::list(property, "type").iter().map(view::readable).collect(),
        _ => Vec::new(),
    }
}

fn fits(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || (name == "integer" && !number.is_f64()),
        Value::String(_) => false, // A text is taken as it was typed, with its quotes.
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_by_the_schema() {
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
            let arguments = CallArguments { single: vec![pair.to_owned()], whole: None };
            let mut map = Map::new();
            arguments.enter(&schema, &mut map).unwrap();
            assert_eq!(Value::Object(map), expected, "{pair}");
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let schema = json!({"properties": {"days": {"type": "integer"}, "metric": {"type": "boolean"}}});
        for (pair, expected) in [
            ("days=soon", "`days` must be of type integer, and `soon` is not"),
            ("days=1.5", "`days` must be of type integer, and `1.5` is not"),
            ("metric=yes", "`metric` must be of type boolean, and `yes` is not"),
            ("days", "write `-a KEY=VALUE`, not `-a days`"),
            ("days:={", "`days` must be JSON: EOF while parsing an object at line 1 column 1"),
        ] {
            let arguments = CallArguments { single: vec![pair.to_owned()], whole: None };
            let error = arguments.enter(&schema, &mut Map::new()).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn all_arguments_are_one_object() {
        let read = |text: &str| CallArguments { single: Vec::new(), whole: Some(text.to_owned()) }.whole();
        assert_eq!(read(r#"{"a": 1}"#).unwrap().len(), 1);
        for bad in ["[1]", "{", "7", ""] {
            assert!(
                read(bad).unwrap_err().to_string().starts_with("`--args` must be a JSON object: "),
                "{bad}"
            );
        }
    }
}
