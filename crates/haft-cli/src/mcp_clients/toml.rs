//! Changes a configuration in TOML. Everything else in it stays as it is.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value as TomlValue};

/// Returns the text with the entry, which replaces an earlier one of the same name.
pub(super) fn put(text: &str, section: &str, name: &str, entry: &Value) -> Result<String, String> {
    let mut document = parse(text)?;
    let servers = document.entry(section).or_insert_with(|| {
        let mut table = Table::new();
        // Only `[mcp_servers.haft]`, without a line for the outer table.
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = servers.as_table_like_mut().ok_or_else(|| format!("`{section}` is not a table"))?;
    let mut table = Table::new();
    for (key, value) in entry.as_object().into_iter().flatten() {
        if let Some(value) = convert(value) {
            table.insert(key, Item::Value(value));
        }
    }
    servers.insert(name, Item::Table(table));
    Ok(document.to_string())
}

/// Returns the text of an entry.
pub(super) fn get(text: &str, section: &str, name: &str) -> Result<Option<String>, String> {
    let document = parse(text)?;
    let servers = document.get(section).and_then(Item::as_table_like);
    Ok(servers.and_then(|servers| servers.get(name)).map(ToString::to_string))
}

/// Returns the text without the entry.
pub(super) fn remove(text: &str, section: &str, name: &str) -> Result<String, String> {
    let mut document = parse(text)?;
    if let Some(servers) = document.get_mut(section).and_then(Item::as_table_like_mut) {
        servers.remove(name);
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    // Only the message: the rest quotes a line, which may have a secret.
    text.parse::<DocumentMut>().map_err(|error| error.message().to_owned())
}

/// Converts a value; TOML has no null.
fn convert(value: &Value) -> Option<TomlValue> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(bool) => TomlValue::from(*bool),
        Value::Number(number) => {
            number.as_i64().map(TomlValue::from).or_else(|| number.as_f64().map(TomlValue::from))?
        }
        Value::String(text) => TomlValue::from(text.as_str()),
        Value::Array(items) => TomlValue::Array(items.iter().filter_map(convert).collect::<Array>()),
        Value::Object(map) => {
            let mut table = InlineTable::new();
            for (key, value) in map {
                if let Some(value) = convert(value) {
                    table.insert(key, value);
                }
            }
            TomlValue::InlineTable(table)
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_other_entries_stay() {
        let before = "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\" # keep\n";
        let entry = json!({"url": "http://a/mcp", "http_headers": {"Authorization": "Bearer haft_1"}});
        let after = put(before, "mcp_servers", "haft", &entry).unwrap();
        assert_eq!(
            after,
            "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\" # keep\n\n[mcp_servers.haft]\n\
             url = \"http://a/mcp\"\nhttp_headers = { Authorization = \"Bearer haft_1\" }\n"
        );
        assert!(get(&after, "mcp_servers", "haft").unwrap().unwrap().contains("haft_1"));
        assert_eq!(remove(&after, "mcp_servers", "haft").unwrap(), before);
        assert_eq!(
            put("", "mcp_servers", "haft", &json!({"command": "haft", "args": ["mcp"]})).unwrap(),
            "[mcp_servers.haft]\ncommand = \"haft\"\nargs = [\"mcp\"]\n"
        );
    }

    #[test]
    fn what_is_no_configuration_is_rejected() {
        for before in ["mcp_servers = 1", "a = ", "[x"] {
            assert!(put(before, "mcp_servers", "haft", &json!({})).is_err(), "{before}");
        }
    }
}
