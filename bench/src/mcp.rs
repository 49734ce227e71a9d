//! A call of a no-op tool by MCP over HTTP: haft with its whole pipeline next to a plain server of the same library.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::load::{self, Connection, Figures};
use crate::process::Server;
use crate::tables::with_noop;

const ROUND: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;
const VERSION: &str = "2026-07-28";

/// Prints the table.
pub async fn run() -> Result<()> {
    println!("\n## A call of a no-op tool by MCP ({VERSION}, streamable HTTP), keep-alive\n");
    println!("| server | clients | calls/s | of rmcp | p50 µs | p99 µs | CPU µs/call | of rmcp |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let homes = [tempfile::tempdir()?, tempfile::tempdir()?];
    let plain = Server::start(&["serve-rmcp"])?;
    let disk = with_noop(homes[0].path(), "disk").await?;
    let system = with_noop(homes[1].path(), "os").await?;
    let servers =
        [("plain rmcp", &plain), ("haft, record on disk", &disk), ("haft, record with the OS", &system)];
    for (name, server) in &servers {
        let answer = Connection::open(server.addr).await?.exchange(&request(server)).await?;
        anyhow::ensure!(answer.contains("structuredContent"), "{name} answers {answer}");
    }
    for clients in [1, 32] {
        let mut best: [Option<(Figures, f64)>; 3] = [None, None, None];
        for _ in 0..ROUNDS {
            for (slot, (_, server)) in best.iter_mut().zip(&servers) {
                let found = measure(server, clients).await?;
                if slot.as_ref().is_none_or(|(_, cpu)| found.1 < *cpu) {
                    *slot = Some(found);
                }
            }
        }
        let base = best[0].as_ref().map_or((1.0, 1.0), |(figures, cpu)| (figures.per_second, *cpu));
        for ((name, _), slot) in servers.iter().zip(&best) {
            let (figures, cpu) = slot.as_ref().context("no round")?;
            println!(
                "| {name} | {clients} | {:.0} | {:.0}% | {} | {} | {cpu:.0} | {:.2} |",
                figures.per_second,
                100.0 * figures.per_second / base.0,
                figures.p50.as_micros(),
                figures.p99.as_micros(),
                cpu / base.1,
            );
        }
    }
    Ok(())
}

async fn measure(server: &Server, clients: usize) -> Result<(Figures, f64)> {
    let request = request(server);
    load::run(server.addr, &request, clients, Duration::from_millis(300)).await?;
    let before = server.cpu_seconds()?;
    let figures = load::run(server.addr, &request, clients, ROUND).await?;
    let cpu = (server.cpu_seconds()? - before) * 1e6 / figures.count as f64;
    Ok((figures, cpu))
}

fn request(server: &Server) -> Vec<u8> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
    "name": "noop", "arguments": {"city": "Oslo", "days": 3},
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }}})
    .to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: {VERSION}\r\n\
         mcp-method: tools/call\r\nmcp-name: noop\r\ncontent-length: {}\r\n\r\n{body}",
        server.token,
        body.len()
    )
    .into_bytes()
}
