//! Common mistakes in YAML definitions and their messages, and the template examples of the seed document.

use serde_json::{Value, json};

use crate::check;
use crate::dialect::test_support::{findings, good};
use crate::dialect::{Defaults, locate, read};
use haft_core::catalog::FileForm::Yaml;
use haft_core::implementation::Implementation;

const HEAD: &str = "name: t\ndescription: d\nparams:\n  - {name: count, type: integer}\n  - {name: user_id, type: string}\n  - {name: query, type: string}\n  - {name: advanced_mode, type: boolean}\nimplementation:\n  type: http\n  method: POST\n";

/// Returns all problems of a file with these lines: of the parser, or else of the checks.
fn reported(lines: &str) -> String {
    all(&format!("{HEAD}{lines}"))
}

fn all(text: &str) -> String {
    let found = findings(text, Yaml);
    let Ok(reading) = read(text, Yaml, &Defaults::default()) else { return found };
    let check::CheckReport { errors: mut problems, warnings } = check::definition(&reading.spec);
    problems.extend(warnings.into_iter().filter(|warning| warning.code == check::INVALID_SCHEMA_VALUE));
    locate(text, Yaml, &mut problems);
    let mut said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    said.extend((!found.is_empty()).then_some(found));
    said.join("\n")
}

#[test]
fn the_templates_of_the_document() {
    for (lines, pointer, expected) in [
        (
            "  url: https://api.example.com/users/{{user_id}}\n",
            "/url",
            json!("https://api.example.com/users/{{user_id}}"),
        ),
        (
            "  url: https://a.example\n  body:\n    count: \"{{count | default:10}}\"\n",
            "/body",
            json!({"count": "{{count | default:10}}"}),
        ),
        (
            "  url: https://a.example\n  body:\n    query: \"{{query}}\"\n    {{if advanced_mode}}\n    options:\n      detailed: true\n    {{end}}\n",
            "/body",
            json!({"query": "{{query}}", "{{if advanced_mode}}": {"options": {"detailed": true}}}),
        ),
        (
            "  url: https://a.example\n  headers:\n    Authorization: Bearer ${API_KEY}\n",
            "/headers",
            json!({"Authorization": "Bearer ${API_KEY}"}),
        ),
    ] {
        let text = format!("{HEAD}{lines}");
        let spec = good(&text, Yaml).spec;
        assert_eq!(check::definition(&spec).errors, [], "{lines}");
        let Implementation::Http(http) = &spec.implementation else { panic!("{lines}") };
        let value: Value = serde_json::to_value(http).unwrap();
        assert_eq!(value.pointer(pointer), Some(&expected), "{lines}");
    }
}

#[test]
fn go_template_notation() {
    insta::assert_snapshot!(reported("  url: https://a.example/{{.user_id}}\n"), @r"line 11, column 3: `implementation.url`: write `{{user_id}}` instead of `{{.user_id}}`");
    insta::assert_snapshot!(reported("  url: https://a.example\n  body:\n    list:\n      - a\n      - \"x {{ .count }}\"\n"), @r"line 15, column 9: `implementation.body.list[1]`: write `{{count}}` instead of `{{.count}}`");
    insta::assert_snapshot!(reported("  url: https://a.example\n  body:\n    {{if .advanced_mode}}\n    a: 1\n    {{end}}\n"), @r"line 13: write `{{if advanced_mode}}` without the dot");
}

