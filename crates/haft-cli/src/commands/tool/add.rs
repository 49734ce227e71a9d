//! `haft tool add`: makes a tool from a file, from stdin, or from flags.

use std::path::PathBuf;

use clap::Args;
use http::Method;
use serde_json::{Map, Value, json};

use super::definition::{self, Form};
use crate::client::{Body, Request};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Make a tool from a file, from stdin, or from flags
///
/// With flags it makes an HTTP tool:
/// `haft tool add --name cat-fact --description "A fact about cats" --url https://catfact.ninja/fact`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The definition: `.json`, `.yaml` or `.skill`; `-` is stdin
    #[arg(required_unless_present = "name", conflicts_with_all = ["name", "url"])]
    file: Option<PathBuf>,
    /// The form of the text, where neither its name nor its look tells
    #[arg(long, requires = "file")]
    form: Option<Form>,
    /// The bundle; it is made where it is missing
    #[arg(long, value_name = "BUNDLE")]
    bundle: Option<String>,
    /// The name of the tool
    #[arg(long, requires = "url", help_heading = "Definition by flags")]
    name: Option<String>,
    /// What it does, for the model and for people
    #[arg(long, value_name = "TEXT", requires = "name", help_heading = "Definition by flags")]
    description: Option<String>,
    /// Where the request goes; `${name}` stands for an argument or a secret
    #[arg(long, requires = "name", help_heading = "Definition by flags")]
    url: Option<String>,
    /// The method of the request
    #[arg(long, default_value = "GET", help_heading = "Definition by flags")]
    method: String,
    /// A header of the request
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", help_heading = "Definition by flags")]
    headers: Vec<String>,
    /// The body of the request
    #[arg(long, value_name = "TEXT", help_heading = "Definition by flags")]
    body: Option<String>,
    /// An argument; `?` makes it optional, the type is `string` where none is given
    #[arg(
        short = 'p',
        long = "param",
        value_name = "NAME[?][:TYPE[:DESCRIPTION]]",
        help_heading = "Definition by flags"
    )]
    parameters: Vec<String>,
    /// A tag
    #[arg(long = "tag", value_name = "TAG", help_heading = "Definition by flags")]
    tags: Vec<String>,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let body = match &arguments.file {
        Some(file) => {
            let (form, text) = definition::read(file, arguments.form)?;
            form.body(text)
        }
        None => Body::Json(by_flags(&arguments)?),
    };
    let request = Request::new(Method::POST, "/api/tools")
        .query_some("bundle", arguments.bundle.as_deref())
        .with_body(body);
    let data = context.ask(request).await?;
    for warning in view::list(&data, "warnings") {
        context.output.warn(&view::problem(warning));
    }
    context.output.data(&data, |output| {
        let path = view::text(&data, "path");
        let place = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
        output.note(&format!("added `{}`{place}", view::qualified(&data)));
        Ok(())
    })
}

/// Makes the definition of an HTTP tool.
fn by_flags(arguments: &Arguments) -> Result<Value, CliError> {
    let mut implementation = Map::new();
    implementation.insert("type".to_owned(), json!("http"));
    implementation.insert("method".to_owned(), json!(arguments.method.to_uppercase()));
    implementation.insert("url".to_owned(), json!(arguments.url));
    if !arguments.headers.is_empty() {
        let headers: Result<Map<_, _>, _> = arguments.headers.iter().map(|text| header(text)).collect();
        implementation.insert("headers".to_owned(), Value::Object(headers?));
    }
    if let Some(body) = &arguments.body {
        // What is JSON is sent as JSON; anything else is a text.
        let body = serde_json::from_str(body).unwrap_or_else(|_| json!(body));
        implementation.insert("body".to_owned(), body);
    }
    Ok(json!({
        "name": arguments.name,
        "description": arguments.description.as_deref().unwrap_or_default(),
        "tags": arguments.tags,
        "implementation": implementation,
        "input_schema": input_schema(&arguments.parameters)?,
    }))
}

fn header(text: &str) -> Result<(String, Value), CliError> {
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| CliError::Usage(format!("write a header as `NAME: VALUE`, not `{text}`")))?;
    Ok((name.trim().to_owned(), json!(value.trim())))
}

fn input_schema(parameters: &[String]) -> Result<Value, CliError> {
    let types = ["string", "integer", "number", "boolean", "array", "object"];
    let mut properties = Map::new();
    let mut required = Vec::new();
    for text in parameters {
        let mut parts = text.splitn(3, ':');
        let name = parts.next().unwrap_or_default();
        let kind = parts.next().unwrap_or("string");
        if !types.contains(&kind) {
            let types = types.join(", ");
            return Err(CliError::Usage(format!(
                "`{kind}` in `--param {text}` is no type; the types are {types}"
            )));
        }
        let mut property = Map::from_iter([("type".to_owned(), json!(kind))]);
        if let Some(description) = parts.next() {
            property.insert("description".to_owned(), json!(description.trim()));
        }
        let key = name.strip_suffix('?').unwrap_or(name);
        if key == name {
            required.push(json!(name));
        }
        properties.insert(key.to_owned(), Value::Object(property));
    }
    Ok(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_become_a_schema() {
        let parameters = ["city".to_owned(), "days?:integer:How many: 1 to 7".to_owned()];
        assert_eq!(
            input_schema(&parameters).unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer", "description": "How many: 1 to 7"},
                },
                "required": ["city"],
                "additionalProperties": false,
            })
        );
        assert_eq!(
            input_schema(&["x:int".to_owned()]).unwrap_err().to_string(),
            "`int` in `--param x:int` is no type; the types are string, integer, number, boolean, array, object"
        );
    }

    #[test]
    fn a_header_has_a_name_and_a_value() {
        assert_eq!(header("Accept: a:b").unwrap(), ("Accept".to_owned(), json!("a:b")));
        assert!(header("Accept").is_err());
    }
}
