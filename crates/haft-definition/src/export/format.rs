//! Exports a definition in the format of a model API.

use serde_json::{Map, Value, json};

use super::root::object_root;
use super::tokens::estimate_tokens;
use super::{gemini, strict};
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;

/// The format of an exported definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenAI chat completions: `{"type":"function","function":{…}}`.
    OpenAi,
    /// The same in strict mode, if the schema supports it.
    OpenAiStrict,
    /// OpenAI responses: `{"type":"function","name",…}`.
    OpenAiResponses,
    /// The same in strict mode, if the schema supports it.
    OpenAiResponsesStrict,
    /// Anthropic: `{"name","description","input_schema"}`.
    Anthropic,
    /// Gemini, an entry of `functionDeclarations`: `{"name","description","parametersJsonSchema"}`.
    Gemini,
    /// MCP, an entry of `tools/list`: `{"name","description","inputSchema"}`, with `outputSchema` and `annotations`.
    Mcp,
}

impl Format {
    /// The names that [`Format::parse`] accepts, for messages.
    pub const NAMES: &'static str = "`openai`, `openai-responses`, `anthropic`, `gemini`, `mcp`";

    /// Parses the name used in a query.
    pub fn parse(text: &str) -> Option<Format> {
        match text {
            "openai" => Some(Format::OpenAi),
            "openai-responses" => Some(Format::OpenAiResponses),
            "anthropic" => Some(Format::Anthropic),
            "gemini" => Some(Format::Gemini),
            "mcp" => Some(Format::Mcp),
            _ => None,
        }
    }

    /// Returns the strict variant, if there is one.
    #[must_use]
    pub fn strict(self) -> Option<Format> {
        match self {
            Format::OpenAi | Format::OpenAiStrict => Some(Format::OpenAiStrict),
            Format::OpenAiResponses | Format::OpenAiResponsesStrict => Some(Format::OpenAiResponsesStrict),
            Format::Anthropic | Format::Gemini | Format::Mcp => None,
        }
    }
}

/// An exported definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The value for the model API.
    pub value: Value,
    /// The estimated number of tokens.
    pub tokens: usize,
    /// Warnings about differences to the tool's schema.
    pub warnings: Vec<Problem>,
}

/// Exports a definition under the name that the model will use.
pub fn definition(spec: &ToolSpec, model_name: &str, format: Format) -> Definition {
    let (value, warnings) = match format {
        Format::Mcp => (mcp(spec, model_name), Vec::new()),
        _ => for_model(spec, model_name, format),
    };
    Definition { tokens: estimate_tokens(&value), value, warnings }
}

fn for_model(spec: &ToolSpec, model_name: &str, format: Format) -> (Value, Vec<Problem>) {
    let (schema, mut warnings) = object_root(&spec.input_schema.value());
    let description = &spec.description;
    let value = match format {
        Format::Anthropic => json!({"name": model_name, "description": description, "input_schema": schema}),
        Format::Gemini => {
            let schema = gemini::rewrite(schema);
            json!({"name": model_name, "description": description, "parametersJsonSchema": schema})
        }
        Format::OpenAi => {
            json!({"type": "function", "function":
                {"name": model_name, "description": description, "parameters": schema}})
        }
        Format::OpenAiStrict => {
            let (schema, strict) = to_strict(schema, &mut warnings);
            json!({"type": "function", "function":
                {"name": model_name, "description": description, "parameters": schema, "strict": strict}})
        }
        // This API is strict by default.
        Format::OpenAiResponses | Format::OpenAiResponsesStrict => {
            let (schema, strict) = match format {
                Format::OpenAiResponsesStrict => to_strict(schema, &mut warnings),
                _ => (Value::Object(schema), false),
            };
            json!({"type": "function", "name": model_name, "description": description,
                   "parameters": schema, "strict": strict})
        }
        Format::Mcp => mcp(spec, model_name),
    };
    (value, warnings)
}

/// Rewrites a schema for strict mode, or returns it unchanged if that is not possible.
fn to_strict(schema: Map<String, Value>, warnings: &mut Vec<Problem>) -> (Value, bool) {
    match strict::rewrite(schema.clone()) {
        Ok(schema) => (schema, true),
        Err(problems) => {
            warnings.extend(problems);
            (Value::Object(schema), false)
        }
    }
}

