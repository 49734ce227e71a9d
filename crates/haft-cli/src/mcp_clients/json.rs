//! Changes a configuration in JSON, which may have comments and trailing commas. Everything else in it stays as it is.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

/// Returns the text with the entry, which replaces an earlier one of the same name.
pub(super) fn put(text: &str, section: &str, name: &str, entry: &Value) -> Result<String, String> {
    let root = parse(text)?;
    let settings = root.object_value_or_create().ok_or("expected an object")?;
    let servers =
        settings.object_value_or_create(section).ok_or_else(|| format!("`{section}` is not an object"))?;
    match servers.get(name) {
        Some(earlier) => earlier.set_value(input(entry)),
        None => drop(servers.append(name, input(entry))),
    }
    let text = root.to_string();
    Ok(if text.ends_with('\n') { text } else { text + "\n" })
}

/// Returns the text of an entry.
pub(super) fn get(text: &str, section: &str, name: &str) -> Result<Option<String>, String> {
    let root = parse(text)?;
    let entry = servers(&root, section).and_then(|servers| servers.get(name)).and_then(|found| found.value());
    Ok(entry.map(|entry| entry.to_string()))
}

/// Returns the text without the entry.
pub(super) fn remove(text: &str, section: &str, name: &str) -> Result<String, String> {
    let root = parse(text)?;
    if let Some(found) = servers(&root, section).and_then(|servers| servers.get(name)) {
        found.remove();
    }
    Ok(root.to_string())
}

fn parse(text: &str) -> Result<CstRootNode, String> {
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| error.to_string())
}

fn servers(root: &CstRootNode, section: &str) -> Option<CstObject> {
    root.object_value()?.object_value(section)
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(bool) => CstInputValue::Bool(*bool),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(map) => {
            CstInputValue::Object(map.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_other_entries_stay() {
        let before = "// mine\n{\n  \"theme\": \"dark\", // keep\n  \"servers\": {\n    \"other\": {\"url\": \"x\"},\n  },\n}\n";
        let after = put(before, "servers", "haft", &json!({"url": "http://a/mcp"})).unwrap();
        assert!(
            after.contains("// mine")
                && after.contains("// keep")
                && after.contains("\"other\": {\"url\": \"x\"}")
        );
        assert!(get(&after, "servers", "haft").unwrap().unwrap().contains("http://a/mcp"));
        let replaced = put(&after, "servers", "haft", &json!({"url": "http://b/mcp"})).unwrap();
        assert!(replaced.contains("http://b/mcp") && !replaced.contains("http://a/mcp"));
        let removed = remove(&replaced, "servers", "haft").unwrap();
        assert_eq!(get(&removed, "servers", "haft").unwrap(), None);
        assert!(removed.contains("\"other\"") && removed.contains("// keep"));
    }

    #[test]
    fn an_empty_file_gets_its_object() {
        for before in ["", "{}", "\n"] {
            let after = put(before, "mcpServers", "haft", &json!({"url": "u"})).unwrap();
            let read: Value = serde_json::from_str(&after).unwrap();
            assert_eq!(read, json!({"mcpServers": {"haft": {"url": "u"}}}), "{before:?}");
        }
    }

    #[test]
    fn what_is_no_configuration_is_rejected() {
        for before in ["[1]", "{\"servers\": []}", "{\"a\": ", "text"] {
            assert!(put(before, "servers", "haft", &json!({})).is_err(), "{before}");
        }
    }
}
