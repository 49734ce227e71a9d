//! Error messages of common mistakes: each command, and a part of its message.

use crate::harness::Haft;

#[test]
fn messages_name_the_mistake_and_the_fix() {
    let haft = Haft::new();
    let condition = |when: &str| {
        let rules = format!("rules:\n  - name: r\n    when: '{when}'\n    effect: deny\n    reason: no\n");
        haft.write(&format!("{}.yaml", when.len()), &rules)
    };
    let rows = haft.write(
        "rows.jsonl",
        "{\"slug\":\"ok\",\"implementation_type\":\"http\",\"implementation_config\":{\"url\":\"https://example.com\"}}\n\
         {\"slug\":\"bad\",\"implementation_type\":\"htp\"}\n",
    );
    let agent = |name: &str, model: &str, more: &str| {
        haft.write(
            &format!("{name}.yaml"),
            &format!("slug: {name}\nmodel: {model}\ninstructions: hi\n{more}"),
        )
    };
    let keyless = agent("keyless", "claude-sonnet-5", "");
    // Nothing listens on this port.
    haft.write("home/haft.toml", "[models]\nprivate_urls = [\"http://127.0.0.1:9\"]\n");
    let local = agent("local", "{name: llama3.2, provider: ollama, base_url: 'http://127.0.0.1:9/v1'}", "");
    let typo = agent("typo", "claude-sonnet-5", "tools: [nope]\n");
    let scalar = haft.write("scalar.yaml", "rules:\n  - {name: r, match: {tools: pay}, effect: deny}\n");
    let path = haft.write(
        "path.yaml",
        "name: search-items\ndescription: Searches items by name\nparams: []\n\
         implementation:\n  type: http\n  url: https://example.com/\n  extract: '$.items[?(@.a =='\n",
    );
    let cases: &[(&[&str], &str)] = &[
        (
            &["workspace", "restore", "w", "yesterday"],
            "error: `yesterday` is not a state\n\nhint: list the states with `haft workspace log w`",
        ),
        (&["workspace", "diff", "w", "yesterday"], "`yesterday` is not a state"),
        (&["workspace", "ls", "w", "--state", "x"], "`x` is not a state"),
        (&["workspace", "cat", "nope", "a.txt"], "workspace `nope` not found"),
        (
            &["token", "create", "ci", "--role", "caller", "--expires-in", "90 days"],
            "`expires_in`: invalid duration `90 days`; write `90d`",
        ),
        (&["token", "create", "ci", "--tools", "nope"], "warning: no tool matches `nope`"),
        (
            &["import", "registry", &rows],
            "line 2: `implementation_type`: unknown implementation type `htp`; did you mean `http`?",
        ),
        (
            &["tool", "show", "xqzzy"],
            "error: tool `xqzzy` not found\n\nhint: list the tools with `haft tool list`",
        ),
        (
            &["agent", "create", &keyless],
            "no key for anthropic: store it with `haft secret set ANTHROPIC_API_KEY`",
        ),
        (
            &["agent", "run", "keyless", "hi"],
            "no key for anthropic: store it with `haft secret set ANTHROPIC_API_KEY`",
        ),
        (&["agent", "create", &local], "created `local`"),
        (&["agent", "run", "local", "hi"], "; start it with `ollama serve`"),
        (&["agent", "create", &typo], "no tool matches `nope`"),
        (&["version"], "error: unknown command `version`\n\nhint: print the version with `haft --version`"),
        (&["tool", "run", "x"], "hint: call a tool with `haft tool call TOOL`"),
        (&["serve", "--port", "80"], "hint: pass the address with `--addr`"),
        (&["mcp-server", "update", "x"], "nothing to change: pass an option"),
        (&["tool", "list", "--bundle", "nope"], "error: bundle `nope` not found"),
        (&["bundle", "add", "words"], "added bundle `words`"),
        (&["bundle", "add", "words"], "changed bundle `words`"),
        (&["policy", "test", &condition("args.amount >")], "the condition ends after `>`"),
        (&["policy", "test", &condition("args.amount = 1")], "write `==` to compare"),
        (&["policy", "test", &scalar], "`rules[0].match.tools`: expected a list, such as `[pay]`"),
        (&["tool", "validate", &path], "invalid JSONPath: at character 17: expected a value to compare with"),
    ];
    for (arguments, expected) in cases {
        let run = haft.run(arguments);
        assert!(run.shown().contains(expected), "{arguments:?}: {}", run.shown());
    }
    std::fs::write(haft.home().join("haft.db"), "not a database at all, but text\n".repeat(100)).unwrap();
    let shown = haft.run(&["tool", "list"]).shown();
    assert!(shown.contains("or move it away and run `haft reindex`"), "{shown}");
}
