//! `haft connect`: the configurations of MCP clients.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail the test")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Haft, Run, mode};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;

/// A person with a home folder of haft, and one of their own for the clients.
struct Person(Haft);

impl Person {
    fn new() -> Self {
        Self(Haft::new())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.command(arguments);
        command.env("HOME", self.0.path("user"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Run {
        self.0.finish(self.command(arguments).output().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path("user").join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn tokens(&self) -> Vec<String> {
        let list = self.0.json(&["token", "list"]);
        let names = list["tokens"].as_array().unwrap().iter().map(|token| token["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    }

    /// Returns whether a token works.
    fn works(&self, url: &str, token: &str) -> bool {
        self.run(&["--server", url, "--token", token, "tool", "list"]).code == 0
    }
}

/// Returns the token in a header.
fn bearer(header: &Value) -> String {
    header.as_str().unwrap().strip_prefix("Bearer ").unwrap().to_owned()
}

#[test]
fn a_client_is_connected_with_a_token_of_its_own_and_disconnected() {
    let person = Person::new();
    let server = person.0.serve(&[]);
    person.0.write("user/.cursor/mcp.json", "// mine\n{\"mcpServers\": {\"other\": {\"command\": \"x\"}}}\n");
    let run = person.run(&["connect", "cursor"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    let text = person.read(".cursor/mcp.json");
    assert!(text.starts_with("// mine\n"), "{text}");
    assert!(person.read(".cursor/mcp.json.haft-backup").contains("\"other\""));
    let settings: Value = serde_json::from_str(text.strip_prefix("// mine\n").unwrap()).unwrap();
    assert_eq!(settings["mcpServers"]["other"], json!({"command": "x"}));
    let entry = &settings["mcpServers"]["haft"];
    assert_eq!(entry["url"], json!(format!("{}/mcp", server.url.trim_end_matches('/'))));
    let token = bearer(&entry["headers"]["Authorization"]);
    assert!(person.works(&server.url, &token));
    assert!(person.tokens().iter().any(|name| name.starts_with("Cursor on ")), "{:?}", person.tokens());

    // Once more: the new token replaces the earlier one, which ends.
    let run = person.run(&["connect", "cursor", "--tools", "time"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    assert!(!person.works(&server.url, &token));
    assert_eq!(person.tokens().len(), 1);
    let listed = person.run(&["connect", "--list"]);
    assert!(listed.stdout.contains("connected to"), "{}", listed.shown());

    let run = person.run(&["connect", "cursor", "--remove"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    assert!(!person.read(".cursor/mcp.json").contains("haft"));
    assert_eq!(person.tokens(), Vec::<String>::new());
    assert_eq!(person.run(&["connect", "cursor", "--remove"]).code, 2);
}

#[test]
fn every_form_of_configuration_is_written_for_its_owner_alone() {
    let person = Person::new();
    let server = person.0.serve(&[]);
    for (client, file, expected) in [
        ("claude", ".claude.json", "\"type\": \"http\""),
        ("codex", ".codex/config.toml", "[mcp_servers.haft]"),
        ("goose", ".config/goose/config.yaml", "streamable_http"),
        ("vscode", ".config/Code/User/mcp.json", "\"servers\""),
        ("zed", ".config/zed/settings.json", "context_servers"),
    ] {
        let run = person.run(&["connect", client]);
        assert_eq!(run.code, 0, "{client}: {}", run.shown());
        let text = person.read(file);
        assert!(
            text.contains(expected) && text.contains(server.url.trim_end_matches('/')),
            "{client}: {text}"
        );
        assert_eq!(mode(&person.path(file)), 0o600, "{client}");
        let run = person.run(&["connect", client, "--remove"]);
        assert_eq!(run.code, 0, "{client}: {}", run.shown());
        assert!(!person.read(file).contains("haft_"), "{client}");
    }
    assert_eq!(person.tokens(), Vec::<String>::new());
}

#[test]
fn a_client_that_starts_a_program_needs_neither_a_server_nor_a_token() {
    let person = Person::new();
    let run = person.run(&["connect", "claude-desktop"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    let settings: Value =
        serde_json::from_str(&person.read(".config/Claude/claude_desktop_config.json")).unwrap();
    let entry = &settings["mcpServers"]["haft"];
    let args: Vec<&str> = entry["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    assert_eq!(entry.get("env"), None);
    // As the client starts it, which knows no HAFT_HOME.
    let mut command = person.command(&args);
    let mut child = command.env_remove("HAFT_HOME").stdin(Stdio::piped()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{INITIALIZE}").unwrap();
    let run = person.0.finish(child.wait_with_output().unwrap());
    assert!(run.stdout.contains("serverInfo"), "{}", run.shown());
}

#[test]
fn nothing_is_written_where_haft_cannot_connect() {
    let person = Person::new();
    let run = person.run(&["connect", "cursor"]);
    assert_eq!(run.code, 2, "{}", run.shown());
    assert!(run.stderr.contains("no server is running") && run.stderr.contains("--stdio"), "{}", run.shown());
    assert!(!person.path(".cursor").exists());

    let server = person.0.serve(&[]);
    person.0.write("user/.cursor/mcp.json", "{\"mcpServers\": [1]}");
    let run = person.run(&["connect", "cursor"]);
    assert_eq!(run.code, 1, "{}", run.shown());
    assert!(run.stderr.contains("cannot be changed") && run.stderr.contains("--print"), "{}", run.shown());
    assert_eq!(person.read(".cursor/mcp.json"), "{\"mcpServers\": [1]}");
    assert_eq!(person.tokens(), Vec::<String>::new(), "the token of the failed attempt is revoked");

    let run = person.run(&["connect", "cursor", "--print"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    assert!(run.stdout.contains("Bearer TOKEN") && run.stdout.contains(server.url.trim_end_matches('/')));
    let run = person.run(&["connect", "claude-desktop", "--oauth"]);
    assert_eq!(run.code, 2, "{}", run.shown());
    let run = person.run(&["connect", "vscode", "--oauth"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    assert!(!person.read(".config/Code/User/mcp.json").contains("haft_"));
}
