//! Writes a definition as the text of a file; reading it returns the same definition.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{emit, params};
use haft_core::catalog::FileForm;
use haft_core::duration;
use haft_core::implementation::{Implementation, Notation, OutputFormat};
use haft_core::name::Version;
use haft_core::spec::{Execution, Policy, Retry, ToolSpec};

/// Writes a definition, and `enabled` if it is known.
pub fn write(spec: &ToolSpec, form: FileForm, enabled: Option<bool>) -> String {
    match form {
        FileForm::Json => json(spec, enabled),
        FileForm::Yaml => emit::document(&yaml(spec, enabled).map),
        FileForm::Skill => skill(spec, enabled),
    }
}

/// Returns the fields of a YAML definition, for a document that contains several.
pub fn write_fields(spec: &ToolSpec, enabled: Option<bool>) -> Map<String, Value> {
    yaml(spec, enabled).map
}

/// Writes a map as a YAML document in block style; parsing it returns exactly the same values.
pub fn write_yaml(map: &Map<String, Value>) -> String {
    emit::document(map)
}

fn json(spec: &ToolSpec, enabled: Option<bool>) -> String {
    let mut value = value_of(spec);
    if let (Value::Object(map), Some(enabled)) = (&mut value, enabled) {
        map.insert("enabled".to_owned(), json!(enabled));
    }
    let mut text = format!("{value:#}");
    text.push('\n');
    text
}

fn skill(spec: &ToolSpec, enabled: Option<bool>) -> String {
    let Implementation::Script(script) = &spec.implementation else {
        let mut keys = Keys::start(spec);
        keys.put("parameters", spec.input_schema.value());
        keys.put("output_schema", written_schema(spec.output_schema.value()));
        keys.put("implementation", value_of(&spec.implementation));
        keys.put("execution", execution(&spec.execution));
        keys.safety(spec);
        keys.end(spec, enabled);
        return format!("---\n{}---\n", emit::document(&keys.map));
    };
    let mut keys = Keys::start(spec);
    keys.put("runtime", json!(script.runtime.as_str()));
    if script.output != OutputFormat::default() {
        keys.put("output", json!(script.output.as_str()));
    }
    if !script.dependencies.is_empty() {
        keys.put("dependencies", json!(script.dependencies));
    }
    keys.put("parameters", spec.input_schema.value());
    keys.put("output_schema", written_schema(spec.output_schema.value()));
    // Written even if they are the default, because readers of a script look for them.
    keys.put("policy", json!(spec.policy.as_str()));
    keys.put("requires_confirmation", flag(spec.requires_confirmation));
    keys.put("sandbox", json!(spec.sandbox));
    keys.put("network", json!(spec.network));
    keys.put("image", json!(spec.image));
    match spec.execution.timeout_ms {
        Some(millis) if millis % 1000 == 0 => keys.put("timeout_secs", json!(millis / 1000)),
        Some(millis) => keys.time("timeout", "timeout_ms", millis),
        None => {}
    }
    keys.put("execution", execution(&Execution { timeout_ms: None, ..spec.execution.clone() }));
    keys.end(spec, enabled);
    let mut text = format!("---\n{}---\n{}", emit::document(&keys.map), script.body);
    if !script.body.is_empty() {
        text.push('\n');
    }
    text
}

fn yaml(spec: &ToolSpec, enabled: Option<bool>) -> Keys {
    let mut keys = Keys::start(spec);
    let input = spec.input_schema.value();
    match params::from_schema(&input) {
        Some(list) => keys.map.extend([("params".to_owned(), list)]),
        None => keys.put("input_schema", written_schema(input)),
    }
    keys.put("output_schema", written_schema(spec.output_schema.value()));
    let mut rest = spec.execution.clone();
    let block = block(&spec.implementation, &mut rest);
    keys.put("implementation", Value::Object(block.map));
    keys.put("execution", execution(&rest));
    keys.safety(spec);
    keys.end(spec, enabled);
    keys
}

