use serde_json::json;

use crate::dialect::test_support::{body, canonical, findings, good};
use crate::dialect::{Defaults, Dialect, read, write};
use haft_core::catalog::FileForm::{Json, Skill};
use haft_core::implementation::{Implementation, ScriptRuntime};

/// The document's file, to the letter.
const EXAMPLE: &str = r#"---
name: weather-check
description: Check current weather for a location
runtime: bash
parameters:
  type: object
  properties:
    city:
      type: string
      description: City name to check weather for
  required:
    - city
policy: elevated
sandbox: false
network: true
timeout_secs: 30
---
curl -s "https://api.weather.example.com/current?city=${city}"
"#;

#[test]
fn the_example_of_the_document() {
    let reading = good(EXAMPLE, Skill);
    assert_eq!((reading.dialect, reading.form), (Dialect::Skill, Skill));
    insta::assert_snapshot!(canonical(EXAMPLE, Skill), @r#"
{
  "name": "weather-check",
  "version": "1.0.0",
  "description": "Check current weather for a location",
  "implementation": {
    "type": "script",
    "runtime": "bash",
    "body": "curl -s \"https://api.weather.example.com/current?city=${city}\""
  },
  "input_schema": {
    "type": "object",
    "properties": {
      "city": {
        "type": "string",
        "description": "City name to check weather for"
      }
    },
    "required": [
      "city"
    ]
  },
  "execution": {
    "is_pure": false,
    "concurrency_group": "default",
    "max_concurrency": 1,
    "timeout_ms": 30000,
    "validation": "strict",
    "limits": {
      "max_request_bytes": 1048576,
      "max_response_bytes": 4194304
    }
  },
  "policy": "elevated",
  "network": true
}
"#);
    assert_eq!(write(&reading.spec, Skill, None), EXAMPLE);
}

#[test]
fn the_request_bodies_of_the_document() {
    for (name, runtime, script, rest) in [
        (
            "weather-check",
            "bash",
            "curl -s 'https://api.weather.example.com/current?city=$city'",
            json!({ "policy": "elevated", "sandbox": false, "network": true, "timeout_secs": 30 }),
        ),
        (
            "calculator",
            "bash",
            "python3 -c \"import sys; print(eval(sys.argv[1]))\" \"$expression\"",
            json!({ "policy": "allow", "sandbox": true, "timeout_secs": 5 }),
        ),
        (
            "slack-notify",
            "bash",
            "curl -X POST ${SLACK_WEBHOOK} -H \"Content-Type: application/json\" -d \"{\\\"text\\\":\\\"${message}\\\"}\"",
            json!({ "policy": "elevated", "sandbox": false, "network": true, "timeout_secs": 10 }),
        ),
        (
            "text-analysis",
            "python",
            "import json; text = \"${text}\"; print(json.dumps({\"length\": len(text), \"words\": len(text.split())}))",
            json!({ "policy": "allow", "sandbox": true, "timeout_secs": 10 }),
        ),
        (
            "json-formatter",
            "bash",
            "python3 -m json.tool <<< \"${json}\"",
            json!({ "policy": "allow", "timeout_secs": 5 }),
        ),
    ] {
        let parameters =
            json!({ "type": "object", "properties": { "x": { "type": "string" } }, "required": ["x"] });
        let mut request = rest.clone();
        request["name"] = json!(name);
        request["description"] = json!("What it does");
        request["runtime"] = json!(runtime);
        request["body"] = json!(script);
        request["parameters"] = parameters.clone();
        // What `GET /api/tools/:name` answers may be sent back.
        request["id"] = json!("tool-550e8400-e29b-41d4-a716-446655440000");
        request["created_at"] = json!("2026-02-03T12:34:56Z");
        request["path"] = json!("~/.haft/skills/user-created/weather-check.skill");
        request["ready"] = json!(true);

        let reading = body(request);
        assert_eq!(reading.warnings, []);
        assert_eq!(reading.form, Skill);
        let spec = reading.spec;
        let Implementation::Script(read) = &spec.implementation else { panic!("a script: {spec:?}") };
        assert_eq!((read.runtime.as_str(), read.body.as_str()), (runtime, script));
        assert_eq!(spec.input_schema, parameters);
        assert_eq!(spec.policy.as_str(), rest["policy"]);
        assert_eq!(spec.sandbox, rest["sandbox"] == true);
        assert_eq!(spec.network, rest["network"] == true);
        assert_eq!(spec.execution.timeout_ms, rest["timeout_secs"].as_u64().map(|s| s * 1000));
    }
}

#[test]
fn the_body_is_everything_after_the_second_line() {
    for (after, expected) in [
        ("", ""),
        ("\n", ""),
        ("x", "x"),
        ("x\n", "x"),
        ("x\n\n", "x\n"),
        ("a\n---\nb\n---\n", "a\n---\nb\n---"),
        ("\n  x", "\n  x"),
    ] {
        let text = format!("---\nname: t\nruntime: python\n---\n{after}");
        let Implementation::Script(script) = good(&text, Skill).spec.implementation else { panic!("{text}") };
        assert_eq!((script.runtime, script.body.as_str()), (ScriptRuntime::Python, expected), "{after:?}");
    }
    let windows = "\u{feff}---\r\nname: t\r\nruntime: bash\r\n---\r\necho a\r\necho b\r\n";
    let Implementation::Script(script) = good(windows, Skill).spec.implementation else { panic!() };
    assert_eq!(script.body, "echo a\necho b");
}

#[test]
fn a_name_may_come_from_the_file() {
    let defaults = Defaults { name: Some("weather".to_owned()), version: Some("v2".to_owned()) };
    let spec = read("---\nruntime: bash\n---\nls\n", Skill, &defaults).unwrap().spec;
    assert_eq!((spec.name.as_str(), spec.version.as_str()), ("weather", "v2"));
    let spec =
        read("---\nname: other\nversion: 1.10\nruntime: bash\n---\nls\n", Skill, &defaults).unwrap().spec;
    assert_eq!((spec.name.as_str(), spec.version.as_str()), ("other", "1.10"));
}

#[test]
fn errors_have_the_line_of_the_file() {
    insta::assert_snapshot!(findings("name: x\n", Skill), @r"line 1, column 1: missing front matter: a `.skill` file starts with a line `---`, then keys such as `name` and `runtime`, then a second line `---`, then the script");
    insta::assert_snapshot!(findings("---\nname: x\n", Skill), @r"line 1, column 1: unclosed front matter; add a second line `---` before the script");
    insta::assert_snapshot!(findings("---\nname: x\nruntime: ruby\nnetwork: yes\ntimeout_secs: -1\n---\nputs 1\n", Skill), @r"
    line 3, column 1: `runtime`: unknown value `ruby`; expected one of `bash`, `python`, `wasm`
    line 4, column 1: `network`: expected `true` or `false`, found a string
    line 5, column 1: `timeout_secs`: expected a whole number of seconds, found -1
    ");
    insta::assert_snapshot!(findings("---\nname: x\nruntime: bash\nparameters: {a: [}\n---\nls\n", Skill), @r"line 4, column 17: invalid YAML: mismatched bracket '[' closed by '}'");
    insta::assert_snapshot!(findings("\n\n---\nname: x\nname: y\nruntime: bash\n---\nls\n", Skill), @r"line 5, column 1: duplicate key `name`; remove one of them");
    insta::assert_snapshot!(findings("---\nname: x\n\truntime: bash\n---\nls\n", Skill), @r"line 2, column 7: invalid YAML: while scanning a plain scalar, found a tab; hint: the indentation contains a tab; use spaces");
    insta::assert_snapshot!(findings("---\nname: x\nruntime: bash\nbody: ls\n---\nls\n", Skill), @r"
line 4, column 1: `body`: there is also a script after the second `---`; remove one
line 4, column 1: `body`: unknown field, ignored
");
    insta::assert_snapshot!(findings("---\nname: x\nimplementation: {type: function, function: f}\n---\nls\n", Skill), @r"line 3, column 1: `implementation`: there is also a script after the second `---`; remove one, or use `runtime` instead");
    insta::assert_snapshot!(findings("---\nname: x\nruntime: bash\ntimeout_sec: 5\n---\nls\n", Skill), @r"line 4, column 1: `timeout_sec`: unknown field, ignored; did you mean `timeout_secs`?");
    insta::assert_snapshot!(findings(r#"{"name": "x", "runtime": "bash"}"#, Json), @r"`body`: missing required field; expected the text of the script");
    insta::assert_snapshot!(findings(r#"{"name": "x", "runtime": "wasm", "body": " "}"#, Json), @r"`file`: missing required field; expected the module file, or the module in base64 as the body");
}

#[test]
fn a_module_is_a_file_or_base64() {
    let wasm = |text: &str| good(text, Skill).spec.implementation;
    insta::assert_compact_json_snapshot!(wasm("---\nname: t\nruntime: wasm\nfile: t.wasm\n---\n"), @r#"{"type": "wasm", "file": "t.wasm"}"#);
    insta::assert_compact_json_snapshot!(wasm("---\nname: t\nruntime: wasm\n---\nAGFz\nbQ==\n"), @r#"{"type": "wasm", "base64": "AGFzbQ=="}"#);
    insta::assert_compact_json_snapshot!(wasm("---\nname: t\nruntime: wasm\nfile: t.wasm\nfiles: {work: write, data: read}\nenv: {A: 1}\n---\n"), @r#"{"type": "wasm", "file": "t.wasm", "env": {"A": "1"}, "files": {"data": "read", "work": "write"}}"#);
    insta::assert_snapshot!(findings("---\nname: t\nruntime: wasm\nfile: t.wasm\nfiles: {work: rw}\n---\n", Skill), @r"line 5, column 1: `files`: `work`: unknown access `rw`; expected one of `read`, `write`");
}
