//! Sandboxed processes compared with plain processes and other sandboxes, in one run.

use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use haft_sandbox::{Command, EngineName, ExitReason, Level, Sandbox, Settings};
use tokio::task::JoinSet;

/// The number of rounds, interleaved so that noise affects all variants.
const ROUNDS: usize = 200;
/// The number of concurrent processes, and the total number in the test for leaks.
const CONCURRENT: usize = 200;
const TOTAL: usize = 1000;

/// Runs everything.
pub async fn run() -> Result<()> {
    let home = tempfile::tempdir()?;
    let sandbox = open(home.path())?;
    for engine in [EngineName::Bubblewrap, EngineName::Landlock] {
        let verdict = sandbox.probe_report(engine).await;
        ensure!(verdict.passed(), "{engine}: {:?}", verdict.reason());
    }
    println!("\n## One sandboxed process\n");
    println!("| variant | p50 ms | p99 ms | ratio to plain |\n| --- | ---: | ---: | ---: |");
    latencies(&sandbox).await?;
    println!("\n## Many sandboxed processes (bubblewrap)\n");
    println!("| processes | errors | seconds | memory before MB | after MB | left behind |");
    println!("| --- | ---: | ---: | ---: | ---: | --- |");
    many(&sandbox, home.path(), CONCURRENT, CONCURRENT).await?;
    many(&sandbox, home.path(), TOTAL, 8).await
}

fn open(home: &Path) -> Result<Sandbox> {
    Ok(Sandbox::open(Settings { hidden: vec![home.to_owned()], ..Settings::new(home.join("run")) })?)
}

