//! The MCP servers in the configuration of another MCP client (`mcpServers` or `servers`).

use haft_core::name::BundleSlug;
use serde_json::{Map, Value, json};

/// Why a configuration cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientConfigError {
    /// It is not JSON.
    #[error("not valid JSON: {0}")]
    Syntax(String),
    /// It has no servers.
    #[error("missing object `mcpServers` or `servers`")]
    NoServers,
}

/// Why one server of a configuration cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClientServerError {
    /// It is not an object.
    #[error("expected an object")]
    NotAnObject,
    /// It uses the old transport.
    #[error("the SSE transport is unsupported; use the streamable HTTP URL of the server")]
    Sse,
}

/// A server of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientServer {
    /// The name in the configuration.
    pub name: String,
    /// The request body that adds this server, or the reason why it cannot be added.
    pub body: Result<Value, ClientServerError>,
}

/// Reads the text of a configuration; `network` allows programs network access.
pub fn read(text: &str, network: bool) -> Result<Vec<ClientServer>, ClientConfigError> {
    let document: Value =
        serde_json::from_str(text).map_err(|error| ClientConfigError::Syntax(error.to_string()))?;
    read_value(&document, network)
}

/// Reads a configuration; `network` allows programs network access.
pub fn read_value(document: &Value, network: bool) -> Result<Vec<ClientServer>, ClientConfigError> {
    let servers = ["mcpServers", "servers"].iter().find_map(|name| document.get(name)?.as_object());
    let servers = servers.ok_or(ClientConfigError::NoServers)?;
    let server = |(name, entry): (&String, &Value)| ClientServer {
        name: name.clone(),
        body: body(name, entry, network),
    };
    Ok(servers.iter().map(server).collect())
}

fn body(name: &str, entry: &Value, network: bool) -> Result<Value, ClientServerError> {
    let entry = entry.as_object().ok_or(ClientServerError::NotAnObject)?;
    let mut body = Map::new();
    body.insert("id".to_owned(), json!(id(name)));
    for (key, value) in entry {
        let value = references(value);
        match key.as_str() {
            "command" | "args" | "env" | "cwd" | "url" | "headers" | "workspace" => {
                drop(body.insert(key.clone(), value));
            }
            "serverUrl" | "httpUrl" => drop(body.insert("url".to_owned(), value)),
            "disabled" => drop(body.insert("enabled".to_owned(), json!(value != json!(true)))),
            "type" | "transport" if value == json!("sse") => return Err(ClientServerError::Sse),
            // Other keys configure the other client.
            _ => {}
        }
    }
    if body.contains_key("command") {
        body.insert("network".to_owned(), json!(network));
    }
    Ok(Value::Object(body))
}

/// Replaces characters that are not allowed in the id of a server.
fn id(name: &str) -> String {
    if BundleSlug::new(name).is_ok() {
        return name.to_owned();
    }
    let replaced: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    replaced.trim_matches('-').to_owned()
}

/// Rewrites `${env:NAME}`, as other clients write it, to `${NAME}`.
fn references(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(text.replace("${env:", "${")),
        Value::Array(items) => items.iter().map(references).collect(),
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), references(value))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_of_other_clients_are_read() {
        let text = json!({"mcpServers": {
            "file system": {"command": "npx", "args": ["-y", "server"], "env": {"KEY": "${env:API_KEY}"}, "disabled": true, "alwaysAllow": []},
            "docs": {"type": "http", "url": "https://x.test/mcp", "headers": {"Authorization": "Bearer ${T}"}},
            "old": {"type": "sse", "url": "https://x.test/sse"},
            "odd": 7,
        }});
        let expected = [
            (
                "file system",
                Ok(
                    json!({"id": "file-system", "command": "npx", "args": ["-y", "server"], "env": {"KEY": "${API_KEY}"}, "enabled": false, "network": true}),
                ),
            ),
            (
                "docs",
                Ok(
                    json!({"id": "docs", "url": "https://x.test/mcp", "headers": {"Authorization": "Bearer ${T}"}}),
                ),
            ),
            ("old", Err(ClientServerError::Sse)),
            ("odd", Err(ClientServerError::NotAnObject)),
        ];
        let expected = expected.map(|(name, body)| ClientServer { name: name.to_owned(), body });
        assert_eq!(read(&text.to_string(), true).unwrap(), expected);
        assert!(matches!(read("{", false), Err(ClientConfigError::Syntax(_))));
        assert_eq!(read("{}", false), Err(ClientConfigError::NoServers));
    }
}
