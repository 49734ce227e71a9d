//! Snapshots of folders, next to git, a walk that hashes every file, and `cp -r`.

use std::fs;
use std::hash::Hasher as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use haft_workspace::{Limits, LocalPacks, Workspace};

/// How often each step is measured; the best time counts.
const ROUNDS: usize = 5;
/// The number of files in one folder.
const PER_FOLDER: usize = 100;

/// Measures folders with these numbers of files.
pub fn run(counts: &[usize]) -> Result<()> {
    println!("\n## Snapshots of a folder of small files\n");
    println!("| files | step | haft ms | git ms | others ms |");
    println!("| ---: | --- | ---: | ---: | --- |");
    counts.iter().try_for_each(|count| measure(*count))
}

fn measure(count: usize) -> Result<()> {
    let home = tempfile::tempdir()?;
    let packs = Arc::new(LocalPacks::open(home.path().join("packs"))?);
    let workspace = Workspace::open(&home.path().join("workspace"), packs, Limits::default())?;
    workspace.begin_change()?;
    fill(workspace.folder(), count)?;
    let (full, first) = timed(|| Ok(workspace.snapshot()?.manifest))?;

    let tree = home.path().join("git");
    fill(&tree, count)?;
    git(&tree, &["init", "--quiet"])?;
    let (git_full, ()) = timed(|| git_tree(&tree))?;
    let (hashed, ()) = best(|_| timed(|| hash_all(workspace.folder())))?;
    let copy = home.path().join("copy");
    let (copied, ()) = timed(|| {
        let done = Command::new("cp").arg("-r").arg(workspace.folder()).arg(&copy).status()?;
        ensure!(done.success(), "`cp -r` failed");
        Ok(())
    })?;
    row(
        count,
        "all files",
        full,
        Some(git_full),
        &format!("hash all {:.0}, `cp -r` {:.0}", ms(hashed), ms(copied)),
    );

    let mut last = first;
    let (changed, ()) = best(|round| {
        workspace.begin_change()?;
        fs::write(workspace.folder().join("folder-0/file-0.txt"), format!("changed {round}"))?;
        let (time, manifest) = timed(|| Ok(workspace.snapshot()?.manifest))?;
        last = manifest;
        Ok((time, ()))
    })?;
    let (git_changed, ()) = best(|round| {
        fs::write(tree.join("folder-0/file-0.txt"), format!("changed {round}"))?;
        timed(|| git_tree(&tree))
    })?;
    row(count, "one file changed", changed, Some(git_changed), "");

    let (switched, ()) = best(|round| {
        let manifest = if round % 2 == 0 { &first } else { &last };
        timed(|| Ok(workspace.checkout(manifest)?))
    })?;
    row(count, "check out a state with one other file", switched, None, "");
    Ok(())
}

fn row(count: usize, step: &str, haft: Duration, git: Option<Duration>, others: &str) {
    let git = git.map(|time| format!("{:.0}", ms(time))).unwrap_or_default();
    println!("| {count} | {step} | {:.0} | {git} | {others} |", ms(haft));
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(Duration, T)> {
    let started = Instant::now();
    let done = work()?;
    Ok((started.elapsed(), done))
}

/// Returns the best time of several rounds.
fn best(mut round: impl FnMut(usize) -> Result<(Duration, ())>) -> Result<(Duration, ())> {
    let mut shortest = Duration::MAX;
    for number in 0..ROUNDS {
        shortest = shortest.min(round(number)?.0);
    }
    Ok((shortest, ()))
}

/// Writes small files, each different.
fn fill(folder: &Path, count: usize) -> Result<()> {
    for number in 0..count {
        let parent = folder.join(format!("folder-{}", number / PER_FOLDER));
        fs::create_dir_all(&parent)?;
        let text = format!("This is file {number}.\n").repeat(20);
        fs::write(parent.join(format!("file-{}.txt", number % PER_FOLDER)), text)?;
    }
    Ok(())
}

fn git_tree(folder: &Path) -> Result<()> {
    git(folder, &["add", "-A"])?;
    git(folder, &["write-tree"])
}

fn git(folder: &Path, args: &[&str]) -> Result<()> {
    let status = Command::new("git").current_dir(folder).args(args).stdout(Stdio::null()).status();
    ensure!(status.context("cannot start git")?.success(), "git {args:?} failed");
    Ok(())
}

/// Reads and hashes every file.
fn hash_all(folder: &Path) -> Result<()> {
    let mut hasher = std::collections::hash_map::DefaultHasher::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                hasher.write(&fs::read(entry.path())?);
            }
        }
    }
    std::hint::black_box(hasher.finish());
    Ok(())
}
