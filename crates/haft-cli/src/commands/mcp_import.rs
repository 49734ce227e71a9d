//! `haft mcp-server import`: adds the servers in the configuration of another MCP client.

use std::path::PathBuf;

use clap::Args;
use haft_core::name::BundleSlug;
use serde_json::{Map, Value, json};

use crate::client::{Client, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::input;
use crate::view;

/// Add the servers in the configuration of another MCP client.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// JSON file with `mcpServers` or `servers`; `-` for stdin
    file: PathBuf,
    /// Allow the programs network access; package runners such as `npx` need it
    #[arg(long)]
    network: bool,
    /// Show what would be added, and add nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub(crate) async fn run(import: Import, context: &Context) -> Result<(), CliError> {
    let text = input::read_text(&import.file)?;
    let servers = read(&text, import.network).map_err(CliError::usage)?;
    let client = context.client().await?;
    let mut rows = Vec::new();
    for (name, body) in servers {
        let result = match body {
            Err(reason) => Err(format!("not added: {reason}")),
            Ok(_) if import.dry_run => Ok("would be added".to_owned()),
            Ok(body) => match add(&client, body).await {
                Ok(result) => result,
                Err(CliError::Api(error)) => Err(format!("not added: {}", error.message)),
                Err(error) => {
                    client.close().await;
                    return Err(error);
                }
            },
        };
        rows.push((name, result));
    }
    client.close().await;
    let failed = rows.iter().filter(|(_, result)| result.is_err()).count();
    let data: Vec<_> = rows
        .iter()
        .map(|(name, result)| match result {
            Ok(message) => json!({"name": name, "result": message}),
            Err(reason) => json!({"name": name, "error": reason}),
        })
        .collect();
    context.output.data(&json!({"servers": data}), |output| {
        let lines = rows
            .iter()
            .map(|(name, result)| vec![name.clone(), result.clone().unwrap_or_else(|reason| reason)]);
        output.table(&["SERVER", "RESULT"], lines.collect())
    })?;
    match failed {
        0 => Ok(()),
        failed => Err(CliError::SomeFailed { failed, total: rows.len(), items: "servers failed" }),
    }
}

/// Adds a server and loads its tools. It stays added even if it is unavailable now, which is the inner error.
async fn add(client: &Client, body: Value) -> Result<Result<String, String>, CliError> {
    let is_enabled = body.get("enabled") != Some(&json!(false));
    let added = client.data(Request::post("/api/mcp-servers", body)).await?;
    let warnings: Vec<&str> = view::list(&added, "warnings").iter().filter_map(Value::as_str).collect();
    let warnings = warnings.iter().flat_map(|warning| ["; ", warning]).collect::<String>();
    if !is_enabled {
        return Ok(Ok(format!("added, disabled{warnings}")));
    }
    let path = format!("/api/mcp-servers/{}/refresh", segment(&view::text(&added, "id")));
    Ok(match client.data(Request::post(path, json!({}))).await {
        Ok(server) => {
            let tools = server.pointer("/state/tools").and_then(Value::as_u64).unwrap_or_default();
            Ok(format!("added, {tools} tools{warnings}"))
        }
        Err(CliError::Api(error)) => Err(format!("added, but not connected: {}{warnings}", error.message)),
        Err(error) => return Err(error),
    })
}

/// The name of each server, and its request body or why there is none.
type ServerBodies = Vec<(String, Result<Value, String>)>;

/// Builds the request bodies, in the order of the file.
fn read(text: &str, network: bool) -> Result<ServerBodies, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| format!("not valid JSON: {error}"))?;
    let servers = ["mcpServers", "servers"].iter().find_map(|name| document.get(name)?.as_object());
    let servers = servers.ok_or("missing object `mcpServers` or `servers`")?;
    Ok(servers.iter().map(|(name, entry)| (name.clone(), body(name, entry, network))).collect())
}

fn body(name: &str, entry: &Value, network: bool) -> Result<Value, String> {
    let entry = entry.as_object().ok_or("expected an object")?;
    let mut body = Map::new();
    body.insert("id".to_owned(), json!(id(name)));
    for (key, value) in entry {
        let value = references(value);
        match key.as_str() {
            "command" | "args" | "env" | "cwd" | "url" | "headers" => drop(body.insert(key.clone(), value)),
            "serverUrl" | "httpUrl" => drop(body.insert("url".to_owned(), value)),
            "disabled" => drop(body.insert("enabled".to_owned(), json!(value != json!(true)))),
            "type" | "transport" if value == json!("sse") => {
                return Err(
                    "the SSE transport is unsupported; use the streamable HTTP URL of the server".to_owned()
                );
            }
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
        let bodies = read(&text.to_string(), true).unwrap();
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
            (
                "old",
                Err("the SSE transport is unsupported; use the streamable HTTP URL of the server".to_owned()),
            ),
            ("odd", Err("expected an object".to_owned())),
        ];
        assert_eq!(bodies, expected.map(|(name, body)| (name.to_owned(), body)));
        assert_eq!(read("{", false).unwrap_err().split(':').next(), Some("not valid JSON"));
        assert_eq!(read("{}", false).unwrap_err(), "missing object `mcpServers` or `servers`");
    }
}
