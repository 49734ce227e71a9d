//! Following a folder.

use std::time::{Duration, Instant};

use haft::Tools;
use serde_json::Value;

use crate::support::{of_function, write};

/// Waits until something holds; fails after a time in which it must.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(30), "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn changes_are_followed_until_the_guard_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(at, "one.yaml", &of_function("one", "work"));
    let tools = Tools::new();
    tools.register_function(haft::ToolDef::new("work", |_: Value| async { "done" })).unwrap();
    let watch = tools.watch(at).unwrap();
    assert_eq!(watch.report().loaded, ["one"]);

    write(at, "sub/two.yaml", &of_function("two", "work"));
    until("a new file in a new folder", || tools.is_ready("two")).await;
    write(at, "one.yaml", "name: one\n");
    until("a broken file", || !tools.is_ready("one")).await;
    let fault = tools.faults().remove(0);
    assert_eq!((fault.name.as_str(), fault.reason.contains("one.yaml")), ("one", true));
    write(at, "one.yaml", &of_function("one", "work"));
    until("a mended file", || tools.is_ready("one")).await;
    std::fs::remove_file(at.join("one.yaml")).unwrap();
    until("a removed file", || tools.names() == ["two"]).await;

    std::fs::remove_dir_all(at).unwrap();
    until("a removed folder", || tools.names().is_empty()).await;
    write(at, "three.yaml", &of_function("three", "work"));
    until("a folder that is back", || tools.names() == ["three"]).await;

    drop(watch);
    // The thread has ended when the next change can only be seen by a load.
    write(at, "four.yaml", &of_function("four", "work"));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(tools.names(), ["three"]);
}
