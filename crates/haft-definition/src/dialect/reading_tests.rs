use serde_json::json;

use super::*;
use crate::dialect::test_support::{body, findings, good};
use haft_core::catalog::FileForm::{Json, Skill, Yaml};

#[test]
fn dialects_are_detected_by_their_keys() {
    for (value, form, expected) in [
        (json!({ "implementation": {}, "params": [] }), Json, Some(Dialect::Definition)),
        (json!({ "implementation": {} }), Json, Some(Dialect::Canonical)),
        (json!({ "implementation": {} }), Yaml, Some(Dialect::Definition)),
        (json!({ "implementation": {}, "tool_type": "custom" }), Yaml, Some(Dialect::Canonical)),
        (json!({ "implementation": {}, "implementation_type": "http" }), Json, Some(Dialect::Canonical)),
        (json!({ "implementation_type": "http" }), Json, Some(Dialect::Registry)),
        (json!({ "config_schema": {} }), Yaml, Some(Dialect::Registry)),
        (json!({ "impl": {}, "implementation_type": "http" }), Json, Some(Dialect::ToolJson)),
        (json!({ "argSchema": {} }), Json, Some(Dialect::ToolJson)),
        (json!({ "runtime": "bash" }), Json, Some(Dialect::Skill)),
        (json!({ "runtime": null, "body": "x" }), Json, Some(Dialect::Skill)),
        (json!({ "implementation": {} }), Skill, Some(Dialect::Skill)),
        (json!({ "name": "x" }), Json, None),
    ] {
        assert_eq!(detect(value.as_object().unwrap(), form), expected, "{value}");
    }
}

#[test]
fn api_responses_are_read_without_warnings() {
    let reading = body(json!({
        "id": "019", "tenant": "default", "bundle": "user-created", "bundle_id": null,
        "name": "weather-check", "version": "1.0.0",
        "display_name": "Weather check", "description": "Current weather for a city",
        "category": "web", "tags": ["weather"], "tool_type": "custom",
        "implementation_type": "http", "runtime": null,
        "implementation": { "type": "http", "method": "GET", "url": "https://a.example/${city}" },
        "input_schema": {}, "output_schema": {},
        "execution": { "is_pure": false, "concurrency_group": "default", "max_concurrency": 1,
                       "timeout_ms": 30000, "retry": { "attempts": 0 }, "validation": "strict",
                       "limits": { "max_request_bytes": 1_048_576, "max_response_bytes": 4_194_304 },
                       "rate_limit": { "calls": 60, "per": "1m" } },
        "policy": "allow", "requires_confirmation": false, "sandbox": false, "network": false,
        "renderers": [{ "renderer": "code", "priority": 0, "config": {} }],
        "status": "draft", "enabled": true, "built_in": false, "ready": true, "error": null,
        "source": "user", "path": "skills/user-created/weather-check.skill",
        "usage": { "call_count": 0, "last_called_at": null },
        "created_at": "2026-01-01T00:00:00Z", "modified_at": "2026-01-01T00:00:00Z", "published_at": null
    }));
    assert_eq!(reading.warnings, []);
    assert_eq!((reading.dialect, reading.form), (Dialect::Canonical, Json));
    assert_eq!(reading.bundle.as_deref(), Some("user-created"));
    assert_eq!((reading.enabled, reading.status), (Some(true), Some(Status::Draft)));
    let again = serde_json::from_value::<ToolSpec>(serde_json::to_value(&reading.spec).unwrap()).unwrap();
    assert_eq!(again, reading.spec);
}

#[test]
fn null_is_not_a_string() {
    let implementation = json!({ "type": "function", "function": "f" });
    let defaults = Defaults { name: Some("given".into()), version: None };
    for (key, others) in [
        ("name", json!({})),
        ("version", json!({ "name": "t" })),
        ("description", json!({ "name": "t" })),
        ("category", json!({ "name": "t" })),
        ("display_name", json!({ "name": "t" })),
    ] {
        let mut value = others;
        value["implementation"] = implementation.clone();
        value[key] = Value::Null;
        for defaults in [&Defaults::default(), &defaults] {
            let problems = read_value(value.clone(), defaults).unwrap_err();
            let reported: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert_eq!(reported, [format!("`{key}`: is null; expected a string, or remove the key")]);
        }
    }
    // A key of YAML with nothing behind it says nothing, but for who the tool is.
    let yaml = |key: &str| {
        let text =
            format!("{key}:\nparams: []\nimplementation: {{ type: http, url: \"https://a.example\" }}\n");
        read(&text, Yaml, &defaults).map(|reading| reading.spec.name.to_string())
    };
    assert_eq!(yaml("description").unwrap(), "given");
    let reported = yaml("name").unwrap_err()[0].to_string();
    assert!(
        reported.starts_with("line 1")
            && reported.ends_with("`name`: is null; expected a string, or remove the key"),
        "{reported}"
    );
}

