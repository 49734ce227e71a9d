//! Lists and explanations in an installation with many tools in many tenants.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::load::{self, Connection, Figures};
use crate::process::Server;

const TENANTS: usize = 100;
const ROUNDS: usize = 2000;
/// The rules of each tenant.
const RULES: usize = 20;

/// Measures with this many tools in all tenants together.
pub async fn run(count: usize) -> Result<()> {
    let home = tempfile::tempdir()?;
    let path = home.path().to_str().context("the path is not valid UTF-8")?;
    let server = Server::start(&["serve-haft", path, "disk"])?;
    let token = create_tenants(&server).await?;
    drop(server);
    for tenant in 0..TENANTS {
        write_tools(&home.path().join(format!("skills/@tenant-{tenant}")), count / TENANTS)?;
    }
    // The second start reads no files.
    drop(Server::start(&["serve-haft", path, "disk"])?);
    let server = Server::start(&["serve-haft", path, "disk"])?;
    println!("\n## {count} tools in {TENANTS} tenants, {RULES} rules each, one client\n");
    println!("Start {} ms, {:.0} MB.\n", server.ready_after.as_millis(), server.resident_megabytes()?);
    println!("| request of a tenant | p50 µs | p99 µs |");
    println!("| --- | ---: | ---: |");
    let explain = json!({"tool": "tool-7", "args": {"city": "Paris", "days": 3}, "as": {"role": "caller"}});
    for (name, request) in [
        ("list, 50 tools", load::request("GET", "/api/tools?page_size=50", &token, "")),
        ("list, filtered by text", load::request("GET", "/api/tools?page_size=50&q=tool-77", &token, "")),
        ("explain", load::request("POST", "/api/policy/explain", &token, &explain.to_string())),
        ("call", load::request("POST", "/api/tools/tool-7/invoke", &token, r#"{"args":{"city":"Paris"}}"#)),
    ] {
        let figures = measure(&server, &request).await?;
        println!("| {name} | {} | {} |", figures.p50.as_micros(), figures.p99.as_micros());
    }
    Ok(())
}

/// Creates the tenants with their rules; returns a token of the last one.
async fn create_tenants(server: &Server) -> Result<String> {
    let mut connection = Connection::open(server.addr).await?;
    let mut post = async |method: &str, path: &str, token: &str, body: Value| -> Result<Value> {
        let request = load::request(method, path, token, &body.to_string());
        Ok(serde_json::from_str(&connection.exchange(&request).await?)?)
    };
    let rules: Vec<Value> = (0..RULES)
        .map(|index| {
            json!({"name": format!("rule-{index}"), "match": {"tools": [format!("tool-{index}*")]},
                   "when": format!("has(args.days) && args.days > {}", 10 + index), "effect": "deny"})
        })
        .collect();
    let mut token = String::new();
    for tenant in 0..TENANTS {
        let id = format!("tenant-{tenant}");
        post("POST", "/api/tenants", &server.token, json!({"id": id, "name": id})).await?;
        let body = json!({"tenant": id, "name": "admin", "role": "admin"});
        let answer = post("POST", "/api/tokens", &server.token, body).await?;
        token = answer["data"]["token"].as_str().context("no token")?.to_owned();
        post("PUT", "/api/policy", &token, json!({"rules": rules})).await?;
    }
    Ok(token)
}

fn write_tools(folder: &Path, count: usize) -> Result<()> {
    let folder = folder.join("user-created");
    std::fs::create_dir_all(&folder)?;
    for index in 0..count {
        let text = format!(
            "name: tool-{index}\ndescription: The tool number {index} of the tenant\nparams:\n  - {{name: city, type: \
             string, required: true}}\n  - {{name: days, type: integer}}\nimplementation: {{type: builtin, function: noop}}\n"
        );
        std::fs::write(folder.join(format!("tool-{index}.yaml")), text)?;
    }
    Ok(())
}

async fn measure(server: &Server, request: &[u8]) -> Result<Figures> {
    let mut connection = Connection::open(server.addr).await?;
    for _ in 0..50 {
        connection.exchange(request).await?;
    }
    let (started, mut times): (_, Vec<Duration>) = (Instant::now(), Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        let sent = Instant::now();
        connection.exchange(request).await?;
        times.push(sent.elapsed());
    }
    Ok(Figures::new(times, started.elapsed()))
}
