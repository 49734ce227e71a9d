//! Writes `toolset.yaml`: deterministic, and reading it returns the same toolset.

use haft_core::example::ToolExample;
use haft_core::implementation::Implementation;
use haft_core::spec::{Policy, Renderer, ToolSpec};
use haft_definition::dialect::{write_fields, write_yaml};
use serde_json::{Map, Value, json};

use crate::manifest::starts_process;
use crate::toolset::{DeclaredServer, MANIFEST_VERSION, ToolEntry, Toolset};

/// Writes a manifest. Secrets must be references such as `${API_KEY}` already; see [`crate::placeholders`].
pub fn manifest(toolset: &Toolset) -> String {
    let mut map = Map::new();
    map.insert("manifest_version".to_owned(), json!(MANIFEST_VERSION));
    map.insert("id".to_owned(), json!(toolset.id));
    put_text(&mut map, "name", &toolset.name);
    map.insert("version".to_owned(), json!(toolset.version));
    put_text(&mut map, "description", &toolset.description);
    if !toolset.dependencies.is_empty() {
        map.insert("dependencies".to_owned(), json!(toolset.dependencies));
    }
    map.insert("tools".to_owned(), toolset.tools.iter().map(entry).collect());
    if !toolset.mcp_servers.is_empty() {
        map.insert("mcp_servers".to_owned(), toolset.mcp_servers.iter().map(server).collect());
    }
    write_yaml(&map)
}

fn put_text(map: &mut Map<String, Value>, key: &str, text: &str) {
    if !text.is_empty() {
        map.insert(key.to_owned(), json!(text));
    }
}

/// Fields of a definition that an entry has under another name, or in another place.
const MOVED: [&str; 14] = [
    "name",
    "version",
    "display_name",
    "description",
    "category",
    "tags",
    "params",
    "input_schema",
    "output_schema",
    "implementation",
    "requires_confirmation",
    "policy",
    "sandbox",
    "network",
];

fn entry(tool: &ToolEntry) -> Value {
    let spec = &tool.spec;
    let mut fields = write_fields(spec, (!tool.enabled).then_some(false));
    let mut entry = Map::new();
    let mut take = |fields: &mut Map<String, Value>, key: &str, name: &str| {
        if let Some(value) = fields.shift_remove(key) {
            entry.insert(name.to_owned(), value);
        }
    };
    take(&mut fields, "name", "id");
    take(&mut fields, "display_name", "name");
    for key in ["version", "description"] {
        take(&mut fields, key, key);
    }
    match plain_entrypoint(spec) {
        Some(entrypoint) => drop(entry.insert("entrypoint".to_owned(), json!(entrypoint))),
        None => {
            if let Some(block) = fields.shift_remove("implementation") {
                entry.insert("implementation".to_owned(), block);
            }
        }
    }
    let schema = spec.input_schema.value();
    let has_schema = schema.as_object().is_none_or(|schema| !schema.is_empty());
    for key in ["category", "tags"] {
        entry.extend(fields.shift_remove(key).map(|value| (key.to_owned(), value)));
    }
    entry.extend(has_schema.then(|| ("input_schema".to_owned(), schema)));
    for key in ["output_schema", "requires_confirmation"] {
        entry.extend(fields.shift_remove(key).map(|value| (key.to_owned(), value)));
    }
    let permissions = permissions(spec);
    if !permissions.is_empty() {
        entry.insert("permissions".to_owned(), Value::Object(permissions));
    }
    fields.shift_remove("renderers");
    entry.extend(renderers(&spec.renderers));
    entry.extend(fields.into_iter().filter(|(key, _)| !MOVED.contains(&key.as_str())));
    if !tool.examples.is_empty() {
        entry.insert("examples".to_owned(), tool.examples.iter().map(example).collect());
    }
    Value::Object(entry)
}

fn example(example: &ToolExample) -> Value {
    let mut map = Map::new();
    map.insert("name".to_owned(), json!(example.name));
    put_text(&mut map, "description", &example.description);
    map.insert("args".to_owned(), Value::Object(example.args.clone()));
    if let Some(expect) = &example.expect {
        map.insert("expect".to_owned(), expect.clone());
    }
    Value::Object(map)
}

/// Returns the entrypoint of a Python tool that has no other settings.
fn plain_entrypoint(spec: &ToolSpec) -> Option<&str> {
    let Implementation::Python(python) = &spec.implementation else { return None };
    let block = serde_json::to_value(&spec.implementation).ok()?;
    let is_plain = block.as_object()?.keys().all(|key| matches!(key.as_str(), "type" | "entrypoint"));
    is_plain.then_some(&python.entrypoint)
}

fn permissions(spec: &ToolSpec) -> Map<String, Value> {
    let mut map = Map::new();
    if spec.network {
        map.insert("network".to_owned(), json!(true));
    }
    // In a manifest, tools that start a process are sandboxed by default.
    if spec.sandbox != starts_process(spec.implementation.kind()) {
        map.insert("sandbox".to_owned(), json!(spec.sandbox));
    }
    if spec.policy != Policy::default() {
        map.insert("policy".to_owned(), json!(spec.policy.as_str()));
    }
    map
}

/// Writes one renderer in the flat form, and others as a list.
fn renderers(renderers: &[Renderer]) -> Option<(String, Value)> {
    const OWN_KEYS: [&str; 4] = ["type", "renderer", "priority", "config"];
    match renderers {
        [] => None,
        [one] if one.priority == 0 && !OWN_KEYS.iter().any(|key| one.config.contains_key(*key)) => {
            let mut map = Map::new();
            map.insert("type".to_owned(), json!(one.renderer));
            map.extend(one.config.clone());
            Some(("renderer".to_owned(), Value::Object(map)))
        }
        several => {
            let canonical = |renderer: &Renderer| {
                let Renderer { renderer, priority, config } = renderer;
                json!({"renderer": renderer, "priority": priority, "config": config})
            };
            Some(("renderers".to_owned(), several.iter().map(canonical).collect()))
        }
    }
}

fn server(server: &DeclaredServer) -> Value {
    let mut map = Map::new();
    map.insert("id".to_owned(), json!(server.id));
    if let Ok(Value::Object(transport)) = serde_json::to_value(&server.transport) {
        map.extend(transport.into_iter().filter(|(_, value)| *value != json!(false)));
    }
    if !server.enabled {
        map.insert("enabled".to_owned(), json!(false));
    }
    if server.policy != Policy::default() {
        map.insert("policy".to_owned(), json!(server.policy.as_str()));
    }
    put_text(&mut map, "prefix", &server.prefix);
    Value::Object(map)
}