/// Returns the MCP listing of a tool, without empty fields.
fn mcp(spec: &ToolSpec, model_name: &str) -> Value {
    let mut tool = Map::new();
    let mut set = |key: &str, value: Value| drop(tool.insert(key.to_owned(), value));
    set("name", model_name.into());
    if !spec.display_name.is_empty() {
        set("title", spec.display_name.as_str().into());
    }
    set("description", spec.description.as_str().into());
    set("inputSchema", object_schema(&spec.input_schema.value()));
    // MCP supports only object schemas.
    let output = spec.output_schema.value();
    if output.get("type").is_some_and(|kind| kind == "object") {
        set("outputSchema", output);
    }
    if spec.execution.is_pure {
        set("annotations", json!({"readOnlyHint": true, "idempotentHint": true}));
    }
    Value::Object(tool)
}

/// Clients require an object with properties, even if a tool has no arguments.
fn object_schema(schema: &Value) -> Value {
    let mut map = schema.as_object().cloned().unwrap_or_default();
    if !map.contains_key("type") {
        map.shift_insert(0, "type".to_owned(), Value::from("object"));
    }
    map.entry("properties").or_insert_with(|| json!({}));
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::implementation::{Function, Implementation};
    use haft_core::name::ToolName;

    #[test]
    fn the_two_forms() {
        let mut spec = ToolSpec::new(
            ToolName::new("weather-check").unwrap(),
            Implementation::Function(Function::new("f")),
        );
        spec.description = "Check current weather for a location".into();
        spec.input_schema =
            json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
                .into();
        assert_eq!(
            definition(&spec, "weather-check", Format::OpenAi).value,
            json!({"type": "function", "function": {
                "name": "weather-check",
                "description": "Check current weather for a location",
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            }})
        );
        spec.input_schema = json!({}).into();
        assert_eq!(
            definition(&spec, "w", Format::Anthropic).value,
            json!({"name": "w", "description": "Check current weather for a location",
                   "input_schema": {"type": "object", "properties": {}}})
        );
    }

    #[test]
    fn the_forms_of_gemini_and_mcp() {
        let function = Function::new("f");
        let mut spec = ToolSpec::new(ToolName::new("sum").unwrap(), Implementation::Function(function));
        spec.description = "Adds".into();
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        spec.input_schema = schema.clone().into();
        let check = |spec: &ToolSpec, format: &str, expected: Value| {
            assert_eq!(definition(spec, "sum", Format::parse(format).unwrap()).value, expected);
        };
        check(&spec, "gemini", json!({"name": "sum", "description": "Adds", "parametersJsonSchema": schema}));
        check(&spec, "mcp", json!({"name": "sum", "description": "Adds", "inputSchema": schema}));
        spec.output_schema = json!({"type": "integer"}).into();
        check(&spec, "mcp", json!({"name": "sum", "description": "Adds", "inputSchema": schema}));
        spec.output_schema = schema.clone().into();
        spec.execution.is_pure = true;
        spec.display_name = "Sum".into();
        check(
            &spec,
            "mcp",
            json!({"name": "sum", "description": "Adds", "inputSchema": schema, "title": "Sum",
                   "outputSchema": schema, "annotations": {"readOnlyHint": true, "idempotentHint": true}}),
        );
    }

    #[test]
    fn both_apis_of_openai_loosely_and_strictly() {
        let function = Function::new("f");
        let mut spec = ToolSpec::new(ToolName::new("sum").unwrap(), Implementation::Function(function));
        spec.description = "Adds".into();
        spec.input_schema = json!({"properties": {"a": {"type": "integer"}}}).into();
        let loose = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        let strict = json!({"type": "object", "properties": {"a": {"type": ["integer", "null"]}},
                            "required": ["a"], "additionalProperties": false});
        let responses = |schema: &Value, strict: bool| json!({"type": "function", "name": "sum", "description": "Adds", "parameters": schema, "strict": strict});
        let chat = |schema: &Value, strict: bool| {
            json!({"type": "function", "function":
                {"name": "sum", "description": "Adds", "parameters": schema, "strict": strict}})
        };
        let format = |text: &str| Format::parse(text).unwrap();
        let written = |spec: &ToolSpec, format: Format| definition(spec, "sum", format);
        let strictly = |text: &str| format(text).strict().unwrap();
        assert_eq!(written(&spec, format("openai-responses")).value, responses(&loose, false));
        assert_eq!(written(&spec, strictly("openai-responses")).value, responses(&strict, true));
        assert_eq!(written(&spec, strictly("openai")).value, chat(&strict, true));
        assert_eq!(format("anthropic").strict(), None);

        spec.input_schema = json!({"properties": {"a": {"type": "object"}}}).into();
        let loose = json!({"type": "object", "properties": {"a": {"type": "object"}}});
        let made = written(&spec, strictly("openai"));
        assert_eq!(made.value, chat(&loose, false));
        assert_eq!(
            made.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "`input_schema.a`: strict mode does not support objects with arbitrary keys; declare the properties"
            ]
        );
    }
}
