//! Many calls leave no resources behind.

use std::fs;
use std::time::{Duration, Instant};

use haft_sandbox::{Command, EngineName, ExitReason, Level};
use haft_testkit::soak::rounds;
use tokio::task::JoinSet;

use crate::rig::{ENGINES, Rig};
use crate::tree::{groups_of, name_of};

/// How long idle threads are kept.
const KEEP_ALIVE: Duration = Duration::from_millis(50);
/// How long a test waits for a condition before it fails.
const DEADLINE: Duration = Duration::from_secs(20);

/// The resources of this process.
#[derive(Debug, PartialEq, Eq)]
struct Holdings {
    descriptors: usize,
    threads: usize,
    children: Vec<String>,
    groups: Vec<String>,
    scratch: usize,
}

fn holdings(rig: &Rig) -> Holdings {
    let count = |folder: &str| fs::read_dir(folder).unwrap().count();
    let children = fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        children.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    Holdings {
        descriptors: count("/proc/self/fd"),
        threads: count("/proc/self/task"),
        children: children.flatten().collect(),
        groups: groups_of(&name_of(std::process::id())),
        scratch: fs::read_dir(rig.home.path().join("run")).unwrap().count(),
    }
}

async fn all_run(rig: &Rig, count: usize, at_once: usize) {
    let turns = std::sync::Arc::new(tokio::sync::Semaphore::new(at_once));
    let mut calls = JoinSet::new();
    for number in 0..count {
        let (sandbox, turns) = (rig.sandbox.clone(), turns.clone());
        calls.spawn(async move {
            let _turn = turns.acquire().await;
            let place = sandbox.place(Level::Isolated, None).unwrap();
            let argv = ["/bin/sh".to_owned(), "-c".to_owned(), format!("echo {number} | tee file")];
            let command = Command::new(place, argv).env("PATH", "/usr/bin:/bin");
            let finished = sandbox.run(command, &mut |_, _| {}).await.unwrap();
            let reported = (finished.ending, finished.stdout.text().into_owned());
            assert_eq!(
                reported,
                (ExitReason::Exited(0), format!("{number}\n")),
                "{}",
                finished.stderr.text()
            );
        });
    }
    assert_eq!(calls.join_all().await.len(), count);
}

/// Waits until the holdings stay the same for as long as idle threads are kept, several times over.
async fn settled(rig: &Rig) -> Holdings {
    let start = Instant::now();
    let (mut last, mut since) = (holdings(rig), Instant::now());
    while since.elapsed() < 10 * KEEP_ALIVE && start.elapsed() < DEADLINE {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let now = holdings(rig);
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    last
}

fn check(engine: EngineName, count: usize, at_once: usize) {
    // As the first process of a container, which gets every process whose parent has ended.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    // Threads that wait for work end soon, so that those which stay can be counted.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_keep_alive(KEEP_ALIVE)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let rig = Rig::new(engine);
        all_run(&rig, 2, 1).await;
        let before = settled(&rig).await;
        all_run(&rig, count, at_once).await;
        let start = Instant::now();
        let mut after = holdings(&rig);
        while after != before && start.elapsed() < DEADLINE {
            tokio::time::sleep(Duration::from_millis(20)).await;
            after = holdings(&rig);
        }
        assert_eq!(after, before, "{engine}");
    });
}

#[test]
fn nothing_is_left_after_many_calls() {
    for engine in ENGINES {
        check(engine, rounds(300), 8);
    }
}

#[test]
fn two_hundred_calls_at_once_all_end_well() {
    for engine in ENGINES {
        check(engine, 200, 200);
    }
}
