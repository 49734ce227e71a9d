//! A whole process tree is killed, whatever ends the call or the server.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use haft_sandbox::{EngineName, ExitReason, Level, Limit, Sandbox, Settings};

use haft_testkit::soak::{kills, rounds};

use crate::rig::{ENGINES, Rig, small};

/// How long a test waits for a condition before it fails.
const DEADLINE: Duration = Duration::from_secs(20);

/// A tree with children that try to stay, three of them in every engine: in the background, in a session of their own, started twice over,
/// deaf to signals, and holding the output open or not.
fn tree(mark: &str) -> String {
    format!(
        "trap '' TERM HUP INT QUIT
        sleep {mark} &
        (setsid sleep {mark} &)
        setsid bash -c 'trap \"\" TERM HUP; sleep {mark} & exec sleep {mark}' >/dev/null 2>&1 </dev/null &
        nohup sleep {mark} >/dev/null 2>&1 </dev/null & disown
        python3 -c 'import os, time
if os.fork(): os._exit(0)
try: os.setsid()
except OSError: pass
if os.fork(): os._exit(0)
os.closerange(0, 9)
os.execvp(\"sleep\", [\"sleep\", \"{mark}\"])'
        sleep 0.2; echo ready\n"
    )
}

/// A sleep time that no other process uses.
fn mark(number: usize) -> String {
    format!("{}.{number}", 100_000 + std::process::id())
}

/// Returns the processes of the machine that sleep this long.
fn sleepers(mark: &str) -> Vec<u32> {
    let command_line = format!("sleep\0{mark}\0");
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    folders
        .filter_map(|folder| {
            let pid = folder.file_name().to_str()?.parse().ok()?;
            (std::fs::read(folder.path().join("cmdline")).ok()? == command_line.as_bytes()).then_some(pid)
        })
        .collect()
}

/// Waits until a condition is met.
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_when_a_call_ends() {
    for engine in ENGINES {
        let rig = Rig::new(engine);
        for (number, level) in [Level::Isolated, Level::Host].into_iter().enumerate() {
            // At its end, with the children still there.
            let own = mark(number);
            let finished = rig.run(rig.bash(level, &tree(&own))).await;
            assert_eq!(finished.stdout.text(), "ready\n", "{engine} {level:?} {}", finished.stderr.text());
            assert_eq!(sleepers(&own), [0_u32; 0], "{engine} {level:?}: its end");
            // At the limit of time.
            let mut command = rig.bash(level, &format!("{}sleep {own}", tree(&own)));
            command.limits = haft_sandbox::Limits { wall: Duration::from_millis(900), ..small() };
            rig.run(command).await;
            assert_eq!(sleepers(&own), [0_u32; 0], "{engine} {level:?}: its time");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_a_cancelled_call() {
    for engine in ENGINES {
        let rig = Rig::new(engine);
        for (number, level) in [Level::Isolated, Level::Host].into_iter().enumerate() {
            let own = mark(10 + number);
            let command = rig.bash(level, &format!("{}sleep {own}", tree(&own)));
            let sandbox = rig.sandbox.clone();
            let call = tokio::spawn(async move { sandbox.run(command, &mut |_, _| {}).await.is_ok() });
            let watched = own.clone();
            let wait = move || until("the tree starts", || sleepers(&watched).len() > 2);
            tokio::task::spawn_blocking(wait).await.unwrap();
            call.abort();
            until(&format!("{engine} {level:?}: the tree ends"), || sleepers(&own).is_empty());
            rig.nothing_left();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_a_call_cancelled_at_any_moment() {
    for engine in ENGINES {
        let rig = Rig::new(engine);
        assert!(rig.sandbox.probe_report(engine).await.passed());
        let own = mark(20);
        for step in 0..rounds(400) {
            let command = rig.bash(Level::Isolated, &format!("sleep {own} & sleep {own}"));
            let watch = &mut |_, _: &[u8]| {};
            // From before the engine is started to after the program is.
            let moment = Duration::from_micros(u64::try_from(step % 40).unwrap() * 500);
            drop(tokio::time::timeout(moment, rig.sandbox.run(command, watch)).await);
        }
        until(&format!("{engine}: the trees end"), || sleepers(&own).is_empty());
        rig.nothing_left();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_when_what_watches_a_tree_is_killed() {
    for (number, engine) in ENGINES.into_iter().enumerate() {
        let rig = Rig::new(engine);
        if engine == EngineName::Landlock && rig.sandbox.limiter() == "rlimits" {
            // Without namespace and control group, only the supervisor knows the tree.
            continue;
        }
        let own = mark(40 + number);
        let sandbox = rig.sandbox.clone();
        let mut command = rig.bash(Level::Isolated, &format!("{}sleep {own}", tree(&own)));
        command.limits.wall = Duration::from_secs(3);
        let call = tokio::spawn(async move { sandbox.run(command, &mut |_, _| {}).await.unwrap().ending });
        let watched = own.clone();
        let wait = move || until("the tree starts", || sleepers(&watched).len() > 2);
        tokio::task::spawn_blocking(wait).await.unwrap();
        let children = children();
        assert_eq!(children.len(), 1, "{engine}: {children:?}");
        for child in children {
            rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
        }
        // A namespace ends with its watcher; the control group of the others, when their time is up.
        let expected = match engine {
            EngineName::Bubblewrap => ExitReason::Signalled(9),
            _ => ExitReason::Stopped(Limit::Wall),
        };
        assert_eq!(call.await.unwrap(), expected, "{engine}");
        until(&format!("{engine}: the tree ends"), || sleepers(&own).is_empty());
        rig.nothing_left();
    }
}

/// Returns the processes that this one has started.
fn children() -> Vec<rustix::process::Pid> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let reported =
        tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let reported: Vec<String> = reported.collect();
    let numbers = reported.iter().flat_map(|reported| reported.split_whitespace());
    numbers.filter_map(|number| rustix::process::Pid::from_raw(number.parse().unwrap())).collect()
}

/// Not a test: the server that the next test kills.
#[tokio::test]
#[ignore = "started by the test that kills it"]
#[expect(clippy::disallowed_methods, reason = "told by the test that starts it")]
async fn a_server_that_is_killed() {
    let Ok(reported) = std::env::var("HAFT_TEST_SERVER") else { return };
    let words: Vec<&str> = reported.split(' ').collect();
    let [engine, level, home, own] = words[..] else { panic!("{reported}") };
    let level = if level == "Host" { Level::Host } else { Level::Isolated };
    let settings = Settings { engine: EngineName::parse(engine).unwrap(), ..Settings::new(home) };
    let sandbox = Sandbox::open(settings).unwrap();
    let place = sandbox.place(level, None).unwrap();
    let script = format!("{}sleep {own}", tree(own));
    let command = haft_sandbox::Command::new(place, ["bash", "-c", &script]).env("PATH", "/usr/bin:/bin");
    sandbox.run(command, &mut |_, chunk| eprintln!("{}", String::from_utf8_lossy(chunk))).await.unwrap();
}

#[test]
fn nothing_is_left_of_a_server_that_is_killed() {
    for (number, engine) in ENGINES.into_iter().enumerate() {
        for (other, level) in ["Isolated", "Host"].into_iter().enumerate() {
            let home = tempfile::tempdir().unwrap();
            let own = mark(30 + 2 * number + other);
            let mut server = server(&format!("{engine} {level} {} {own}", home.path().display()));
            let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
            assert!(lines.any(|line| line.unwrap().contains("ready")), "{engine} {level}");
            assert!(sleepers(&own).len() > 2, "{engine} {level}: {:?}", sleepers(&own));
            let name = name_of(server.id());
            server.kill().unwrap();
            server.wait().unwrap();
            until(&format!("{engine} {level}: the tree ends"), || sleepers(&own).is_empty());
            let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
            assert!(!mounts.contains(&home.path().display().to_string()), "{mounts}");
            // What lies on disk and in control groups stays until the next server looks.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { Sandbox::open(Settings::new(home.path())).unwrap().limiter() });
            assert_eq!(groups_of(&name), [""; 0], "{engine} {level}");
            let left = std::fs::read_dir(home.path()).unwrap().flatten().map(|entry| entry.file_name());
            let left: Vec<_> = left.filter(|name| name != "self-test").collect();
            assert_eq!(left, [""; 0], "{engine} {level}");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a server is started here to be killed")]
fn server(reported: &str) -> Child {
    Process::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", "tree::a_server_that_is_killed"])
        .env("HAFT_TEST_SERVER", reported)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_sandbox_that_was_held_back_when_its_server_was_killed_is_ended_by_the_next_one() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for round in 0..kills(60) {
        let home = tempfile::tempdir().unwrap();
        let own = mark(50 + round);
        let mut server = server(&format!("bubblewrap Isolated {} {own}", home.path().display()));
        let pid = server.id();
        // The moment at which bubblewrap is there; the script stands in its command line.
        until("bubblewrap starts", || with_word(&own).into_iter().any(|found| found != pid));
        server.kill().unwrap();
        server.wait().unwrap();
        // Nothing of it runs; what waits is ended.
        runtime.block_on(async { Sandbox::open(Settings::new(home.path())).unwrap() });
        until("the sandbox ends", || with_word(&own).is_empty());
    }
}

/// Returns the processes in whose command line something stands.
fn with_word(word: &str) -> Vec<u32> {
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    folders
        .filter_map(|folder| {
            let pid = folder.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(folder.path().join("cmdline")).ok()?;
            String::from_utf8_lossy(&line).contains(word).then_some(pid)
        })
        .collect()
}

/// Returns the name by which a server's groups are known: its number and the moment of its start, as numbers come
/// back and groups of a server of the same number may wait to be removed.
pub(crate) fn name_of(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let start = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
    format!("{pid}-{start}")
}

/// Returns the control groups that a server of this name has made.
pub(crate) fn groups_of(name: &str) -> Vec<String> {
    let prefix = format!("haft-sandbox-{name}-");
    let mut found = Vec::new();
    let mut folders = vec![Path::new("/sys/fs/cgroup").to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(&prefix) {
                found.push(name);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    found
}
