//! The tour of the README and the walk of `docs/team.md`, run as they are printed.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use std::path::Path;
use std::process::Stdio;

use crate::harness::{Haft, Run};

#[test]
fn every_command_of_the_readme_works() {
    let readme = page("README.md");
    let tour = readme.split("## A tour of five minutes").nth(1).unwrap().split("\n## ").next().unwrap();
    let blocks = commands(tour);
    // The first block builds the binary, which is here already.
    let (build, steps) = blocks.split_first().unwrap();
    assert!(build.contains("alias haft=") && steps.len() >= 7, "{} blocks", blocks.len());
    // The tests have no built-in tools otherwise.
    let run = run(&[&["export HAFT_BUILT_INS_ENABLED=true"], steps].concat());
    for part in [
        "demo:server_health",
        "\"ok\":true",
        "invalid YAML",
        "WEATHER_API_KEY",
        "\"input_schema\"",
        "The tool `datetime_utils` returned",
        "success",
    ] {
        assert!(run.stdout.contains(part), "no {part} in {}", run.shown());
    }
}

#[test]
fn every_command_of_the_first_ten_minutes_of_a_team_works() {
    let walk = page("docs/team.md");
    let mut steps = commands(&walk);
    assert!(steps.len() >= 8, "{} blocks", steps.len());
    // The walk leaves its server running.
    steps.push("cat audit.jsonl; kill %1; wait %1 || true");
    let run = run(&steps);
    let mut rest = run.stdout.as_str();
    for part in [
        "user-created:deploy@1.0.0",
        r#""status":"awaiting_approval""#,
        r#""value":"deployed main to test""#,
        r#""status":"awaiting_approval""#,
        "`ada` denied the call: not on a Friday",
        "deny: decided by `no-agents-in-production`",
        r#""ok":true"#,
        "denied",
        r#""action":"approval.deny""#,
    ] {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("no {part} in {}", run.shown())).1;
    }
}

#[test]
fn every_command_of_the_walk_with_a_toolset_works() {
    let walk = page("docs/toolset-walk.md");
    let mut steps = commands(&walk);
    assert!(steps.len() >= 9, "{} blocks", steps.len());
    // The tests have no built-in tools otherwise.
    steps.insert(0, "export HAFT_BUILT_INS_ENABLED=true");
    // The walk leaves its server running.
    steps.push("kill %1; wait %1 || true");
    let run = run(&steps);
    let mut rest = run.stdout.as_str();
    for part in [
        "count_words",
        "'words': 3, 'letters': 11",
        "__TOOL_DATA__ = {\"filename\":\"notes.txt\"",
        "one two two\nthree\n",
        "one two two\n",
        "one two two\nthree\n",
        "one two two\n",
        "letters",
    ] {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("no {part} in {}", run.shown())).1;
    }
}

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).unwrap()
}

/// Returns the shell blocks of a page.
fn commands(page: &str) -> Vec<&str> {
    page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// Runs shell blocks in a folder of their own, on a free port; they must succeed.
fn run(steps: &[&str]) -> Run {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    drop(taken);
    let haft = Haft::new();
    let binary = Path::new(env!("CARGO_BIN_EXE_haft")).parent().unwrap().display().to_string();
    let script = format!(
        "set -eu -o pipefail\ncd \"$HAFT_HOME/..\"\nexport PATH=\"{binary}:$PATH\" HAFT_ADDR=127.0.0.1:{port}\n{}",
        steps.join("\n").replace("18789", &port)
    );
    let mut bash = haft.shell();
    let run = haft.finish(bash.args(["-c", &script]).stdin(Stdio::null()).output().unwrap());
    assert_eq!(run.code, 0, "{}", run.shown());
    run
}
