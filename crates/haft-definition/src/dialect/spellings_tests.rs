//! Every field is accepted in every form under the spellings of all dialects.

use serde_json::{Value, json};

use crate::dialect::test_support::{body, findings};
use crate::dialect::{Defaults, read_value};
use haft_core::catalog::FileForm::Json;
use haft_core::spec::RateLimit;

/// One definition of each dialect, without its arguments.
fn forms() -> [Value; 5] {
    [
        json!({"name": "t", "implementation": {"type": "function", "function": "f"}}),
        json!({"slug": "t", "type": "go", "impl": {"goFunc": "f"}}),
        json!({"name": "t", "runtime": "bash", "body": "true"}),
        json!({"slug": "t", "implementation_type": "function", "implementation_config": {"function_name": "f"}}),
        json!({"slug": "t", "builtin_key": "f"}),
    ]
}

fn with(form: &Value, extra: &Value) -> Value {
    let mut value = form.clone();
    value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    value
}

fn problems(value: Value) -> String {
    let problems = match read_value(value, &Defaults::default()) {
        Ok(reading) => reading.warnings,
        Err(problems) => problems,
    };
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_input_schema_has_the_same_spellings_in_every_form() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let list = json!([{"name": "city", "type": "string", "required": true}]);
    for form in forms() {
        for key in
            ["input_schema", "inputSchema", "parameters", "argSchema", "args_schema", "argsSchema", "params"]
        {
            for written in [&schema, &list] {
                let reading = body(with(&form, &json!({key: written})));
                assert_eq!(
                    (&reading.spec.input_schema.value(), &*reading.warnings),
                    (&schema, &[][..]),
                    "{key} {form}"
                );
            }
        }
        let reading = body(with(&form, &json!({"parameters": schema, "params": list, "argSchema": schema})));
        assert_eq!((reading.spec.input_schema.value(), reading.warnings), (schema.clone(), vec![]), "{form}");
        let said = problems(with(&form, &json!({"parameters": schema, "input_schema": {"type": "object"}})));
        assert_eq!(said, "`parameters`: conflicts with `input_schema`; remove one of them", "{form}");
    }
}

#[test]
fn other_fields_have_the_same_spellings_in_every_form() {
    for form in forms() {
        for extra in [
            json!({"display_name": "T", "output_schema": {"type": "string"}, "enabled": false, "timeout_ms": 5000}),
            json!({"displayName": "T", "outputSchema": {"type": "string"}, "isEnabled": false, "timeoutMs": 5000}),
            json!({"display_name": "T", "displayName": "T", "output_schema": {"type": "string"}, "is_active": false, "timeout_secs": 5}),
            json!({"displayName": "T", "outputSchema": {"type": "string"}, "isActive": false, "enabled": false, "execution": {"timeout": "5s"}}),
            json!({"displayName": "T", "outputSchema": {"type": "string"}, "isActive": false, "execution_config": {"timeout_s": 5}}),
        ] {
            let reading = body(with(&form, &extra));
            let spec = &reading.spec;
            assert_eq!(
                (spec.name.as_str(), spec.display_name.as_str(), reading.enabled, spec.execution.timeout_ms),
                ("t", "T", Some(false), Some(5000)),
                "{form} {extra}"
            );
            assert_eq!(spec.output_schema, json!({"type": "string"}));
            assert_eq!(reading.warnings, [], "{form} {extra}");
        }
    }
}

#[test]
fn the_implementation_has_several_spellings() {
    let http = json!({"url": "https://a.example"});
    let expected = json!({"type": "http", "url": "https://a.example"});
    for value in [
        json!({"implementation": with(&http, &json!({"type": "http"}))}),
        json!({"implementation": http, "type": "http"}),
        json!({"implementation": http, "implementation_type": "http"}),
        json!({"impl": with(&http, &json!({"type": "http"}))}),
        json!({"impl": http, "type": "http"}),
        json!({"implementation_config": http, "type": "http"}),
        json!({"implementationConfig": http, "implementationType": "http"}),
        json!({"implementation": {"type": "http", "urlTemplate": "https://a.example", "errorMode": "fail"}}),
        json!({"impl": {"type": "http", "url_template": "https://a.example", "url": "https://a.example"}}),
    ] {
        let reading = body(with(&value, &json!({"name": "t"})));
        assert_eq!(serde_json::to_value(&reading.spec.implementation).unwrap(), expected, "{value}");
        assert_eq!(reading.warnings, [], "{value}");
    }
    let script = body(json!({"name": "t", "implementation_type": "script", "runtime": "bash", "body": "ls"}));
    assert_eq!(
        serde_json::to_value(&script.spec.implementation).unwrap(),
        json!({"type": "script", "runtime": "bash", "body": "ls"})
    );
    for (value, expected) in [
        (json!({"artifact_id": "a"}), json!({"type": "artifact", "artifact_id": "a"})),
        (json!({"artifactId": "a"}), json!({"type": "artifact", "artifact_id": "a"})),
        (json!({"builtin_key": "f"}), json!({"type": "function", "function": "f"})),
    ] {
        let reading = body(with(&value, &json!({"slug": "t"})));
        assert_eq!(serde_json::to_value(&reading.spec.implementation).unwrap(), expected);
    }
}