#[test]
fn both_names_of_a_bundle_are_not_a_conflict() {
    let reading = body(json!({ "name": "t", "bundle": "web", "bundle_id": "019",
        "implementation": { "type": "function", "function": "f" } }));
    assert_eq!(reading.bundle.as_deref(), Some("web"));
}

#[test]
fn a_mixture_is_never_resolved_silently() {
    insta::assert_snapshot!(findings(r#"{
  "name": "t", "runtime": "bash", "body": "ls", "argSchema": {}, "type": "go", "impl": { "goFunc": "f" }
}"#, Json), @r"
    line 2, column 16: `runtime`: conflicts with the implementation; remove one of them
    line 2, column 35: `body`: conflicts with the implementation; remove one of them
    ");
    insta::assert_snapshot!(findings(r#"{
  "name": "t", "implementation": { "type": "function", "function": "f" }, "parameters": {}, "displayName": "T"
}"#, Json), @"");
    insta::assert_snapshot!(findings(r#"{
  "name": "t", "implementation": { "type": "function", "function": "f" }, "parameters": {}, "params": [{"name": "a"}]
}"#, Json), @"line 2, column 93: `params`: conflicts with `parameters`; remove one of them");
}

#[test]
fn syntax_errors_have_a_position() {
    insta::assert_snapshot!(findings("{\"name\": \"x\",\n  \"impl\": }", Json), @r"line 2, column 11: invalid JSON: expected value");
    insta::assert_snapshot!(findings("{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 2}}", Json), @r"line 2, column 18: invalid JSON: duplicate key `c`");
    insta::assert_snapshot!(findings("", Json), @r"line 1: invalid JSON: EOF while parsing a value");
    insta::assert_snapshot!(findings("name: a: b\n", Yaml), @r#"line 1, column 8: invalid YAML: mapping values are not allowed in this context; hint: quote a value that contains a colon: `name: "a: b"`"#);
    insta::assert_snapshot!(findings("name: [a\n", Yaml), @r"line 1, column 7: invalid YAML: unclosed bracket '['");
    insta::assert_snapshot!(findings("name: a\nname: b\n", Yaml), @r"line 2, column 1: duplicate key `name`; remove one of them");
    insta::assert_snapshot!(findings("name: *nobody\n", Yaml), @r"line 1, column 7: invalid YAML: while parsing node, found unknown anchor");
    insta::assert_snapshot!(findings("a: 1\n---\nb: 1\n", Yaml), @r"line 2, column 1: invalid YAML: more than one document; a line `---` starts a second one");
    insta::assert_snapshot!(findings("a: !secret x\n", Yaml), @r"line 1, column 12: invalid YAML: unknown tag `!secret`; remove it");
    insta::assert_snapshot!(findings("a: .nan\n", Yaml), @r"line 1, column 4: invalid YAML: the number is not finite; quote it if it is a string");
}

#[test]
fn hostile_texts_are_rejected() {
    // Nine levels of nine references each: a billion nodes.
    let levels = (1..10).map(|level| {
        let before = vec![format!("*a{}", level - 1); 9].join(",");
        format!("a{level}: &a{level} [{before}]")
    });
    let bomb = format!(
        "a0: &a0 [x,x,x,x,x,x,x,x,x]
{}
",
        levels.collect::<Vec<_>>().join(
            "
"
        )
    );
    let deep_json = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_yaml: String = (0..10_000).map(|_| "- ".to_owned()).collect();
    let indented = (0..1000).map(|level| " ".repeat(level) + "a:").collect::<Vec<_>>().join("\n");
    let seventy = format!("{{\"name\": {}1{}}}", "[".repeat(70), "]".repeat(70));
    for (text, form, expected) in [
        (bomb.as_str(), Yaml, "too_large"),
        (deep_json.as_str(), Json, "syntax"),
        (deep_json.as_str(), Yaml, "syntax"),
        (deep_yaml.as_str(), Yaml, "too_deep"),
        (indented.as_str(), Yaml, "too_deep"),
        (seventy.as_str(), Json, "too_deep"),
        (seventy.as_str(), Yaml, "too_deep"),
        (" ".repeat(10 * 1024 * 1024).as_str(), Json, "too_large"),
        (" ".repeat(10 * 1024 * 1024).as_str(), Yaml, "too_large"),
        ("&a [*a]", Yaml, "syntax"),
        ("{{if x}}\n".repeat(100_000).as_str(), Yaml, "control_line"),
    ] {
        let problems = read(text, form, &Defaults::default()).unwrap_err();
        let codes: Vec<&str> = problems.iter().map(|problem| problem.code.as_str()).collect();
        assert_eq!(codes, [expected], "{}", &text[..text.len().min(60)]);
    }
    let mut value = json!(1);
    for _ in 0..100 {
        value = json!([value]);
    }
    assert_eq!(read_value(value, &Defaults::default()).unwrap_err()[0].code, "too_deep");
}

#[test]
fn a_long_key_above_many_nodes_costs_little() {
    let key = "k".repeat(400_000);
    let nodes = vec!["0"; 90_000].join(",");
    // With a path made for every node this would copy 36 GB.
    let text = format!(
        "name: t\nparams: []\nimplementation: {{type: http, url: x, body: {{? {key}\n  : [{nodes}]}}}}\n"
    );
    let spec = good(&text, Yaml).spec;
    assert!(!crate::check::definition(&spec).errors.is_empty());
}

#[test]
fn problems_are_bounded_in_number() {
    let keys: Vec<String> = (0..5000).map(|n| format!("\"k{n}\": 1, ")).collect();
    let keys = keys.concat();
    let text = format!(
        "{{{keys}\"name\": \"t\", \"implementation\": {{\"type\": \"function\", \"function\": \"f\"}}}}"
    );
    assert_eq!(read(&text, Json, &Defaults::default()).unwrap().warnings.len(), 50);
}

#[test]
fn yaml_means_what_it_says() {
    let text = "name: t\nparams:\n  - {name: a, type: string, enum: [yes, no, on, y, 1.0, 1e3, 0x1F, ~, True, 2024-05-14]}\nimplementation: {type: builtin, function: f}\n";
    let spec = good(text, Yaml).spec;
    assert_eq!(
        spec.input_schema.value()["properties"]["a"]["enum"],
        json!(["yes", "no", "on", "y", 1.0, 1000.0, 31, null, true, "2024-05-14"])
    );
    let merged = "x: &x {type: string}\nname: t\nparams:\n  - {<<: *x, name: a}\nimplementation: {type: builtin, function: f}\n";
    insta::assert_snapshot!(findings(merged, Yaml), @r"line 1, column 1: `x`: unknown field, ignored");
}

#[test]
fn a_comment_inside_a_value_is_warned_about() {
    for (line, expected) in [
        ("description: see ticket #42", 1),
        ("description: without #)", 1),
        ("description: text # a comment", 0),
        ("description: text #### a comment", 0),
        ("description: 'see ticket' #42", 0),
        ("description: \"see ticket #42\"", 0),
        ("#42\ndescription: text", 0),
        ("description: |\n  see ticket #42", 0),
    ] {
        let text = format!("name: t\nparams: []\nimplementation: {{type: builtin, function: f}}\n{line}\n");
        assert_eq!(read(&text, Yaml, &Defaults::default()).unwrap().warnings.len(), expected, "{line}");
    }
    let commented = format!(
        "name: t\n{}implementation:\n{}  type: builtin\n  function: f\n",
        "# c\n".repeat(500),
        "  # c\n".repeat(500)
    );
    good(&commented, Yaml);
}

#[test]
fn extensions() {
    for (extension, form) in [
        ("skill", Some(Skill)),
        ("yaml", Some(Yaml)),
        ("YML", Some(Yaml)),
        ("json", Some(Json)),
        ("swp", None),
    ] {
        assert_eq!(form_of_extension(extension), form);
    }
}
