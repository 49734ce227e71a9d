//! MCP servers with `workspace: true`: their calls work in the folder of the workspace.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, poll};
use crate::tenants::{tenant, with};

/// A server whose tools work with the files of its working folder.
const PROGRAM: &str = r#"
import json, os, subprocess, sys, time

TOOLS = [
    {"name": "save", "description": "Saves a file", "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}}},
    {"name": "hang", "description": "Never ends", "inputSchema": {"type": "object"}},
]

def call(name, arguments):
    if name == "hang":
        open("partly.txt", "w").write("x")
        subprocess.Popen(["sh", "-c", "sleep 6; echo late > late.txt"])
        time.sleep(60)
    open(arguments["name"], "w").write("saved")
    return {"files": sorted(os.listdir(".")), "in_workspace": os.environ.get("HAFT_WORKSPACE") == os.getcwd()}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                            "serverInfo": {"name": "files", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = {"tools": TOOLS}
    elif method == "tools/call":
        value = call(params["name"], params.get("arguments", {}))
        answer["result"] = {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}
    elif method == "ping":
        answer["result"] = {}
    else:
        answer["error"] = {"code": -32601, "message": "not found"}
    print(json.dumps(answer), flush=True)
"#;

async fn call(server: &Server, tool: &str, workspace: Option<&str>, args: Value) -> Value {
    let body = json!({"args": args, "workspace": workspace});
    server.post(&format!("/api/tools/{tool}/invoke"), body).await.1
}

async fn add(server: &Server, id: &str, settings: Value) {
    let mut body = json!({"id": id, "command": "python3", "args": ["-c", PROGRAM], "workspace": true});
    body.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    let (status, answer) = server.post("/api/mcp-servers", body).await;
    assert_eq!(status, 201, "{answer}");
    assert_eq!(answer["data"]["workspace"], true, "{answer}");
    poll(async || {
        let (status, _) = server.get(&format!("/api/tools/{id}:save")).await;
        (status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_server_works_with_the_files_of_the_workspace() {
    let server = Server::start_whole(|_| {}).await;
    for sandbox in [true, false] {
        let id = format!("files-{sandbox}");
        let workspace = format!("w-{sandbox}");
        add(&server, &id, json!({"sandbox": sandbox})).await;
        let written =
            call(&server, "write_file", Some(&workspace), json!({"path": "a.txt", "content": "one"})).await;
        assert_eq!(written["ok"], true, "{written}");
        let saved = call(&server, &format!("{id}:save"), Some(&workspace), json!({"name": "b.txt"})).await;
        assert_eq!(saved["value"], json!({"files": ["a.txt", "b.txt"], "in_workspace": true}), "{saved}");
        let changes = json!([{"path": "b.txt", "change": "added"}]);
        assert_eq!(saved["workspace_use"]["changes"], changes, "{saved}");
        let read = call(&server, "read_file", Some(&workspace), json!({"path": "b.txt"})).await;
        assert_eq!(read["value"], "saved", "{read}");
        // Without a workspace the tool runs in the private folder of the server.
        let alone = call(&server, &format!("{id}:save"), None, json!({"name": "c.txt"})).await;
        assert_eq!(alone["value"], json!({"files": ["c.txt"], "in_workspace": false}), "{alone}");
        assert!(alone["workspace_use"].is_null(), "{alone}");
    }
}

#[tokio::test]
async fn a_chat_has_one_folder_for_all_tools() {
    let server = Server::start_whole(|_| {}).await;
    add(&server, "files", json!({"sandbox": true})).await;
    let chat = server.post("/api/chats", json!({"title": "t"})).await.1;
    let chat = chat["data"]["id"].as_str().unwrap().to_owned();
    let body = json!({"args": {"name": "x.txt"}, "chat_id": chat});
    let (_, saved) = server.post("/api/tools/files:save/invoke", body).await;
    assert_eq!(saved["workspace_use"]["changes"], json!([{"path": "x.txt", "change": "added"}]), "{saved}");
    let path = format!("/api/chats/{chat}/workspace/files/x.txt");
    let read = server.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(read.text().await.unwrap(), "saved");
}

#[tokio::test]
async fn a_call_that_times_out_leaves_no_process_behind() {
    let server = Server::start_whole(|_| {}).await;
    add(&server, "files", json!({"sandbox": true, "timeout_ms": 5000})).await;
    let failed = call(&server, "files:hang", Some("w"), json!({})).await;
    assert_eq!(code(&failed), "timeout", "{failed}");
    // What it wrote before is kept, as with every tool.
    assert_eq!(
        failed["workspace_use"]["changes"],
        json!([{"path": "partly.txt", "change": "added"}]),
        "{failed}"
    );
    tokio::time::sleep(Duration::from_secs(6)).await;
    let listed = call(&server, "exec", Some("w"), json!({"command": "ls"})).await;
    assert!(!listed.to_string().contains("late.txt"), "{listed}");
}

#[tokio::test]
async fn other_tenants_work_in_their_own_workspaces() {
    let server = Server::start_whole(|_| {}).await;
    let token = tenant(&server, "acme").await;
    let body = json!({"id": "files", "command": "python3", "args": ["-c", PROGRAM], "workspace": true});
    let (status, answer) = with(&server, &token, Method::POST, "/api/mcp-servers", body).await;
    assert_eq!(status, 201, "{answer}");
    let call = json!({"args": {"name": "x.txt"}, "workspace": "w"});
    let saved = poll(async || {
        let (_, saved) =
            with(&server, &token, Method::POST, "/api/tools/files:save/invoke", call.clone()).await;
        (saved["ok"] == true).then_some(saved)
    })
    .await;
    assert_eq!(saved["value"], json!({"files": ["x.txt"], "in_workspace": true}), "{saved}");
    assert_eq!(server.get("/api/workspaces/w/files").await.0, 404, "names are per tenant");
}

#[tokio::test]
async fn settings_that_exclude_each_other_are_rejected() {
    let server = Server::start().await;
    for (body, says) in [
        (json!({"id": "a", "command": "x", "workspace": true, "cwd": "/srv"}), "either `cwd` or `workspace`"),
        (
            json!({"id": "a", "url": "http://127.0.0.1:9/", "workspace": true}),
            "`workspace` requires `command`",
        ),
    ] {
        let (status, answer) = server.post("/api/mcp-servers", body.clone()).await;
        assert_eq!(status, 400, "{body}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(says), "{answer}");
    }
}
