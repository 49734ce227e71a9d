use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::dialect::{Defaults, read_value};

/// Lists what is wrong (`!`) and what is doubtful (`?`), one per line.
fn findings(definition: serde_json::Value) -> String {
    let spec = read_value(definition, &Defaults::default()).unwrap().spec;
    let checked = definition_findings(&spec);
    checked.join("\n")
}

fn definition_findings(spec: &ToolSpec) -> Vec<String> {
    let CheckReport { errors, warnings } = definition(spec);
    let errors = errors.iter().map(|p| format!("! {} [{}] {}", p.field, p.code, p.message));
    let warnings = warnings.iter().map(|p| format!("? {} [{}] {}", p.field, p.code, p.message));
    errors.chain(warnings).collect()
}

fn http(implementation: serde_json::Value) -> serde_json::Value {
    let mut implementation = implementation;
    implementation["type"] = json!("http");
    json!({ "name": "weather-report", "description": "Current weather for a city", "implementation": implementation })
}

#[test]
fn a_good_definition_has_no_findings() {
    assert_eq!(findings(http(json!({ "url": "https://api.example.com/${city}" }))), "");
    assert_eq!(findings(http(json!({ "url": "HTTPS://api.example.com", "method": "post", "body": {} }))), "");
}

#[test]
fn requests_are_checked() {
    insta::assert_snapshot!(findings(http(json!({
        "url": "ftp://example.com",
        "method": "FETCH",
        "headers": { "X Bad": "1", "Ok": "a\r\nEvil: 1", "Host": "x", "ok": "" },
        "success_codes": [200, 99, 600],
        "timeout_ms": 0,
        "steps": [{ "name": "a" }, { "name": "a", "url": "example.com" }],
    }))), @r"
! implementation.url [invalid_url] expected a URL that starts with `http://` or `https://`
! implementation.method [invalid_value] is not one of GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS, QUERY
! implementation.headers.Host [invalid_header] is set by the HTTP client; remove it
! implementation.headers.Ok [invalid_header] the header value contains a line break
! implementation.headers.X Bad [invalid_header] invalid header name; use letters, digits and `-`
! implementation.headers.ok [duplicate_name] duplicate header; names are case-insensitive
! implementation.success_codes[1] [invalid_value] invalid status code 99; expected 100 to 599
! implementation.success_codes[2] [invalid_value] invalid status code 600; expected 100 to 599
! implementation.steps[1].name [duplicate_name] duplicate step name `a`
! implementation.steps[1].url [invalid_url] expected a URL that starts with `http://` or `https://`
! implementation.timeout_ms [invalid_value] must be longer than zero; remove it to use the default
");
}

#[test]
fn unused_names_are_warned_about() {
    assert_eq!(
        findings(http(json!({
            "url": "https://a.example/${path}",
            "method": "POST",
            "headers": { "X-Ids": "${ids}" },
            "query": { "q": "${q}" },
            "body": { "field": "${f}" },
            "text_styles": { "ids": "comma", "path": "dot", "other": "comma" },
            "allow_reserved": ["q", "field", "r"],
        }))),
        "? implementation.text_styles.other [without_use] has no effect: neither the URL nor a header uses this argument\n\
         ? implementation.allow_reserved[2] [without_use] has no effect: neither `query` nor the form has a field `r`"
    );
}

#[test]
fn a_required_string_that_is_null_is_one_error() {
    let definition = http(json!({ "url": "https://a.example", "auth": { "type": "bearer", "token": null } }));
    let faults = read_value(definition, &Defaults::default()).unwrap_err();
    let reported: Vec<&str> = faults.iter().map(|fault| fault.code.as_str()).collect();
    assert_eq!(reported, ["missing_field"]);
}

#[test]
fn urls_with_user_names_are_rejected() {
    let users = "! implementation.url [invalid_url] contains a user name; use `auth` with `type: basic`, \
                 `username` and `password`";
    for (url, expected) in [
        ("http://u:p@example.com/", users),
        ("http://u:${x}@example.com/", users),
        ("https://${user}@example.com", users),
        ("https://{{user}}:{{a/b}}@example.com", users),
        ("https://@example.com", users),
        ("https://example.com/@me", ""),
        ("https://example.com?at=a@b", ""),
        ("https://example.com#a@b", ""),
        ("https://${host}/users/${mail}@example.com", ""),
    ] {
        let found = findings(http(json!({ "url": url })));
        let errors: Vec<_> = found.lines().filter(|line| line.contains("invalid_url")).collect();
        assert_eq!(errors.join("\n"), expected, "{url}");
    }
}

#[test]
fn auth_is_checked() {
    for (auth, expected) in [
        (json!({ "type": "bearer", "token": "" }), "! implementation.auth.token [missing_field] is empty"),
        (
            json!({ "type": "hmac", "key": "k", "algorithm": "md5" }),
            "! implementation.auth.algorithm [invalid_value] is not one of sha256, sha512",
        ),
        (
            json!({ "type": "oauth2", "token_url": "x", "client_id": "c" }),
            "! implementation.auth.token_url [invalid_url] expected a URL that starts with `http://` or `https://`",
        ),
        (
            json!({ "type": "oauth2", "token_url": "https://u:p@x.example", "client_id": "c" }),
            "! implementation.auth.token_url [invalid_url] contains a user name; use `client_id` and \
             `client_secret`",
        ),
        (
            json!({ "type": "api_key", "name": "a b", "value": "v" }),
            "! implementation.auth.name [invalid_header] invalid header name; use letters, digits and `-`",
        ),
        (json!({ "type": "api_key", "name": "a b", "value": "v", "in": "query" }), ""),
        (
            json!({ "type": "api_key", "name": "", "value": "v", "in": "query" }),
            "! implementation.auth.name [missing_field] is empty",
        ),
        (json!({ "type": "basic", "username": "u", "password": "" }), ""),
    ] {
        assert_eq!(findings(http(json!({ "url": "https://a.example", "auth": auth }))), expected);
    }
}

#[test]
fn missing_fields_of_every_kind_are_reported() {
    for (implementation, expected) in [
        (json!({ "type": "function", "function": " " }), "implementation.function"),
        (json!({ "type": "script", "runtime": "bash", "body": "" }), "implementation.body"),
        (json!({ "type": "wasm" }), "implementation.file"),
        (json!({ "type": "wasm", "file": "f", "env": { "A B": "1" } }), "implementation.env.A B"),
        (json!({ "type": "wasm", "file": "f", "env": { "A": "{{nothing}}" } }), "implementation.env.A"),
        (json!({ "type": "exec", "command": "ls", "env": { "A B": "1" } }), "implementation.env.A B"),
        (json!({ "type": "file_read", "path": "" }), "implementation.path"),
        (json!({ "type": "file_write", "path": "p", "content": "", "mode": 99999 }), "implementation.mode"),
        (json!({ "type": "python", "entrypoint": "run" }), "implementation.entrypoint"),
        (
            json!({ "type": "python", "entrypoint": "a:b", "dependencies": ["rich", "-r x"] }),
            "implementation.dependencies[1]",
        ),
        (
            json!({ "type": "script", "runtime": "python", "body": "pass", "dependencies": ["./x"] }),
            "implementation.dependencies[0]",
        ),
        (
            json!({ "type": "script", "runtime": "bash", "body": "true", "dependencies": ["rich"] }),
            "implementation.dependencies",
        ),
        (json!({ "type": "mcp", "tool_name": "t" }), "implementation.server_url"),
        (json!({ "type": "mcp", "tool_name": "t", "server_url": "x" }), "implementation.server_url"),
        (json!({ "type": "artifact", "artifact_id": "" }), "implementation.artifact_id"),
        (json!({ "type": "agent_call" }), "implementation.target_agent_slug"),
        (json!({ "type": "http" }), "implementation.url"),
    ] {
        let definition = json!({
            "name": "weather-report", "description": "Current weather for a city", "implementation": implementation
        });
        let spec = read_value(definition, &Defaults::default()).unwrap().spec;
        let fields: Vec<String> = super::definition(&spec).errors.into_iter().map(|p| p.field).collect();
        assert_eq!(fields, [expected]);
    }
}

#[test]
fn vague_names_and_descriptions_are_warned_about() {
    let check = |name: &str, description: &str| {
        let definition = json!({ "name": name, "description": description,
            "implementation": { "type": "function", "function": "f" } });
        let spec = read_value(definition, &Defaults::default()).unwrap().spec;
        super::definition(&spec).warnings.into_iter().map(|p| p.code).collect::<Vec<_>>().join(" ")
    };
    let good = "Create an issue on GitHub";
    for name in ["tool1", "test", "do_stuff", "my-tool", "foo", "x", "123", "new-tool-2"] {
        assert_eq!(check(name, good), "vague_name", "{name}");
    }
    for name in ["create_github_issue", "weather", "test_connection", "天気"] {
        assert_eq!(check(name, good), "", "{name}");
    }
    for (description, expected) in [
        ("", "missing_description"),
        (" \n", "missing_description"),
        ("A tool", "vague_description"),
        ("This is a function that does stuff", "vague_description"),
        ("Create GitHub issue", "vague_description"),
    ] {
        assert_eq!(check("create_github_issue", description), expected, "{description}");
    }
}

#[test]
fn limits_are_enforced() {
    let mut spec =
        read_value(http(json!({ "url": "https://a.example" })), &Defaults::default()).unwrap().spec;
    spec.description = "d".repeat(MAX_DESCRIPTION + 1);
    spec.tags = vec!["t".to_owned(); 33];
    spec.display_name = "n".repeat(129);
    spec.category = "a\nb".to_owned();
    spec.execution.timeout_ms = Some(3_600_001);
    spec.execution.max_concurrency = 0;
    spec.execution.rate_limit = Some(haft_core::spec::RateLimit { calls: 0, per: "often".to_owned() });
    spec.execution.retry = Some(haft_core::spec::Retry { attempts: 11, backoff_ms: 0 });
    insta::assert_snapshot!(definition_findings(&spec).join("\n"), @r"
! description [too_large] has 8193 bytes; the limit is 8192
! display_name [too_large] has 129 characters; the limit is 128
! category [invalid_value] contains a control character; expected a single line of text
! tags [too_large] has 33 entries; the limit is 32
! execution.timeout_ms [invalid_value] the limit is 1h
! execution.max_concurrency [invalid_value] must be at least 1
! execution.retry.attempts [invalid_value] the limit is 10
! execution.rate_limit.calls [invalid_value] must be at least 1
! execution.rate_limit.per [invalid_value] invalid duration `often`; expected a value such as `500ms`, `30s`, `5m` or `1m30s`
");

    let mut headers = BTreeMap::new();
    headers.insert("X-Long".to_owned(), "h".repeat(MAX_SPEC));
    let Implementation::Http(http) = &mut spec.implementation else { panic!("an http tool") };
    http.request.headers = headers;
    assert!(definition(&spec).errors.iter().any(|p| p.field.is_empty() && p.code == "too_large"));
}

#[test]
fn required_arguments_are_declared() {
    let mut definition = http(json!({ "url": "https://a.example" }));
    definition["input_schema"] =
        json!({ "type": "object", "properties": { "a": {} }, "required": ["a", "b"] });
    insta::assert_snapshot!(findings(definition.clone()), @r"! input_schema.required [undeclared_argument] `b` is required but not declared in `properties`");
    definition["input_schema"] = json!({ "type": "array" });
    insta::assert_snapshot!(findings(definition), @r"! input_schema.type [invalid_value] must be `object`, because arguments are always an object");
}

#[test]
fn go_template_notation_is_reported() {
    let definition = json!({
        "name": "weather-report", "description": "Current weather for a city", "params": [],
        "implementation": { "type": "http", "method": "POST", "url": "https://a.example/{{.city}}",
            "body": { "a": ["{{ .b.c }}", "{{b.c}}", "1.{{x}}.y"] } }
    });
    insta::assert_snapshot!(findings(definition), @r"
! implementation.url [go_template] write `{{city}}` instead of `{{.city}}`
! implementation.body.a[0] [go_template] write `{{b.c}}` instead of `{{.b.c}}`
");
    // With `${name}` two braces mean nothing.
    assert_eq!(findings(http(json!({ "url": "https://a.example/{{.city}}" }))), "");
}

#[test]
fn an_output_schema_allows_the_value_of_a_failed_request() {
    let check = |mode: &str, schema: serde_json::Value| {
        findings(json!({
            "name": "weather-report", "description": "Current weather for a city", "output_schema": schema,
            "implementation": {"type": "http", "url": "https://a.example", "error_mode": mode},
        }))
    };
    insta::assert_snapshot!(check("empty", json!({"type": "object"})), @r#"! output_schema [null_not_allowed] must allow `null`, which `error_mode: empty` returns for a failed request: add `"null"` to `type`, or set `error_mode: fail`"#);
    assert_eq!(check("empty", json!({"type": ["object", "null"]})), "");
    assert_eq!(check("fail", json!({"type": "object"})), "");
}

#[test]
fn commands_and_scripts_are_compiled() {
    let check = |implementation: serde_json::Value| {
        findings(json!({
            "name": "weather-report", "description": "Current weather for a city", "implementation": implementation,
            "input_schema": { "type": "object", "properties": { "city": {}, "PATH": {} } }, "network": true,
        }))
    };
    let exec = |command: &str| check(json!({ "type": "exec", "command": command }));
    assert_eq!(exec("curl -s '{{city}}' | jq ."), "");
    insta::assert_snapshot!(exec("ls; eval {{city}}"), @r"! implementation.command [invalid_template] at character 5: `eval` may evaluate values as shell code; run the program directly, or use a script tool");
    insta::assert_snapshot!(exec("echo {{.city}}"), @r"! implementation.command [invalid_template] at character 6: write `{{city}}` instead of `{{.city}}`");
    insta::assert_snapshot!(exec("curl -H 'Key: ${API_KEY}' {{city}}"), @r"? implementation.command [secret_in_single_quotes] the shell does not expand `${API_KEY}` in single quotes; use double quotes");
    insta::assert_snapshot!(exec("echo \"${cmd:token}\""), @"? implementation.command [external_secret_in_bash] bash does not read `${cmd:token}` as a secret; set it as a variable in `env`, and use that variable");
    let argv = |argv: serde_json::Value| check(json!({ "type": "exec", "argv": argv, "stdin": "{{city}}" }));
    assert_eq!(argv(json!(["git", "log", "--", "{{city}}"])), "");
    insta::assert_snapshot!(argv(json!(["{{city}}", "${API_KEY}"])), @r"
! implementation.argv[0] [invalid_template] the program name has to be literal; make one tool per program
! implementation.argv[1] [secret_in_argv] arguments are visible in the process list, so `${API_KEY}` is not allowed here; set it in `env`, or use `stdin`
");
    let script = |body: &str| check(json!({ "type": "script", "runtime": "python", "body": body }));
    insta::assert_snapshot!(script("t = \"${city}\"; u = ${city}"), @r#"
! implementation.body [invalid_template] at character 20: `${city}` outside of a string literal; write it in quotes, as in "${name}"
? input_schema.properties.PATH [reserved_argument] `PATH` cannot be passed as an environment variable: shells or interpreters use that variable themselves; rename it, or read it from the JSON in `HAFT_ARGS`
"#);
}

#[test]
fn scripts_that_will_not_do_what_they_say_are_warned_about() {
    let check = |implementation: serde_json::Value, network: bool| {
        findings(json!({
            "name": "weather-report", "description": "Current weather for a city", "implementation": implementation,
            "parameters": { "type": "object", "properties": { "city": {} } }, "network": network,
        }))
    };
    let bash = |body: &str| check(json!({ "type": "script", "runtime": "bash", "body": body }), true);
    // The body of the document.
    insta::assert_snapshot!(bash("curl -s 'https://api.weather.example.com/current?city=$city'"), @"? implementation.body [argument_in_single_quotes] `$city` on line 1 is in single quotes, in which the shell does not replace it; use double quotes");
    assert_eq!(bash("curl -s \"https://api.weather.example.com/current?city=$city\""), "");
    assert_eq!(bash("jq --arg city \"$city\" '.[$city]' x; bash -c 'echo $city'; echo 'in $cityhall'"), "");
    assert_eq!(bash("cat x |\n jq ."), "");
    insta::assert_snapshot!(bash("echo \"${vault:apps/x#key}\""), @"? implementation.body [external_secret_in_bash] bash does not read `${vault:apps/x#key}` as a secret; store the reference with `haft secret set NAME`, and write `$NAME`");
    assert_eq!(bash("file=abc; echo \"${file:0:2}${env:-none}${cmd:=x}\""), "");
    let offline = |implementation: serde_json::Value| check(implementation, false);
    let expected = |program: &str| {
        format!(
            "? network [network_disabled] it uses `{program}`, but the tool has no network access; set `network: true`"
        )
    };
    for (implementation, program) in [
        (json!({ "type": "script", "runtime": "bash", "body": "x=$(curl y)" }), "curl"),
        (json!({ "type": "exec", "command": "wget {{city}}" }), "wget"),
        (json!({ "type": "exec", "argv": ["/usr/bin/curl", "{{city}}"] }), "curl"),
        (json!({ "type": "script", "runtime": "python", "body": "import json, requests\n" }), "requests"),
        (
            json!({ "type": "script", "runtime": "python", "body": "from urllib.request import urlopen" }),
            "urllib.request",
        ),
    ] {
        assert_eq!(offline(implementation.clone()), expected(program));
        assert_eq!(check(implementation, true), "");
    }
    assert_eq!(offline(json!({ "type": "script", "runtime": "bash", "body": "echo 'curl x' # curl" })), "");
    assert_eq!(offline(json!({ "type": "script", "runtime": "python", "body": "import urllib.parse" })), "");
}

#[test]
fn default_and_enum_values_must_match_the_schema() {
    insta::assert_snapshot!(findings(json!({
        "name": "weather-report", "description": "Current weather for a city",
        "input_schema": {
            "type": "object",
            "$defs": {"unit": {"enum": ["C", "F"]}},
            "properties": {
                "days": {"type": "integer", "maximum": 7, "default": 9},
                "unit": {"$ref": "#/$defs/unit", "default": "K"},
                "size": {"type": "integer", "enum": [1, "two"]},
                "fine": {"type": "string", "enum": ["a", "b"], "default": "b"},
                "none": {"type": "string", "default": null},
            },
        },
        "implementation": {"type": "function", "function": "weather"},
    })), @r#"
    ! input_schema.properties.days.default [unfitting_value] the default does not match the argument's schema: 9 is greater than the maximum of 7
    ! input_schema.properties.unit.default [unfitting_value] the default does not match the argument's schema: "K" is not one of "C" or "F"
    ? input_schema.properties.size.enum [unfitting_value] an `enum` value does not match the argument's schema: expected an integer, got "two"
    "#);
}
