//! Workspaces: one folder for all tools, whose every state is kept.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, poll};
use crate::tenants::{tenant, with};

/// Calls a tool in a workspace.
async fn call(server: &Server, tool: &str, workspace: &str, args: Value) -> Value {
    let body = json!({"args": args, "workspace": workspace});
    server.post(&format!("/api/tools/{tool}/invoke"), body).await.1
}

async fn paths(server: &Server, base: &str) -> Vec<String> {
    let (status, answer) = server.get(&format!("{base}/files")).await;
    assert_eq!(status, 200, "{answer}");
    let files = answer["data"]["files"].as_array().unwrap().iter();
    files.map(|file| file["path"].as_str().unwrap().to_owned()).collect()
}

async fn text(server: &Server, path: &str) -> String {
    let response = server.request(Method::GET, path).send().await.unwrap();
    assert!(response.status().is_success(), "{path}: {}", response.status());
    response.text().await.unwrap()
}

async fn write(server: &Server, path: &str, content: &str) -> Value {
    let request = server.request(Method::PUT, path).body(content.to_owned());
    crate::harness::send(request).await.1
}

fn script(name: &str, runtime: &str, body: &str) -> Value {
    json!({
        "name": name, "description": "For tests", "sandbox": true,
        "implementation": {"type": "script", "runtime": runtime, "body": body},
    })
}

#[tokio::test]
async fn all_tools_see_the_files_of_their_workspace() {
    let server = Server::start_whole(|_| {}).await;
    for level in [true, false] {
        let suffix = if level { "in" } else { "out" };
        let workspace = format!("one-{suffix}");
        let mut bash =
            script(&format!("bash-{suffix}"), "bash", "cat a/b.txt; echo more >> a/b.txt; pwd >&2");
        let mut python = script(
            &format!("python-{suffix}"),
            "python",
            "import os\nprint(open('a/b.txt').read() + str(os.environ['HAFT_WORKSPACE'] == os.getcwd()))",
        );
        (bash["sandbox"], python["sandbox"]) = (json!(level), json!(level));
        server.create(bash).await;
        server.create(python).await;
        let written =
            call(&server, "write_file", &workspace, json!({"path": "a/b.txt", "content": "one\n"})).await;
        assert_eq!(written["value"]["created"], true, "{written}");
        let used = &written["workspace_use"];
        assert_eq!(used["changes"], json!([{"path": "a/b.txt", "change": "added"}]), "{written}");
        let ran = call(&server, &format!("bash-{suffix}"), &workspace, json!({})).await;
        assert_eq!(ran["value"], "one", "{ran}");
        assert_eq!(
            ran["workspace_use"]["changes"],
            json!([{"path": "a/b.txt", "change": "modified"}]),
            "{ran}"
        );
        assert_eq!(ran["workspace_use"]["pre_manifest"], used["post_manifest"]);
        let ran = call(&server, &format!("python-{suffix}"), &workspace, json!({})).await;
        assert_eq!(ran["value"], "one\nmore\nTrue", "{ran}");
        assert_eq!(
            ran["workspace_use"]["pre_manifest"], ran["workspace_use"]["post_manifest"],
            "nothing changed"
        );
        let read = call(&server, "read_file", &workspace, json!({"path": "a/b.txt"})).await;
        assert_eq!(read["value"], "one\nmore\n", "{read}");
        let listed = call(&server, "list_files", &workspace, json!({"recursive": true})).await;
        assert_eq!(listed["value"][1]["name"], "a/b.txt", "{listed}");
        let base = format!("/api/workspaces/{workspace}");
        assert_eq!(paths(&server, &base).await, ["a", "a/b.txt"]);
        assert_eq!(text(&server, &format!("{base}/files/a/b.txt")).await, "one\nmore\n");
    }
    // Without a workspace, a call sees none of it.
    let (_, read) = server.invoke("read_file", json!({"path": "a/b.txt"})).await;
    assert_eq!(read["ok"], false, "{read}");
    let (_, list) = server.get("/api/workspaces").await;
    assert_eq!(list["data"]["workspaces"][0]["name"], "one-in", "{list}");
    assert_eq!(list["data"]["workspaces"][0]["files"], 1, "{list}");
}

