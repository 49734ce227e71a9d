//! The JSON Schema of `haft.toml`, generated from the table of its keys.
//!
//! `haft-definition` contains the result as a file, because the server serves it but does not depend on this crate.

use serde_json::{Map, Value, json};

use super::keys::{KEYS, Key};

/// Returns the schema.
pub(super) fn schema() -> Value {
    let (mut top, mut sections) = (Map::new(), Map::<String, Value>::new());
    for key in KEYS {
        let into = match key.section() {
            "" => &mut top,
            section => {
                let inner = sections.entry(section).or_insert_with(|| json!({}));
                let Some(inner) = inner.as_object_mut() else { continue };
                inner
            }
        };
        insert(into, key.name(), of_key(key));
    }
    for (name, properties) in sections {
        top.insert(name, json!({"type": "object", "properties": properties, "additionalProperties": false}));
    }
    let mut schema = json!({"type": "object", "properties": top, "additionalProperties": false});
    if let Some(mcp) = schema.pointer_mut("/properties/mcp/properties").and_then(Value::as_object_mut) {
        let servers = json!({
            "type": "object", "additionalProperties": {"type": "object"}, "description": "MCP servers, each a table",
        });
        mcp.insert("servers".to_owned(), servers);
    }
    if let Some(secrets) = schema.pointer_mut("/properties/secrets/properties").and_then(Value::as_object_mut)
    {
        let commands = json!({
            "type": "object", "additionalProperties": {"type": "object"},
            "description": "Commands whose output is a secret, each a table",
        });
        secrets.insert("commands".to_owned(), commands);
    }
    if let Some(properties) = schema.pointer_mut("/properties").and_then(Value::as_object_mut) {
        let issuers = json!({
            "type": "array", "items": {"type": "object"},
            "description": "Issuers of OpenID Connect where people log in, each a table",
        });
        let sign_on =
            json!({"type": "object", "properties": {"issuers": issuers}, "additionalProperties": false});
        properties.insert("sign_on".to_owned(), sign_on);
    }
    schema
}

/// Adds a key to the properties of a section; a name with a dot is in a table of its own.
fn insert(properties: &mut Map<String, Value>, name: &str, schema: Value) {
    let Some((table, rest)) = name.split_once('.') else {
        properties.insert(name.to_owned(), schema);
        return;
    };
    let empty = || json!({"type": "object", "properties": {}, "additionalProperties": false});
    let table = properties.entry(table).or_insert_with(empty);
    if let Some(inner) = table.get_mut("properties").and_then(Value::as_object_mut) {
        insert(inner, rest, schema);
    }
}

/// Returns the schema of a key; its default has its type.
fn of_key(key: &Key) -> Value {
    let kind = match key.default.as_bytes().first() {
        Some(b'[') => json!({"type": "array", "items": {"type": "string"}}),
        Some(b'"') => json!({"type": "string"}),
        Some(b't' | b'f') => json!({"type": "boolean"}),
        // JSON has no notation for digits separated by `_`, so they are strings.
        _ => json!({"type": ["integer", "string"]}),
    };
    let mut schema = kind;
    if let Value::Object(map) = &mut schema {
        map.insert("description".to_owned(), json!(format!("{} Default: {}", key.help, key.default)));
    }
    schema
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_stored_schema_is_current() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../haft-definition/src/editor_schema/config.json");
        let current = format!("{:#}\n", schema());
        if std::fs::read_to_string(&file).is_ok_and(|stored| stored == current) {
            return;
        }
        let newest = std::env::temp_dir().join("haft-config-schema.json");
        std::fs::write(&newest, current).unwrap();
        panic!(
            "the keys of `haft.toml` changed; refresh it with `cp {} {}`",
            newest.display(),
            file.display()
        );
    }
}
