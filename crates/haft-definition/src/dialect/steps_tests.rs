use serde_json::{Value, json};

use super::super::{Defaults, read, read_value};
use haft_core::artifact::{ArtifactInput, ArtifactRuntime, InputType};
use haft_core::catalog::FileForm;
use haft_core::implementation::{Artifact, Condition, Implementation, OnFailure, Step, Steps};

/// Returns the errors of a definition, one per line.
fn faults(definition: Value) -> String {
    let problems = read_value(definition, &Defaults::default()).unwrap_err();
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn expected() -> Implementation {
    let fetch = Step {
        id: "fetch".to_owned(),
        tool: "web:weather".to_owned(),
        args: json!({"city": "$args.city"}).as_object().unwrap().clone(),
        ..Step::default()
    };
    let send = Step {
        id: "send".to_owned(),
        tool: "send_email".to_owned(),
        after: vec!["fetch".to_owned()],
        when: Some(Condition::parse("$steps.fetch.ok").unwrap()),
        on_failure: OnFailure::Fallback,
        fallback: Some(json!(false)),
        ..Step::default()
    };
    Implementation::Steps(Steps {
        steps: vec![fetch, send],
        output: Some(json!("$steps.send.ok")),
        max_parallel: None,
    })
}

fn block() -> Value {
    json!({
        "type": "steps",
        "steps": [
            {"id": "fetch", "tool": "web:weather", "args": {"city": "$args.city"}},
            {"id": "send", "tool": "send_email", "after": ["fetch"], "when": "$steps.fetch.ok", "fallback": false},
        ],
        "output": "$steps.send.ok",
    })
}

#[test]
fn every_dialect_has_steps() {
    let mut untyped = block();
    untyped.as_object_mut().unwrap().remove("type");
    for definition in [
        json!({"name": "t", "description": "d", "implementation": block()}),
        json!({"name": "t", "description": "d", "type": "steps", "impl": untyped}),
        json!({"slug": "t", "name": "T", "description": "d", "implementation_type": "steps", "implementation_config": untyped}),
        json!({"slug": "t", "name": "T", "description": "d", "implementation_type": "custom", "implementation_config": block()}),
        json!({"slug": "t", "name": "T", "description": "d", "config_schema": {"implementation": block()}}),
    ] {
        let found = read_value(definition.clone(), &Defaults::default()).unwrap();
        assert_eq!(found.spec.implementation, expected(), "{definition}");
        assert_eq!(found.warnings, [], "{definition}");
    }
}

#[test]
fn other_spellings_mean_the_same() {
    let yaml = "\
name: t
description: d
implementation:
  type: steps
  steps:
    fetch:
      tool: web:weather
      arguments: {city: $args.city}
    send:
      tool: send_email
      needs: fetch
      if: $steps.fetch.ok
      onError: fallback
      fallback: false
  result: $steps.send.ok
";
    let found = read(yaml, FileForm::Yaml, &Defaults::default()).unwrap();
    assert_eq!(found.spec.implementation, expected());
    assert_eq!(found.warnings, []);
}

#[test]
fn mistakes_in_steps_name_the_field() {
    let steps = |step: Value| json!({"name": "t", "implementation": {"type": "steps", "steps": [step]}});
    for (definition, expected) in [
        (
            json!({"name": "t", "implementation": {"type": "steps"}}),
            "`implementation.steps`: missing required field; expected a list of steps, each with `id` and `tool`",
        ),
        (
            steps(json!({"tool": "x"})),
            "`implementation.steps[0].id`: missing required field; expected a name for the step, such as `fetch`",
        ),
        (
            steps(json!({"id": "a"})),
            "`implementation.steps[0].tool`: missing required field; expected the tool to call, such as `weather` or `bundle:weather`",
        ),
        (
            steps(json!({"id": "a", "tool": "x", "when": "args.y"})),
            "`implementation.steps[0].when`: expected a reference such as `$args.x` or `$steps.a.value`, or a JSON value, at `args.y`",
        ),
        (
            steps(json!({"id": "a", "tool": "x", "on_failure": "ignore"})),
            "`implementation.steps[0].on_failure`: unknown value `ignore`; expected one of `stop`, `continue`, `fallback`",
        ),
        (
            steps(json!({"id": "a", "tool": "x", "forEach_": ["$args.x"]})),
            "`implementation.steps[0].forEach_`: unknown field; did you mean `forEach`?",
        ),
    ] {
        assert_eq!(faults(definition), expected);
    }
}

#[test]
fn an_artifact_may_be_inline() {
    let expected = Implementation::Artifact(Artifact {
        runtime: Some(ArtifactRuntime::Python),
        source: Some("print(1)".to_owned()),
        inputs: vec![
            ArtifactInput { required: true, ..ArtifactInput::new("city", InputType::String) },
            ArtifactInput::new("days", InputType::Integer),
        ],
        ..Artifact::default()
    });
    let inputs =
        json!([{"name": "city", "type": "string", "required": true}, {"name": "days", "type": "integer"}]);
    for definition in [
        json!({"name": "t", "description": "d",
            "implementation": {"type": "artifact", "runtime": "python", "source": "print(1)", "inputs": inputs}}),
        json!({"slug": "t", "name": "T", "description": "d", "implementation_type": "artifact",
            "implementation_config": {"runtime": "python", "code": "print(1)", "inputs":
                {"city": {"type": "string", "required": true}, "days": "integer"}}}),
    ] {
        let found = read_value(definition.clone(), &Defaults::default()).unwrap();
        assert_eq!(found.spec.implementation, expected, "{definition}");
        assert_eq!(crate::check::definition(&found.spec).errors, [], "{definition}");
    }
}

#[test]
fn artifacts_are_checked() {
    for (implementation, expected) in [
        (json!({"artifact_id": "a", "source": "x", "runtime": "bash"}), "implementation.source"),
        (json!({"source": "x"}), "implementation.runtime"),
        (json!({"source": "x", "runtime": "bash", "artifact_version": 2}), "implementation.artifact_version"),
        (json!({"artifact_id": "a", "inputs": [{"name": "x"}]}), "implementation.inputs"),
        (
            json!({"source": "x", "runtime": "bash", "inputs": [{"name": "1x"}]}),
            "implementation.inputs.0.name",
        ),
    ] {
        let mut block = implementation;
        block.as_object_mut().unwrap().insert("type".to_owned(), json!("artifact"));
        let definition =
            json!({"name": "weather-report", "description": "Weather of a city", "implementation": block});
        let spec = read_value(definition, &Defaults::default()).unwrap().spec;
        let fields: Vec<String> =
            crate::check::definition(&spec).errors.into_iter().map(|p| p.field).collect();
        assert_eq!(fields, [expected]);
    }
}
