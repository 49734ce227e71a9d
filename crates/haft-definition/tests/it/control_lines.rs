//! Control lines, all the way from the text of a YAML definition to the body of a request.

use std::collections::BTreeMap;

use haft_core::catalog::FileForm;
use haft_core::implementation::Implementation;
use haft_definition::dialect::{Defaults, read};
use haft_template::{Scope, ValueTemplate, Values};
use serde_json::{Map, Value, json};

const DEFINITION: &str = r#"
name: search_catalogue
description: Searches the catalogue
params:
  - {name: query, type: string, required: true}
  - {name: advanced_mode, type: boolean}
  - {name: tags, type: array}
implementation:
  type: http
  method: POST
  url: https://api.example.com/search
  body:
    query: "{{query}}"
    {{if advanced_mode}}
    options:
      detailed: true
    {{else}}
    simple: true
    {{end}}
    filters:
      - public
      {{if tags}}
      - "{{tags}}"
      {{end}}
    {{if advanced_mode}}
    trace: 1
    {{end}}
"#;

fn body(args: Value) -> Value {
    let Value::Object(args) = args else { return Value::Null };
    let spec = read(DEFINITION, FileForm::Yaml, &Defaults::default()).map(|reading| reading.spec);
    let Ok(spec) = spec else { return json!(format!("{spec:?}")) };
    let Implementation::Http(http) = &spec.implementation else { return Value::Null };
    let template = http.request.body.clone().unwrap_or_default();
    let template =
        ValueTemplate::parse(http.templates, &template, &Scope::from_schema(&spec.input_schema.value()));
    let values = Values { args: &args, steps: &Map::new(), secrets: &BTreeMap::new(), version: "1.0.0" };
    match template.map(|template| template.render(&values)) {
        Ok(Ok((Some(value), _))) => value,
        other => json!(format!("{other:?}")),
    }
}

#[test]
fn conditions_select_what_is_sent() {
    assert_eq!(
        body(json!({ "query": "q", "advanced_mode": true, "tags": ["a"] })),
        json!({ "query": "q", "options": { "detailed": true }, "filters": ["public", ["a"]], "trace": 1 })
    );
    assert_eq!(body(json!({ "query": "q" })), json!({ "query": "q", "simple": true, "filters": ["public"] }));
}
