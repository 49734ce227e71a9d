//! The examples, run as programs.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// Returns the path of an example, which cargo builds before the tests.
#[expect(clippy::disallowed_methods, reason = "an example is the program of a user, not a tool")]
fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let folder: PathBuf = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples");
    let program = folder.join(name);
    assert!(
        program.exists(),
        "{} is missing: run `cargo build --examples --all-features`",
        program.display()
    );
    Command::new(program)
}

#[test]
fn examples_print_the_documented_output() {
    let folder = tempfile::tempdir().unwrap();
    for (name, line) in [
        ("hello", "Hello, Ada!"),
        ("typed_struct", "Hit { title: \"rust 2\" }"),
        ("tool_macro", "kept 8 characters under shop"),
        ("middleware", "rate_limited: "),
        ("agent_loop", "It is clear in Paris, at 21 degrees."),
        ("built_in_tools", "3 words"),
    ] {
        let output = example(name).current_dir(folder.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(line), "{name}: {text} {output:?}");
    }
}

/// Kills the process at the end of the test.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[tokio::test]
async fn the_embedded_server_serves_its_function() {
    // Another test may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let mut command = example("embed_server");
    let child = command.arg("127.0.0.1:0").current_dir(folder.path()).stdout(Stdio::piped()).spawn();
    let mut server = KillOnDrop(child.unwrap());
    let output = server.0.stdout.take().unwrap();
    let line = tokio::task::spawn_blocking(move || BufReader::new(output).lines().next().unwrap().unwrap());
    let line = line.await.unwrap();
    let parts = line.strip_prefix("listening on ").and_then(|rest| rest.split_once("; token: "));
    let (url, token) = parts.unwrap_or_else(|| panic!("{line}"));
    let request = reqwest::Client::new().post(format!("{url}/api/tools/greet/invoke")).bearer_auth(token);
    let response = request.body(json!({"args": {"name": "Ada"}}).to_string()).send().await.unwrap();
    let response: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!(response["value"], "Hello, Ada!", "{response}");
}
