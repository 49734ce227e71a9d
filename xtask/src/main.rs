//! Checks of the repository that no ordinary tool makes: `cargo xtask tidy`.

mod tidy;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => run_tidy(),
        _ => bail!("usage: cargo xtask tidy"),
    }
}

fn run_tidy() -> anyhow::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("find the workspace root")?;
    let findings = tidy::check(root)?;
    let mut out = std::io::stdout().lock();
    for finding in &findings {
        writeln!(out, "{finding}\n")?;
    }
    if findings.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "tidy: {} finding(s)", findings.len())?;
    Ok(ExitCode::FAILURE)
}