#[tokio::test]
async fn exec_sees_what_write_file_wrote() {
    let server = Server::start_whole(|_| {}).await;
    call(&server, "write_file", "w", json!({"path": "x.txt", "content": "here"})).await;
    let ran = call(&server, "exec", "w", json!({"command": "cat x.txt; rm x.txt; ln -s y z"})).await;
    assert_eq!(ran["value"]["stdout"].as_str().or(ran["value"].as_str()), Some("here"), "{ran}");
    let changes = &ran["workspace_use"]["changes"];
    let expected = json!([{"path": "x.txt", "change": "removed"}, {"path": "z", "change": "added"}]);
    assert_eq!(*changes, expected, "{ran}");
}

#[tokio::test]
async fn a_failed_call_is_stored_too_and_any_state_can_be_restored() {
    let server = Server::start_whole(|_| {}).await;
    server.create(script("fails", "bash", "echo partial > partial.txt; exit 3")).await;
    let mut slow = script("slow", "bash", "echo begun > begun.txt; sleep 60");
    slow["execution"] = json!({"timeout_ms": 1500});
    server.create(slow).await;
    let first = call(&server, "write_file", "w", json!({"path": "a.txt", "content": "1"})).await;
    let failed = call(&server, "fails", "w", json!({})).await;
    assert_eq!((&failed["ok"], &failed["workspace_use"]["changed"]), (&json!(false), &json!(1)), "{failed}");
    let late = call(&server, "slow", "w", json!({})).await;
    assert_eq!(late["error"]["code"], "timeout", "{late}");
    assert_eq!(late["workspace_use"]["changes"][0]["path"], "begun.txt", "{late}");
    let base = "/api/workspaces/w";
    assert_eq!(paths(&server, base).await, ["a.txt", "begun.txt", "partial.txt"]);

    let (_, manifests) = server.get(&format!("{base}/manifests")).await;
    let manifests = manifests["data"]["manifests"].as_array().unwrap().clone();
    assert_eq!(manifests.len(), 3);
    assert_eq!(manifests[0]["parent_id"], manifests[1]["id"]);
    assert_eq!(
        (&manifests[0]["source"], &manifests[0]["source_ref"]),
        (&json!("tool_run"), &late["call_id"])
    );
    let start = first["workspace_use"]["post_manifest"].as_str().unwrap();
    let (_, diff) = server.get(&format!("{base}/diff?from={start}")).await;
    assert_eq!(diff["data"]["total"], 2, "{diff}");
    let (status, restored) = server.post(&format!("{base}/restore"), json!({"manifest_id": start})).await;
    assert_eq!(status, 200, "{restored}");
    assert_eq!(paths(&server, base).await, ["a.txt"]);
    let read = call(&server, "list_files", "w", json!({})).await;
    assert_eq!(read["value"].as_array().unwrap().len(), 1, "{read}");
    let (_, changes) = server.get(&format!("{base}/changes")).await;
    assert_eq!(changes["data"]["total"], 2, "{changes}");
    // Everything is still there after a restart.
    let server = server.restart().await;
    assert_eq!(paths(&server, base).await, ["a.txt"]);
    let older = manifests[0]["id"].as_str().unwrap();
    assert_eq!(text(&server, &format!("{base}/files/begun.txt?manifest={older}")).await, "begun\n");
    let (status, answer) =
        server.post(&format!("{base}/restore"), json!({"manifest_id": uuid::Uuid::now_v7()})).await;
    assert_eq!((status, code(&answer)), (404, "not_found"));
}

