//! The help of every command, as one snapshot.

use std::fmt::Write as _;

use crate::harness::Haft;

const COMMANDS: &[&str] = &[
    "",
    "serve",
    "mcp",
    "init",
    "doctor",
    "reindex",
    "login",
    "logout",
    "whoami",
    "context",
    "context list",
    "context use",
    "context rm",
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
    "tool deprecate",
    "tool usage",
    "tool enable",
    "tool disable",
    "tool revisions",
    "tool diff",
    "tool restore",
    "tool version",
    "run",
    "run list",
    "run show",
    "run watch",
    "run cancel",
    "mcp-server",
    "mcp-server add",
    "mcp-server import",
    "mcp-server list",
    "mcp-server refresh",
    "mcp-server login",
    "mcp-server logout",
    "mcp-server update",
    "mcp-server changes",
    "mcp-server accept",
    "mcp-server enable",
    "mcp-server disable",
    "mcp-server rm",
    "import",
    "import openapi",
    "import registry",
    "secret",
    "secret set",
    "secret list",
    "secret show",
    "secret rm",
    "key",
    "key rotate",
    "bundle",
    "bundle list",
    "bundle add",
    "bundle enable",
    "bundle disable",
    "bundle publish",
    "bundle rm",
    "apply",
    "diff",
    "export",
    "tenant",
    "tenant create",
    "tenant list",
    "tenant rename",
    "tenant disable",
    "tenant enable",
    "tenant delete",
    "person",
    "person invite",
    "person list",
    "person show",
    "person edit",
    "person disable",
    "person enable",
    "person delete",
    "person link",
    "person hand-over",
    "service-account",
    "service-account create",
    "service-account list",
    "service-account show",
    "service-account edit",
    "service-account disable",
    "service-account enable",
    "service-account delete",
    "group",
    "group create",
    "group list",
    "group show",
    "group edit",
    "group delete",
    "group add-member",
    "group remove-member",
    "auth",
    "auth test",
    "token",
    "token create",
    "token list",
    "token show",
    "token update",
    "token rotate",
    "token revoke",
    "policy",
    "policy show",
    "policy set",
    "policy test",
    "policy explain",
    "approval",
    "approval list",
    "approval show",
    "approval approve",
    "approval deny",
    "webhook",
    "webhook add",
    "webhook list",
    "webhook delete",
    "webhook test",
    "webhook deliveries",
    "webhook redeliver",
    "login-link",
    "call",
    "call list",
    "call show",
    "call result",
    "call cancel",
    "limits",
    "audit",
    "audit export",
    "schema",
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
        assert!(run.stdout.contains("Examples:\n  haft ") || run.stdout.contains("| haft "), "{command}");
        assert!(run.stdout.contains("Global options"), "{command}");
        // The list of global options is the same for every subcommand.
        let own = run.stdout.split("\nGlobal options (see").next().unwrap_or_default();
        writeln!(reference, "$ haft {}\n{}\n", arguments.join(" "), own.trim_end()).unwrap();
    }
    insta::assert_snapshot!(reference);
}

#[test]
fn completions_are_scripts() {
    let haft = Haft::new();
    for shell in ["bash", "zsh", "fish"] {
        let run = haft.run(&["completions", shell]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        assert!(run.stdout.contains(" __complete -- "), "{shell}");
    }
}
