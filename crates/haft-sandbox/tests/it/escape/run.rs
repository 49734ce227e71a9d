//! Runs every attempt, in the sandbox and without.

use std::process::Output;
use std::sync::Arc;

use haft_sandbox::{Command, EngineName, ExitReason, Level, Sandbox, Settings};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::World;
use super::attempt::{Attempt, Bare, REFUSED, Script, THROUGH};
use super::{environment, files, kernel, network, processes, resources};

const PATH: &str = "/usr/bin:/bin:/usr/sbin:/sbin";

/// How many attempts run at once.
const AT_ONCE: usize = 8;

fn all() -> impl Iterator<Item = &'static Attempt> {
    [
        files::ATTEMPTS,
        network::ATTEMPTS,
        processes::ATTEMPTS,
        kernel::ATTEMPTS,
        environment::ATTEMPTS,
        resources::ATTEMPTS,
    ]
    .into_iter()
    .flatten()
}

#[test]
fn there_are_many_attempts_with_a_name_each() {
    let mut names: Vec<&str> = all().map(|attempt| attempt.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "no name twice");
    assert!(count >= 60, "{count}");
}

#[tokio::test]
async fn nothing_leaves_bubblewrap_isolated() {
    holds(EngineName::Bubblewrap, Level::Isolated).await;
}

#[tokio::test]
async fn nothing_leaves_bubblewrap_on_the_host() {
    holds(EngineName::Bubblewrap, Level::Host).await;
}

#[tokio::test]
async fn nothing_leaves_landlock_isolated() {
    holds(EngineName::Landlock, Level::Isolated).await;
}

#[tokio::test]
async fn nothing_leaves_landlock_on_the_host() {
    holds(EngineName::Landlock, Level::Host).await;
}

async fn holds(engine: EngineName, level: Level) {
    let mut world = World::new();
    let settings = Settings {
        engine,
        hidden: vec![world.home.path().to_owned()],
        ..Settings::new(world.home.path().join("run"))
    };
    let sandbox = Sandbox::open(settings).unwrap();
    // After the sandbox was opened: what a library opens without care later must not be inherited, either.
    world.leave_descriptors_open();
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut tries = JoinSet::new();
    for attempt in all().filter(|attempt| attempt.applies(engine, level)) {
        let (sandbox, turns) = (sandbox.clone(), turns.clone());
        let variables = world.variables.clone();
        tries.spawn(async move {
            let _turn = turns.acquire().await;
            (attempt.name, confined(&sandbox, attempt, level, variables).await)
        });
    }
    let mut bad: Vec<(&str, String)> = tries
        .join_all()
        .await
        .into_iter()
        .filter_map(|(name, reported)| Some((name, reported.err()?)))
        .collect();
    bad.sort();
    assert!(bad.is_empty(), "{engine} {level:?}: {bad:#?}");
    assert_eq!(world.dead_victims(), [0_u32; 0], "{engine} {level:?}: no process outside was ended");
}

/// Runs an attempt confined; an error tells that it was not refused.
async fn confined(
    sandbox: &Sandbox,
    attempt: &Attempt,
    level: Level,
    variables: Vec<(String, String)>,
) -> Result<(), String> {
    let place = sandbox.place(level, None).map_err(|error| error.to_string())?;
    let mut command = Command::new(place, attempt.script.argv()).env("PATH", PATH);
    command.env.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
    command.limits = Attempt::limits();
    command.network = attempt.network;
    let finished = sandbox.run(command, &mut |_, _| {}).await.map_err(|error| error.to_string())?;
    let (out, err) = (finished.stdout.text(), finished.stderr.text());
    let refused = match (attempt.script, finished.ending) {
        (_, ExitReason::Exited(0)) if out.contains(THROUGH) => false,
        (Script::Python(_), ExitReason::Exited(0)) => out.starts_with(REFUSED),
        // No such program: nothing was tried.
        (Script::Bash(_), ExitReason::Exited(code)) => code != 127,
        // Stopped by the kernel or at a limit.
        (_, ExitReason::Signalled(_) | ExitReason::Stopped(_)) => true,
        (Script::Python(_), ExitReason::Exited(_)) => false,
    };
    if refused { Ok(()) } else { Err(format!("{:?} {out} {err}", finished.ending)) }
}

#[tokio::test]
async fn every_attempt_succeeds_without_a_sandbox() {
    let mut world = World::new();
    world.leave_descriptors_open();
    let root = rustix::process::geteuid().is_root();
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut tries = JoinSet::new();
    for attempt in all() {
        let script = match attempt.bare {
            Bare::AsRoot | Bare::HarmlessAsRoot(_) if !root => continue,
            Bare::Harmless(script) | Bare::HarmlessAsRoot(script) => script,
            _ => attempt.script,
        };
        let (turns, variables) = (turns.clone(), world.variables.clone());
        tries.spawn(async move {
            let _turn = turns.acquire().await;
            let output = tokio::task::spawn_blocking(move || bare(script, variables)).await.unwrap();
            (attempt, output)
        });
    }
    let mut bad = Vec::new();
    for (attempt, output) in tries.join_all().await {
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let through = out.contains(THROUGH);
        if !through && !matches!(attempt.bare, Bare::WhereThere) {
            bad.push((attempt.name, format!("{out} {err}")));
        } else if !through {
            println!("not on this machine: {}: {out} {err}", attempt.name);
        }
    }
    bad.sort();
    assert!(bad.is_empty(), "{bad:#?}");
}

/// Runs a script as the server would without a sandbox. Root's mounts stay in a mount namespace that ends with it.
#[expect(clippy::disallowed_methods, reason = "what the sandbox prevents is shown without it")]
fn bare(script: Script, variables: Vec<(String, String)>) -> Output {
    let work = tempfile::tempdir().unwrap();
    // `env` does nothing but start what follows.
    let root = rustix::process::geteuid().is_root();
    let mut process = std::process::Command::new(if root { "unshare" } else { "env" });
    if root {
        process.args(["--mount", "--propagation", "private"]);
    }
    process.args(script.argv()).envs(variables).env("PATH", PATH).current_dir(work.path());
    process.stdin(std::process::Stdio::null()).output().unwrap()
}
