use serde_json::json;

use crate::dialect::test_support::{findings, good};
use crate::dialect::{Defaults, Dialect, read, write};
use haft_core::catalog::FileForm::{Json, Yaml};
use haft_core::implementation::Implementation;

/// The document's file, to the letter.
const SLACK: &str = r#"# tools/definitions/send_slack.yaml
name: send_slack
description: Send a message to a Slack channel
params:
  - name: channel
    type: string
    description: Channel name (without #)
    required: true
  - name: message
    type: string
    description: Message to send
    required: true
implementation:
  type: http
  method: POST
  url: https://slack.com/api/chat.postMessage
  headers:
    Authorization: Bearer ${SLACK_BOT_TOKEN}
    Content-Type: application/json
  body:
    channel: "{{channel}}"
    text: "{{message}}"
"#;

/// An implementation of the document, with what every definition needs around it.
fn with(implementation: &str) -> String {
    format!("name: t\ndescription: d\nparams: []\n{implementation}")
}

fn implementation(block: &str) -> serde_json::Value {
    let spec = good(&with(block), Yaml).spec;
    json!({ "implementation": spec.implementation, "execution": spec.execution.timeout_ms, "retry": spec.execution.retry })
}

#[test]
fn the_slack_example_of_the_document() {
    let reading = read(SLACK, Yaml, &Defaults::default()).unwrap();
    // The document's own description is cut short by a comment.
    insta::assert_snapshot!(findings(SLACK, Yaml), @r"line 7, column 40: a `#` after a space starts a comment, which ends the value; quote the value to keep the `#`");
    assert_eq!((reading.dialect, reading.form), (Dialect::Definition, Yaml));
    insta::assert_json_snapshot!(serde_json::to_value(&reading.spec).unwrap(), @r#"
{
  "name": "send_slack",
  "version": "1.0.0",
  "description": "Send a message to a Slack channel",
  "implementation": {
    "type": "http",
    "method": "POST",
    "url": "https://slack.com/api/chat.postMessage",
    "headers": {
      "Authorization": "Bearer ${SLACK_BOT_TOKEN}",
      "Content-Type": "application/json"
    },
    "body": {
      "channel": "{{channel}}",
      "text": "{{message}}"
    },
    "templates": "braces"
  },
  "input_schema": {
    "type": "object",
    "properties": {
      "channel": {
        "type": "string",
        "description": "Channel name (without"
      },
      "message": {
        "type": "string",
        "description": "Message to send"
      }
    },
    "required": [
      "channel",
      "message"
    ]
  }
}
"#);
    // All but the comments is written back as it was. (` #)` is a comment too: YAML has it so.)
    let without_comments = SLACK.split_once('\n').unwrap().1.replace(" #)", "");
    assert_eq!(write(&reading.spec, Yaml, None), without_comments);
}

#[test]
fn the_structure_of_the_document() {
    let text = r"
name: tool_name                    # Required: unique identifier
description: What this tool does   # Required: shown to LLM
params:                            # Required: input parameters
  - name: param1
    type: string                   # string, integer, number, boolean, array, object
    description: What this param is
    required: true
  - name: param2
    type: integer
    default: 10
implementation:                    # Required: how to execute
  type: http                       # http, exec, file_read, file_write, builtin
  url: https://a.example
";
    assert_eq!(
        good(text, Yaml).spec.input_schema,
        json!({
            "type": "object",
            "properties": {
                "param1": { "type": "string", "description": "What this param is" },
                "param2": { "type": "integer", "default": 10 }
            },
            "required": ["param1"]
        })
    );
}

#[test]
fn the_implementations_of_the_document() {
    insta::assert_compact_json_snapshot!(implementation(r#"implementation:
  type: http
  method: POST                     # GET, POST, PUT, DELETE, PATCH
  url: https://api.example.com/endpoint
  headers:
    Authorization: Bearer ${API_KEY}
    Content-Type: application/json
  query:                           # URL query parameters
    format: json
  body:                            # Request body (for POST/PUT/PATCH)
    field1: "{{param1}}"
    field2: "{{param2}}"
  timeout: 30s                     # Request timeout
  retry:
    attempts: 3
    backoff: 1s
"#), @r#"
{
  "implementation": {
    "type": "http",
    "method": "POST",
    "url": "https://api.example.com/endpoint",
    "query": {
      "format": "json"
    },
    "headers": {
      "Authorization": "Bearer ${API_KEY}",
      "Content-Type": "application/json"
    },
    "body": {
      "field1": "{{param1}}",
      "field2": "{{param2}}"
    },
    "timeout_ms": 30000,
    "templates": "braces"
  },
  "execution": null,
  "retry": {
    "attempts": 3,
    "backoff_ms": 1000
  }
}
"#);
}

#[test]
fn the_other_implementations_of_the_document() {
    insta::assert_compact_json_snapshot!(implementation(r#"implementation:
  type: exec
  command: "curl -s '{{url}}' | jq '{{filter}}'"
  timeout: 60s
  env:
    PATH: /usr/local/bin:/usr/bin
"#), @r#"
{
  "implementation": {
    "type": "exec",
    "command": "curl -s '{{url}}' | jq '{{filter}}'",
    "env": {
      "PATH": "/usr/local/bin:/usr/bin"
    }
  },
  "execution": 60000,
  "retry": null
}
"#);
    insta::assert_compact_json_snapshot!(implementation(r#"implementation:
  type: file_read
  path: "{{path}}"
  encoding: utf-8                  # utf-8, base64, binary
"#), @r#"{"implementation": {"type": "file_read", "path": "{{path}}", "encoding": "utf-8"}, "execution": null, "retry": null}"#);
    insta::assert_compact_json_snapshot!(implementation(r#"implementation:
  type: file_write
  path: "{{path}}"
  content: "{{content}}"
  mode: 0644
  mkdir: true                      # Create parent directories
"#), @r#"
{
  "implementation": {
    "type": "file_write",
    "path": "{{path}}",
    "content": "{{content}}",
    "encoding": "utf-8",
    "mode": 420,
    "mkdir": true
  },
  "execution": null,
  "retry": null
}
"#);
    insta::assert_compact_json_snapshot!(implementation(r"implementation:
  type: builtin
  function: myCustomFunction       # Must be registered in Tools
"), @r#"{"implementation": {"type": "function", "function": "myCustomFunction"}, "execution": null, "retry": null}"#);
}

#[test]
fn permission_bits_are_octal() {
    for (spelled, bits) in [
        ("0644", 0o644),
        ("\"0644\"", 0o644),
        ("\"644\"", 0o644),
        ("0o755", 0o755),
        ("420", 0o644),
        ("0", 0),
        ("0600", 0o600),
    ] {
        let block = format!("implementation: {{type: file_write, path: p, content: c, mode: {spelled}}}\n");
        let Implementation::FileWrite(file) = good(&with(&block), Yaml).spec.implementation else { panic!() };
        assert_eq!(file.mode, Some(bits), "{spelled}");
    }
    for spelled in ["644", "rw", "0999", "-1"] {
        let block = format!("implementation: {{type: file_write, path: p, content: c, mode: {spelled}}}\n");
        assert!(!findings(&with(&block), Yaml).is_empty(), "{spelled}");
    }
}

fn nested() -> haft_core::spec::ToolSpec {
    let text = with("").replace(
        "params: []\n",
        r"params:
  - name: action
    type: string
    description: Action to perform
    required: true
    enum: [create, update, delete]
  - name: data
    type: object
    description: Action payload
    properties:
      id: {type: string, required: true}
      name: {type: string}
  - name: rows
    type: array
    items:
      type: object
      properties:
        - {name: n, type: integer, required: true, minimum: 1}
implementation: {type: builtin, function: f}
",
    );
    good(&text, Yaml).spec
}

#[test]
fn nested_parameters() {
    insta::assert_json_snapshot!(nested().input_schema.value(), @r#"
{
  "type": "object",
  "properties": {
    "action": {
      "type": "string",
      "description": "Action to perform",
      "enum": [
        "create",
        "update",
        "delete"
      ]
    },
    "data": {
      "type": "object",
      "description": "Action payload",
      "properties": {
        "id": {
          "type": "string"
        },
        "name": {
          "type": "string"
        }
      },
      "required": [
        "id"
      ]
    },
    "rows": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "n": {
            "type": "integer",
            "minimum": 1
          }
        },
        "required": [
          "n"
        ]
      }
    }
  },
  "required": [
    "action"
  ]
}
"#);
}

#[test]
fn nested_parameters_are_written_as_a_list() {
    insta::assert_snapshot!(write(&nested(), Yaml, Some(false)), @r#"
name: t
description: d
params:
  - name: action
    type: string
    description: Action to perform
    required: true
    enum:
      - create
      - update
      - delete
  - name: data
    type: object
    description: Action payload
    properties:
      id:
        type: string
      name:
        type: string
    required:
      - id
  - name: rows
    type: array
    items:
      type: object
      properties:
        "n":
          type: integer
          minimum: 1
      required:
        - "n"
implementation:
  type: function
  function: f
enabled: false
"#);
}

#[test]
fn errors_have_position_and_fix() {
    insta::assert_snapshot!(findings(&with("implementation:\n  type: htpp\n  url: x\n"), Yaml), @r"line 5, column 3: `implementation.type`: unknown implementation type `htpp`; did you mean `http`?");
    insta::assert_snapshot!(findings(&with("implementation:\n  type: http\n  url: {{base}}/x\n"), Yaml), @r#"line 6, column 9: invalid YAML: expected a key, found a map or list; hint: quote `{{…}}`: `url: "{{base}}/x"`"#);
    insta::assert_snapshot!(findings(&with("implementation:\n\ttype: http\n"), Yaml), @r"line 5, column 2: invalid YAML: tabs disallowed within this context (block indentation); hint: the indentation contains a tab; use spaces");
    insta::assert_snapshot!(findings(&with("implementation:\n  type: http\n  url: https://a.example\n  body:\n    zip: 01234\n"), Yaml), @r"line 8, column 10: `implementation.body.zip`: `01234` is ambiguous: YAML 1.1 and YAML 1.2 read it as different numbers; quote it or remove the leading zeros");
    insta::assert_snapshot!(findings(&with("implementation:\n  type: http\n  url: https://a.example\n  timeout: soon\n  retry: {backof: 1s}\n"), Yaml), @r"
line 7, column 3: `implementation.timeout`: invalid duration `soon`; expected a value such as `500ms`, `30s`, `5m` or `1m30s`
line 8, column 3: `implementation.retry.attempts`: missing required field; expected the number of retries
line 8, column 11: `implementation.retry.backof`: unknown field, ignored; did you mean `backoff`?
");
    insta::assert_snapshot!(findings("name: t\nparams:\n  - type: string\n  - name: a\n    type: text\n  - name: a\n  - b\nimplementation: {type: builtin, function: f}\n", Yaml), @r"
    line 7, column 5: `params[3]`: expected a map, found a string
    line 3, column 5: `params[0].name`: missing required field; expected the name of the parameter
    line 5, column 5: `params[1].type`: unknown type `text`; did you mean `string`?
    line 6, column 5: `params[2].name`: duplicate parameter `a`; remove one of them
    ");
    insta::assert_snapshot!(findings("name: t\nparams: {a: string}\n", Yaml), @r"
    line 2, column 1: `params`: expected a list, found a map; write each parameter as a list item such as `- name: city`
    `implementation`: missing required field; expected a map with a `type`, such as `http`
    ");
    insta::assert_snapshot!(findings("name: t\ndescription: d\n", Yaml), @r"`implementation`: missing implementation: add `implementation` with a `type` such as `http`, `exec` or `script`, or `runtime` and `body` for a script");
    insta::assert_snapshot!(findings("- a\n", Yaml), @r"expected a map of keys such as `name`, found a list");
    insta::assert_snapshot!(findings("", Yaml), @r"expected a map of keys such as `name`, found null");
}

#[test]
fn a_request_body_may_have_this_form() {
    let reading = good(
        r#"{"name": "t", "params": [{"name": "a", "type": "string"}],
        "implementation": {"type": "http", "url": "https://a.example/{{a}}"}}"#,
        Json,
    );
    assert_eq!((reading.dialect, reading.form), (Dialect::Definition, Yaml));
    let Implementation::Http(http) = reading.spec.implementation else { panic!() };
    assert_eq!(http.templates, haft_core::implementation::Notation::Braces);
}
