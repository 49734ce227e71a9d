//! Several processes on one home, and processes that are killed. The children run this test program.
#![expect(clippy::print_stdout, reason = "a child reports to its parent on standard output")]

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use haft_core::call::{CallRecord, CallStatus};
use haft_core::catalog::{Change, ChangeSink, StoreError};
use haft_core::id::CallId;
use haft_core::ledger::Ledger as _;
use haft_core::name::TenantId;
use haft_core::run::{RunStore as _, RunUsage};
use haft_core::{Clock, Timestamp};
use haft_store::{Store, StoreSettings};
use haft_testkit::soak::kills;
use serde_json::json;

use crate::harness::{Harness, new_tool, spec};

/// The variable with the job of a child and its home folder.
const JOB: &str = "HAFT_STORE_TEST_JOB";

struct RealClock;

impl Clock for RealClock {
    #[expect(clippy::disallowed_methods, reason = "a child process needs a clock of its own")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

struct NullSink;

impl ChangeSink for NullSink {
    fn apply(&self, _: Vec<Change>) {}
    fn replace(&self, _: Vec<Change>) {}
}

/// Starts a child; `limit` is the largest file it may write, in KiB.
fn child(job: &str, home: &Path, limit: Option<u32>) -> Child {
    command(job, home, limit).spawn().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the test starts itself")]
fn command(job: &str, home: &Path, limit: Option<u32>) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut command = match limit {
        None => Command::new(program),
        Some(kib) => {
            let mut shell = Command::new("sh");
            let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", kib * 2);
            shell.args(["-c", &script]).arg(program);
            shell
        }
    };
    command
        .args(["--exact", "processes::the_child", "--ignored", "--nocapture"])
        .env(JOB, format!("{job} {}", home.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Returns the lines that a child reports until it ends.
fn report(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("> ").map(str::to_owned))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by other tests as their child"]
#[expect(clippy::disallowed_methods, reason = "a child gets its job from the environment")]
async fn the_child() {
    let Ok(job) = std::env::var(JOB) else { return };
    let (job, home) = job.split_once(' ').unwrap();
    let store =
        Store::open(StoreSettings::embedded(home), Arc::new(RealClock), Arc::new(NullSink)).await.unwrap();
    match job {
        "race" => race(&store).await,
        "work" => work(store).await,
        "grow" => grow(&store).await,
        "shut" => shut(Path::new(home), &store).await,
        "run" => run(&store).await,
        other => panic!("{other}"),
    }
}

async fn race(store: &Arc<Store>) {
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..4 {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            let spec = spec("weather", &format!("process {} task {task}", std::process::id()));
            match store.catalog().create_tool(new_tool("web", spec)).await {
                Ok(tool) => println!("> created {}", tool.spec.description),
                Err(StoreError::Conflict(_)) => println!("> conflict"),
                Err(error) => println!("> {error:?}"),
            }
        });
    }
    tasks.join_all().await;
}

/// Writes until it is killed; reports acknowledged writes.
async fn work(store: Arc<Store>) {
    let _watching = store.watch();
    let mut tasks = tokio::task::JoinSet::new();
    let calls = store.calls().clone();
    tasks.spawn(async move {
        loop {
            let record = call();
            calls.record(Arc::new(record.clone())).await.unwrap();
            println!("> call {}", record.id());
        }
    });
    tasks.spawn(async move {
        for number in 0.. {
            let name = format!("t{}-{number}", std::process::id());
            let tool = store.catalog().create_tool(new_tool("web", spec(&name, "one"))).await.unwrap();
            println!("> tool {name} one");
            store.catalog().update_tool(tool.id, spec(&name, "two").into()).await.unwrap();
            println!("> tool {name} two");
        }
    });
    tasks.join_all().await;
}

/// Appends steps to a run until it is killed; reports acknowledged ones.
async fn run(store: &Store) {
    let run = crate::runs::run_at(&RealClock, "default");
    let (run, lease) = store.runs().create_claimed(run).await.unwrap();
    println!("> run {}", run.id);
    for number in 1.. {
        let usage = RunUsage { answers: number, ..RunUsage::default() };
        store.runs().append_steps(&lease, vec![crate::runs::step(&RealClock, number)], &usage).await.unwrap();
        println!("> step {number}");
    }
}

/// Writes a definition that exceeds the size limit of files.
async fn grow(store: &Store) {
    let tool = store.catalog().create_tool(new_tool("web", spec("weather", "small"))).await.unwrap();
    println!("> created");
    let result = store.catalog().update_tool(tool.id, spec("weather", &"x".repeat(700 * 1024)).into()).await;
    println!(
        "> {}",
        if matches!(result, Err(StoreError::Unavailable { .. })) { "rejected" } else { "written" }
    );
    store.catalog().update_tool(tool.id, spec("weather", "still small").into()).await.unwrap();
    println!("> continues");
}

/// Removes the permissions of a folder; reports the state of its tools.
async fn shut(home: &Path, store: &Store) {
    let open = store.catalog().create_tool(new_tool("open", spec("open", "one"))).await.unwrap();
    let shut = store.catalog().create_tool(new_tool("shut", spec("shut", "one"))).await.unwrap();
    let folder = home.join("skills/shut");
    for mode in [0o000, 0o400, 0o700] {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
        let report = store.catalog().reindex().await.unwrap();
        println!("> {mode:03o}: {} tools, {} unreadable", report.tools, report.unreadable);
    }
    for tool in [open, shut] {
        println!("> revisions {}", store.catalog().revisions(tool.id).await.unwrap().len());
    }
}

fn call() -> CallRecord {
    let invocation = crate::ledger::invocation(CallId(uuid::Uuid::now_v7()));
    let mut record = CallRecord::open(invocation, CallStatus::Success, RealClock.now());
    record.value = Some(json!("x".repeat(300)));
    record
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_concurrent_creations_in_many_processes_one_succeeds() {
    let mut harness = Harness::sqlite().await;
    let mut children: Vec<Child> = (0..8).map(|_| child("race", harness.home(), None)).collect();
    let mut lines: Vec<String> = Vec::new();
    for child in &mut children {
        lines.extend(report(child));
        assert!(child.wait().unwrap().success());
    }
    let (won, lost): (Vec<&String>, Vec<&String>) =
        lines.iter().partition(|line| line.starts_with("created "));
    assert_eq!((won.len(), lost.len()), (1, 31), "{lines:?}");
    assert!(lost.iter().all(|line| *line == "conflict"), "{lost:?}");
    harness.restart().await;
    let mirror = harness.mirror();
    let tool = mirror.named("weather").unwrap();
    assert_eq!(Some(tool.spec.description.as_str()), won[0].strip_prefix("created "));
    let files = std::fs::read_dir(harness.path("skills/web")).unwrap().count();
    assert_eq!(files, 2, "the definition and bundle.yaml");
    assert!(mirror.unreadable.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_loses_nothing_that_was_acknowledged() {
    let mut harness = Harness::sqlite().await;
    harness.store.close().await;
    for round in 0..kills(40) {
        let mut worker = child("work", harness.home(), None);
        let mut lines = report(&mut worker);
        let mut acknowledged: Vec<String> = lines.by_ref().take(20 + 57 * (round % 8)).collect();
        worker.kill().unwrap();
        // Reports that were sent before the kill count too.
        acknowledged.extend(lines);
        worker.wait().unwrap();
        harness.reopen().await;
        let mirror = harness.mirror();
        let mut tools: HashSet<(&str, &str)> = HashSet::new();
        for line in &acknowledged {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["tool", name, state] => drop(tools.insert((name, state))),
                ["call", id] => {
                    let id = id.parse().unwrap();
                    let found = harness.store.calls().call(&TenantId::default_tenant(), id).await.unwrap();
                    assert!(found.is_some(), "the call {id} is lost");
                }
                // Cut short by the kill: not acknowledged.
                _ => {}
            }
        }
        for (name, state) in tools {
            let now = mirror.named(name).map(|tool| tool.spec.description.as_str());
            assert!(now == Some(state) || now == Some("two"), "{name} is {now:?}, not {state}");
        }
        assert!(mirror.unreadable.is_empty(), "{:?}", mirror.unreadable);
        // The folder is missing if no tool was created before the kill.
        let half = std::fs::read_dir(harness.path("skills/web"))
            .into_iter()
            .flatten()
            .any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with('.'));
        assert!(!half, "a temporary file remains");
        harness.assert_consistent().await;
        harness.store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_keeps_the_old_file() {
    let harness = Harness::sqlite().await;
    harness.store.close().await;
    // Files are limited to 600 KiB: like a full disk in the middle of a write.
    let mut worker = child("grow", harness.home(), Some(600));
    let lines: Vec<String> = report(&mut worker).collect();
    assert!(worker.wait().unwrap().success());
    assert_eq!(lines, ["created", "rejected", "continues"]);
    let (store, sink) = harness.another().await;
    assert_eq!(sink.mirror().named("weather").unwrap().spec.description, "still small");
    store.close().await;
}

/// A folder without permissions hides neither the others nor its own tools.
#[test]
fn a_folder_that_cannot_be_listed_keeps_its_tools() {
    const NOBODY: u32 = 65534;
    let home = tempfile::tempdir().unwrap();
    let mut command = command("shut", home.path(), None);
    // Root may read everything, so another user runs the test.
    if std::fs::metadata(home.path()).unwrap().uid() == 0 {
        std::os::unix::fs::chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut worker = command.spawn().unwrap();
    let lines: Vec<String> = report(&mut worker).collect();
    assert!(worker.wait().unwrap().success(), "{lines:?}");
    assert_eq!(
        lines,
        [
            "000: 2 tools, 1 unreadable",
            "400: 2 tools, 1 unreadable",
            "700: 2 tools, 0 unreadable",
            "revisions 1",
            "revisions 1"
        ]
    );
}

/// The next process continues a run at once, with every step that was acknowledged and no gap.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_continues_after_its_process_is_killed() {
    let home = tempfile::tempdir().unwrap();
    for round in 0..kills(50) {
        let mut child = child("run", home.path(), None);
        let (mut id, mut last) = (String::new(), 0);
        let mut lines = report(&mut child);
        while last < 3 + round % 20 {
            let line = lines.next().unwrap();
            match line.split_once(' ').unwrap() {
                ("run", run) => run.clone_into(&mut id),
                (_, number) => last = number.parse().unwrap(),
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What was reported before the kill counts, too.
        for line in lines {
            last = line.split_once(' ').unwrap().1.parse().unwrap();
        }
        let settings = StoreSettings::embedded(home.path());
        let store = Store::open(settings, Arc::new(RealClock), Arc::new(NullSink)).await.unwrap();
        let mut claimed = store.runs().claim_next(10).await.unwrap();
        assert_eq!(claimed.len(), 1, "the run can be claimed at once");
        let (run, steps, lease) = claimed.pop().unwrap();
        assert_eq!(run.id.to_string(), id);
        let numbers: Vec<usize> = steps.iter().map(|step| usize::try_from(step.number).unwrap()).collect();
        assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>());
        assert!(numbers.len() >= last, "{} of {last} acknowledged steps", numbers.len());
        assert_eq!(usize::try_from(run.usage.answers).unwrap(), numbers.len(), "both in one transaction");
        let end = haft_core::run::RunEnd::Finished {
            status: haft_core::run::RunStatus::Cancelled,
            output: None,
            error: None,
        };
        store.runs().release_run(&lease, end, &run.usage).await.unwrap();
        store.close().await;
    }
}
