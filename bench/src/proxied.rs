//! The latency that a gateway adds to an MCP server: haft and other gateways in front of the same server, over HTTP and
//! over standard input and output.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::load::{self, Connection, Figures};
use crate::mcp_calls::{self, Protocol};
use crate::peers;
use crate::process::{Server, cpu_seconds};

const ROUND: Duration = Duration::from_secs(2);
const WARM_UP: Duration = Duration::from_millis(300);
const ROUNDS: usize = 5;
/// The id of the server in haft.
const SERVER_ID: &str = "behind";

/// The server behind the gateways.
enum Backend {
    Http(String),
    /// The path of this program.
    Stdio(String),
}

/// A route to the server.
enum Route {
    Direct(Box<Pipe>),
    Http(Server, Vec<u8>),
    NotInstalled,
}

/// Prints the table.
pub async fn run() -> Result<()> {
    peers::install()?;
    println!("\n## A call through a gateway to an MCP server, next to a direct one, one client\n");
    println!("| server | route | p50 ms | p99 ms | added ms | CPU µs/call |");
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    let server = Server::start(&["serve-rmcp"])?;
    let backend = Backend::Http(format!("http://{}/mcp", server.addr));
    let call = mcp_calls::calls(&server, Protocol::Stateless, "noop", 1).await?.concat();
    table("HTTP", Route::Http(server, call), &backend).await?;
    let program = std::env::current_exe()?.to_str().context("the path is not valid UTF-8")?.to_owned();
    let direct = Route::Direct(Box::new(Pipe::open(&program)?));
    table("stdio", direct, &Backend::Stdio(program)).await
}

async fn table(kind: &str, direct: Route, backend: &Backend) -> Result<()> {
    let homes = [tempfile::tempdir()?, tempfile::tempdir()?];
    let mut routes = vec![
        ("direct", direct),
        ("haft, record with the OS", haft(homes[0].path(), "os", backend).await?),
        ("haft, record on disk", haft(homes[1].path(), "disk", backend).await?),
        ("mcpo (REST)", mcpo(backend)?),
        ("FastMCP proxy", fastmcp(backend).await?),
    ];
    if let Backend::Http(url) = backend {
        routes.insert(1, ("a plain proxy (axum, reqwest)", proxy(url).await?));
    }
    for (name, route) in &mut routes {
        route.check().await.with_context(|| format!("{name}, {kind}"))?;
    }
    let mut best: Vec<Option<(Figures, f64)>> = routes.iter().map(|_| None).collect();
    for _ in 0..ROUNDS {
        for (slot, (name, route)) in best.iter_mut().zip(&mut routes) {
            let Some(found) = route.measure().await.with_context(|| format!("{name}, {kind}"))? else {
                continue;
            };
            if slot.as_ref().is_none_or(|(figures, _)| found.0.p50 < figures.p50) {
                *slot = Some(found);
            }
        }
    }
    let base = best[0].as_ref().context("no round")?.0.p50.as_secs_f64();
    for ((name, _), found) in routes.iter().zip(&best) {
        let Some((figures, cpu)) = found else {
            println!("| {kind} | {name} | not installed | | | |");
            continue;
        };
        let (p50, p99) = (figures.p50.as_secs_f64(), figures.p99.as_secs_f64());
        let added = 1e3 * (p50 - base);
        println!("| {kind} | {name} | {:.3} | {:.3} | {added:.3} | {cpu:.0} |", 1e3 * p50, 1e3 * p99);
    }
    Ok(())
}

impl Route {
    async fn check(&mut self) -> Result<()> {
        let response = match self {
            Self::NotInstalled => return Ok(()),
            Self::Direct(pipe) => pipe.exchange().await?,
            Self::Http(server, call) => Connection::open(server.addr).await?.exchange(call).await?,
        };
        // mcpo returns only the value.
        ensure!(
            mcp_calls::is_expected(&response) || response.starts_with("{\"city\":\"Oslo\""),
            "{response}"
        );
        Ok(())
    }