#[tokio::test]
async fn people_edit_files_and_read_parts_of_them() {
    let server = Server::start().await;
    let base = "/api/workspaces/w";
    let made = write(&server, &format!("{base}/files/deep/er/a.txt"), "0123456789").await;
    assert_eq!(made["data"]["changes"][0]["path"], "deep/er/a.txt", "{made}");
    let request = server.request(Method::GET, &format!("{base}/files/deep/er/a.txt"));
    let response = request.header("range", "bytes=2-4").send().await.unwrap();
    assert_eq!(response.status(), 206);
    assert_eq!(response.headers()["content-range"], "bytes 2-4/10");
    assert_eq!(response.text().await.unwrap(), "234");
    let page = "<script>alert(1)</script>";
    write(&server, &format!("{base}/files/evil.html"), page).await;
    let response = server.request(Method::GET, &format!("{base}/files/evil.html")).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    let (status, _) = server.delete(&format!("{base}/files/evil.html")).await;
    assert_eq!(status, 200);
    let (status, answer) = server.delete(&format!("{base}/files/evil.html")).await;
    assert_eq!((status, code(&answer)), (404, "not_found"), "{answer}");
    for bad in ["..%2Fescape", "a%00b", "%2Fetc%2Fpasswd"] {
        let request = server.request(Method::PUT, &format!("{base}/files/{bad}")).body("x");
        let status = request.send().await.unwrap().status().as_u16();
        assert!((400..500).contains(&status), "{bad}: {status}");
    }
    assert_eq!(paths(&server, base).await, ["deep", "deep/er", "deep/er/a.txt"]);
    let (status, _) = server.delete(base).await;
    assert_eq!(status, 200);
    assert_eq!(server.get(&format!("{base}/files")).await.0, 404);
}

#[tokio::test]
async fn calls_in_one_workspace_take_turns() {
    let server = Server::start_whole(|_| {}).await;
    let body = "n=$(cat n 2>/dev/null || echo 0); sleep 0.05; echo $((n + 1)) > n";
    server.create(script("count", "bash", body)).await;
    let calls = (0..8).map(|_| call(&server, "count", "w", json!({})));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer["ok"], true, "{answer}");
    }
    assert_eq!(text(&server, "/api/workspaces/w/files/n").await, "8\n");
    // A tool without side effects looks on, and cannot change anything.
    let mut look = script("look", "bash", "cat n; echo 9 > n");
    look["execution"] = json!({"is_pure": true});
    server.create(look).await;
    let looked = call(&server, "look", "w", json!({})).await;
    assert_eq!(looked["ok"], false, "{looked}");
    assert_eq!(text(&server, "/api/workspaces/w/files/n").await, "8\n");
}

