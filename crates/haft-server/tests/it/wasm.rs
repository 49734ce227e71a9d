//! Tools in WebAssembly: by base64 through REST, and as a file of their bundle.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::harness::{Server, code, poll};

/// A component with two functions.
const MATH: &str = r#"(component
  (core module $m
    (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
    (func (export "spin") (loop $again (br $again))))
  (core instance $i (instantiate $m))
  (func (export "add") (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $i "add")))
  (func (export "spin") (canon lift (core func $i "spin"))))"#;

fn math(function: &str) -> Value {
    let bytes = wat::parse_str(MATH).unwrap();
    json!({
        "name": function,
        "description": "Arithmetic",
        "implementation": {"type": "wasm", "base64": STANDARD.encode(bytes), "function": function},
        "input_schema": {},
    })
}

#[tokio::test]
async fn a_tool_is_created_and_called_and_invalid_requests_are_rejected() {
    let server = Server::start().await;
    let mut add = math("add");
    add["input_schema"] = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                                 "required": ["a", "b"]});
    server.create(add).await;
    let (status, answer) = server.invoke("add", json!({"a": 40, "b": 2})).await;
    assert_eq!((status, &answer["value"]), (200, &json!(42)), "{answer}");
    let (_, answer) = server.invoke("add", json!({"a": 3_000_000_000_u32, "b": 2})).await;
    assert_eq!(code(&answer), "invalid_arguments", "{answer}");

    let (status, answer) = server.post("/api/tools", math("sub")).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("function `sub` not found; the component exports `add`, `spin`"), "{message}");
    let mut damaged = math("add");
    damaged["implementation"]["base64"] = json!("AGFzbQ==");
    let (status, answer) = server.post("/api/tools", damaged).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
}

#[tokio::test]
async fn a_guest_that_never_ends_is_stopped_and_the_server_goes_on() {
    let server = Server::start().await;
    let mut spin = math("spin");
    spin["execution"] = json!({"timeout_ms": 100});
    server.create(spin).await;
    let (status, answer) = server.invoke("spin", json!({})).await;
    assert_eq!((status, code(&answer)), (200, "timeout"), "{answer}");
    assert_eq!(server.get("/healthz").await.0, 200);
}

#[tokio::test]
async fn a_file_of_the_bundle_is_found_also_after_a_restart() {
    let server = Server::start().await;
    let bundle = server.home.path().join("skills/user-created");
    let tool = json!({"name": "add", "implementation": {"type": "wasm", "file": "math.wasm", "function": "add"},
                      "input_schema": {}});
    let (status, answer) = server.post("/api/tools", tool.clone()).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"));
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("file not found in the bundle folder"),
        "{answer}"
    );
    fs::create_dir_all(&bundle).unwrap();
    fs::write(bundle.join("math.wasm"), wat::parse_str(MATH).unwrap()).unwrap();
    server.create(tool).await;
    let (_, answer) = server.invoke("add", json!({"a": 1, "b": 2})).await;
    assert_eq!(answer["value"], json!(3), "{answer}");
    assert_eq!(fs::read_dir(server.home.path().join("cache/wasm")).unwrap().count(), 1);
    let server = server.restart().await;
    let (_, answer) = server.invoke("add", json!({"a": 1, "b": 5})).await;
    assert_eq!(answer["value"], json!(6), "{answer}");
}

#[tokio::test]
async fn a_call_finds_a_file_added_after_its_definition() {
    let server = Server::start().await;
    let bundle = server.home.path().join("skills/late");
    fs::create_dir_all(&bundle).unwrap();
    let definition = "name: add\ndescription: Adds\ninput_schema: {}\n\
                      implementation: {type: wasm, file: math.wasm, function: add}\n";
    fs::write(bundle.join("add.yaml"), definition).unwrap();
    let error = async |server: &Server| {
        let (_, answer) = server.invoke("late:add", json!({"a": 1, "b": 2})).await;
        (code(&answer).to_owned(), answer["error"]["message"].as_str().unwrap().to_owned())
    };
    let missing = poll(async || Some(error(&server).await).filter(|error| error.0 != "not_found")).await;
    assert_eq!(missing.0, "not_ready");

    // A truncated file is not a module.
    let module = wat::parse_str(MATH).unwrap();
    fs::write(bundle.join("math.wasm"), module.get(..20).unwrap()).unwrap();
    let truncated = poll(async || Some(error(&server).await).filter(|error| *error != missing)).await;
    assert_eq!(truncated.0, "not_ready");
    fs::write(bundle.join("math.wasm"), &module).unwrap();
    let answer = poll(async || {
        let (_, answer) = server.invoke("late:add", json!({"a": 1, "b": 2})).await;
        Some(answer).filter(|answer| answer["ok"] == true)
    })
    .await;
    assert_eq!(answer["value"], json!(3), "{answer}");
    let (_, tool) = server.get("/api/tools/late:add").await;
    assert_eq!(tool["data"]["ready"], json!(true), "{tool}");
}

#[tokio::test]
async fn the_memory_of_a_guest_is_what_the_settings_say() {
    let server = Server::start_with(|settings| settings.wasm.memory_bytes = 1 << 20).await;
    let wat =
        "(module (memory 1) (func (export \"_start\") (drop (memory.grow (i32.const 32))) unreachable))";
    let grow = json!({"name": "grow", "input_schema": {}, "description": "Grows",
        "implementation": {"type": "wasm", "base64": STANDARD.encode(wat::parse_str(wat).unwrap())}});
    server.create(grow).await;
    let (_, answer) = server.invoke("grow", json!({})).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert_eq!(message, "memory limit (1 MiB) exceeded");
}

/// A component that connects to a port of this machine; it returns 255, or the number of the error.
fn connecting() -> Value {
    let text = include_str!("../../../haft-wasm/tests/it/connecting.wat");
    json!({
        "name": "connect", "description": "Connects to a port", "network": true,
        "implementation": {"type": "wasm", "base64": STANDARD.encode(wat::parse_str(text).unwrap()), "function": "connect"},
        "input_schema": {"type": "object", "properties": {"port": {"type": "integer"}}},
    })
}

#[tokio::test]
async fn the_egress_rules_hold_for_sockets_of_guests() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for (private, expected) in [(vec![], 1), (vec![format!("127.0.0.1:{port}")], 255)] {
        let server = Server::start_with(|settings| settings.egress.private_hosts = private).await;
        server.create(connecting()).await;
        let (_, answer) = server.invoke("connect", json!({"port": port})).await;
        assert_eq!(answer["value"], json!(expected), "{answer}");
    }
}

#[tokio::test]
async fn an_unknown_folder_is_rejected_with_its_field() {
    let server = Server::start().await;
    let mut tool = math("add");
    tool["implementation"]["files"] = json!({"nowhere": "read"});
    let (status, answer) = server.post("/api/tools", tool).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("`implementation.files.nowhere`"), "{message}");
    assert!(message.contains("configured: `workspace`"), "{message}");
}
