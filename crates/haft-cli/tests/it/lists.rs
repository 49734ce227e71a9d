//! Lists in every format, completion of names, and the schemas for editors.

#![expect(clippy::unwrap_used, reason = "a helper of tests")]

use std::process::Stdio;

use crate::harness::Haft;

/// A home folder with two tools and a bundle.
fn with_tools() -> Haft {
    let haft = Haft::new();
    let long = "Says hello. ".repeat(20);
    for (bundle, name, description) in [
        ("words", "greet", long.as_str()),
        ("words", "count", "Counts the words of a text"),
        ("other", "count", "Counts the lines of a text"),
    ] {
        let text = format!(
            "name: {name}\ndescription: {description}\nparams: []\nimplementation:\n  type: exec\n  command: echo hi\n"
        );
        haft.write(&format!("home/skills/{bundle}/{name}.yaml"), &text);
    }
    haft
}

#[test]
fn lists_are_names_or_wide_tables() {
    let haft = with_tools();
    let names = haft.run(&["tool", "list", "-o", "name"]);
    assert_eq!(
        (names.stdout.as_str(), names.stderr.as_str()),
        ("other:count@1.0.0\nwords:count@1.0.0\nwords:greet@1.0.0\n", "")
    );
    // Commands accept the printed names.
    for name in names.stdout.lines() {
        assert_eq!(haft.run(&["tool", "show", name]).code, 0, "{name}");
    }
    let bundles = haft.run(&["bundle", "list", "-o", "name"]).stdout;
    assert!(["other", "words"].iter().all(|bundle| bundles.lines().any(|line| line == *bundle)), "{bundles}");
    let text = haft.run(&["tool", "list"]);
    assert!(text.stdout.contains("Says hello.") && text.stdout.contains('…'), "{}", text.stdout);
    let wide = haft.run(&["tool", "list", "-o", "wide"]);
    assert!(wide.stdout.starts_with("TOOL ") && wide.stdout.contains(" CATEGORY "), "{}", wide.stdout);
    assert!(
        wide.stdout.contains(&"Says hello. ".repeat(19)) && !wide.stdout.contains('…'),
        "{}",
        wide.stdout
    );
    let bare = haft.run(&["tool", "list", "--no-headers"]);
    assert_eq!(bare.stdout.lines().count(), 3, "{}", bare.stdout);
    assert_eq!(haft.run(&["agent", "list", "--no-headers"]).stdout, "");
    assert_eq!(
        haft.run(&["tool", "list", "-o", "json"]).stdout,
        haft.run(&["tool", "list", "--json"]).stdout
    );
    let unknown = haft.run(&["tool", "list", "-o", "yaml"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("expected `text`, `wide`, `name`, `json`"), "{}", unknown.stderr);
}

#[test]
fn quiet_commands_print_no_notes() {
    let haft = with_tools();
    assert!(haft.run(&["tool", "list", "--limit", "1"]).stderr.contains("1 of 3 tools"));
    assert_eq!(haft.run(&["tool", "list", "--limit", "1", "--quiet"]).stderr, "");
    assert_eq!(
        haft.run(&["--quiet", "bundle", "add", "x"]).shown(),
        "exit code: 0\n----- stdout\n----- stderr\n"
    );
}

#[test]
fn the_file_of_an_export_keeps_its_option() {
    let haft = with_tools();
    let file = haft.path("words.zip").display().to_string();
    assert_eq!(haft.run(&["toolset", "export", "words", "-o", &file]).code, 0);
    assert!(haft.path("words.zip").exists());
    let format = haft.run(&["-o", "json", "toolset", "export", "words"]);
    assert_eq!(format.code, 2);
    assert!(format.stderr.contains("`-o json` names the file here"), "{}", format.stderr);
}

/// Returns the completions of bash at the end of a line.
fn offered(haft: &Haft, line: &str) -> Vec<String> {
    let script = haft.run(&["completions", "bash"]).stdout;
    let program = format!(
        "{script}\nhaft() {{ \"$HAFT_BINARY\" \"$@\"; }}\nCOMP_LINE=\"$LINE\"; COMP_POINT=${{#LINE}}\n\
         _haft\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let mut shell = haft.shell();
    shell.args(["-c", &program]).env("LINE", line).env("HAFT_BINARY", env!("CARGO_BIN_EXE_haft"));
    let output = shell.stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn names_are_completed_from_a_running_server() {
    let haft = with_tools();
    assert_eq!(offered(&haft, "haft too"), ["tool", "toolset"]);
    // Without a server: opening the home folder could migrate its database.
    assert_eq!(offered(&haft, "haft tool show gr"), [""; 0]);
    let server = haft.serve(&[]);
    for (line, expected) in [
        ("haft tool show gr", &["greet"][..]),
        ("haft tool show ", &["count", "greet"]),
        // bash replaces only what follows the colon.
        ("haft tool call words:", &["count", "greet"]),
        ("haft tool list --bundle wo", &["words"]),
        ("haft tool list --bundle=wo", &["words"]),
        ("haft bundle disable o", &["other"]),
    ] {
        // On a busy machine the server may not respond in the time that a person waits.
        let found = (0..20).map(|_| offered(&haft, line)).find(|words| !words.is_empty());
        assert_eq!(found.unwrap_or_default(), expected, "{line}");
    }
    drop(server);
}

#[test]
fn completion_never_reports_an_error() {
    let haft = Haft::without_home();
    let quiet = |arguments: &[&str]| haft.run(&[&["__complete", "--"], arguments].concat());
    for arguments in [&["tool", "show", ""][..], &["--server", "http://127.0.0.1:9", "tool", "show", ""], &[]]
    {
        let run = quiet(arguments);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
    }
    assert!(quiet(&["tool", "sho"]).stdout.starts_with("show\tShow a tool"));
}

#[test]
fn schemas_are_printed_and_served() {
    let haft = Haft::new();
    let list = haft.run(&["schema"]).stdout;
    for kind in ["tool", "agent", "pipeline", "artifact", "toolset", "bundle", "policy", "config"] {
        assert!(list.contains(&format!("\n{kind} ")), "{list}");
        let schema: serde_json::Value = serde_json::from_str(&haft.run(&["schema", kind]).stdout).unwrap();
        assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#", "{kind}");
    }
    assert_eq!(haft.run(&["schema", "nope"]).code, 2);
    haft.run(&["init"]);
    let example = haft.home().join("skills/examples/current-weather.yaml");
    let example = std::fs::read_to_string(example).unwrap();
    assert!(
        example.starts_with("# yaml-language-server: $schema=http://127.0.0.1:18789/schemas/tool.json\n")
    );
}