/// How a program is run.
enum Variant {
    Plain(Vec<&'static str>),
    Sandboxed(EngineName, Level, Vec<&'static str>),
}

async fn latencies(sandbox: &Sandbox) -> Result<()> {
    let isolated = |engine, argv: &[&'static str]| Variant::Sandboxed(engine, Level::Isolated, argv.to_vec());
    let (bwrap, landlock) = (EngineName::Bubblewrap, EngineName::Landlock);
    let plain = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"];
    let mut variants = vec![
        ("`true`, plain", Variant::Plain(vec!["true"])),
        ("`bash -c true`, plain", Variant::Plain(vec!["bash", "-c", "true"])),
        ("`true`, plain bwrap", Variant::Plain(plain.to_vec())),
        ("`true`, haft, bubblewrap, `sandbox: true`", isolated(bwrap, &["true"])),
        ("`bash -c true`, haft, bubblewrap, `sandbox: true`", isolated(bwrap, &["bash", "-c", "true"])),
        (
            "`bash -c true`, haft, bubblewrap, `sandbox: false`",
            Variant::Sandboxed(bwrap, Level::Host, vec!["bash", "-c", "true"]),
        ),
        ("`true`, haft, landlock, `sandbox: true`", isolated(landlock, &["true"])),
        ("`bash -c true`, haft, landlock, `sandbox: true`", isolated(landlock, &["bash", "-c", "true"])),
    ];
    let bundle = runc_bundle();
    if bundle.is_some() {
        variants.push(("`true`, runc", Variant::Plain(vec!["runc"])));
    }
    let mut times: Vec<Vec<Duration>> = variants.iter().map(|_| Vec::with_capacity(ROUNDS)).collect();
    for round in 0..ROUNDS {
        for ((_, variant), times) in variants.iter().zip(&mut times) {
            let started = Instant::now();
            match variant {
                Variant::Plain(argv) if argv == &["runc"] => {
                    runc(bundle.as_ref().context("no bundle")?.path(), round)?
                }
                Variant::Plain(argv) => run_plain(argv)?,
                Variant::Sandboxed(engine, level, argv) => {
                    run_sandboxed(sandbox, *engine, *level, argv).await?
                }
            }
            times.push(started.elapsed());
        }
    }
    let mut base = None;
    for ((name, _), times) in variants.iter().zip(&mut times) {
        times.sort();
        let at =
            |share: usize| times.get(times.len() * share / 100).map_or(0.0, |time| time.as_secs_f64() * 1e3);
        let base = *base.get_or_insert(at(50));
        println!("| {name} | {:.2} | {:.2} | {:.1} |", at(50), at(99), at(50) / base);
    }
    Ok(())
}

fn run_plain(argv: &[&str]) -> Result<()> {
    let (program, rest) = argv.split_first().context("no program")?;
    let status =
        Process::new(program).args(rest).stdin(Stdio::null()).stdout(Stdio::piped()).output()?.status;
    ensure!(status.success(), "{argv:?}: {status}");
    Ok(())
}

async fn run_sandboxed(sandbox: &Sandbox, engine: EngineName, level: Level, argv: &[&str]) -> Result<()> {
    let command = Command::new(sandbox.place(level, Some(engine))?, argv).env("PATH", "/usr/bin:/bin");
    let finished = sandbox.run(command, &mut |_, _| {}).await?;
    ensure!(finished.ending == ExitReason::Exited(0), "{engine} {argv:?}: {finished:?}");
    Ok(())
}

/// Creates a bundle for runc with the programs of this machine; `None` if runc is not installed.
fn runc_bundle() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().ok()?;
    let status = Process::new("runc").args(["spec", "--bundle"]).arg(folder.path()).status().ok()?;
    if !status.success() {
        return None;
    }
    let path = folder.path().join("config.json");
    let mut spec: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
    *spec.pointer_mut("/process/terminal")? = false.into();
    *spec.pointer_mut("/process/args")? = serde_json::json!(["/usr/bin/true"]);
    let root = folder.path().join("rootfs");
    std::fs::create_dir_all(root.join("usr")).ok()?;
    for link in ["bin", "lib", "lib64", "sbin"] {
        std::os::unix::fs::symlink(format!("usr/{link}"), root.join(link)).ok()?;
    }
    let mounts = spec.pointer_mut("/mounts")?.as_array_mut()?;
    // Not every machine can mount the control group, and the program does not need it.
    mounts.retain(|mount| mount["type"] != "cgroup");
    let options = ["rbind", "ro"];
    mounts.push(
        serde_json::json!({"destination": "/usr", "type": "bind", "source": "/usr", "options": options}),
    );
    std::fs::write(path, spec.to_string()).ok()?;
    runc(folder.path(), ROUNDS).ok()?;
    Some(folder)
}

fn runc(bundle: &Path, round: usize) -> Result<()> {
    let name = format!("haft-bench-{}-{round}", std::process::id());
    let output = Process::new("runc").args(["run", "--bundle"]).arg(bundle).arg(name).output()?;
    ensure!(output.status.success(), "runc: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Runs many processes and counts what they leave behind.
async fn many(sandbox: &Sandbox, home: &Path, count: usize, concurrent: usize) -> Result<()> {
    let (before, mounts) = (resident_megabytes()?, mounts()?);
    let started = Instant::now();
    let (mut running, mut errors, mut started_count) = (JoinSet::new(), 0, 0);
    while started_count < count || !running.is_empty() {
        while started_count < count && running.len() < concurrent {
            let sandbox = sandbox.clone();
            running.spawn(async move {
                // The tool leaves a file and a process behind.
                let script = ["bash", "-c", "echo x > y; (setsid sleep 1000 &) ; true"];
                run_sandboxed(&sandbox, EngineName::Bubblewrap, Level::Isolated, &script).await
            });
            started_count += 1;
        }
        if let Some(ended) = running.join_next().await {
            errors += usize::from(ended?.is_err());
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let left = [
        ("processes", children()?),
        ("mounts", self::mounts()?.saturating_sub(mounts)),
        ("control groups", groups()),
        (
            "files",
            std::fs::read_dir(home.join("run"))?.flatten().filter(|entry| entry.path().is_dir()).count(),
        ),
    ];
    let left: Vec<String> =
        left.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{n} {what}")).collect();
    let left = if left.is_empty() { "nothing".to_owned() } else { left.join(", ") };
    let after = resident_megabytes()?;
    println!(
        "| {count}, {concurrent} at once | {errors} | {seconds:.1} | {before:.0} | {after:.0} | {left} |"
    );
    Ok(())
}

fn resident_megabytes() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).context("no number")?.parse::<f64>()? / 1024.0)
}

fn mounts() -> Result<usize> {
    Ok(std::fs::read_to_string("/proc/self/mounts")?.lines().count())
}

/// Counts the child processes, including zombies.
fn children() -> Result<usize> {
    let mut count = 0;
    for task in std::fs::read_dir("/proc/self/task")?.flatten() {
        let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        count += text.split_whitespace().count();
    }
    Ok(count)
}

/// Counts the remaining control groups of this process.
fn groups() -> usize {
    fn below(folder: &Path, own: &str, depth: usize) -> usize {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| {
                let ours = entry.file_name().to_string_lossy().starts_with(own);
                usize::from(ours) + if depth > 0 { below(&entry.path(), own, depth - 1) } else { 0 }
            })
            .sum()
    }
    below(Path::new("/sys/fs/cgroup"), &format!("haft-sandbox-{}-", std::process::id()), 4)
}