#[test]
fn two_spellings_that_disagree_are_an_error() {
    let base = json!({"name": "t", "implementation": {"type": "function", "function": "f"}});
    let said = |extra: Value| problems(with(&base, &extra));
    insta::assert_snapshot!(said(json!({"impl": {"type": "http", "url": "https://a.example"}})), @"`impl`: conflicts with `implementation`; remove one of them");
    insta::assert_snapshot!(said(json!({"implementation_type": "http"})), @"`implementation_type`: conflicts with `implementation.type`; remove one of them");
    insta::assert_snapshot!(said(json!({"runtime": "bash", "body": "ls"})), @r"
    `runtime`: conflicts with the implementation; remove one of them
    `body`: conflicts with the implementation; remove one of them
    ");
    insta::assert_snapshot!(said(json!({"enabled": true, "isActive": false})), @"`isActive`: conflicts with `enabled`; remove one of them");
    insta::assert_snapshot!(said(json!({"displayName": "A", "display_name": "B"})), @"`displayName`: conflicts with `display_name`; remove one of them");
    insta::assert_snapshot!(said(json!({"timeout": "5s", "execution": {"timeout_ms": 6000}})), @"`timeout`: is set twice with different values; remove one");
}

#[test]
fn a_misspelled_field_whose_loss_would_break_the_tool_is_an_error() {
    let base = json!({"name": "t", "implementation": {"type": "http", "url": "https://a.example"}});
    let said = |extra: Value| problems(with(&base, &extra));
    insta::assert_snapshot!(said(json!({"paramaters": {"type": "object"}})), @"`paramaters`: unknown field; did you mean `parameters`?");
    insta::assert_snapshot!(said(json!({"arguments": {"type": "object"}})), @"`arguments`: unknown field; did you mean `input_schema`?");
    insta::assert_snapshot!(said(json!({"polcy": "deny"})), @"`polcy`: unknown field; did you mean `policy`?");
    insta::assert_snapshot!(said(json!({"requireConfirmation": true})), @"`requireConfirmation`: unknown field; did you mean `requiresConfirmation`?");
    insta::assert_snapshot!(said(json!({"implementation": {"type": "http", "url": "https://a.example", "header": {}}})), @"`implementation.header`: unknown field; did you mean `headers`?");
    // The loss of others changes nothing about the calls.
    insta::assert_snapshot!(said(json!({"tag": ["a"], "icon": "x"})), @r"
    `tag`: unknown field, ignored; did you mean `tags`?
    `icon`: unknown field, ignored
    ");
    insta::assert_snapshot!(said(json!({"parameters": {"city": {"type": "string"}}})), @r#"`parameters`: expected a JSON Schema, found a map of arguments; move them to `properties` and add `"type": "object"`"#);
}

#[test]
fn types_of_other_languages_have_a_suggestion() {
    let params = json!({"name": "t", "params": [{"name": "a", "type": "int"}, {"name": "b", "type": "colour"}],
        "implementation": {"type": "function", "function": "f"}});
    insta::assert_snapshot!(problems(params), @r"
    `params[0].type`: unknown type `int`; did you mean `integer`?
    `params[1].type`: unknown type `colour`; expected one of `string`, `integer`, `number`, `boolean`, `array`, `object`
    ");
    let spec =
        body(json!({"name": "t", "parameters": {"type": "object", "properties": {"a": {"type": "int"}}},
        "implementation": {"type": "function", "function": "f"}}))
        .spec;
    let errors = crate::check::definition(&spec).errors;
    assert!(errors[0].to_string().ends_with("; did you mean `integer`?"), "{}", errors[0]);
    assert_eq!(errors[0].field, "input_schema.properties.a.type");
}

#[test]
fn calls_per_minute_are_a_rate_limit() {
    let limit = Some(RateLimit { calls: 30, per: "1m".to_owned() });
    for form in forms() {
        for extra in [
            json!({"maxCallsPerMinute": 30}),
            json!({"max_calls_per_minute": 30}),
            json!({"execution": {"maxCallsPerMinute": 30}}),
            json!({"execution": {"rateLimit": {"calls": 30, "per": "1m"}}, "maxCallsPerMinute": 30}),
        ] {
            let reading = body(with(&form, &extra));
            assert_eq!(
                (&reading.spec.execution.rate_limit, &*reading.warnings),
                (&limit, &[][..]),
                "{form} {extra}"
            );
        }
    }
    insta::assert_snapshot!(findings(r#"{"slug": "t", "builtin_key": "f", "maxCallsPerMinute": "many"}"#, Json), @"line 1, column 35: `maxCallsPerMinute`: expected a number of calls, found a string");
}

#[test]
fn the_output_of_a_process_may_be_kept_as_text() {
    for value in [
        json!({"name": "t", "runtime": "bash", "body": "ls", "output": "text"}),
        json!({"name": "t", "implementation": {"type": "script", "runtime": "bash", "body": "ls", "output": "text"}}),
        json!({"name": "t", "implementation": {"type": "script", "runtime": "bash", "body": "ls"}, "output": "text"}),
    ] {
        let reading = body(value.clone());
        assert_eq!(
            serde_json::to_value(&reading.spec.implementation).unwrap(),
            json!({"type": "script", "runtime": "bash", "body": "ls", "output": "text"}),
            "{value}"
        );
        assert_eq!(reading.warnings, []);
    }
    insta::assert_snapshot!(problems(json!({"name": "t", "runtime": "bash", "body": "ls", "output": "txt"})), @"`output`: unknown value `txt`; did you mean `text`?");
}

#[test]
fn dependencies_are_a_list_or_a_text_in_every_form() {
    let expected = json!(["requests", "rich>=13"]);
    for dependencies in [expected.clone(), json!("# what it needs\nrequests\n\n  rich>=13\n")] {
        for key in ["dependencies", "requirements"] {
            let script = json!({"type": "script", "runtime": "python", "body": "pass"});
            let function = json!({"type": "python", "entrypoint": "a:b"});
            let own = |block: &Value| with(block, &json!({key: dependencies}));
            for value in [
                json!({"name": "t", "runtime": "python", "body": "pass", key: dependencies}),
                json!({"name": "t", "implementation": own(&script)}),
                json!({"name": "t", "implementation": script, key: dependencies}),
                json!({"name": "t", "implementation": own(&script), key: dependencies}),
                json!({"name": "t", "implementation": own(&function)}),
                json!({"name": "t", "implementation": function, key: dependencies}),
                json!({"name": "t", "impl": function, key: dependencies}),
                json!({"slug": "t", "implementation_type": "python", "implementation_config": own(&function)}),
                json!({"slug": "t", "implementation_type": "python", "implementation_config": function, key: dependencies}),
                json!({"slug": "t", "implementation_type": "script", "runtime": "python", "body": "pass", key: dependencies}),
            ] {
                let reading = body(value.clone());
                let found = reading.spec.implementation.dependencies().map(|lines| json!(lines));
                assert_eq!((found, &*reading.warnings), (Some(expected.clone()), &[][..]), "{value}");
            }
        }
    }
    insta::assert_snapshot!(problems(json!({"name": "t", "runtime": "python", "body": "pass", "dependencies": [1]})), @"`dependencies[0]`: expected a string, found a number");
    insta::assert_snapshot!(problems(json!({"name": "t", "runtime": "python", "body": "pass", "dependancies": ["rich"]})), @"`dependancies`: unknown field; did you mean `dependencies`?");
    let both = json!({"name": "t", "implementation": {"type": "python", "entrypoint": "a:b", "dependencies": ["a"]}, "dependencies": ["b"]});
    insta::assert_snapshot!(problems(both), @"`dependencies`: conflicts with `implementation.dependencies`; remove one of them");
}
