use serde_json::{Value, json};

use crate::dialect::test_support::{findings, good};
use crate::dialect::write;
use haft_core::catalog::FileForm::Yaml;
use haft_core::implementation::Implementation;

fn around(body: &str) -> String {
    format!("name: t\nparams: []\nimplementation:\n  type: http\n  url: https://a.example\n{body}")
}

fn body(text: &str) -> Value {
    let spec = good(&around(text), Yaml).spec;
    // What was made of the control lines is written with quoted keys and read back the same.
    let written = write(&spec, Yaml, None);
    assert_eq!(good(&written, Yaml).spec, spec, "{written}");
    let Implementation::Http(http) = spec.implementation else { panic!("{text}") };
    http.request.body.unwrap_or_default()
}

#[test]
fn the_example_of_the_document() {
    let text = r#"  body:
    query: "{{query}}"
    {{if advanced_mode}}
    options:
      detailed: true
    {{end}}
"#;
    let expected =
        json!({ "query": "{{query}}", "{{if advanced_mode}}": { "options": { "detailed": true } } });
    assert_eq!(body(text), expected);
    let outdented = text.replace("    {{", "{{");
    assert_eq!(body(&outdented), expected);
    let spaced =
        text.replace("{{if advanced_mode}}", "{{- if  advanced_mode -}}").replace("{{end}}", "{{ end }}");
    assert_eq!(body(&spaced), expected);
    insta::assert_snapshot!(write(&good(&around(text), Yaml).spec, Yaml, None), @r#"
name: t
description: ""
params: []
implementation:
  type: http
  url: https://a.example
  body:
    query: "{{query}}"
    "{{if advanced_mode}}":
      options:
        detailed: true
"#);
}

#[test]
fn else_nesting_repetition_and_lists() {
    for (text, expected) in [
        (
            "  body:\n    {{if a}}\n    x: 1\n    {{else}}\n    x: 2\n    {{end}}\n    y: 3\n",
            json!({ "{{if a}}": { "x": 1 }, "{{else}}": { "x": 2 }, "y": 3 }),
        ),
        (
            "  body:\n    {{if a}}\n    x: 1\n      \n    {{if b}}\n    # why\n    z: |\n      {{if text}}\n      {{end}}\n    {{end}}\n    w: 2\n    {{end}}\n",
            json!({ "{{if a}}": { "x": 1, "{{if b}}": { "z": "{{if text}}\n{{end}}\n" }, "w": 2 } }),
        ),
        (
            "  body:\n    {{if a}}\n    x: 1\n    {{end}}\n    y: 2\n    {{if a}}\n    z: 3\n    {{else}}\n    v: 4\n    {{end}}\n    {{if b}}\n    u: 5\n    {{else}}\n    t: 6\n    {{end}}\n",
            json!({ "{{if a}}": { "x": 1 }, "y": 2, "{{if a #2}}": { "z": 3 }, "{{else}}": { "v": 4 },
                "{{if b}}": { "u": 5 }, "{{else #2}}": { "t": 6 } }),
        ),
        (
            "  body:\n    list:\n      - a\n      {{if x}}\n      - b\n      - {c: d}\n      {{else}}\n      - e\n      {{end}}\n      - f\n      {{if x}}\n      - g\n      {{end}}\n",
            json!({ "list": ["a", { "{{if x}}": ["b", { "c": "d" }], "{{else}}": ["e"] }, "f", { "{{if x}}": ["g"] }] }),
        ),
        (
            "  body:\n    {{if it's}}\n    {{if b}}\n    {{if c}}\n    x: 1\n    {{end}}\n    {{end}}\n    {{end}}\n",
            json!({ "{{if it's}}": { "{{if b}}": { "{{if c}}": { "x": 1 } } } }),
        ),
        ("  body:\n    a: 1\n    {{if x}}\n    {{end}}\n", json!({ "a": 1, "{{if x}}": {} })),
        (
            "  body:\n    {{if x}}\n    {{if y}}\n    {{else}}\n    # nothing\n    {{end}}\n    {{end}}\n    a: 1\n",
            json!({ "{{if x}}": { "{{if y}}": {}, "{{else}}": {} }, "a": 1 }),
        ),
        (
            "  body:\n    - a\n    {{if x}}\n    - b\n    {{else}}\n    {{end}}\n",
            json!(["a", { "{{if x}}": ["b"], "{{else}}": [] }]),
        ),
        ("  body: |\n    {{if x}}\n    text\n    {{end}}\n", json!("{{if x}}\ntext\n{{end}}\n")),
        ("  body: \"a\n    {{if x}}\n    b\"\n", json!("a {{if x}} b")),
    ] {
        assert_eq!(body(text), expected, "{text}");
    }
}

#[test]
fn unbalanced_control_lines_are_errors() {
    insta::assert_snapshot!(findings(&around("  body:\n    {{if x}}\n    a: 1\n"), Yaml), @r"line 7: unclosed `{{if …}}`; add a line `{{end}}`");
    insta::assert_snapshot!(findings(&around("  body:\n    a: 1\n    {{end}}\n"), Yaml), @r"line 8: `{{end}}` without `{{if …}}`");
    insta::assert_snapshot!(findings(&around("  body:\n    a: 1\n    {{else}}\n    b: 1\n"), Yaml), @r"line 8: `{{else}}` without `{{if …}}`");
    insta::assert_snapshot!(findings(&around("  body:\n    {{if x}}\n    a: 1\n    {{else}}\n    b: 1\n    {{else}}\n    c: 1\n    {{end}}\n"), Yaml), @r"line 11: `{{else}}` without `{{if …}}`");
    insta::assert_snapshot!(findings(&around("  body:\n    {{if .x}}\n    a: 1\n    {{end}}\n"), Yaml), @r"line 7: write `{{if x}}` without the dot");
    insta::assert_snapshot!(findings(&around("  body:\n    {{if}}\n    a: 1\n    {{end}}\n"), Yaml), @r"line 7: `{{if}}` needs a condition, such as `{{if name}}`");
    insta::assert_snapshot!(findings(&around("  body:\n    {{range x}}\n    a: 1\n    {{end}}\n"), Yaml), @r"line 7: `{{range …}}` is not supported; use `{{if}}`, `{{else}}` and `{{end}}`");
    insta::assert_snapshot!(findings(&around("  body:\n    {{else if x}}\n    a: 1\n    {{end}}\n"), Yaml), @r"line 7: `{{else …}}` has no condition; use `{{else}}` and a line `{{if …}}` after it");
}

#[test]
fn positions_after_control_lines_are_correct() {
    // The fault stands in line 8, column 8 of the file, although that line was moved.
    insta::assert_snapshot!(findings(&around("  body:\n    {{if x}}\n    a: 0123\n    {{end}}\n"), Yaml), @r"line 8, column 8: `implementation.body.{{if x}}.a`: `0123` is ambiguous: YAML 1.1 and YAML 1.2 read it as different numbers; quote it or remove the leading zeros");
    insta::assert_snapshot!(findings(&around("  body:\n    {{if x}}\n    a: [1\n    {{end}}\n  b: 1\n"), Yaml), @r"line 8, column 8: invalid YAML: unclosed bracket '['");
    // Outside of a body there is nothing that would evaluate them.
    insta::assert_snapshot!(findings("name: t\nparams: []\n{{if x}}\nsandbox: true\n{{end}}\nimplementation: {type: builtin, function: f}\n", Yaml), @r"line 3, column 1: `{{if x}}`: `{{if x}}` has no effect here; control lines are supported in `body` and `query`");
}
