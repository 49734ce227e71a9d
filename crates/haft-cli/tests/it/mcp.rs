//! `haft mcp`: nothing but messages on stdout, with and without a server.

#![expect(clippy::panic, reason = "helpers of tests fail the test")]

use serde_json::{Value, json};

use crate::harness::{Haft, Run};
use crate::upstream;

/// A home with one tool that answers.
pub(crate) fn with_tool() -> Haft {
    let haft = Haft::new();
    haft.write("home/haft.toml", "[egress]\nprivate_hosts = [\"127.0.0.1\"]\n");
    let url = format!("http://{}/json", upstream::start());
    let add = ["tool", "add", "--name", "fetch-it", "--description", "Asks a server", "--url", &url];
    assert_eq!(haft.run(&add).code, 0);
    haft
}

/// Sends messages and returns the answers by their ids.
fn talk(haft: &Haft, arguments: &[&str], messages: &[Value]) -> (Vec<Value>, Run) {
    let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
    let run = haft.run_with(&[&["mcp"], arguments].concat(), &(lines.join("\n") + "\n"));
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("no message: {line}"));
    (run.stdout.lines().map(read).collect(), run)
}

fn conversation() -> Vec<Value> {
    vec![
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "fetch-it", "arguments": {}}}),
    ]
}

fn answer(answers: &[Value], id: u64) -> &Value {
    answers.iter().find(|answer| answer["id"] == id).unwrap_or_else(|| panic!("no {id} in {answers:?}"))
}

#[test]
fn output_is_the_same_with_and_without_a_server() {
    let haft = with_tool();
    for serves in [false, true] {
        let server = serves.then(|| haft.serve(&[]));
        let (answers, run) = talk(&haft, &[], &conversation());
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.shown());
        assert_eq!(answer(&answers, 0)["result"]["serverInfo"]["name"], "haft");
        let names = answer(&answers, 1)["result"]["tools"].as_array().unwrap();
        assert!(names.iter().any(|tool| tool["name"] == "fetch-it"), "{names:?}");
        assert_eq!(answer(&answers, 2)["result"]["isError"], false, "{answers:?}");
        drop(server);
    }
    let calls = haft.json(&["call", "list"]);
    let surfaces: Vec<&str> =
        calls["calls"].as_array().unwrap().iter().map(|call| call["surface"].as_str().unwrap()).collect();
    assert_eq!(surfaces, ["mcp", "mcp"]);
}

#[test]
fn an_unknown_bundle_is_an_error() {
    let haft = with_tool();
    for serves in [false, true] {
        let server = serves.then(|| haft.serve(&[]));
        let run = haft.run(&["mcp", "--bundle", "nowhere"]);
        insta::allow_duplicates! {
            insta::assert_snapshot!(run.shown(), @r"
            exit code: 3
            ----- stdout
            ----- stderr
            error: bundle `nowhere` not found
            ");
        }
        drop(server);
    }
}
