//! A call of a no-op tool over MCP and HTTP: haft with its whole pipeline, a plain server with the same library, and
//! servers of other projects.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::load::{self, Connection, Figures};
use crate::mcp_calls::{self, Protocol};
use crate::peers;
use crate::process::Server;
use crate::tables::with_noop;

const ROUND: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;

/// One server of the table.
struct Row {
    name: &'static str,
    protocol: Protocol,
    /// `None` if it is not installed.
    server: Option<Server>,
}

impl Row {
    fn new(name: &'static str, server: Option<Server>) -> Self {
        Self { name, protocol: Protocol::Stateless, server }
    }
}

/// Prints the table.
pub async fn run() -> Result<()> {
    peers::install()?;
    let homes = [tempfile::tempdir()?, tempfile::tempdir()?];
    let rows = [
        Row::new("plain rmcp", Some(Server::start(&["serve-rmcp"])?)),
        Row::new("haft, record on disk", Some(with_noop(homes[0].path(), "disk").await?)),
        Row::new("haft, record with the OS", Some(with_noop(homes[1].path(), "os").await?)),
        Row { protocol: Protocol::Sessions, ..Row::new("TypeScript SDK 1, sessions", peers::typescript(1)?) },
        Row::new("TypeScript SDK 2", peers::typescript(2)?),
        Row::new("Python SDK", peers::python(&["sdk"])?),
        Row::new("FastMCP", peers::python(&["fastmcp"])?),
    ];
    for Row { name, protocol, server } in &rows {
        let Some(server) = server else { continue };
        let call = mcp_calls::calls(server, *protocol, "noop", 1).await?.concat();
        let response = Connection::open(server.addr).await?.exchange(&call).await?;
        ensure!(mcp_calls::is_expected(&response), "{name}: unexpected response {response}");
    }
    println!("\n## A call of a no-op tool over MCP ({}, streamable HTTP), keep-alive\n", mcp_calls::VERSION);
    println!(
        "| server | clients | calls/s | p50 µs | p99 µs | CPU µs/call | ratio to rmcp | ratio to haft |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for clients in [1, 32] {
        print(&rows, clients, &measured(&rows, clients).await?)?;
    }
    Ok(())
}

/// Returns the best of several rounds, interleaved so that noise affects all servers.
async fn measured(rows: &[Row], clients: usize) -> Result<Vec<Option<(Figures, f64)>>> {
    let mut best: Vec<Option<(Figures, f64)>> = rows.iter().map(|_| None).collect();
    for _ in 0..ROUNDS {
        for (slot, row) in best.iter_mut().zip(rows) {
            let Some(server) = &row.server else { continue };
            let found = measure(server, row.protocol, clients).await.with_context(|| row.name)?;
            if slot.as_ref().is_none_or(|(_, cpu)| found.1 < *cpu) {
                *slot = Some(found);
            }
        }
    }
    Ok(best)
}

async fn measure(server: &Server, protocol: Protocol, clients: usize) -> Result<(Figures, f64)> {
    let calls = mcp_calls::calls(server, protocol, "noop", clients).await?;
    load::run_each(server.addr, &calls, Duration::from_millis(300)).await?;
    let before = server.cpu_seconds()?;
    let figures = load::run_each(server.addr, &calls, ROUND).await?;
    let cpu = (server.cpu_seconds()? - before) * 1e6 / figures.count as f64;
    Ok((figures, cpu))
}

fn print(rows: &[Row], clients: usize, best: &[Option<(Figures, f64)>]) -> Result<()> {
    let cpu = |index: usize| best.get(index).and_then(Option::as_ref).map(|(_, cpu)| *cpu);
    let plain = cpu(0).context("no round of the plain server")?;
    let haft = cpu(1).context("no round of haft")?;
    for (row, found) in rows.iter().zip(best) {
        let Some((figures, cpu)) = found else {
            println!("| {} | {clients} | not installed | | | | | |", row.name);
            continue;
        };
        println!(
            "| {} | {clients} | {:.0} | {} | {} | {cpu:.0} | {:.2} | {:.2} |",
            row.name,
            figures.per_second,
            figures.p50.as_micros(),
            figures.p99.as_micros(),
            cpu / plain,
            cpu / haft,
        );
    }
    Ok(())
}
