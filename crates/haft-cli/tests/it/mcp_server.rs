//! `haft mcp-server`, with a real program at the other end.

use serde_json::{Value, json};

use crate::harness::Haft;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../haft-mcp/tests/it/server.py");

fn add(haft: &Haft) -> Value {
    let limits = ["--timeout", "2m", "--max-response-bytes", "1000000"];
    let add = ["mcp-server", "add", "echoes", "--policy", "allow"];
    haft.json(&[&add[..], &limits, &["--", "python3", PROGRAM]].concat())
}

/// What a person does with a server, from the first to the last.
fn a_life(haft: &Haft) {
    let added = add(haft);
    assert_eq!(added.pointer("/state/tools"), Some(&json!(5)), "{added}");
    assert_eq!(added.pointer("/timeout_ms"), Some(&json!(120_000)), "{added}");
    assert_eq!(added.pointer("/max_response_bytes"), Some(&json!(1_000_000)), "{added}");
    let said = haft.json(&["tool", "call", "echoes:echo", "--args", r#"{"text": "hello"}"#]);
    assert_eq!(said.pointer("/value"), Some(&json!("hello")), "{said}");

    assert_eq!(haft.json(&["mcp-server", "changes", "echoes"]), json!({"changes": [], "total": 0}));
    assert_eq!(haft.json(&["mcp-server", "accept", "echoes"]), json!({"accepted": []}));
    haft.json(&["mcp-server", "disable", "echoes"]);
    let off = haft.run(&["tool", "call", "echoes:echo", "--args", r#"{"text": "hello"}"#]);
    assert_ne!(off.code, 0, "{}", off.shown());
    haft.json(&["mcp-server", "enable", "echoes"]);
    let shown = haft.json(&["mcp-server", "refresh", "echoes"]);
    assert_eq!(shown.pointer("/state/phase"), Some(&json!("connected")), "{shown}");
    haft.json(&["mcp-server", "rm", "echoes"]);
    assert_eq!(haft.json(&["mcp-server", "list"]).pointer("/mcp_servers"), Some(&json!([])));
    assert_ne!(haft.run(&["tool", "show", "echoes:echo"]).code, 0);
}

#[test]
fn mcp_servers_work_with_a_running_server() {
    let haft = Haft::new();
    let _server = haft.serve(&[]);
    a_life(&haft);
}

#[test]
fn mcp_servers_work_without_a_running_server() {
    a_life(&Haft::new());
}

#[test]
fn a_declared_server_is_added_and_read_only() {
    let haft = Haft::new();
    std::fs::create_dir_all(haft.home()).unwrap();
    let file = haft.home().join("haft.toml");
    let toml = format!(
        "[mcp.servers.echoes]\ncommand = \"python3\"\nargs = [{PROGRAM:?}]\ntimeout_ms = 5000\nenv = {{ KEY = \"${{KEY}}\" }}\n"
    );
    std::fs::write(&file, toml).unwrap();
    let listed = haft.json(&["mcp-server", "list"]);
    assert_eq!(listed.pointer("/mcp_servers/0/id"), Some(&json!("echoes")), "{listed}");
    assert_eq!(listed.pointer("/mcp_servers/0/env/KEY"), Some(&json!("${KEY}")), "{listed}");
    assert_eq!(listed.pointer("/mcp_servers/0/timeout_ms"), Some(&json!(5000)), "{listed}");
    for arguments in [["rm", "echoes"], ["disable", "echoes"]] {
        let shown = haft.run(&[&["mcp-server"][..], &arguments].concat()).shown();
        assert!(
            shown.contains("is declared in `") && shown.contains("haft.toml`; change it there"),
            "{shown}"
        );
    }
    std::fs::write(&file, "").unwrap();
    assert_eq!(haft.json(&["mcp-server", "list"]).pointer("/mcp_servers"), Some(&json!([])));
}

#[test]
fn settings_of_a_server_can_be_changed_later() {
    let haft = Haft::new();
    // It is not started: without network it would retry its downloads for a minute.
    let added =
        haft.run(&["mcp-server", "add", "fetch", "--start-timeout", "90s", "--", "uvx", "mcp-server-fetch"]);
    assert_eq!(added.code, 0, "{}", added.shown());
    assert!(added.stderr.contains("`haft mcp-server update fetch --network`"), "{}", added.shown());
    let changed = haft.json(&[
        "mcp-server",
        "update",
        "fetch",
        "--network",
        "--start-timeout",
        "3m",
        "--policy",
        "deny",
    ]);
    let shown =
        ["/network", "/start_timeout_ms", "/policy"].map(|path| changed.pointer(path).cloned().unwrap());
    assert_eq!(shown, [json!(true), json!(180_000), json!("deny")], "{changed}");
    let changed = haft.json(&["mcp-server", "set", "fetch", "--no-network"]);
    assert_eq!(changed.pointer("/network"), Some(&json!(false)), "{changed}");
    assert_ne!(haft.run(&["mcp-server", "update", "fetch"]).code, 0);
    let remote = haft.run(&["mcp-server", "update", "fetch", "--start-timeout", "1ms"]);
    assert!(
        remote.stderr.contains("`start_timeout_ms` is 1; expected 1000 to 1800000"),
        "{}",
        remote.shown()
    );
}

#[test]
fn servers_of_another_client_are_imported() {
    let haft = Haft::new();
    let document = json!({"mcpServers": {
        "echoes": {"command": "python3", "args": [PROGRAM]},
        "old": {"type": "sse", "url": "https://x.test"},
    }});
    let file = haft.write("other.json", &document.to_string());
    let run = haft.run(&["mcp-server", "import", &file, "--json"]);
    assert_eq!(run.code, 8, "{}", run.shown());
    let said = haft.json(&["tool", "call", "echoes:echo", "--args", r#"{"text": "hello"}"#]);
    assert_eq!(said.pointer("/value"), Some(&json!("hello")), "{said}");
}

#[test]
fn an_import_fails_if_one_server_is_unavailable() {
    let haft = Haft::new();
    let document = json!({"mcpServers": {
        "echoes": {"command": "python3", "args": [PROGRAM]},
        "gone": {"command": "no-such-program"},
    }});
    let file = haft.write("other.json", &document.to_string());
    let run = haft.run(&["mcp-server", "import", &file]);
    assert_eq!(run.code, 8, "{}", run.shown());
    assert!(run.stdout.contains("added, 5 tools"), "{}", run.shown());
    assert!(
        run.stdout.contains("added, but not connected: ")
            && run.stdout.contains("`no-such-program` not found"),
        "{}",
        run.shown()
    );
    assert_eq!(run.stderr, "error: 1 of 2 servers failed\n");
}

/// Every request has a number of its own.
fn without_request(shown: &str) -> String {
    shown.lines().flat_map(|line| [line.split(" (request ").next().unwrap_or(line), "\n"]).collect()
}

#[test]
fn errors_have_a_message_and_a_hint() {
    let haft = Haft::new();
    let shown =
        |arguments: &[&str]| without_request(&haft.run(&[&["mcp-server"], arguments].concat()).shown());
    insta::assert_snapshot!(shown(&["add", "gone", "--", "no-such-program"]), @r"
exit code: 5
----- stdout
----- stderr
added MCP server `gone`; loading its tools
error: MCP server `gone` is not connected: program `no-such-program` not found in `/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`; install it, pass its absolute path, or set `PATH` in `env`

hint: the server was added all the same; fix the cause and run `haft mcp-server refresh gone`, or remove it with `haft mcp-server rm gone`
");
    insta::assert_snapshot!(shown(&["add", "ends", "--", "python3", PROGRAM, "exit"]), @r"
exit code: 5
----- stdout
----- stderr
added MCP server `ends`; loading its tools
error: MCP server `ends` is not connected: the server closed the connection before responding; stderr: starting as exit / no configuration found

hint: the server was added all the same; fix the cause and run `haft mcp-server refresh ends`, or remove it with `haft mcp-server rm ends`
");
    insta::assert_snapshot!(shown(&["list"]), @r"
    exit code: 0
    ----- stdout
    ID    STATE         TOOLS  SERVER  ERROR
    ends  disconnected  0
    gone  disconnected  0
    ----- stderr
    ");
    insta::assert_snapshot!(shown(&["add", "neither"]), @r"
exit code: 2
----- stdout
----- stderr
error: the following required arguments were not provided:
  <COMMAND>...

Usage: haft mcp-server add <ID> -- <COMMAND>...

For more information, try '--help'.
");
    insta::assert_snapshot!(shown(&["add", "x", "--url", "ftp://localhost"]), @r"
exit code: 8
----- stdout
----- stderr
error: MCP server `x` was not added: `url` must start with `http://` or `https://`
");
    insta::assert_snapshot!(shown(&["add", "meta", "--url", "http://169.254.169.254/mcp"]), @r"
exit code: 5
----- stdout
----- stderr
added MCP server `meta`; loading its tools
error: MCP server `meta` is not connected: `169.254.169.254` is a link-local address: add it to `egress.private_hosts` to allow it

hint: the server was added all the same; fix the cause and run `haft mcp-server refresh meta`, or remove it with `haft mcp-server rm meta`
");
    insta::assert_snapshot!(shown(&["changes", "ends"]), @r"
exit code: 0
----- stdout
----- stderr
no changes: the tools of MCP server `ends` are as they were accepted
");
    insta::assert_snapshot!(shown(&["rm", "nobody"]), @r"
exit code: 3
----- stdout
----- stderr
error: MCP server `nobody` not found
");
}
