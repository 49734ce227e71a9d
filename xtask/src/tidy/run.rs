//! Reads the repository and lets every rule look at it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::finding::Finding;
use super::{arrows, cycles, dependencies, layers, lock, sources};

/// The folders that hold our sources.
const FOLDERS: [&str; 4] = ["crates", "xtask", "bench", "fuzz"];

/// The platform whose dependencies are checked.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Checks the repository at `root` against every rule.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let mut findings = arrows::check(&metadata(root, &["--no-deps"])?, root)?;
    findings.extend(dependencies::check(&metadata(root, &["--filter-platform", PLATFORM])?, root)?);
    let lock_file = root.join("Cargo.lock");
    let text = fs::read_to_string(&lock_file).with_context(|| format!("read {}", lock_file.display()))?;
    findings.extend(lock::check(&text));
    let mut texts = Vec::new();
    for folder in FOLDERS {
        let mut files = Vec::new();
        collect(&root.join(folder), &mut files)?;
        files.sort();
        for file in files {
            let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
            let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
            findings.extend(layers::check(&name, &text));
            findings.extend(sources::check(&name, &text));
            texts.push((name, text));
        }
    }
    findings.extend(cycles::check(&texts));
    Ok(findings)
}

#[expect(clippy::disallowed_methods, reason = "this program asks cargo, it is no part of haft")]
fn metadata(root: &Path, options: &[&str]) -> anyhow::Result<Value> {
    let output = Command::new(option_env!("CARGO").unwrap_or("cargo"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(options)
        .current_dir(root)
        .output()
        .context("run `cargo metadata`")?;
    ensure!(output.status.success(), "`cargo metadata`: {}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("read the answer of `cargo metadata`")
}

/// Collects the Rust files below a folder; generated ones live in `target`.
pub(super) fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
