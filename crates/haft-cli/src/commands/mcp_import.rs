//! `haft mcp-server import`: adds the servers in the configuration of another MCP client.

use std::path::PathBuf;

use clap::Args;
use haft_api::mcp_server::McpServerView;
use haft_import::mcp_client_config::{self, ClientServer};
use serde_json::{Value, json};

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
    let servers = mcp_client_config::read(&text, import.network);
    let servers = servers.map_err(|error| CliError::usage(error.to_string()))?;
    context.note_remote("programs of the configuration run");
    let client = context.client().await?;
    let mut rows = Vec::new();
    for ClientServer { name, body } in servers {
        let result = match body {
            Err(reason) => Err(format!("not added: {reason}")),
            Ok(_) if import.dry_run => Ok("would be added".to_owned()),
            Ok(body) => {
                match client.progress().during(&format!("adding MCP server {name}"), add(&client, body)).await
                {
                    Ok(result) => result,
                    Err(CliError::Api(error)) => Err(format!("not added: {}", error.message)),
                    Err(error) => {
                        client.close().await;
                        return Err(error);
                    }
                }
            }
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
    let McpServerView { server, warnings, .. } = view::read(&added)?;
    let warnings = warnings.iter().flat_map(|warning| ["; ", warning]).collect::<String>();
    if !is_enabled {
        return Ok(Ok(format!("added, disabled{warnings}")));
    }
    let path = format!("/api/mcp-servers/{}/refresh", segment(server.id.as_str()));
    Ok(match client.data(Request::post(path, json!({}))).await {
        Ok(server) => {
            let McpServerView { state, .. } = view::read(&server)?;
            Ok(format!("added, {} tools{warnings}", state.tools))
        }
        Err(CliError::Api(error)) => Err(format!("added, but not connected: {}{warnings}", error.message)),
        Err(error) => return Err(error),
    })
}
