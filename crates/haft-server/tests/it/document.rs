//! The OpenAPI document: valid, complete, and the same as what the server does.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use haft_testkit::prerequisite::{Prerequisite, skip};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, send};

async fn document(server: &Server) -> Value {
    send(server.bare(Method::GET, "/api/openapi.json")).await.1
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the validator of another project is under test")]
async fn the_document_is_valid_and_every_body_has_a_type_and_an_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("../../target/peers/schemathesis/bin/python");
    if !python.exists() {
        skip(Prerequisite::ApiPeers, &format!("`{}` is not installed", python.display()));
        return;
    }
    let server = Server::start().await;
    let document = document(&server).await.to_string();
    let validating = tokio::task::spawn_blocking(move || {
        let mut process = Command::new(python)
            .arg(root.join("tests/peers/validate_openapi.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        process.stdin.take().unwrap().write_all(document.as_bytes()).unwrap();
        process.wait_with_output().unwrap()
    });
    let output = validating.await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let problems: Vec<String> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(problems, Vec::<String>::new());
}

/// The client of the web interface is generated from this file.
#[tokio::test]
async fn the_document_of_the_web_interface_is_current() {
    let server = Server::start().await;
    let served = format!("{:#}\n", document(&server).await);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/openapi.json");
    if std::fs::read_to_string(&file).is_ok_and(|stored| stored == served) {
        return;
    }
    let newest = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openapi.json");
    std::fs::write(&newest, served).unwrap();
    panic!(
        "`ui/openapi.json` differs from what the server serves; refresh it with `cp {} ui/openapi.json && npm \
         --prefix ui run gen`",
        newest.display()
    );
}

/// What `openapi-typescript` makes types of: enums, required fields, `null` only where it occurs.
#[tokio::test]
async fn types_are_exact() {
    let server = Server::start().await;
    let document = document(&server).await;
    let schemas = &document["components"]["schemas"];
    let property = |schema: &str, name: &str| schemas[schema]["properties"][name].clone();
    let is_required = |schema: &str, name: &str| {
        schemas[schema]["required"].as_array().is_some_and(|names| names.contains(&json!(name)))
    };
    assert_eq!(
        schemas["CallStatus"]["enum"],
        json!([
            "pending",
            "running",
            "success",
            "error",
            "cancelled",
            "awaiting_approval",
            "denied",
            "expired",
            "interrupted"
        ])
    );
    assert_eq!(property("ToolView", "status")["$ref"], "#/components/schemas/ToolStatus");
    assert_eq!(schemas["ToolStatus"]["enum"], json!(["draft", "published", "deprecated", "disabled"]));
    // Always present, maybe `null`.
    assert!(is_required("ToolView", "published_at"), "{}", schemas["ToolView"]["required"]);
    assert_eq!(property("ToolView", "published_at")["type"], json!(["string", "null"]));
    // Maybe missing, never `null`.
    assert!(!is_required("ToolView", "image"));
    assert_eq!(property("ToolView", "image")["type"], "string");
    assert_eq!(property("CallError", "code")["$ref"], "#/components/schemas/ErrorCode");
    assert_eq!(property("InvokeBody", "args")["additionalProperties"], true);
    // Generators require request fields that have a default.
    for (schema, field) in
        [("NewServer", "enabled"), ("ImportBody", "dry_run"), ("CurlImportBody", "dry_run")]
    {
        assert!(!is_required(schema, field) && property(schema, field).is_object(), "{schema}.{field}");
        assert_eq!(property(schema, field).get("default"), None, "{schema}.{field}");
    }
    let codes = schemas["ErrorCode"]["enum"].as_array().unwrap();
    assert!(codes.contains(&json!("rate_limited")) && codes.contains(&json!("timeout")), "{codes:?}");
}

#[tokio::test]
async fn an_unknown_query_parameter_is_rejected_with_the_nearest_known_one() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    for (method, path, expected) in [
        (Method::GET, "/api/tools?statsu=draft", "unknown query parameter `statsu`; did you mean `status`?"),
        (
            Method::GET,
            "/tools?pagesize_=1&fliter=all",
            "unknown query parameter `fliter`; did you mean `filter`?",
        ),
        (Method::GET, "/tools/tools?taggs=a", "unknown query parameter `taggs`; did you mean `tags`?"),
        (Method::GET, "/api/calls?toolz=worker", "unknown query parameter `toolz`; did you mean `tool`?"),
        (Method::GET, "/api/tools/worker?x=1", "unknown query parameter `x`; this route has no parameters"),
        (
            Method::POST,
            "/api/tools/worker/invoke?wait=1",
            "unknown query parameter `wait`; expected one of `mode`, `async`, `result`",
        ),
        (
            Method::DELETE,
            "/tools/worker?keepbackups=false",
            "unknown query parameter `keepbackups`; did you mean `keep_backup`?",
        ),
    ] {
        let (status, answer) = send(server.request(method, path).body("{}")).await;
        assert_eq!((status, code(&answer)), (400, "invalid_request"), "{path} {answer}");
        assert_eq!(answer["error"]["message"], expected, "{path}");
        let (status, _) = send(server.bare(Method::GET, path)).await;
        assert!(status == 401 || status == 405, "{path}: {status}");
    }
    for path in [
        "/api/tools?pageSize=1&bundleIDs=user-created&include-disabled=true",
        "/tools/tools/search?q=worker&skip=0&limit=5",
        "/api/calls?recommendedPageSize=5",
        "/healthz?x=1",
    ] {
        assert_eq!(server.get(path).await.0, 200, "{path}");
    }
    // Authorization servers add parameters of their own.
    let response = server.bare(Method::GET, "/api/mcp-servers/oauth/callback?state=a&session_state=b");
    let text = response.send().await.unwrap().text().await.unwrap();
    assert!(text.starts_with("Login failed"), "{text}");
    assert_eq!(server.get("/api/tools/worker").await.0, 200, "nothing was deleted");
}

#[tokio::test]
async fn nul_in_a_query_is_rejected() {
    let server = Server::start().await;
    for path in ["/api/calls?caller=a%00b", "/api/audit?target=%00", "/api/tools?q=%00"] {
        let (status, answer) = server.get(path).await;
        assert_eq!((status, code(&answer)), (400, "invalid_request"), "{path} {answer}");
    }
}

#[tokio::test]
async fn built_in_tools_have_an_id_by_name() {
    let server = Server::start().await;
    let (_, by_name) = server.get("/api/tools/hello").await;
    let (status, by_id) = server.get("/api/tools/tool-builtin-hello").await;
    assert_eq!((status, &by_id["data"]["id"]), (200, &by_name["data"]["id"]), "{by_id}");
    let (status, answer) = server.invoke("tool-builtin-hello", json!({"a": 1})).await;
    assert_eq!((status, &answer["value"]), (200, &json!({"a": 1})), "{answer}");
    // A tool of a user is not built in.
    server.create(function_tool("worker", "echo")).await;
    let (status, answer) = server.get("/api/tools/tool-builtin-worker").await;
    assert_eq!((status, code(&answer)), (404, "not_found"), "{answer}");
}
