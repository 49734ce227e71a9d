//! Many calls of scripts at once, and what they leave.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use crate::harness::Server;

const CALLS: usize = 200;

/// Returns how many processes there are of each name that descend from this one.
fn descendants() -> BTreeMap<String, usize> {
    let processes: Vec<(u32, u32, String)> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let (start, rest) = text.rsplit_once(')')?;
            let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
            Some((pid, parent, start.split_once('(')?.1.to_owned()))
        })
        .collect();
    let parent_of = |pid| processes.iter().find(|(known, ..)| *known == pid).map(|(_, parent, _)| *parent);
    let own = std::process::id();
    let mut found = BTreeMap::new();
    for (pid, _, name) in &processes {
        if *pid != own && std::iter::successors(Some(*pid), |pid| parent_of(*pid)).any(|pid| pid == own) {
            *found.entry(name.clone()).or_default() += 1;
        }
    }
    found
}

fn resident_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

fn files_beneath(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries.flatten().map(|entry| 1 + files_beneath(&entry.path())).sum()
}

async fn crowd(server: &Server, tool: &str) {
    let calls = (0..CALLS).map(|number| server.invoke(tool, json!({"number": number})));
    for (number, (status, answer)) in join_all(calls).await.into_iter().enumerate() {
        assert_eq!((status, &answer["value"]), (200, &json!(number * 2)), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_scripts_at_once_run_without_error_and_leave_nothing() {
    let mut server = Server::start().await;
    for (name, runtime, body) in [
        ("shell", "bash", "sleep 100 & echo $((number * 2))"),
        ("snake", "python", "import os\nprint(int(os.environ['number']) * 2)"),
    ] {
        server
            .create(json!({
                "name": name, "description": "Doubles a number", "runtime": runtime, "body": body, "sandbox": true,
                "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}},
                "timeout_secs": 300,
            }))
            .await;
    }
    let scratch = server.home.path().join("run");
    crowd(&server, "shell").await;
    crowd(&server, "snake").await;
    // The allocator and the pools have what they need by now; more calls need nothing more.
    let (memory, files) = (resident_megabytes(), files_beneath(&scratch));
    crowd(&server, "shell").await;
    crowd(&server, "snake").await;
    let after = resident_megabytes();
    assert!(after < memory + 64, "{memory} MB became {after} MB");
    assert!(files_beneath(&scratch) <= files, "{} files were left", files_beneath(&scratch) - files);
    let running = descendants();
    assert!(!running.contains_key("bash") && !running.contains_key("sleep"), "{running:?}");

    server.halt().await;
    for _ in 0..500 {
        if descendants().is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("left running: {:?}", descendants());
}
