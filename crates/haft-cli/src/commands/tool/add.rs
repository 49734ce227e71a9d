//! `haft tool add`: creates a tool from a file, stdin or options.

use std::path::PathBuf;

use clap::Args;
use haft_api::tool::ToolView;
use http::Method;
use serde_json::{Map, Value, json};

use super::definition::{self, Form};
use crate::client::{Body, Request};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Create a tool from a file, stdin or options
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Definition (`.json`, `.yaml` or `.skill`); `-` for stdin
    #[arg(required_unless_present = "name", conflicts_with_all = ["name", "url"])]
    file: Option<PathBuf>,
    /// Format of the definition [default: detected from name and content]
    #[arg(long, requires = "file")]
    form: Option<Form>,
    /// Bundle; created if it does not exist
    #[arg(long, value_name = "BUNDLE")]
    bundle: Option<String>,
    /// Name of the tool
    #[arg(long, requires = "url", help_heading = "HTTP tool by options")]
    name: Option<String>,
    /// What the tool does, for models and users
    #[arg(long, value_name = "TEXT", requires = "name", help_heading = "HTTP tool by options")]
    description: Option<String>,
    /// URL of the request; `${name}` is replaced by an argument or a secret
    #[arg(long, requires = "name", help_heading = "HTTP tool by options")]
    url: Option<String>,
    /// HTTP method
    #[arg(long, default_value = "GET", help_heading = "HTTP tool by options")]
    method: String,
    /// Header of the request (repeatable)
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", help_heading = "HTTP tool by options")]
    headers: Vec<String>,
    /// Body of the request; sent as JSON if it is valid JSON
    #[arg(long, value_name = "TEXT", help_heading = "HTTP tool by options")]
    body: Option<String>,
    /// Argument; `?` makes it optional, the default type is `string` (repeatable)
    #[arg(
        short = 'p',
        long = "param",
        value_name = "NAME[?][:TYPE[:DESCRIPTION]]",
        help_heading = "HTTP tool by options"
    )]
    parameters: Vec<String>,
    /// Tag (repeatable)
    #[arg(long = "tag", value_name = "TAG", help_heading = "HTTP tool by options")]
    tags: Vec<String>,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let body = match &arguments.file {
        Some(file) => {
            let (form, text) = definition::read(file, arguments.form)?;
            form.body(text)
        }
        None => Body::Json(http_definition(&arguments)?),
    };
    let request = Request::new(Method::POST, "/api/tools")
        .query_some("bundle", arguments.bundle.as_deref())
        .with_body(body);
    let data = context.request(request).await.map_err(explain_conflict)?;
    let added: ToolView = view::read(&data)?;
    for warning in &added.warnings {
        context.output.warn(&view::problem(warning));
    }
    context.output.data(&data, |output| {
        let location = added.path.as_ref().map(|path| format!(" in `{path}`")).unwrap_or_default();
        output.note(&format!("added `{}`{location}", added.qualified()));
        Ok(())
    })
}

/// Tells how to change a tool that exists already; its name is in the message.
fn explain_conflict(error: CliError) -> CliError {
    match error {
        CliError::Api(mut error) if error.code == "conflict" => {
            error.tool = error.message.split('`').nth(1).map(str::to_owned);
            CliError::Api(error)
        }
        other => other,
    }
}

/// Builds the definition of an HTTP tool from the options.
fn http_definition(arguments: &Arguments) -> Result<Value, CliError> {
    let mut implementation = Map::new();
    implementation.insert("type".to_owned(), json!("http"));
    implementation.insert("method".to_owned(), json!(arguments.method.to_uppercase()));
    implementation.insert("url".to_owned(), json!(arguments.url));
    if !arguments.headers.is_empty() {
        let headers: Result<Map<_, _>, _> = arguments.headers.iter().map(|text| header(text)).collect();
        implementation.insert("headers".to_owned(), Value::Object(headers?));
    }
    if let Some(body) = &arguments.body {
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
        .ok_or_else(|| CliError::usage(format!("invalid header `{text}`: expected `NAME: VALUE`")))?;
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
            return Err(CliError::usage(format!(
                "invalid `--param {text}`: unknown type `{kind}`; expected one of {types}"
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
            "invalid `--param x:int`: unknown type `int`; expected one of string, integer, number, boolean, array, object"
        );
    }

    #[test]
    fn a_header_has_a_name_and_a_value() {
        assert_eq!(header("Accept: a:b").unwrap(), ("Accept".to_owned(), json!("a:b")));
        assert!(header("Accept").is_err());
    }
}
