//! File tools through the API, as the third document writes them.

use serde_json::json;

use crate::harness::Server;

const READ: &str = "
name: read_note
description: Read a note of the workspace
params:
  - name: path
    type: string
    description: The note
    required: true
implementation:
  type: file_read
  path: \"{{path}}\"
  encoding: utf-8
";

const WRITE: &str = "
name: write_note
description: Write a note into the workspace
params:
  - name: path
    type: string
    required: true
  - name: content
    type: string
    required: true
implementation:
  type: file_write
  path: \"{{path}}\"
  content: \"{{content}}\"
  mode: 0644
  mkdir: true
";

async fn create_yaml(server: &Server, text: &str) {
    let request =
        server.request(reqwest::Method::POST, "/api/tools").header("content-type", "application/yaml");
    let (status, answer) = crate::harness::send(request.body(text.to_owned())).await;
    assert_eq!(status, 201, "{answer}");
}

#[tokio::test]
async fn notes_are_written_and_read_in_the_workspace() {
    let server = Server::start().await;
    create_yaml(&server, READ).await;
    create_yaml(&server, WRITE).await;
    let (status, answer) =
        server.invoke("write_note", json!({ "path": "notes/today.md", "content": "Buy \"milk\"\n" })).await;
    assert_eq!((status, &answer["ok"]), (200, &json!(true)), "{answer}");
    assert_eq!(answer["value"], json!({ "path": "notes/today.md", "size": 11, "created": true }));
    let written = std::fs::read_to_string(server.home.path().join("workspace/notes/today.md")).unwrap();
    assert_eq!(written, "Buy \"milk\"\n");
    let (_, answer) = server.invoke("read_note", json!({ "path": "notes/today.md" })).await;
    assert_eq!(answer["value"], json!("Buy \"milk\"\n"));

    for path in ["/etc/passwd", "../../../etc/passwd", "../haft.db", "notes/../../key"] {
        for tool in ["read_note", "write_note"] {
            let args = if tool == "read_note" {
                json!({ "path": path })
            } else {
                json!({ "path": path, "content": "x" })
            };
            let (status, answer) = server.invoke(tool, args).await;
            let error = &answer["error"];
            let text = error["message"].as_str().unwrap();
            assert_eq!((status, &error["code"]), (200, &json!("path_escapes")), "{answer}");
            assert!(text.starts_with("path escapes sandbox"), "{text}");
            assert!(!answer.to_string().contains(&server.home.path().display().to_string()), "{answer}");
        }
    }
}

#[tokio::test]
async fn roots_have_names_and_may_be_read_only() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "data").unwrap();
    let path = folder.path().to_owned();
    let server = Server::start_with(|settings| {
        settings.files.sandboxes = vec![("outputs".to_owned(), path.clone()), ("data".to_owned(), path)];
        settings.files.read_only = vec!["data".to_owned()];
    })
    .await;
    let tool = |name: &str, root: &str, kind: &str| {
        json!({ "name": name, "description": "Use a file of a named folder", "input_schema": { "type": "object" },
            "implementation": { "type": kind, "path": "a.txt", "content": "new", "root": root } })
    };
    server.create(tool("read-data", "data", "file_read")).await;
    assert_eq!(server.invoke("read-data", json!({})).await.1["value"], json!("data"));
    let made = server.create(tool("write-data", "data", "file_write")).await;
    assert_eq!(made["ready"], json!(false), "{made}");
    let made = server.create(tool("read-other", "other", "file_read")).await;
    assert_eq!(made["ready"], json!(false), "{made}");
    let error = server.get("/api/tools/read-other").await.1["data"]["error"].clone();
    assert_eq!(error, json!("`implementation.root`: unknown sandbox `other`; available: `outputs`, `data`"));
    assert_eq!(server.invoke("write-data", json!({})).await.0, 409);
    server.create(tool("write-out", "outputs", "file_write")).await;
    assert_eq!(server.invoke("write-out", json!({})).await.1["ok"], json!(true));
    assert_eq!(server.invoke("read-data", json!({})).await.1["value"], json!("new"));
}

#[tokio::test]
async fn unsafe_commands_are_rejected_on_save() {
    let server = Server::start().await;
    let tool = |command: &str| {
        json!({ "name": "run-it", "description": "Run a command with a value",
            "input_schema": { "type": "object", "properties": { "x": { "type": "string" } } },
            "implementation": { "type": "exec", "command": command } })
    };
    let (status, answer) = server.post("/api/tools", tool("ls && eval '{{x}}'")).await;
    assert_eq!(status, 400, "{answer}");
    let problem = &answer["error"]["details"]["problems"][0];
    assert_eq!(
        (problem["field"].as_str().unwrap(), problem["message"].as_str().unwrap()),
        (
            "implementation.command",
            "at character 7: `eval` may evaluate values as shell code; run the program directly, or use a script tool"
        )
    );
    server.create(tool("grep -- '{{x}}' notes.txt")).await;
}
