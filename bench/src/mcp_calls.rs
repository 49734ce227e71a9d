//! Calls of an MCP client as bytes, so that no client library affects the measurement.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::load::Connection;
use crate::process::Server;

/// The version without sessions.
pub const VERSION: &str = "2026-07-28";
/// The version before it.
const SESSION_VERSION: &str = "2025-11-25";

/// The protocol variant of a server.
#[derive(Clone, Copy)]
pub enum Protocol {
    /// Each request is independent.
    Stateless,
    /// Each client opens a session first.
    Sessions,
}

/// Returns the request of each client.
pub async fn calls(server: &Server, protocol: Protocol, tool: &str, clients: usize) -> Result<Vec<Vec<u8>>> {
    let mut all = Vec::with_capacity(clients);
    for _ in 0..clients {
        all.push(match protocol {
            Protocol::Stateless => stateless(server, tool),
            Protocol::Sessions => in_session(server, tool).await?,
        });
    }
    Ok(all)
}

/// Returns the message of a stateless call.
pub fn message(tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
    "name": tool, "arguments": {"city": "Oslo", "days": 3},
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }}})
}

/// Returns whether a response is that of the tool.
pub fn is_expected(response: &str) -> bool {
    response.contains("structuredContent")
        && response.contains("Oslo")
        && !response.contains("\"isError\":true")
}

fn stateless(server: &Server, tool: &str) -> Vec<u8> {
    let headers =
        format!("mcp-protocol-version: {VERSION}\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n");
    post(server, &headers, &message(tool))
}

async fn in_session(server: &Server, tool: &str) -> Result<Vec<u8>> {
    let mut connection = Connection::open(server.addr).await?;
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": SESSION_VERSION, "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"}}});
    let (head, _) = connection.exchange_all(&post(server, "", &initialize)).await?;
    let session =
        head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).context("no session")?;
    let headers = format!("mcp-protocol-version: {SESSION_VERSION}\r\nmcp-session-id: {session}\r\n");
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    connection.exchange(&post(server, &headers, &initialized)).await?;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": tool, "arguments": {"city": "Oslo", "days": 3}}});
    Ok(post(server, &headers, &call))
}

fn post(server: &Server, headers: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n{body}",
        server.addr,
        server.token,
        body.len()
    )
    .into_bytes()
}