#[tokio::test]
async fn a_client_that_disconnects_leaves_a_stored_state() {
    let server = Server::start_whole(|_| {}).await;
    server.create(script("slow", "bash", "echo x > begun; sleep 60")).await;
    let url = server.url("/api/tools/slow/invoke");
    let request = reqwest::Client::builder().no_proxy().build().unwrap().post(url).bearer_auth(&server.token);
    let sent =
        tokio::spawn(request.header("content-type", "application/json").body(r#"{"workspace": "w"}"#).send());
    let folder = server.home.path().join("workspaces/default/named/w/files/begun");
    poll(async || folder.exists().then_some(())).await;
    sent.abort();
    poll(async || {
        let (status, answer) = server.get("/api/workspaces/w/files").await;
        (status == 200 && answer["data"]["total"] == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_chat_has_a_workspace_that_follows_its_branches() {
    let server = Server::start_whole(|_| {}).await;
    let (status, chat) = server.post("/api/chats", json!({"title": "Files"})).await;
    assert_eq!(status, 201, "{chat}");
    let id = chat["data"]["id"].as_str().unwrap().to_owned();
    let base = format!("/api/chats/{id}/workspace");
    let messages = format!("/api/chats/{id}/messages");
    let say = async |content: &str, parent: Option<&str>| {
        let mut body = json!({"content": content});
        if let Some(parent) = parent {
            body["parent_id"] = json!(parent);
        }
        let (status, answer) = server.post(&messages, body).await;
        assert_eq!(status, 201, "{answer}");
        answer["data"]["message"]["id"].as_str().unwrap().to_owned()
    };
    let put = async |message: &str, content: &str| {
        let args = json!({"path": "a.txt", "content": content});
        let body = json!({"args": args, "chat_id": id, "message_id": message});
        let answer = server.post("/api/tools/write_file/invoke", body).await.1;
        assert_eq!(answer["ok"], true, "{answer}");
    };
    let first = say("one", None).await;
    put(&first, "1").await;
    let second = say("two", None).await;
    put(&second, "2").await;
    assert_eq!(text(&server, &format!("{base}/files/a.txt")).await, "2");
    // Another answer to the first message starts from its files.
    let other = say("another two", Some(&first)).await;
    assert_eq!(text(&server, &format!("{base}/files/a.txt")).await, "1");
    put(&other, "3").await;
    // A message without changes has the state of the one before it.
    let quiet = say("thanks", None).await;
    let (_, state) = server.get(&format!("{messages}/{quiet}/manifest")).await;
    let (_, of_other) = server.get(&format!("{messages}/{other}/manifest")).await;
    assert_eq!(state["data"]["manifest"]["id"], of_other["data"]["manifest"]["id"], "{state}");
    let (status, changed) = server.patch(&format!("/api/chats/{id}"), json!({"active_leaf": second})).await;
    assert_eq!(status, 200, "{changed}");
    assert_eq!(text(&server, &format!("{base}/files/a.txt")).await, "2");
    let (_, list) = server.get(&messages).await;
    assert_eq!(list["data"]["messages"].as_array().unwrap().len(), 4, "{list}");

    // Chats belong to who created them.
    let (_, token) = server.post("/api/tokens", json!({"name": "other", "role": "caller"})).await;
    let token = token["data"]["token"].as_str().unwrap();
    let (status, _) = with(&server, token, Method::GET, &format!("{base}/files"), json!({})).await;
    assert_eq!(status, 404);
    let admin = tenant(&server, "elsewhere").await;
    let (status, _) = with(&server, &admin, Method::GET, &format!("/api/chats/{id}"), json!({})).await;
    assert_eq!(status, 404);
    let (status, _) = server.delete(&format!("/api/chats/{id}")).await;
    assert_eq!(status, 200);
    assert_eq!(server.get(&format!("{base}/files")).await.0, 404);
}

#[tokio::test]
async fn a_state_is_downloaded_as_an_archive() {
    let server = Server::start_whole(|_| {}).await;
    server
        .create(script(
            "make",
            "bash",
            "mkdir -p d/empty; printf one > d/a.txt; printf 'echo 1' > run.sh; chmod +x run.sh; ln -s d/a.txt link",
        ))
        .await;
    let made = call(&server, "make", "w", json!({})).await;
    assert_eq!(made["ok"], true, "{made}");
    let first = made["workspace_use"]["post_manifest"].as_str().unwrap().to_owned();
    write(&server, "/api/workspaces/w/files/big.bin", &"0123456789abcdef".repeat(200_000)).await;
    let download = async |path: String| {
        let response = server.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.headers()["content-type"], "application/zip");
        let name = response.headers()["content-disposition"].to_str().unwrap().to_owned();
        let folder = tempfile::tempdir().unwrap();
        let bytes = response.bytes().await.unwrap();
        let unpacked = haft_package::zip::unpack_into(&bytes, folder.path()).unwrap();
        assert!(unpacked.skipped.is_empty(), "{unpacked:?}");
        (folder, unpacked.files, name)
    };
    let (folder, files, name) = download("/api/workspaces/w/archive".to_owned()).await;
    assert_eq!((files, name.as_str()), (3, "attachment; filename=\"w.zip\""));
    let at = |path: &str| folder.path().join(path);
    assert_eq!(std::fs::read(at("big.bin")).unwrap().len(), 3_200_000);
    assert_eq!(std::fs::read_to_string(at("link")).unwrap(), "one");
    assert!(at("d/empty").is_dir());
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(at("run.sh")).unwrap().permissions());
    assert_ne!(mode & 0o100, 0);
    let (folder, files, _) = download(format!("/api/workspaces/w/archive?manifest={first}")).await;
    assert_eq!(files, 2);
    assert!(!folder.path().join("big.bin").exists(), "the state before");
    let chat = server.post("/api/chats", json!({})).await.1;
    let chat = chat["data"]["id"].as_str().unwrap().to_owned();
    let (_, files, _) = download(format!("/api/chats/{chat}/workspace/archive")).await;
    assert_eq!(files, 0, "a new workspace is an empty archive");
    assert_eq!(server.get("/api/workspaces/none/archive").await.0, 404);
    assert_eq!(server.get(&format!("/api/workspaces/w/archive?manifest={chat}")).await.0, 404);
}

#[tokio::test]
async fn a_file_that_somebody_changed_is_not_overwritten() {
    let server = Server::start_whole(|_| {}).await;
    let path = "/api/workspaces/w/files/a.txt";
    let put = async |header: &str, value: &str, content: &str| {
        let request = server.request(Method::PUT, path).header(header, value).body(content.to_owned());
        crate::harness::send(request).await
    };
    let (status, answer) = put("if-match", "*", "x").await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
    assert_eq!(put("if-none-match", "*", "one").await.0, 200);
    let (status, answer) = put("if-none-match", "*", "two").await;
    assert_eq!(status, 409, "{answer}");
    let read = server.request(Method::GET, path).send().await.unwrap();
    let tag = read.headers()["etag"].to_str().unwrap().to_owned();
    // Another call changes the file in between.
    let changed = call(&server, "write_file", "w", json!({"path": "a.txt", "content": "by a tool"})).await;
    assert_eq!(changed["ok"], true, "{changed}");
    let (status, answer) = put("if-match", &tag, "mine").await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("was changed since you read it"),
        "{answer}"
    );
    assert_eq!(text(&server, path).await, "by a tool");
    let read = server.request(Method::GET, path).send().await.unwrap();
    let tag = read.headers()["etag"].to_str().unwrap().to_owned();
    assert_eq!(put("if-match", &format!("\"other\", {tag}"), "mine").await.0, 200);
    assert_eq!(text(&server, path).await, "mine");
    for (header, value) in [("if-match", "bare"), ("if-none-match", "\"x\""), ("if-match", "\"open")] {
        assert_eq!(put(header, value, "x").await.0, 400, "{header}: {value}");
    }
    let delete = server.request(Method::DELETE, path).header("if-match", &tag);
    assert_eq!(crate::harness::send(delete).await.0, 409);
    assert_eq!(text(&server, path).await, "mine");
}

#[tokio::test]
async fn the_files_of_a_tenant_are_limited() {
    let server = Server::start_whole(|_| {}).await;
    let used = async |server: &Server| {
        let (_, answer) = server.get("/api/limits").await;
        let limits = answer["data"]["limits"].as_array().unwrap();
        let limit = limits.iter().find(|limit| limit["name"] == "tenant.max_stored_bytes").unwrap();
        limit["used"].as_u64().unwrap()
    };
    server.create(script("fill", "bash", "head -c 600000 /dev/urandom > filled; ls")).await;
    let limits = json!({"limits": {"max_stored_bytes": 1_000_000, "max_workspaces": 2}});
    server.patch("/api/tenants/default", limits).await;
    let path = "/api/workspaces/w/files/a.bin";
    let put = async |path: &str, size: usize| {
        crate::harness::send(server.request(Method::PUT, path).body(vec![7; size])).await
    };
    assert_eq!(put(path, 300_000).await.0, 200);
    assert!(used(&server).await >= 300_000);
    let (status, answer) = put("/api/workspaces/w/files/b.bin", 900_000).await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
    let details = &answer["error"]["details"];
    assert_eq!(
        (&details["limit"], &details["value"]),
        (&json!("tenant.max_stored_bytes"), &json!(1_000_000))
    );
    assert_eq!(paths(&server, "/api/workspaces/w").await, ["a.bin"]);

    // The state after a call is checked, too: the earlier state is kept, and the rejected one uses no space.
    assert_eq!(put("/api/workspaces/other/files/b.bin", 250_000).await.0, 200);
    let packs = || walk(&server.home.path().join("packs"));
    let before = packs();
    let ran = call(&server, "fill", "w", json!({})).await;
    let error = ran["workspace_use"]["error"].as_str().unwrap();
    assert!(error.contains("its limit is 1000000 (`limits.max_stored_bytes`)"), "{ran}");
    assert_eq!(packs(), before, "nothing of the rejected state is kept");
    assert_eq!(paths(&server, "/api/workspaces/w").await, ["a.bin"]);
    assert_eq!(put(path, 10).await.0, 200);
    assert_eq!(text(&server, path).await.len(), 10);
    let (status, answer) = put("/api/workspaces/third/files/a.bin", 1).await;
    assert_eq!((status, &answer["error"]["details"]["limit"]), (409, &json!("tenant.max_workspaces")));
    // Room for others once the files are gone.
    assert_eq!(server.delete("/api/workspaces/other").await.0, 200);
    assert_eq!(put("/api/workspaces/third/files/a.bin", 1).await.0, 200);
}

/// Returns the names of the files beneath a folder.
fn walk(folder: &std::path::Path) -> std::collections::BTreeSet<std::path::PathBuf> {
    let mut found = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(walk(&path));
        } else {
            found.insert(path);
        }
    }
    found
}