    /// Returns the latencies and the CPU time per call of the gateway and its descendants.
    async fn measure(&mut self) -> Result<Option<(Figures, f64)>> {
        match self {
            Self::NotInstalled => Ok(None),
            Self::Direct(pipe) => {
                pipe.run(WARM_UP).await?;
                let process = pipe.child.id().context("the server ended")?;
                let before = cpu_seconds(process)?;
                let figures = pipe.run(ROUND).await?;
                let cpu = (cpu_seconds(process)? - before) * 1e6 / figures.count as f64;
                Ok(Some((figures, cpu)))
            }
            Self::Http(server, call) => {
                load::run(server.addr, call, 1, WARM_UP).await?;
                let before = server.cpu_seconds()?;
                let figures = load::run(server.addr, call, 1, ROUND).await?;
                let cpu = (server.cpu_seconds()? - before) * 1e6 / figures.count as f64;
                Ok(Some((figures, cpu)))
            }
        }
    }
}

async fn haft(home: &Path, durability: &str, backend: &Backend) -> Result<Route> {
    let home = home.to_str().context("the path is not valid UTF-8")?;
    let server = Server::start(&["serve-haft", home, durability])?;
    let mut connection = Connection::open(server.addr).await?;
    let body = match backend {
        Backend::Http(url) => json!({"id": SERVER_ID, "url": url}),
        Backend::Stdio(program) => json!({"id": SERVER_ID, "command": program, "args": ["serve-rmcp-stdio"]}),
    };
    let add = load::request("POST", "/api/mcp-servers", &server.token, &body.to_string());
    connection.exchange(&add).await?;
    // Waits until the tools are listed.
    let refresh = format!("/api/mcp-servers/{SERVER_ID}/refresh");
    connection.exchange(&load::request("POST", &refresh, &server.token, "")).await?;
    let call =
        mcp_calls::calls(&server, Protocol::Stateless, &format!("{SERVER_ID}:noop"), 1).await?.concat();
    Ok(Route::Http(server, call))
}

/// A plain proxy, the lower bound for a gateway.
async fn proxy(url: &str) -> Result<Route> {
    let server = Server::start(&["serve-proxy", url])?;
    let call = mcp_calls::calls(&server, Protocol::Stateless, "noop", 1).await?.concat();
    Ok(Route::Http(server, call))
}

fn mcpo(backend: &Backend) -> Result<Route> {
    let server = match backend {
        Backend::Http(url) => peers::mcpo(&["--server-type", "streamable-http", "--", url])?,
        Backend::Stdio(program) => peers::mcpo(&["--", program, "serve-rmcp-stdio"])?,
    };
    let Some(server) = server else { return Ok(Route::NotInstalled) };
    let call = load::request("POST", "/noop", "none", r#"{"city":"Oslo","days":3}"#);
    Ok(Route::Http(server, call))
}

async fn fastmcp(backend: &Backend) -> Result<Route> {
    let server = match backend {
        Backend::Http(url) => peers::python(&["fastmcp-proxy", url])?,
        Backend::Stdio(program) => peers::python(&["fastmcp-proxy", program, "serve-rmcp-stdio"])?,
    };
    let Some(server) = server else { return Ok(Route::NotInstalled) };
    let call = mcp_calls::calls(&server, Protocol::Stateless, "noop", 1).await?.concat();
    Ok(Route::Http(server, call))
}

/// The server on its standard input and output; it ends when this is dropped.
struct Pipe {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    call: String,
}

impl Pipe {
    fn open(program: &str) -> Result<Self> {
        let mut child = Command::new(program)
            .arg("serve-rmcp-stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let input = child.stdin.take().context("no input")?;
        let output = BufReader::new(child.stdout.take().context("no output")?).lines();
        Ok(Self { child, input, output, call: format!("{}\n", mcp_calls::message("noop")) })
    }

    async fn exchange(&mut self) -> Result<String> {
        self.input.write_all(self.call.as_bytes()).await?;
        self.output.next_line().await?.context("the server ended")
    }

    async fn run(&mut self, time: Duration) -> Result<Figures> {
        let started = Instant::now();
        let mut times = Vec::with_capacity(100_000);
        while started.elapsed() < time {
            let sent = Instant::now();
            self.exchange().await?;
            times.push(sent.elapsed());
        }
        Ok(Figures::new(times, started.elapsed()))
    }
}
