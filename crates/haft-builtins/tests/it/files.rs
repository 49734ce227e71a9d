//! `append_file` and `list_files`, confined to the sandbox folder.

use std::fs;
use std::os::unix::fs::symlink;

use haft_core::outcome::ErrorCode;
use serde_json::{Value, json};

use crate::harness::{Harness, Setup};

fn without_time(mut listing: Value) -> Value {
    for entry in listing.as_array_mut().unwrap() {
        let modified = entry.as_object_mut().unwrap().remove("modified");
        assert!(
            entry["kind"] == "more" || modified.is_some_and(|time| time.as_str().unwrap().ends_with('Z'))
        );
    }
    listing
}

#[tokio::test]
async fn append_creates_and_extends_a_file() {
    let harness = Harness::new(&Setup::default());
    let first = harness.call("append_file", json!({"path": "log.txt", "content": "a\n"})).await;
    assert_eq!(first, Ok(json!({"path": "log.txt", "size": 2, "appended": 2, "created": true})));
    let deep = harness.call("append_file", json!({"path": "logs/new/a.txt", "content": "b"})).await;
    assert_eq!(deep, Ok(json!({"path": "logs/new/a.txt", "size": 1, "appended": 1, "created": true})));
    let second = harness.call("append_file", json!({"path": "log.txt", "content": "ä"})).await;
    assert_eq!(second, Ok(json!({"path": "log.txt", "size": 4, "appended": 2, "created": false})));
    assert_eq!(fs::read_to_string(harness.path().join("log.txt")).unwrap(), "a\nä");
}

#[tokio::test]
async fn append_rejects_paths_outside_and_non_files() {
    let harness = Harness::new(&Setup::default());
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("x"), "x").unwrap();
    fs::create_dir(harness.path().join("folder")).unwrap();
    symlink(outside.path().join("x"), harness.path().join("link")).unwrap();
    symlink(outside.path(), harness.path().join("out")).unwrap();
    fs::File::create(harness.path().join("large")).unwrap().set_len(64 * 1024 * 1024).unwrap();
    let long = &format!("missing/{}/x", "n".repeat(256));
    for (path, code, part) in [
        ("../x", ErrorCode::PathEscapes, "path escapes sandbox"),
        ("/etc/passwd", ErrorCode::PathEscapes, "is an absolute path"),
        ("link", ErrorCode::PathEscapes, "is a symbolic link"),
        ("out/x", ErrorCode::PathEscapes, "points outside of the sandbox"),
        ("folder", ErrorCode::ExecutionFailed, "is a folder"),
        ("missing/deep/../x", ErrorCode::PathEscapes, "has `..` below a folder that does not exist"),
        (long, ErrorCode::ExecutionFailed, "too long"),
        ("a\0b", ErrorCode::ExecutionFailed, "NUL"),
        ("large", ErrorCode::ExecutionFailed, "which exceeds the limit of 67108864"),
    ] {
        let (found, message) = harness.fail("append_file", json!({"path": path, "content": "y"})).await;
        assert!(found == code && message.contains(part), "{path}: {found} {message}");
    }
    assert_eq!(fs::read_to_string(outside.path().join("x")).unwrap(), "x");
    assert!(!harness.path().join("missing").exists(), "a rejected call leaves nothing behind");
    let (_, message) = Harness::new(&Setup { read_only: true, ..Setup::default() })
        .fail("append_file", json!({"path": "x", "content": "y"}))
        .await;
    assert_eq!(message, "sandbox `workspace` is read-only");
}

#[tokio::test]
async fn folders_are_listed() {
    let harness = Harness::new(&Setup::default());
    fs::create_dir_all(harness.path().join("b/c")).unwrap();
    fs::write(harness.path().join("a.txt"), "hello").unwrap();
    fs::write(harness.path().join("b/c/d"), "").unwrap();
    symlink("/etc", harness.path().join("etc")).unwrap();
    let top = json!([
        {"name": "a.txt", "kind": "file", "size": 5},
        {"name": "b", "kind": "folder", "size": null},
        {"name": "etc", "kind": "link", "size": null},
    ]);
    assert_eq!(without_time(harness.call("list_files", json!({})).await.unwrap()), top);
    assert_eq!(without_time(harness.call("list_files", json!({"path": "./b/.."})).await.unwrap()), top);
    let all = harness.call("list_files", json!({"recursive": true})).await.unwrap();
    let names: Vec<&str> =
        all.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a.txt", "b", "b/c", "b/c/d", "etc"], "a link is not followed");
    for (path, code, part) in [
        ("..", ErrorCode::PathEscapes, "points outside of the sandbox"),
        ("/", ErrorCode::PathEscapes, "is an absolute path"),
        ("etc", ErrorCode::PathEscapes, "points outside of the sandbox"),
        ("a.txt", ErrorCode::ExecutionFailed, "is not a folder"),
        ("none", ErrorCode::ExecutionFailed, "does not exist"),
    ] {
        let (found, message) = harness.fail("list_files", json!({"path": path})).await;
        assert!(found == code && message.contains(part), "{path}: {found} {message}");
    }
}

#[tokio::test]
async fn a_listing_is_bounded() {
    let harness = Harness::new(&Setup::default());
    for index in 0..1010 {
        fs::write(harness.path().join(format!("{index:05}")), "").unwrap();
    }
    let listed = harness.call("list_files", json!({})).await.unwrap();
    let listed = listed.as_array().unwrap();
    assert_eq!(
        (listed.len(), &listed[999]["name"], &listed[1000]),
        (1001, &json!("00999"), &json!({"name": "…", "kind": "more"}))
    );

    let deep = Harness::new(&Setup::default());
    fs::create_dir_all(deep.path().join("x/".repeat(40))).unwrap();
    let listed = deep.call("list_files", json!({"recursive": true})).await.unwrap();
    assert_eq!(listed.as_array().unwrap().last().unwrap(), &json!({"name": "…", "kind": "more"}));
    assert_eq!(listed.as_array().unwrap().len(), 18);
}

#[tokio::test]
async fn unfinished_writes_are_not_listed() {
    let harness = Harness::new(&Setup::default());
    let temporary = ".haft-0123456789abcdef0123456789abcdef.tmp";
    for name in [temporary, ".haft-notes.tmp", "a.tmp"] {
        fs::write(harness.path().join(name), "x").unwrap();
    }
    let listing = harness.call("list_files", json!({"path": "."})).await.unwrap();
    let names: Vec<_> = listing.as_array().unwrap().iter().map(|entry| entry["name"].clone()).collect();
    assert_eq!(names, [".haft-notes.tmp", "a.tmp"]);
}
