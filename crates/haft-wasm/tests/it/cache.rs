//! Compiled code on disk: found again, and never trusted when it is not ours.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use haft_wasm::WasmExecutor;
use serde_json::json;

use crate::harness::{Tool, cached, echo};

fn executor(folder: &Path, key: &str) -> WasmExecutor {
    WasmExecutor::new(cached(folder, key))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

async fn works(executor: &WasmExecutor) {
    let tool = Tool::of(&echo("run", "", "string")).on(executor);
    assert_eq!(tool.run(json!({"a": 1})).await, Ok(json!({"a": 1})));
}

#[tokio::test]
async fn code_is_kept_for_its_owner_alone_and_found_by_the_next_start() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("cache/wasm");
    works(&executor(&folder, "key")).await;
    let [file] = files(&folder).try_into().unwrap();
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    works(&executor(&folder, "key")).await;
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written, "it was compiled again");
}

#[tokio::test]
async fn code_that_is_not_ours_is_compiled_anew() {
    let home = tempfile::tempdir().unwrap();
    works(&executor(home.path(), "key")).await;
    let [file] = files(home.path()).try_into().unwrap();
    let whole = fs::read(&file).unwrap();
    let changed = |place: usize| {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        bytes
    };
    // Another start's file under this name has the right form and a MAC that is valid for another name.
    let other = home.path().join("other");
    let tool = Tool::of("(module (func (export \"_start\")))").on(&executor(&other, "key"));
    tool.run(json!({})).await.unwrap();
    let [foreign] = files(&other).try_into().unwrap();
    for bytes in [
        Vec::new(),
        whole[..20].to_vec(),
        whole[..whole.len() / 2].to_vec(),
        changed(0),
        changed(40),
        changed(whole.len() - 1),
        fs::read(foreign).unwrap(),
    ] {
        fs::write(&file, &bytes).unwrap();
        works(&executor(home.path(), "key")).await;
        // Compilation gives the same code, so the file is whole again.
        assert_eq!(fs::read(&file).unwrap().len(), whole.len());
        assert_ne!(fs::read(&file).unwrap(), bytes);
    }
    works(&executor(home.path(), "another key")).await;
    assert_ne!(fs::read(&file).unwrap()[..32], whole[..32], "the MAC is of the new key");
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_only_slower() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    works(&executor(&file.join("cache"), "key")).await;
}
