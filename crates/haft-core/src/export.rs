//! Definitions in the forms that models and their clients read.

use serde_json::{Map, Value, json};

use crate::hash;
use crate::spec::ToolSpec;

/// In whose form a definition is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `{"type":"function","function":{…}}`.
    OpenAi,
    /// `{"name","description","input_schema"}`.
    Anthropic,
    /// An entry of `functionDeclarations`: `{"name","description","parametersJsonSchema"}`.
    Gemini,
    /// An entry of `tools/list`: `{"name","description","inputSchema"}`, with `outputSchema` and `annotations`.
    Mcp,
}

impl Format {
    /// The names that [`Format::parse`] reads, for messages.
    pub const NAMES: &'static str = "`openai`, `anthropic`, `gemini`, `mcp`";

    /// Reads the name used in a query.
    pub fn parse(text: &str) -> Option<Format> {
        match text {
            "openai" => Some(Format::OpenAi),
            "anthropic" => Some(Format::Anthropic),
            "gemini" => Some(Format::Gemini),
            "mcp" => Some(Format::Mcp),
            _ => None,
        }
    }
}

/// Writes one definition under the name that the model will use.
pub fn definition(spec: &ToolSpec, model_name: &str, format: Format) -> Value {
    let schema = object_schema(&spec.input_schema);
    match format {
        Format::OpenAi => json!({
            "type": "function",
            "function": {"name": model_name, "description": spec.description, "parameters": schema},
        }),
        Format::Anthropic => {
            json!({"name": model_name, "description": spec.description, "input_schema": schema})
        }
        Format::Gemini => {
            json!({"name": model_name, "description": spec.description, "parametersJsonSchema": schema})
        }
        Format::Mcp => mcp(spec, model_name, schema),
    }
}

/// What the protocol lists of a tool, as far as there is something to say.
fn mcp(spec: &ToolSpec, model_name: &str, schema: Value) -> Value {
    let mut tool = Map::new();
    let mut set = |key: &str, value: Value| drop(tool.insert(key.to_owned(), value));
    set("name", model_name.into());
    if !spec.display_name.is_empty() {
        set("title", spec.display_name.as_str().into());
    }
    set("description", spec.description.as_str().into());
    set("inputSchema", schema);
    // The protocol takes the schema of an object only.
    if spec.output_schema.get("type").is_some_and(|kind| kind == "object") {
        set("outputSchema", spec.output_schema.clone());
    }
    if spec.execution.is_pure {
        set("annotations", json!({"readOnlyHint": true, "idempotentHint": true}));
    }
    Value::Object(tool)
}

/// Models insist on an object with properties, also where a tool takes no arguments.
fn object_schema(schema: &Value) -> Value {
    let mut map = schema.as_object().cloned().unwrap_or_default();
    if !map.contains_key("type") {
        map.shift_insert(0, "type".to_owned(), Value::from("object"));
    }
    if !map.contains_key("properties") {
        map.insert("properties".to_owned(), Value::Object(Map::new()));
    }
    Value::Object(map)
}

/// The longest name that every model accepts.
const MODEL_NAME_LENGTH: usize = 64;

/// Tells whether every model accepts a name: `[A-Za-z0-9_-]{1,64}`.
pub fn is_model_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= MODEL_NAME_LENGTH && name.chars().all(plain)
}

/// Makes a name that every model accepts. What had to be changed gets a hash, so that two names never fall together.
pub fn model_name(name: &str) -> String {
    if is_model_name(name) { name.to_owned() } else { distinct_name(name, name) }
}

/// Makes a name that every model accepts and that tells a tool from all others of its name, by a hash of what is
/// distinct about it.
pub fn distinct_name(name: &str, distinct: &str) -> String {
    let mut suffix = hash::of_bytes(distinct.as_bytes());
    suffix.truncate(6);
    let kept: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' })
        .take(MODEL_NAME_LENGTH - 7)
        .collect();
    format!("{kept}_{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::implementation::{Function, Implementation};
    use crate::name::ToolName;

    #[test]
    fn the_two_forms() {
        let mut spec = ToolSpec::new(
            ToolName::new("weather-check").unwrap(),
            Implementation::Function(Function { function: "f".into() }),
        );
        spec.description = "Check current weather for a location".into();
        spec.input_schema =
            json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        assert_eq!(
            definition(&spec, "weather-check", Format::OpenAi),
            json!({"type": "function", "function": {
                "name": "weather-check",
                "description": "Check current weather for a location",
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            }})
        );
        spec.input_schema = json!({});
        assert_eq!(
            definition(&spec, "w", Format::Anthropic),
            json!({"name": "w", "description": "Check current weather for a location",
                   "input_schema": {"type": "object", "properties": {}}})
        );
    }

    #[test]
    fn the_forms_of_gemini_and_mcp() {
        let function = Function { function: "f".into() };
        let mut spec = ToolSpec::new(ToolName::new("sum").unwrap(), Implementation::Function(function));
        spec.description = "Adds".into();
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        spec.input_schema = schema.clone();
        let check = |spec: &ToolSpec, format: &str, expected: Value| {
            assert_eq!(definition(spec, "sum", Format::parse(format).unwrap()), expected);
        };
        check(&spec, "gemini", json!({"name": "sum", "description": "Adds", "parametersJsonSchema": schema}));
        check(&spec, "mcp", json!({"name": "sum", "description": "Adds", "inputSchema": schema}));
        spec.output_schema = json!({"type": "integer"});
        check(&spec, "mcp", json!({"name": "sum", "description": "Adds", "inputSchema": schema}));
        spec.output_schema = schema.clone();
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
    fn model_names_are_plain_short_and_distinct() {
        assert_eq!(model_name("weather-check"), "weather-check");
        let names = [
            model_name("天気"),
            model_name("天氣"),
            distinct_name("wetter", "a:wetter@1"),
            distinct_name("wetter", "b:wetter@1"),
        ];
        let distinct: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), 4, "{names:?}");
        for name in &names {
            assert!(
                name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)),
                "{name}"
            );
        }
    }
}
