//! The default values of arguments that a caller omits.

use std::collections::HashSet;

use haft_core::artifact::ArtifactInput;
use haft_core::implementation::{Implementation, Kind, Notation};
use haft_core::schema::declared_properties;
use haft_core::spec::ToolSpec;
use haft_template::{Scope, template_defaults};
use serde_json::{Map, Value};

/// The default values of the arguments of a tool.
#[derive(Debug, Clone, Default)]
pub struct ArgumentDefaults {
    values: Map<String, Value>,
    /// The arguments whose default is used for `null`, too.
    replacing_null: HashSet<String>,
}

impl ArgumentDefaults {
    /// Finds the defaults of a tool. One in a template (`{{x | default:10}}`) counts before the one in the schema; of several
    /// in templates the first one holds everywhere.
    pub fn of(spec: &ToolSpec) -> Self {
        let schema = spec.input_schema.value();
        let mut defaults = Self::default();
        for (name, value) in in_templates(spec, &Scope::from_schema(&schema)) {
            defaults.add(&name, Some(&value));
        }
        for input in inputs(spec) {
            defaults.add(&input.name, input.default.as_ref());
        }
        defaults.replacing_null = defaults.values.keys().cloned().collect();
        for (name, property) in declared_properties(&schema) {
            defaults.add(name, property.get("default"));
        }
        defaults
    }

    /// Returns the defaults; `null` gets its default, too.
    pub fn replacing_null(values: Map<String, Value>) -> Self {
        let replacing_null = values.keys().cloned().collect();
        Self { values, replacing_null }
    }

    fn add(&mut self, name: &str, value: Option<&Value>) {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.values.entry(name).or_insert_with(|| value.clone());
        }
    }

    /// Returns the default values by name.
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// Returns whether the value of an argument is its default.
    pub fn is_default(&self, name: &str, value: &Value) -> bool {
        self.values.get(name) == Some(value)
    }

    /// Returns the defaults of the arguments that a caller omitted.
    pub fn missing(&self, args: &Map<String, Value>) -> Vec<(String, Value)> {
        let is_missing = |name: &str| match args.get(name) {
            None => true,
            Some(value) => value.is_null() && self.replacing_null.contains(name),
        };
        let missing = self.values.iter().filter(|(name, _)| is_missing(name));
        missing.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// Returns the defaults that the templates of a tool contain, in the order of the templates.
pub(crate) fn in_templates(spec: &ToolSpec, scope: &Scope) -> Vec<(String, Value)> {
    let has_braces = match &spec.implementation {
        Implementation::Http(http) => http.templates == Notation::Braces,
        other => matches!(other.kind(), Kind::Exec | Kind::FileRead | Kind::FileWrite),
    };
    let implementation = serde_json::to_value(&spec.implementation).ok().filter(|_| has_braces);
    let mut texts = Vec::new();
    if let Some(implementation) = &implementation {
        collect(implementation, &mut texts);
    }
    texts.into_iter().flat_map(|text| template_defaults(text, scope)).collect()
}

/// Returns the inputs of inline code.
fn inputs(spec: &ToolSpec) -> &[ArtifactInput] {
    match &spec.implementation {
        Implementation::Artifact(artifact) => &artifact.inputs,
        _ => &[],
    }
}

/// Collects all strings of a value, whose depth is already bounded.
fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(map) => map.values().for_each(|item| collect(item, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use haft_core::name::ToolName;
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_are_those_that_a_call_runs_with() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string", "default": "schema"}, "b": {"type": "integer"}, "c": {"default": null}, "d": {},
        }});
        for (implementation, expected, null_replaced) in [
            (json!({"type": "function", "function": "f"}), json!({"a": "schema"}), ""),
            (
                json!({"type": "exec", "command": "x {{a | default:own}} {{b|default:1}} {{b|default:2}} {{e|default:3}}"}),
                json!({"a": "own", "b": 1}),
                "ab",
            ),
            (
                json!({"type": "http", "url": "https://a.example/{{b | default:1}}", "templates": "braces"}),
                json!({"a": "schema", "b": 1}),
                "b",
            ),
            (
                json!({"type": "http", "url": "https://a.example/{{b | default:1}}", "templates": "dollar"}),
                json!({"a": "schema"}),
                "",
            ),
            (
                json!({"type": "artifact", "runtime": "bash", "source": "x", "inputs": [{"name": "d", "default": 4}]}),
                json!({"a": "schema", "d": 4}),
                "d",
            ),
        ] {
            let implementation = serde_json::from_value(implementation).unwrap();
            let mut spec = ToolSpec::new(ToolName::new("t").unwrap(), implementation);
            spec.input_schema = schema.clone().into();
            let defaults = ArgumentDefaults::of(&spec);
            assert_eq!(json!(defaults.values()), expected, "{:?}", spec.implementation);
            let given = json!({"a": null, "b": null, "d": null});
            let replaced = defaults.missing(given.as_object().unwrap()).into_iter().map(|(name, _)| name);
            assert_eq!(replaced.collect::<String>(), null_replaced, "{:?}", spec.implementation);
        }
    }
}
