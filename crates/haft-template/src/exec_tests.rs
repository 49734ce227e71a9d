//! Argument lists, environment and standard input of `exec` tools.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{ExecInvocation, ExecTemplate, Scope, Values};
use haft_core::implementation::{Exec, ExecProgram};
use haft_core::secret::Secret;

fn compile(implementation: Value) -> Result<ExecTemplate, String> {
    let scope = Scope::from_schema(&json!({
        "type": "object",
        "properties": { "text": {}, "count": { "type": "integer" }, "all": { "type": "boolean" }, "n": { "default": 7 } },
    }));
    let exec: Exec = serde_json::from_value(implementation).unwrap();
    ExecTemplate::compile(&exec, &scope).map_err(|problems| {
        problems
            .iter()
            .map(|p| format!("{} [{}] {}", p.field, p.code, p.message))
            .collect::<Vec<_>>()
            .join("\n")
    })
}

fn render(implementation: Value, args: &Value) -> Result<ExecInvocation, String> {
    let template = compile(implementation).unwrap();
    let secrets = BTreeMap::from([("TOKEN", Secret::new("s3cret".to_owned()))]);
    let values =
        Values { args: args.as_object().unwrap(), steps: &Map::new(), secrets: &secrets, version: "" };
    template.render(&values).map_err(|error| error.to_string())
}

fn argv(elements: &[&str], args: &Value) -> Vec<String> {
    render(json!({ "argv": elements }), args).unwrap().argv
}

#[test]
fn each_element_is_one_argument() {
    let elements =
        ["git", "log", "-n", "{{count}}", "--format=%h %s", "--grep={{text}}", "$HOME", "*", "a b"];
    for text in [
        "",
        "a b",
        "'; rm -rf /; '",
        "$(touch pwned)",
        "`id`",
        "\"",
        "\n",
        "*",
        "-x",
        "{{count}}",
        "${TOKEN}",
    ] {
        assert_eq!(
            argv(&elements, &json!({ "count": 3, "text": text })),
            ["git", "log", "-n", "3", "--format=%h %s", &format!("--grep={text}"), "$HOME", "*", "a b"]
        );
    }
}

#[test]
fn absent_optional_elements_are_left_out() {
    let elements = ["ls", "{{if all}}-a{{end}}", "{{text}}", "n={{n}}", "{{n}}", "x{{text}}"];
    assert_eq!(argv(&elements, &json!({})), ["ls", "n=7", "7", "x"]);
    assert_eq!(argv(&elements, &json!({ "text": null })), ["ls", "n=7", "7", "x"]);
    assert_eq!(argv(&elements, &json!({ "text": "", "all": true })), ["ls", "-a", "", "n=7", "7", "x"]);
}

#[test]
fn strings_that_look_like_options_are_rejected() {
    let message = "value of `text` starts with `-` and would be read as an option; in the tool, put `--` before the reference or attach it to an option such as `--name={{text}}`";
    for (elements, value, expected) in [
        (&["cat", "{{text}}"][..], json!("-n"), Some(message)),
        (&["cat", "{{text}}.txt"], json!("-n"), Some(message)),
        (&["cat", "{{if all}}{{end}}{{text}}"], json!("-"), Some(message)),
        (&["cat", "--", "{{text}}"], json!("-n"), None),
        (&["cat", "./{{text}}"], json!("-n"), None),
        (&["cat", "--name={{text}}"], json!("-n"), None),
        (&["head", "-n", "{{text}}"], json!(-5), None),
        (&["head", "-n", "{{text}}"], json!(-0.5), None),
        (&["head", "-{{text}}"], json!("5"), None),
        (&["head", "-{{text}}"], json!("-version"), Some(message)),
        (&["head", "-{{text}}"], json!(-5), None),
    ] {
        let result = render(json!({ "argv": elements }), &json!({ "text": value }));
        assert_eq!(result.err().as_deref(), expected, "{elements:?} {value}");
    }
}

#[test]
fn argument_lists_are_checked() {
    let check = |elements: Value| compile(json!({ "argv": elements })).unwrap_err();
    insta::assert_snapshot!(check(json!([])), @"implementation.argv [invalid_value] missing program name; write `argv: [program, argument, …]`");
    insta::assert_snapshot!(check(json!([""])), @"implementation.argv[0] [invalid_value] the program name is empty");
    insta::assert_snapshot!(check(json!(["{{text}}", "a"])), @"implementation.argv[0] [invalid_template] the program name has to be literal; make one tool per program");
    insta::assert_snapshot!(check(json!(["curl", "-u", "${TOKEN}", "{{nope}}"])), @r"
implementation.argv[2] [secret_in_argv] arguments are visible in the process list, so `${TOKEN}` is not allowed here; set it in `env`, or use `stdin`
implementation.argv[3] [invalid_template] at character 1: `nope` is not a declared argument; declare it, or write `${nope}` for a secret
");
    for code in [json!(["bash", "-c", "echo {{text}}"]), json!(["/bin/sh", "-e", "-xc", "{{text}}"])] {
        let error = check(code);
        assert!(error.contains("a value in the text of `-c` becomes shell code"), "{error}");
    }
    assert!(compile(json!({ "argv": ["bash", "-c", "echo \"$1\"", "_", "{{text}}"] })).is_ok());
    let long = vec!["a"; 1025];
    insta::assert_snapshot!(check(json!(long)), @"implementation.argv [invalid_value] 1025 elements exceed the limit of 1024");
}

#[test]
fn environment_and_standard_input_take_values_and_secrets() {
    let implementation = json!({
        "argv": ["cat"], "env": { "A": "{{text}}-${TOKEN}", "B": "b" }, "stdin": "{{text}} {{count}} ${TOKEN}\n",
    });
    let template = compile(implementation.clone()).unwrap();
    assert_eq!(template.secrets().iter().map(|secret| secret.name.as_str()).collect::<Vec<_>>(), ["TOKEN"]);
    let ExecInvocation { argv, env, stdin } =
        render(implementation, &json!({ "text": "a\"$b", "count": 1 })).unwrap();
    assert_eq!(argv, ["cat"]);
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(env, [("A", "a\"$b-s3cret"), ("B", "b")]);
    assert_eq!(stdin.unwrap().expose(), "a\"$b 1 s3cret\n");
    let error = compile(json!({ "argv": ["cat"], "stdin": "{{nope}}" })).unwrap_err();
    assert!(error.starts_with("implementation.stdin [invalid_template] at character 1: `nope`"), "{error}");
}

#[test]
fn values_are_limited() {
    let render = |text: String| render(json!({ "argv": ["cat", "./{{text}}"] }), &json!({ "text": text }));
    assert!(render("a".repeat(131_006)).is_ok());
    for text in ["a".repeat(131_008), "a\0".to_owned()] {
        let error = render(text).unwrap_err();
        assert!(error.starts_with("value of `text` is not valid in the arguments: it "), "{error}");
    }
}

#[test]
fn exactly_one_program_is_stored() {
    for (fields, expected) in [
        (json!({ "command": "ls" }), Some(Exec::new(ExecProgram::Command("ls".to_owned())))),
        (json!({ "argv": ["ls"] }), Some(Exec::new(ExecProgram::Argv(vec!["ls".to_owned()])))),
        (json!({ "command": "ls", "argv": ["ls"] }), None),
        (json!({}), None),
    ] {
        let exec = serde_json::from_value::<Exec>(fields.clone()).ok();
        assert_eq!(exec, expected);
        if let Some(exec) = exec {
            assert_eq!(serde_json::to_value(exec).unwrap(), fields);
        }
    }
}