/// Writes the implementation of a YAML definition, and moves some execution settings into it.
fn block(implementation: &Implementation, execution: &mut Execution) -> Keys {
    let mut keys = Keys::default();
    if let Value::Object(map) = value_of(implementation) {
        keys.map = map;
    }
    match implementation {
        Implementation::Http(http) => {
            keys.map.shift_remove("timeout_ms");
            keys.map.shift_remove("templates");
            if http.templates == Notation::Dollar {
                keys.put("templates", json!("dollar"));
            }
            if let Some(millis) = http.timeout_ms {
                keys.time("timeout", "timeout_ms", millis);
            }
            if let Some(retry) = execution.retry.take() {
                keys.put("retry", self::retry(&retry));
            }
        }
        Implementation::Exec(_) => {
            if let Some(millis) = execution.timeout_ms.take() {
                keys.time("timeout", "timeout_ms", millis);
            }
        }
        Implementation::FileWrite(file) => {
            if let Some(mode) = file.mode {
                keys.map.insert("mode".to_owned(), json!(format!("{mode:04o}")));
            }
        }
        _ => {}
    }
    keys
}

/// Fields in the order in which a person would write them, without empty ones.
#[derive(Default)]
struct Keys {
    map: Map<String, Value>,
}

impl Keys {
    fn start(spec: &ToolSpec) -> Self {
        let mut keys = Self::default();
        keys.put("name", json!(spec.name));
        if spec.version != Version::initial() {
            keys.put("version", json!(spec.version));
        }
        keys.put("display_name", words(&spec.display_name));
        keys.put("description", json!(spec.description));
        keys.put("category", words(&spec.category));
        if !spec.tags.is_empty() {
            keys.put("tags", json!(spec.tags));
        }
        keys
    }

    fn safety(&mut self, spec: &ToolSpec) {
        if spec.policy != Policy::default() {
            self.put("policy", json!(spec.policy.as_str()));
        }
        self.put("requires_confirmation", flag(spec.requires_confirmation));
        self.put("sandbox", flag(spec.sandbox));
        self.put("network", flag(spec.network));
        self.put("image", json!(spec.image));
    }

    fn end(&mut self, spec: &ToolSpec, enabled: Option<bool>) {
        if !spec.renderers.is_empty() {
            self.put("renderers", value_of(&spec.renderers));
        }
        if let Some(enabled) = enabled {
            self.put("enabled", json!(enabled));
        }
        if let Some(origin) = &spec.origin {
            self.put("origin", value_of(origin));
        }
    }

    fn put(&mut self, key: &str, value: Value) {
        if !value.is_null() {
            self.map.insert(key.to_owned(), value);
        }
    }

    /// Writes a time as a duration, or in milliseconds if it exceeds the maximum duration.
    fn time(&mut self, key: &str, key_in_millis: &str, millis: u64) {
        let time = Duration::from_millis(millis);
        if time <= duration::MAX_LENGTH {
            self.put(key, json!(duration::format(time)));
        } else {
            self.put(key_in_millis, json!(millis));
        }
    }
}

fn words(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { json!(text) }
}

fn flag(flag: bool) -> Value {
    if flag { json!(true) } else { Value::Null }
}

fn written_schema(schema: Value) -> Value {
    if schema.as_object().is_some_and(Map::is_empty) { Value::Null } else { schema }
}

/// Writes what differs from the defaults; `Null` if nothing does.
fn execution(execution: &Execution) -> Value {
    let mut keys = Keys { map: difference(value_of(execution), &value_of(&Execution::default())) };
    keys.map.shift_remove("timeout_ms");
    keys.map.shift_remove("retry");
    if let Some(millis) = execution.timeout_ms {
        keys.time("timeout", "timeout_ms", millis);
    }
    if let Some(retry) = &execution.retry {
        keys.put("retry", self::retry(retry));
    }
    if keys.map.is_empty() { Value::Null } else { Value::Object(keys.map) }
}

fn retry(retry: &Retry) -> Value {
    let mut keys = Keys::default();
    keys.put("attempts", json!(retry.attempts));
    keys.time("backoff", "backoff_ms", retry.backoff_ms);
    Value::Object(keys.map)
}

fn difference(value: Value, default: &Value) -> Map<String, Value> {
    let Value::Object(map) = value else { return Map::new() };
    let mut out = Map::new();
    for (key, value) in map {
        match default.get(&key) {
            Some(same) if *same == value => {}
            Some(inner @ Value::Object(_)) => {
                out.insert(key, Value::Object(difference(value, inner)));
            }
            _ => {
                out.insert(key, value);
            }
        }
    }
    out
}

/// Serializes a part of a definition, which always succeeds.
fn value_of<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
