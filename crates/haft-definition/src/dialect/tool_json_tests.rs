use serde_json::json;

use crate::dialect::test_support::{body, canonical, findings, good};
use crate::dialect::{Dialect, write};
use haft_core::catalog::FileForm::{Json, Skill, Yaml};

/// The document's example; `{ ... }` stands for parts that it shows separately, or leaves out.
const EXAMPLE: &str = r#"{
    "schemaVersion" : "xyz",
    "bundleID"     : "018faf50-b7b6-7a01-9a05-a22a6e0af101",
    "slug"         : "weather",
    "version"      : "v2",
    "displayName"  : "Weather report",
    "description"  : "Fetch current weather for a city",
    "type"         : "http",
    "isEnabled"    : true,
    "isBuiltIn"    : false,
    "argSchema"    : { "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] },
    "outputSchema" : { "type": "string" },
    "impl"         : {
  "method": "GET",
  "urlTemplate": "https://api.weatherapi.com/v1/current.json?q=${city}&key=${WEATHER_API_KEY}",
  "headers": { "User-Agent": "MyApp/${version}" },
  "bodyTemplate": "",
  "successCodes": [200],
  "timeoutMs": 10000,
  "responseEncoding": "json",
  "extractExpr": "$.current.condition.text",
  "errorMode": "fail"
},
    "createdAt"    : "2024-05-14T13:44:00Z",
    "modifiedAt"   : "2024-06-01T09:17:10Z"
  }"#;

#[test]
fn the_example_of_the_document() {
    let reading = good(EXAMPLE, Json);
    assert_eq!(reading.dialect, Dialect::ToolJson);
    assert_eq!(reading.form, Json);
    assert_eq!(reading.enabled, Some(true));
    assert_eq!(reading.bundle.as_deref(), Some("018faf50-b7b6-7a01-9a05-a22a6e0af101"));
    insta::assert_snapshot!(canonical(EXAMPLE, Json), @r#"
{
  "name": "weather",
  "version": "v2",
  "display_name": "Weather report",
  "description": "Fetch current weather for a city",
  "implementation": {
    "type": "http",
    "method": "GET",
    "url": "https://api.weatherapi.com/v1/current.json?q=${city}&key=${WEATHER_API_KEY}",
    "headers": {
      "User-Agent": "MyApp/${version}"
    },
    "success_codes": [
      200
    ],
    "response": "json",
    "extract": "$.current.condition.text",
    "timeout_ms": 10000
  },
  "input_schema": {
    "type": "object",
    "properties": {
      "city": {
        "type": "string"
      }
    },
    "required": [
      "city"
    ]
  },
  "output_schema": {
    "type": "string"
  }
}
"#);
}

#[test]
fn the_example_in_other_forms() {
    let reading = good(EXAMPLE, Json);
    insta::assert_snapshot!(write(&reading.spec, Yaml, Some(true)), @r"
name: weather
version: v2
display_name: Weather report
description: Fetch current weather for a city
params:
  - name: city
    type: string
    required: true
output_schema:
  type: string
implementation:
  type: http
  method: GET
  url: https://api.weatherapi.com/v1/current.json?q=${city}&key=${WEATHER_API_KEY}
  headers:
    User-Agent: MyApp/${version}
  success_codes: [200]
  response: json
  extract: $.current.condition.text
  templates: dollar
  timeout: 10s
enabled: true
");
    insta::assert_snapshot!(write(&reading.spec, Skill, None), @r"
---
name: weather
version: v2
display_name: Weather report
description: Fetch current weather for a city
parameters:
  type: object
  properties:
    city:
      type: string
  required:
    - city
output_schema:
  type: string
implementation:
  type: http
  method: GET
  url: https://api.weatherapi.com/v1/current.json?q=${city}&key=${WEATHER_API_KEY}
  headers:
    User-Agent: MyApp/${version}
  success_codes: [200]
  response: json
  extract: $.current.condition.text
  timeout_ms: 10000
---
");
}

#[test]
fn a_go_function() {
    let reading = body(json!({
        "slug": "weather", "version": "v2", "type": "go", "tags": ["web"], "isEnabled": false,
        "argSchema": {}, "impl": { "goFunc": "github.com/acme/agent/tools.Weather" }
    }));
    assert_eq!(reading.enabled, Some(false));
    assert_eq!(
        serde_json::to_value(&reading.spec).unwrap(),
        json!({
            "name": "weather", "version": "v2", "description": "", "tags": ["web"], "input_schema": {},
            "implementation": { "type": "function", "function": "github.com/acme/agent/tools.Weather" }
        })
    );
}

#[test]
fn every_error_is_reported_with_its_position() {
    insta::assert_snapshot!(findings(r#"{
  "slug": "we/ather",
  "version": 1.5,
  "type": "htp",
  "argSchema": [],
  "isEnabled": "yes",
  "impl": { "urlTemplate": "https://a.example" }
}"#, Json), @r"
    line 2, column 3: `slug`: tool name `we/ather` contains '/'; allowed: letters, digits, `-` and `_`
    line 4, column 3: `type`: unknown implementation type `htp`; did you mean `http`?
    line 3, column 3: `version`: expected a string, found a number; quote it
    line 6, column 3: `isEnabled`: expected `true` or `false`, found a string
    ");
    insta::assert_snapshot!(findings(r#"{
  "slug": "weather", "type": "http", "argSchema": {},
  "impl": {
    "urlTemplate": "https://a.example",
    "url": "https://b.example",
    "successCodes": ["ok", 70000],
    "errorMode": "ignore",
    "timeoutMs": "soon",
    "headers": { "A": ["x"] }
  }
}"#, Json), @r"
    line 4, column 5: `impl.urlTemplate`: conflicts with `impl.url`; remove one of them
    line 9, column 18: `impl.headers.A`: expected a string, found a list
    line 6, column 22: `impl.successCodes[0]`: expected a status code such as 200
    line 6, column 28: `impl.successCodes[1]`: expected a status code such as 200
    line 8, column 5: `impl.timeoutMs`: expected a number of milliseconds, found a string
    line 7, column 5: `impl.errorMode`: unknown value `ignore`; expected one of `fail`, `empty`
    ");
    insta::assert_snapshot!(findings(r#"{"slug": "weather", "argSchema": {}}"#, Json), @r"
`type`: missing required field; expected `go` or `http`
`impl`: missing required field; expected a map with `goFunc`, or with `method` and `urlTemplate`
");
}

#[test]
fn unknown_fields_are_reported_with_a_suggestion() {
    insta::assert_snapshot!(findings(r#"{
  "slug": "weather", "type": "http", "dispalyName": "Weather", "argSchema": {}, "zzz": 1,
  "impl": { "urlTemplate": "https://a.example", "succesCodes": [200] }
}"#, Json), @r"
line 3, column 49: `impl.succesCodes`: unknown field, ignored; did you mean `successCodes`?
line 2, column 38: `dispalyName`: unknown field, ignored; did you mean `displayName`?
line 2, column 81: `zzz`: unknown field, ignored
");
}
