//! Watching a folder.

use std::time::{Duration, Instant};

use haft::Tools;
use serde_json::Value;

use crate::support::{of_function, write};

/// Polls until the condition is true; panics after 30 seconds.
async fn until(description: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(30), "timed out: {description}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Returns whether a thread of this process watches a folder; no other test starts one.
fn has_watch_thread() -> bool {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let mut names =
        threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.any(|name| name.trim() == "haft-watch")
}

#[tokio::test]
async fn changes_are_loaded_until_the_guard_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(at, "one.yaml", &of_function("one", "work"));
    let tools = Tools::new();
    tools.register_function(haft::ToolDef::new("work", |_: Value| async { "done" })).unwrap();
    let guard = tools.watch(at).unwrap();
    until("the start of the thread", has_watch_thread).await;
    assert_eq!(guard.report().loaded, ["one"]);

    write(at, "sub/two.yaml", &of_function("two", "work"));
    until("a new file in a new folder", || tools.is_ready("two")).await;
    write(at, "one.yaml", "name: one\n");
    until("a broken file", || !tools.is_ready("one")).await;
    let not_ready = tools.not_ready().remove(0);
    assert_eq!((not_ready.name.as_str(), not_ready.reason.contains("one.yaml")), ("one", true));
    write(at, "one.yaml", &of_function("one", "work"));
    until("a repaired file", || tools.is_ready("one")).await;
    std::fs::remove_file(at.join("one.yaml")).unwrap();
    until("a removed file", || tools.names() == ["two"]).await;

    std::fs::remove_dir_all(at).unwrap();
    until("a removed folder", || tools.names().is_empty()).await;
    write(at, "three.yaml", &of_function("three", "work"));
    until("a folder that is back", || tools.names() == ["three"]).await;

    drop(guard);
    until("the end of the thread", || !has_watch_thread()).await;
    write(at, "four.yaml", &of_function("four", "work"));
    assert_eq!(tools.names(), ["three"]);
}
