//! `haft mcp-server import`: the servers that other clients have in their configuration.

use std::path::PathBuf;

use clap::Args;
use haft_core::name::BundleSlug;
use serde_json::{Map, Value, json};

use crate::client::{Client, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::input;
use crate::view;

/// Use the servers that another client has in its configuration.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// A JSON file with `mcpServers` (or `servers`); `-` reads stdin
    file: PathBuf,
    /// Let the programs use the network, as other clients do; package runners need it
    #[arg(long)]
    network: bool,
    /// Show what would be added, and add nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub(crate) async fn run(import: Import, context: &Context) -> Result<(), CliError> {
    let text = input::read_text(&import.file)?;
    let servers = read(&text, import.network).map_err(CliError::Usage)?;
    let client = context.client().await?;
    let mut rows = Vec::new();
    for (name, made) in servers {
        let came = match made {
            Err(why) => Err(why),
            Ok(_) if import.dry_run => Ok("would be added".to_owned()),
            Ok(body) => match add(&client, body).await {
                Ok(what) => Ok(what),
                Err(CliError::Api(error)) => Err(error.message),
                Err(error) => {
                    client.close().await;
                    return Err(error);
                }
            },
        };
        rows.push((name, came));
    }
    client.close().await;
    let failed = rows.iter().filter(|(_, came)| came.is_err()).count();
    let data: Vec<_> = rows
        .iter()
        .map(|(name, came)| match came {
            Ok(what) => json!({"name": name, "result": what}),
            Err(why) => json!({"name": name, "error": why}),
        })
        .collect();
    context.output.data(&json!({"servers": data}), |output| {
        let lines =
            rows.iter().map(|(name, came)| vec![name.clone(), came.clone().unwrap_or_else(|why| why)]);
        output.table(&["SERVER", "RESULT"], lines.collect())
    })?;
    match failed {
        0 => Ok(()),
        some => Err(CliError::Usage(format!("{some} of {} servers were not added", rows.len()))),
    }
}

/// Adds a server and asks it for its tools. It is kept also where it does not answer now.
async fn add(client: &Client, body: Value) -> Result<String, CliError> {
    let on = body.get("enabled") != Some(&json!(false));
    let added = client.data(Request::post("/api/mcp-servers", body)).await?;
    let warnings: Vec<&str> = view::list(&added, "warnings").iter().filter_map(Value::as_str).collect();
    let warnings = warnings.iter().flat_map(|why| ["; ", why]).collect::<String>();
    if !on {
        return Ok(format!("added, switched off{warnings}"));
    }
    let path = format!("/api/mcp-servers/{}/refresh", segment(&view::text(&added, "id")));
    Ok(match client.data(Request::post(path, json!({}))).await {
        Ok(server) => {
            let tools = server.pointer("/state/tools").and_then(Value::as_u64).unwrap_or_default();
            format!("added, {tools} tools{warnings}")
        }
        Err(CliError::Api(error)) => format!("added, but {}{warnings}", error.message),
        Err(error) => return Err(error),
    })
}

type Made = Vec<(String, Result<Value, String>)>;

/// Makes the bodies of the requests, in the order of the file.
fn read(text: &str, network: bool) -> Result<Made, String> {
    let document: Value =
        serde_json::from_str(text).map_err(|error| format!("the file is not JSON: {error}"))?;
    let servers = ["mcpServers", "servers"].iter().find_map(|name| document.get(name)?.as_object());
    let servers = servers.ok_or("the file has no object `mcpServers`")?;
    Ok(servers.iter().map(|(name, said)| (name.clone(), body(name, said, network))).collect())
}

fn body(name: &str, said: &Value, network: bool) -> Result<Value, String> {
    let said = said.as_object().ok_or("expected an object")?;
    let mut body = Map::new();
    body.insert("id".to_owned(), json!(id(name)));
    for (key, value) in said {
        let value = references(value);
        match key.as_str() {
            "command" | "args" | "env" | "cwd" | "url" | "headers" => drop(body.insert(key.clone(), value)),
            "serverUrl" | "httpUrl" => drop(body.insert("url".to_owned(), value)),
            "disabled" => drop(body.insert("enabled".to_owned(), json!(value != json!(true)))),
            "type" | "transport" if value == json!("sse") => {
                return Err(
                    "the old SSE transport is not spoken; look for its streamable HTTP address".to_owned()
                );
            }
            // What others keep here besides says how they themselves behave.
            _ => {}
        }
    }
    if body.contains_key("command") {
        body.insert("network".to_owned(), json!(network));
    }
    Ok(Value::Object(body))
}

/// What is a name elsewhere may have letters that a bundle has not.
fn id(name: &str) -> String {
    if BundleSlug::new(name).is_ok() {
        return name.to_owned();
    }
    let kept: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    kept.trim_matches('-').to_owned()
}

/// Some write `${env:NAME}` for what is `${NAME}` here.
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
    fn configurations_of_others() {
        let text = json!({"mcpServers": {
            "file system": {"command": "npx", "args": ["-y", "server"], "env": {"KEY": "${env:API_KEY}"}, "disabled": true, "alwaysAllow": []},
            "docs": {"type": "http", "url": "https://x.test/mcp", "headers": {"Authorization": "Bearer ${T}"}},
            "old": {"type": "sse", "url": "https://x.test/sse"},
            "odd": 7,
        }});
        let made = read(&text.to_string(), true).unwrap();
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
                Err("the old SSE transport is not spoken; look for its streamable HTTP address".to_owned()),
            ),
            ("odd", Err("expected an object".to_owned())),
        ];
        assert_eq!(made, expected.map(|(name, body)| (name.to_owned(), body)));
        assert_eq!(read("{", false).unwrap_err().split(':').next(), Some("the file is not JSON"));
        assert_eq!(read("{}", false).unwrap_err(), "the file has no object `mcpServers`");
    }
}
