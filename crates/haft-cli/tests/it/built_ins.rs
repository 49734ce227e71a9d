//! The tools that come with haft, from the command line.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use serde_json::Value;

use crate::harness::{Haft, Run};

fn run(haft: &Haft, arguments: &[&str]) -> Run {
    let mut command = haft.command(arguments);
    haft.finish(command.env_remove("HAFT_BUILT_INS_ENABLED").output().unwrap())
}

#[test]
fn a_new_installation_has_tools_that_work() {
    let haft = Haft::new();
    let list = run(&haft, &["tool", "list"]);
    for name in ["read_file", "web_search", "create_tool"] {
        assert!(list.stdout.contains(&format!("builtin:{name}@1.0.0")), "{}", list.shown());
    }
    assert_eq!(list.stdout.matches("  yes  ").count(), 20, "all of them are ready: {}", list.shown());
    let call =
        run(&haft, &["tool", "call", "write_file", "-a", "path=a.txt", "-a", "content=hello", "--json"]);
    assert_eq!(call.code, 0, "{}", call.shown());
    assert_eq!(std::fs::read_to_string(haft.home().join("workspace/a.txt")).unwrap(), "hello");
    let call = run(&haft, &["tool", "call", "list_files", "--json"]);
    let answer: Value = serde_json::from_str(&call.stdout).unwrap();
    assert_eq!(answer.pointer("/value/0/name").and_then(Value::as_str), Some("a.txt"), "{}", call.shown());
}
