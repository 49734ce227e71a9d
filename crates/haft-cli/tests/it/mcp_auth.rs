//! A login to an MCP server with the authorization server of the official Python SDK.

#![expect(clippy::disallowed_methods, reason = "programs of others are under test")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::Haft;
use crate::mcp_peers::program;

/// Follows redirects, as a browser does, and prints the last page.
const BROWSER: &str =
    "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())";

struct AuthServer {
    child: Child,
    url: String,
}

impl AuthServer {
    fn start(python: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/auth_server.py");
        let mut child = Command::new(python).arg(script).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, url: format!("http://127.0.0.1:{}/mcp", port.trim()) }
    }
}

impl Drop for AuthServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_login_with_the_authorization_server_of_the_python_sdk() {
    let Some(python) = program("python/bin/python") else { return };
    let auth = AuthServer::start(&python);
    let haft = Haft::new();
    std::fs::create_dir_all(haft.home()).unwrap();
    std::fs::write(haft.home().join("haft.toml"), "[egress]\nprivate_hosts = [\"127.0.0.1\"]\n").unwrap();
    let _server = haft.serve(&[]);
    let added = haft.run(&["mcp-server", "add", "guarded", "--url", &auth.url]);
    assert!(added.stderr.contains("login required"), "{}", added.shown());
    let login = haft.json(&["mcp-server", "login", "guarded", "--no-wait"]);
    let page = login["authorization_url"].as_str().unwrap();
    let browser = Command::new(&python).args(["-c", BROWSER, page]).output().unwrap();
    let shown = String::from_utf8_lossy(&browser.stdout);
    assert!(
        shown.contains("Logged in to MCP server `guarded`"),
        "{shown}{}",
        String::from_utf8_lossy(&browser.stderr)
    );
    haft.json(&["mcp-server", "refresh", "guarded"]);
    let greeting: Value = haft.json(&["tool", "call", "guarded:greet"]);
    assert_eq!(greeting["value"], json!({"result": "hello"}), "{greeting}");
}
