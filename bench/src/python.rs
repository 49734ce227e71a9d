//! A call of a warm Python tool compared with starting an interpreter, in one run.

use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use haft_sandbox::{Command, ExitReason, Level, Sandbox, Settings};
use serde_json::{Value, json};

use crate::load::{self, Connection};
use crate::process::Server;

/// The number of rounds, interleaved so that noise affects all variants.
const ROUNDS: usize = 100;

/// A script with common imports.
const BODY: &str = "import json, re, os, urllib.request\nprint(json.dumps({'words': len(re.findall('[a-z]+', os.environ.get('text', '')))}))";

/// Runs everything.
pub async fn run() -> Result<()> {
    let home = tempfile::tempdir()?;
    let path = home.path().to_str().context("the path is not valid UTF-8")?;
    let server = Server::start(&["serve-haft", path, "disk"])?;
    let mut connection = Connection::open(server.addr).await?;
    for (name, sandbox) in [("isolated", true), ("host", false)] {
        let tool = json!({
            "name": name, "description": "Counts the words of a text", "runtime": "python", "body": BODY,
            "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}, "sandbox": sandbox,
        });
        let request = load::request("POST", "/api/tools", &server.token, &tool.to_string());
        connection.exchange(&request).await?;
    }
    let scratch = tempfile::tempdir()?;
    let sandbox = Sandbox::open(Settings::new(scratch.path().join("run")))?;
    let bwrap = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"];
    let python = ["/usr/bin/python3", "-c", BODY];
    let sandboxed = [bwrap.as_slice(), &python].concat();

    let names = [
        "`python3`, plain, cold",
        "`python3`, plain bwrap, cold",
        "`python3`, haft's sandbox, cold",
        "python tool through haft, warm, `sandbox: true`",
        "python tool through haft, warm, `sandbox: false`",
    ];
    let mut times: [Vec<Duration>; 5] = Default::default();
    // The first round starts the interpreters and is not counted.
    for round in 0..=ROUNDS {
        for (variant, times) in times.iter_mut().enumerate() {
            let started = Instant::now();
            match variant {
                0 => run_plain(&python)?,
                1 => run_plain(&sandboxed)?,
                2 => in_sandbox(&sandbox, &python).await?,
                3 => through_haft(&mut connection, &server, "isolated").await?,
                _ => through_haft(&mut connection, &server, "host").await?,
            }
            if round > 0 {
                times.push(started.elapsed());
            }
        }
    }
    println!("\n## A Python tool with common imports (json, re, os, urllib.request)\n");
    println!("| variant | p50 ms | p99 ms | speedup over cold |\n| --- | ---: | ---: | ---: |");
    let mut base = None;
    for (name, times) in names.iter().zip(&mut times) {
        times.sort();
        let at =
            |share: usize| times.get(times.len() * share / 100).map_or(0.0, |time| time.as_secs_f64() * 1e3);
        let base = *base.get_or_insert(at(50));
        println!("| {name} | {:.2} | {:.2} | {:.1} |", at(50), at(99), base / at(50));
    }
    Ok(())
}

fn run_plain(argv: &[&str]) -> Result<()> {
    let (program, rest) = argv.split_first().context("no program")?;
    let output = Process::new(program).args(rest).stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{argv:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

async fn in_sandbox(sandbox: &Sandbox, argv: &[&str]) -> Result<()> {
    let command = Command::new(sandbox.place(Level::Isolated, None)?, argv).env("PATH", "/usr/bin:/bin");
    let finished = sandbox.run(command, &mut |_, _| {}).await?;
    ensure!(finished.ending == ExitReason::Exited(0), "{argv:?}: {finished:?}");
    Ok(())
}

async fn through_haft(connection: &mut Connection, server: &Server, tool: &str) -> Result<()> {
    let path = format!("/api/tools/{tool}/invoke");
    let request = load::request("POST", &path, &server.token, r#"{"args":{"text":"three small words"}}"#);
    let response: Value = serde_json::from_str(&connection.exchange(&request).await?)?;
    ensure!(response["value"] == json!({"words": 3}), "{response}");
    Ok(())
}
