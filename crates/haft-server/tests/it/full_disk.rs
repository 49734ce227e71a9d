//! A disk that is full: what cannot be recorded does not run, and all is well again once there is room.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_testkit::prerequisite::{Prerequisite, skip};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Server, code, function_tool, poll, send};

/// A file system of its own, of a few megabytes.
struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Mounts it; `None` where this process may not.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = run("mount", &["-t", "tmpfs", "-o", "size=6m", "haft-test"], folder.path());
        mounted.then_some(Self { folder })
    }

    /// Writes until nothing fits any more; returns the file that takes the room.
    fn fill(&self) -> PathBuf {
        let number = std::fs::read_dir(self.folder.path()).unwrap().count();
        let path = self.folder.path().join(format!("filler-{number}"));
        let mut file = File::options().append(true).create(true).open(&path).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        run("umount", &["-l"], self.folder.path());
    }
}

#[expect(clippy::disallowed_methods, reason = "only a real file system is really full")]
fn run(program: &str, words: &[&str], folder: &Path) -> bool {
    let done = std::process::Command::new(program).args(words).arg(folder).output();
    done.is_ok_and(|output| output.status.success())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_cannot_be_recorded_are_rejected() {
    let Some(disk) = SmallDisk::mount() else {
        skip(Prerequisite::SmallFileSystem, "cannot mount a small file system; run the tests as root");
        return;
    };
    let home = disk.folder.path().to_owned();
    let mut server = Server::start_with(|settings| settings.home = home).await;
    server.create(function_tool("tally", "tally")).await;
    assert_eq!(server.invoke("tally", json!({})).await.1["value"], 1);
    let filler = disk.fill();

    // The last page of the journal may still have room for some records.
    let failed = async {
        loop {
            let (status, answer) = server.invoke("tally", json!({"text": "x".repeat(1000)})).await;
            if status != 200 {
                return (status, answer);
            }
        }
    };
    let (status, answer) = tokio::time::timeout(Duration::from_mins(1), failed).await.unwrap();
    assert_eq!((status, code(&answer)), (503, "store_unavailable"), "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("the tool ran, but "), "{message}");

    let (status, refused) = server.invoke("tally", json!({})).await;
    assert_eq!((status, code(&refused)), (503, "store_unavailable"), "{refused}");
    insta::assert_snapshot!(refused["error"]["message"].as_str().unwrap(), @"the tool did not run because calls cannot be recorded; retry later");
    let (status, ready) = send(server.bare(Method::GET, "/readyz")).await;
    let expected = "cannot write the call journal: No space left on device (os error 28)";
    assert_eq!((status, &ready["checks"]["ledger"]), (503, &json!(expected)), "{ready}");

    std::fs::remove_file(filler).unwrap();
    let again = async {
        loop {
            let (status, answer) = server.invoke("tally", json!({})).await;
            if status == 200 {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let answer = tokio::time::timeout(Duration::from_mins(1), again).await.unwrap();
    let (status, ready) = send(server.bare(Method::GET, "/readyz")).await;
    assert_eq!((status, &ready["checks"]["ledger"]), (200, &json!("ok")), "{ready}");
    // Every run has a record, also the one that found the disk full; nothing ran meanwhile.
    let runs = answer["value"].as_u64().unwrap();
    poll(async || (total(&server.get("/api/calls?page_size=1").await.1) == runs).then_some(())).await;
    server.halt().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_full_disk_reads_answer_and_the_server_starts() {
    let Some(disk) = SmallDisk::mount() else {
        skip(Prerequisite::SmallFileSystem, "cannot mount a small file system; run the tests as root");
        return;
    };
    let home = disk.folder.path().to_owned();
    let mut server = Server::start_with(|settings| settings.home = home.clone()).await;
    server.create(function_tool("tally", "tally")).await;
    let (_, first) = server.invoke("tally", json!({})).await;
    let filler = disk.fill();
    let until_full =
        async { while server.invoke("tally", json!({"text": "x".repeat(1000)})).await.0 == 200 {} };
    tokio::time::timeout(Duration::from_mins(1), until_full).await.unwrap();
    // Once while it runs, and once after a start with a full disk.
    for restarts in 0..2 {
        for path in
            ["/api/calls", "/api/tools", "/api/tools/tally", "/tools/bundles", "/tools/search?q=tally"]
        {
            let (status, answer) = server.get(path).await;
            assert_eq!(status, 200, "{restarts} {path} {answer}");
        }
        let call = format!("/api/calls/{}", first["call_id"].as_str().unwrap());
        let (status, answer) = server.get(&call).await;
        assert!(status == 200 || restarts == 1, "{answer}");
        if restarts == 0 {
            server.halt().await;
            server = Server::start_with(|settings| settings.home = home.clone()).await;
        }
    }
    std::fs::remove_file(filler).unwrap();
    // With room again, calls run, and those that waited in the journal are listed.
    let again = async {
        loop {
            let listed =
                server.get(&format!("/api/calls/{}", first["call_id"].as_str().unwrap())).await.0 == 200;
            if server.invoke("tally", json!({})).await.0 == 200 && listed {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), again).await.unwrap();
    server.halt().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_full_disk_the_server_starts_again_and_again() {
    let Some(disk) = SmallDisk::mount() else {
        skip(Prerequisite::SmallFileSystem, "cannot mount a small file system; run the tests as root");
        return;
    };
    let home = disk.folder.path().to_owned();
    let mut server = Server::start_with(|settings| settings.home = home.clone()).await;
    server.create(function_tool("tally", "tally")).await;
    assert_eq!(server.invoke("tally", json!({})).await.0, 200);
    server.halt().await;
    // Other programs use all space that haft does not reserve.
    for start in 0..4 {
        disk.fill();
        server = Server::start_with(|settings| settings.home = home.clone()).await;
        let (status, answer) = server.get("/api/tools/tally").await;
        assert_eq!(status, 200, "start {start}: {answer}");
        let (status, answer) = server.invoke("tally", json!({})).await;
        assert_eq!((status, code(&answer)), (503, "store_unavailable"), "start {start}: {answer}");
        disk.fill();
        server.halt().await;
    }
    server = Server::start_with(|settings| settings.home = home.clone()).await;
    for name in std::fs::read_dir(&home).unwrap() {
        let path = name.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("filler") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let runs = async || (server.invoke("tally", json!({})).await.0 == 200).then_some(());
    poll(runs).await;
    server.halt().await;
}

fn total(calls: &Value) -> u64 {
    calls["data"]["total"].as_u64().or(calls["total"].as_u64()).unwrap()
}