#[test]
fn missing_quotes() {
    insta::assert_snapshot!(reported("  url: https://a.example\n  body:\n    count: {{count}}\n"), @r#"line 13, column 13: invalid YAML: expected a key, found a map or list; hint: quote `{{…}}`: `count: "{{count}}"`"#);
    insta::assert_snapshot!(reported("  url: {{base}}/x\n  body: 1\n"), @r#"line 11, column 9: invalid YAML: expected a key, found a map or list; hint: quote `{{…}}`: `url: "{{base}}/x"`"#);
    insta::assert_snapshot!(reported("  url: https://a.example\n  body:\n    ids:\n      - {{user_id}}\n      - b\n"), @r#"line 14, column 10: invalid YAML: expected a key, found a map or list; hint: quote `{{…}}`: `- "{{user_id}}"`"#);
    insta::assert_snapshot!(reported("  url: https://a.example\n  body:\n    {{if advanced_mode}}\n    count: {{count}}\n    {{end}}\n"), @r#"line 14, column 13: invalid YAML: expected a key, found a map or list; hint: quote `{{…}}`: `count: "{{count}}"`"#);
    insta::assert_snapshot!(reported("  url: https://a.example\n  body:\n    count: {{count | default:\"x\"}}\n"), @r#"line 13, column 13: invalid YAML: expected a key, found a map or list; hint: quote `{{…}}`: `count: "{{…}}"`"#);
}

#[test]
fn tabs_and_duplicate_keys() {
    insta::assert_snapshot!(reported("\turl: https://a.example\n"), @r"line 10, column 11: invalid YAML: while scanning a plain scalar, found a tab; hint: the indentation contains a tab; use spaces");
    insta::assert_snapshot!(reported("  url: https://a.example\n  body:\n  \ta: 1\n"), @r"line 13, column 4: invalid YAML: tabs disallowed within this context (block indentation); hint: the indentation contains a tab; use spaces");
    // A tab inside a text is no fault, and no hint for another one.
    insta::assert_snapshot!(reported("  url: https://a.example\n  body: |\n    a\n    \tb\n"), @"");
    insta::assert_snapshot!(reported("  method: [GET\n  url: https://a.example\n"), @r"line 11, column 11: invalid YAML: unclosed bracket '['");
    insta::assert_snapshot!(reported("  method: {a: [b, 'c]'],\n  url: https://a.example\n  x: 1\n"), @r"line 11, column 11: invalid YAML: unclosed bracket '{'");
    insta::assert_snapshot!(all("name: t\ndescription: |\n  a\n  \tb\nparams: []\nimplementation: [\n"), @r"line 6, column 17: invalid YAML: unclosed bracket '['");
    insta::assert_snapshot!(reported("  url: https://a.example\n  headers: {A: x, A: y}\n"), @r"line 12, column 19: duplicate key `A`; remove one of them");
    insta::assert_snapshot!(reported("  url: https://a.example\nname: again\n"), @r"line 12, column 1: duplicate key `name`; remove one of them");
}

#[test]
fn wrong_types() {
    insta::assert_snapshot!(all("name: 7\ndescription: [d]\nparams:\n  - {name: a, type: string, required: 'yes'}\n  - name: b\n    type: [string]\nimplementation: {type: http, url: https://a.example, headers: [a], query: x, method: 1}\n"), @r"
line 1, column 1: `name`: expected a string, found a number; quote it
line 4, column 29: `params[0].required`: expected `true` or `false`, found a string
line 6, column 5: `params[1].type`: expected a string, found a list
line 7, column 78: `implementation.method`: expected a string, found a number; quote it
line 7, column 68: `implementation.query`: expected a map, found a string
line 7, column 54: `implementation.headers`: expected a map, found a list
line 2, column 1: `description`: expected a string, found a list
");
    insta::assert_snapshot!(all("name: t\nparams:\n  city: {type: string, required: true}\nimplementation: {type: builtin, function: f}\n"), @r"line 2, column 1: `params`: expected a list, found a map; write each parameter as a list item such as `- name: city`");
    insta::assert_snapshot!(all("name: t\nparams: city\nimplementation: http\n"), @r"
line 2, column 1: `params`: expected a list, found a string
line 3, column 1: `implementation`: expected a map, found a string
");
    insta::assert_snapshot!(all("name: t\nparams: []\nimplementation: {type: builtin, function: f}\nexecution: {rate_limit: {calls: 0, per: 1 minute}, retry: 3}\n"), @r"line 4, column 52: `execution.retry`: expected a map, found a number");
}

#[test]
fn durations_with_a_wrong_unit() {
    insta::assert_snapshot!(reported("  url: https://a.example\n  timeout: 30 seconds\n  retry: {attempts: 1, backoff: 1d}\n"), @r"
line 12, column 3: `implementation.timeout`: invalid duration `30 seconds`; write seconds as `30s`, without a space
line 13, column 24: `implementation.retry.backoff`: invalid duration `1d`; write days in hours, such as `24h`; the maximum is one day
");
    insta::assert_snapshot!(reported("  url: https://a.example\n  timeout: [30]\n"), @r"line 12, column 3: `implementation.timeout`: expected a duration such as `30s`, found a list");
    insta::assert_snapshot!(reported("  url: https://a.example\n  timeout: 0s\n"), @r"line 12, column 3: `implementation.timeout`: must be longer than zero; remove it to use the default");
}

#[test]
fn check_errors_have_the_line_and_the_authors_key() {
    insta::assert_snapshot!(reported("  url: https://a.example\n  retry:\n    attempts: 99\n    backoff: 2h\n"), @r"
    line 13, column 5: `implementation.retry.attempts`: the limit is 10
    line 14, column 5: `implementation.retry.backoff`: the limit is 1h
    ");
    insta::assert_snapshot!(all("name: t\ndescription: d\nparams: []\nexecution:\n  rate_limit: {calls: 0, per: 1 minute}\n  max_concurrency: 0\n  timeout: 0\nimplementation: {type: builtin, function: f}\n"), @r"
line 7, column 3: `execution.timeout`: must be longer than zero; remove it to use the default
line 6, column 3: `execution.max_concurrency`: must be at least 1
line 5, column 16: `execution.rate_limit.calls`: must be at least 1
line 5, column 26: `execution.rate_limit.per`: invalid duration `1 minute`; write minutes as `5m`, without a space
");
    insta::assert_snapshot!(all("name: t\ndescription: d\nparams:\n  - name: size\n    type: string\n  - name: count\n    type: integer\n    default: many\n    enum: [1, x]\n    minimum: 3\n    maximum: 2\nimplementation:\n  type: exec\n  command: x\n  timeout: 2h\n"), @r#"
line 8, column 5: `params[1].default`: the default does not match the argument's schema: "many" is not one of 1 or "x"
line 15, column 3: `implementation.timeout`: the limit is 1h
line 11, column 5: `params[1].maximum`: no value is valid: the maximum 2 is less than the minimum 3
line 9, column 5: `params[1].enum`: an `enum` value does not match the argument's schema: 1 is less than the minimum of 3
line 9, column 5: `params[1].enum`: an `enum` value does not match the argument's schema: expected an integer, got "x"
"#);
    insta::assert_snapshot!(all("name: t\ndescription: d\nparams:\n  - {name: a, type: string}\n  - name: b\n  - {name: a, type: integer}\nimplementation: {type: builtin, function: f}\n"), @r"line 6, column 6: `params[2].name`: duplicate parameter `a`; remove one of them");
}

#[test]
fn a_colon_in_a_value() {
    insta::assert_snapshot!(all("name: t\ndescription: Note: this\nparams: []\nimplementation: {type: builtin, function: f}\n"), @r#"line 2, column 18: invalid YAML: mapping values are not allowed in this context; hint: quote a value that contains a colon: `description: "Note: this"`"#);
    insta::assert_snapshot!(all("name: t\ndescription: d\nparams:\n  - name: a\n    description: one of: b, c\nimplementation: {type: builtin, function: f}\n"), @r#"line 5, column 24: invalid YAML: mapping values are not allowed in this context; hint: quote a value that contains a colon: `description: "one of: b, c"`"#);
}

#[test]
fn a_program_is_a_command_or_an_argument_list() {
    let exec = |fields: &str| {
        all(&format!(
            "name: t\ndescription: d\nparams: [{{name: n, type: integer}}]\nimplementation:\n  type: exec\n{fields}"
        ))
    };
    assert_eq!(exec("  argv: [head, -n, 5, \"{{n}}\"]\n  stdin: a\n  env: {A: b}\n"), "");
    insta::assert_snapshot!(exec("  argv: [ls]\n  command: ls\n"), @"line 6, column 3: `implementation.argv`: expected exactly one of `argv` and `command`");
    insta::assert_snapshot!(exec("  stdin: a\n"), @"line 4, column 1: `implementation.command`: missing required field; expected the shell command, or `argv` with the program and its arguments");
    insta::assert_snapshot!(exec("  argv: ls\n"), @"line 6, column 3: `implementation.argv`: expected a list, found a string");
}

#[test]
fn a_million_lines() {
    for line in ["\n", "#\n", "- \n", "a: 1\n", "  {{if x}}\n", "k: |\n"] {
        let said = all(&line.repeat(1_000_000));
        assert!(said.len() < 400, "{}", &said[..400]);
        assert!(!said.is_empty(), "{line}");
    }
    insta::assert_snapshot!(all(&"name: t\n".repeat(1_000_000)), @r"the definition has 8000000 bytes; the limit is 1048576. Move large data to a separate file");
    insta::assert_snapshot!(all(&"- \n".repeat(300_000)), @"line 100000, column 3: the document is too large: the limit is 100000 values and 4194304 bytes of text, with aliases expanded; move large data to a separate file");
    insta::assert_snapshot!(all(&"\n".repeat(1_000_000)), @r"expected a map of keys such as `name`, found null");
}
