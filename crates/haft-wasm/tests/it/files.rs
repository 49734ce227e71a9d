//! Modules that are files of a bundle: read beneath its folder, and again when they change.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use haft_core::outcome::ErrorCode;
use haft_wasm::{WasmExecutor, WasmSettings};
use serde_json::json;

use crate::harness::{Tool, command, run, settings};

fn executor(home: &Path) -> WasmExecutor {
    fs::create_dir_all(home.join("skills/bundle/sub")).unwrap();
    WasmExecutor::new(WasmSettings { home: Some(home.to_owned()), max_module_bytes: 100_000, ..settings() })
}

fn printing(digit: u8) -> Vec<u8> {
    let data = format!("(data (i32.const 64) \"{digit}\")");
    wat::parse_str(command("", &data, "(call $print (i32.const 1) (i32.const 64) (i32.const 1))")).unwrap()
}

#[tokio::test]
async fn a_file_of_the_bundle_is_the_module() {
    let home = tempfile::tempdir().unwrap();
    let executor = executor(home.path());
    for file in ["tool.wasm", "sub/tool.wasm"] {
        fs::write(home.path().join("skills/bundle").join(file), printing(4)).unwrap();
        assert_eq!(Tool::of_file(file, &executor).run(json!({})).await, Ok(json!(4)));
    }
}

#[test]
fn no_path_leads_out_of_the_bundle() {
    let home = tempfile::tempdir().unwrap();
    let executor = executor(home.path());
    let bundle = home.path().join("skills/bundle");
    fs::write(home.path().join("secret.wasm"), printing(1)).unwrap();
    fs::create_dir(home.path().join("elsewhere")).unwrap();
    fs::write(home.path().join("elsewhere/tool.wasm"), printing(1)).unwrap();
    symlink(home.path().join("secret.wasm"), bundle.join("link.wasm")).unwrap();
    symlink(home.path().join("elsewhere"), bundle.join("linked")).unwrap();
    symlink("tool.wasm", bundle.join("inner.wasm")).unwrap();
    fs::write(bundle.join("tool.wasm"), printing(1)).unwrap();
    fs::File::create(bundle.join("large.wasm")).unwrap().set_len(100_001).unwrap();
    let absolute = home.path().join("secret.wasm").to_str().unwrap().to_owned();
    let long = "x".repeat(5000);
    let mut shown = Vec::new();
    for file in [
        "../../secret.wasm",
        "sub/../../../secret.wasm",
        "",
        ".",
        "..",
        "a\0b",
        &absolute,
        "link.wasm",
        "linked/tool.wasm",
        "inner.wasm",
        "none.wasm",
        "none/tool.wasm",
        "sub",
        "tool.wasm/x",
        "large.wasm",
        &long,
    ] {
        shown.push(Tool::of_file(file, &executor).problems().join("; "));
    }
    insta::assert_snapshot!(shown.join("\n"), @"
    `implementation.file`: must be a relative path in the bundle folder, without `..`, such as `tool.wasm` (unreadable_file)
    `implementation.file`: must be a relative path in the bundle folder, without `..`, such as `tool.wasm` (unreadable_file)
    `implementation.file`: must be a relative path in the bundle folder, without `..`, such as `tool.wasm` (unreadable_file)
    `implementation.file`: must be a relative path in the bundle folder, without `..`, such as `tool.wasm` (unreadable_file)
    `implementation.file`: must be a relative path in the bundle folder, without `..`, such as `tool.wasm` (unreadable_file)
    `implementation.file`: must be a relative path in the bundle folder, without `..`, such as `tool.wasm` (unreadable_file)
    `implementation.file`: must be a relative path in the bundle folder, without `..`, such as `tool.wasm` (unreadable_file)
    `implementation.file`: leads through a symbolic link or a file; copy the file into the bundle folder (unreadable_file)
    `implementation.file`: leads through a symbolic link or a file; copy the file into the bundle folder (unreadable_file)
    `implementation.file`: leads through a symbolic link or a file; copy the file into the bundle folder (unreadable_file)
    `implementation.file`: file not found in the bundle folder (unreadable_file)
    `implementation.file`: file not found in the bundle folder (unreadable_file)
    `implementation.file`: not a regular file (unreadable_file)
    `implementation.file`: leads through a symbolic link or a file; copy the file into the bundle folder (unreadable_file)
    `implementation.file`: module size limit (100000 bytes) exceeded (unreadable_file)
    `implementation.file`: file not found in the bundle folder (unreadable_file)
    ");
}

#[tokio::test]
async fn a_changed_file_is_reloaded() {
    let home = tempfile::tempdir().unwrap();
    let executor = executor(home.path());
    let file = home.path().join("skills/bundle/tool.wasm");
    fs::write(&file, printing(1)).unwrap();
    let prepared = Tool::of_file("tool.wasm", &executor).prepare().unwrap();
    assert_eq!(run(&*prepared, json!({})).await, Ok(json!(1)));
    let step = async |bytes: &[u8]| {
        let read = async || run(&*prepared, json!({})).await.map_err(|error| (error.code, error.message));
        let before = read().await;
        fs::write(&file, bytes).unwrap();
        let start = Instant::now();
        loop {
            let now = read().await;
            if now != before || start.elapsed() > Duration::from_secs(20) {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert_eq!(step(&printing(2)).await, Ok(json!(2)));
    let message = "the tool is not ready: `implementation.file`: not a WebAssembly binary: it does not start with `\\0asm`";
    assert_eq!(step(b"half").await, Err((ErrorCode::NotReady, message.to_owned())));
    assert_eq!(step(&printing(3)).await, Ok(json!(3)));
}

#[test]
fn a_definition_without_a_folder_says_so() {
    let executor = WasmExecutor::new(settings());
    insta::assert_snapshot!(Tool::of_file("tool.wasm", &executor).problems().join("; "), @"`implementation.file`: the definition has no bundle folder; set `base64` instead (unreadable_file)");
}
