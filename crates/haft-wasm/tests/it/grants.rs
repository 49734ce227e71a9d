//! What a definition asks for and the settings have: environment, folders, network. Everything else is refused.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use haft_core::implementation::{FileAccess, Implementation, Wasm};
use haft_wasm::{WasmExecutor, WasmFolder, WasmNetwork, WasmSettings};
use serde_json::json;
use tokio::net::TcpListener;

use crate::harness::{Tool, command, settings};

fn ask(mut tool: Tool, change: impl FnOnce(&mut Wasm)) -> Tool {
    if let Implementation::Wasm(wasm) = &mut tool.spec.implementation {
        change(wasm);
    }
    tool
}

/// Prints its environment as it stands in memory: `NAME=value`, each with a NUL, made a line break.
fn environment() -> String {
    let imports = r#"
      (import "wasi_snapshot_preview1" "environ_sizes_get" (func $sizes (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "environ_get" (func $get (param i32 i32) (result i32)))
    "#;
    let start = r"
      (local $at i32)
      (drop (call $sizes (i32.const 16) (i32.const 20)))
      (drop (call $get (i32.const 1024) (i32.const 4096)))
      (block $done (loop $next
        (br_if $done (i32.ge_u (local.get $at) (i32.load (i32.const 20))))
        (if (i32.eqz (i32.load8_u (i32.add (i32.const 4096) (local.get $at))))
          (then (i32.store8 (i32.add (i32.const 4096) (local.get $at)) (i32.const 10))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next)))
      (call $print (i32.const 1) (i32.const 4096) (i32.load (i32.const 20)))";
    command(imports, "", start)
}

#[tokio::test]
async fn a_guest_sees_the_variables_that_its_definition_names() {
    let tool = ask(Tool::of(&environment()).args(&["city"]), |wasm| {
        wasm.env = [("MODE", "fast"), ("PLACE", "in {{city}}"), ("KEY", "${API_KEY}")]
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into();
    });
    let value = tool.run(json!({"city": "Köln"})).await.unwrap();
    assert_eq!(value, json!("KEY=stored API_KEY\nMODE=fast\nPLACE=in Köln"));
    let nul = tool.fail(json!({"city": "a\u{0}b"})).await;
    insta::assert_snapshot!(nul.message, @"variable `PLACE` contains a NUL character");
    let long = tool.fail(json!({"city": "x".repeat(200_000)})).await;
    insta::assert_snapshot!(long.message, @"variable `PLACE` exceeds the limit of 128 KiB");
}

/// Opens a path in the first folder, and prints what it holds, or the number of the error; with `written` that is
/// written instead.
fn file(path: &str, written: bool) -> String {
    let imports = r#"
      (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    "#;
    let (flags, rights) = if written { (1, 64) } else { (0, 2) };
    let used = if written {
        "(call $print (i32.load (i32.const 32)) (i32.const 128) (i32.const 3)) (call $print (i32.const 1) (i32.const 128) (i32.const 3))"
    } else {
        "(i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 1000))
         (drop (call $fd_read (i32.load (i32.const 32)) (i32.const 0) (i32.const 1) (i32.const 8)))
         (call $print (i32.const 1) (i32.const 1024) (i32.load (i32.const 8)))"
    };
    let start = format!(
        r"
      (local $error i32)
      (local.set $error (call $open (i32.const 3) (i32.const 1) (i32.const 256) (i32.const {length}) (i32.const {flags})
        (i64.const {rights}) (i64.const 0) (i32.const 0) (i32.const 32)))
      (if (local.get $error)
        (then
          (i32.store8 (i32.const 64) (i32.const 33))
          (i32.store8 (i32.const 65) (i32.add (i32.const 48) (i32.div_u (local.get $error) (i32.const 10))))
          (i32.store8 (i32.const 66) (i32.add (i32.const 48) (i32.rem_u (local.get $error) (i32.const 10))))
          (call $print (i32.const 1) (i32.const 64) (i32.const 3)))
        (else {used}))",
        length = path.len()
    );
    command(imports, &format!("(data (i32.const 128) \"new\") (data (i32.const 256) \"{path}\")"), &start)
}

/// A world of one file inside, one outside, and links between them.
fn world() -> (tempfile::TempDir, WasmExecutor) {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    std::fs::create_dir_all(at("work/sub")).unwrap();
    std::fs::create_dir(at("outside")).unwrap();
    std::fs::write(at("work/file"), "inside").unwrap();
    std::fs::write(at("outside/file"), "secret").unwrap();
    symlink("file", at("work/link")).unwrap();
    symlink("../outside/file", at("work/out")).unwrap();
    symlink(at("outside"), at("work/folder")).unwrap();
    symlink("/etc/passwd", at("work/passwd")).unwrap();
    symlink("../outside/new", at("work/dangling")).unwrap();
    let folder = |name: &str, path: &Path, read_only| WasmFolder {
        name: name.to_owned(),
        path: path.to_owned(),
        read_only,
        make: name == "made",
    };
    let folders = vec![
        folder("work", &at("work"), false),
        folder("data", &at("work"), true),
        folder("made", &at("made"), false),
        folder("gone", &at("gone"), false),
    ];
    (home, WasmExecutor::new(WasmSettings { folders, ..settings() }))
}

async fn opened(executor: &WasmExecutor, root: &str, access: FileAccess, wat: &str) -> String {
    let tool =
        ask(Tool::of(wat).on(executor), |wasm| wasm.files = BTreeMap::from([(root.to_owned(), access)]));
    match tool.run(json!({})).await {
        Ok(value) => value.as_str().unwrap().to_owned(),
        Err(error) => error.message,
    }
}

const NOT_PERMITTED: &str = "!63";

#[tokio::test]
async fn a_guest_reads_beneath_its_folder_and_never_leaves_it() {
    let (_home, executor) = world();
    for (path, expected) in [
        ("file", "inside"),
        ("./sub/../file", "inside"),
        ("link", "inside"),
        ("../outside/file", NOT_PERMITTED),
        ("sub/../../outside/file", NOT_PERMITTED),
        ("/etc/passwd", NOT_PERMITTED),
        ("out", NOT_PERMITTED),
        ("folder/file", NOT_PERMITTED),
        ("passwd", NOT_PERMITTED),
        ("nothing", "!44"),
    ] {
        let read = opened(&executor, "work", FileAccess::Read, &file(path, false)).await;
        assert_eq!(read, expected, "{path}");
    }
}

#[tokio::test]
async fn a_guest_writes_only_where_it_may() {
    let (home, executor) = world();
    for (root, access, path, expected) in [
        ("work", FileAccess::Read, "new-1", NOT_PERMITTED),
        ("work", FileAccess::Read, "file", NOT_PERMITTED),
        ("data", FileAccess::Read, "new-2", NOT_PERMITTED),
        ("work", FileAccess::Write, "../outside/new", NOT_PERMITTED),
        ("work", FileAccess::Write, "dangling", NOT_PERMITTED),
        ("work", FileAccess::Write, "folder/new", NOT_PERMITTED),
        ("work", FileAccess::Write, "new-3", "new"),
        ("made", FileAccess::Write, "new-4", "new"),
    ] {
        let wrote = opened(&executor, root, access, &file(path, true)).await;
        assert_eq!(wrote, expected, "{root} {path}");
    }
    let names = |folder: &str| {
        let entries = std::fs::read_dir(home.path().join(folder)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names.retain(|name| name.starts_with("new"));
        names
    };
    assert_eq!(
        (names("work"), names("outside"), names("made")),
        (vec!["new-3".to_owned()], vec![], vec!["new-4".to_owned()])
    );
    assert_eq!(std::fs::read_to_string(home.path().join("work/file")).unwrap(), "inside");
}

#[tokio::test]
async fn what_there_is_not_is_told() {
    let (_home, executor) = world();
    let gone = opened(&executor, "gone", FileAccess::Read, &file("file", false)).await;
    assert!(gone.starts_with("failed to open the folder `gone`"), "{gone}");
    let tool = ask(Tool::of(&file("file", false)).on(&executor), |wasm| {
        wasm.files = BTreeMap::from([
            ("nowhere".to_owned(), FileAccess::Read),
            ("data".to_owned(), FileAccess::Write),
        ]);
    });
    insta::assert_snapshot!(tool.problems().join("\n"), @r"
    `implementation.files.data`: the folder is read-only; use `read` (read_only_root)
    `implementation.files.nowhere`: not configured in `files.sandboxes`; configured: `work`, `data`, `made`, `gone` (unknown_root)
    ");
    let mut tool = Tool::of(CONNECTING);
    tool.spec.network = true;
    insta::assert_snapshot!(tool.problems().join("\n"), @"`network`: network access is unavailable for `wasm` tools in this program; remove it (unsupported)");
    let network = WasmNetwork { allows: Arc::new(|_| true), names: true };
    let executor = WasmExecutor::new(WasmSettings { network: Some(network), ..settings() });
    let mut tool = Tool::of("(module (func (export \"_start\")))").on(&executor);
    tool.spec.network = true;
    insta::assert_snapshot!(tool.problems().join("\n"), @"`network`: core modules have no sockets; build a component (`wasm32-wasip2`), or remove it (unsupported)");
}

/// A component that connects to a port of this machine; it returns 255, or the number of the error.
const CONNECTING: &str = include_str!("connecting.wat");

async fn connected(
    allows: impl Fn(SocketAddr) -> bool + Send + Sync + 'static,
    network: bool,
    port: u16,
) -> i64 {
    let network_of_all = WasmNetwork { allows: Arc::new(allows), names: true };
    let executor = WasmExecutor::new(WasmSettings { network: Some(network_of_all), ..settings() });
    let mut tool = Tool::of(CONNECTING).on(&executor).function("connect").args(&["port"]);
    tool.spec.network = network;
    tool.run(json!({"port": port})).await.unwrap().as_i64().unwrap()
}

#[tokio::test]
async fn a_guest_connects_where_it_may() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = listener.local_addr().unwrap();
    let (access_denied, connected_to) = (1, 255);
    assert_eq!(connected(move |address| address == here, true, here.port()).await, connected_to);
    assert_eq!(connected(|_| false, true, here.port()).await, access_denied);
    assert_eq!(connected(|_| true, false, here.port()).await, access_denied);
}
