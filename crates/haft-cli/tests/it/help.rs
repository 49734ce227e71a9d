//! Every command explains itself; the whole reference is one snapshot.

use std::fmt::Write as _;

use crate::harness::Haft;

const COMMANDS: &[&str] = &[
    "",
    "serve",
    "init",
    "doctor",
    "reindex",
    "tool",
    "tool list",
    "tool show",
    "tool add",
    "tool edit",
    "tool rm",
    "tool call",
    "tool test",
    "tool validate",
    "tool publish",
    "tool revisions",
    "tool diff",
    "tool restore",
    "tool version",
    "import",
    "import openapi",
    "secret",
    "secret set",
    "bundle",
    "bundle add",
    "token",
    "token create",
    "call",
    "call list",
    "audit",
    "completions",
];

#[test]
fn the_reference() {
    let haft = Haft::new();
    let mut reference = String::new();
    for command in COMMANDS {
        let mut arguments: Vec<&str> = command.split_whitespace().collect();
        arguments.push("--help");
        let run = haft.run(&arguments);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{command}");
        // The global options are the same everywhere.
        let own = run.stdout.split("Global options:").next().unwrap_or_default();
        let shown = if command.is_empty() { run.stdout.as_str() } else { own };
        writeln!(reference, "$ haft {}\n{}\n", arguments.join(" "), shown.trim_end()).unwrap();
    }
    insta::assert_snapshot!(reference);
}

#[test]
fn completions_are_scripts() {
    let haft = Haft::new();
    for shell in ["bash", "zsh", "fish"] {
        let run = haft.run(&["completions", shell]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        assert!(run.stdout.contains("doctor") && run.stdout.contains("validate"), "{shell}");
    }
}
