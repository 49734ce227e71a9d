use serde_json::{Value, json};

use crate::dialect::test_support::body;
use crate::dialect::{Defaults, Dialect, read_value};
use haft_core::catalog::FileForm;
use haft_core::tool::Status;

fn implementation(kind: &str, config: &Value) -> Value {
    let reading = body(json!({ "slug": "t", "implementation_type": kind, "implementation_config": config }));
    assert_eq!(reading.warnings, []);
    serde_json::to_value(&reading.spec.implementation).unwrap()
}

fn faults(request: Value) -> String {
    let problems = read_value(request, &Defaults::default()).unwrap_err();
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_type_of_the_document() {
    for (kind, config, expected) in [
        ("internal", json!({ "function_name": "f" }), json!({ "type": "function", "function": "f" })),
        ("function", json!({ "function_name": "f" }), json!({ "type": "function", "function": "f" })),
        (
            "http",
            json!({ "type": "http", "method": "GET", "url": "https://a.example", "headers": { "A": "b", "N": 1 } }),
            json!({ "type": "http", "method": "GET", "url": "https://a.example", "headers": { "A": "b", "N": "1" } }),
        ),
        (
            "mcp",
            json!({ "server_url": "https://m.example", "tool_name": "t", "headers": { "A": "b" } }),
            json!({ "type": "mcp", "server_url": "https://m.example", "tool_name": "t", "headers": { "A": "b" } }),
        ),
        (
            "agent_call",
            json!({ "target_agent_slug": "helper" }),
            json!({ "type": "agent_call", "target_agent_slug": "helper" }),
        ),
        (
            "artifact",
            json!({ "artifact_id": "a", "artifact_version": "2", "theme": "dark" }),
            json!({ "type": "artifact", "artifact_id": "a", "artifact_version": "2", "config": { "theme": "dark" } }),
        ),
        (
            "rag_retrieval",
            json!({ "pipeline_id": "p", "top_k": 5 }),
            json!({ "type": "rag_retrieval", "pipeline_id": "p", "config": { "top_k": 5 } }),
        ),
        ("custom", json!({ "type": "exec", "command": "ls" }), json!({ "type": "exec", "command": "ls" })),
    ] {
        assert_eq!(implementation(kind, &config), expected, "{kind}");
    }
}

#[test]
fn the_stored_form_is_read_too() {
    let reading = body(json!({
        "id": "1", "tenant_id": null, "name": "Web Search!", "slug": "web_search", "description": "Searches",
        "scope": "tenant", "status": "draft", "version": "1.0.0", "is_active": false, "is_system": false,
        "schema": { "input": { "type": "object" }, "output": { "type": "string" } },
        "config_schema": {
            "implementation": { "type": "http", "url": "https://a.example" },
            "execution": { "is_pure": true, "concurrency_group": "net", "max_concurrency": 4, "timeout_s": 20 }
        },
        "builtin_template_id": null, "is_builtin_template": false, "published_at": null
    }));
    assert_eq!(reading.warnings, []);
    assert_eq!((reading.dialect, reading.form), (Dialect::Registry, FileForm::Json));
    assert_eq!((reading.enabled, reading.status), (Some(false), Some(Status::Draft)));
    assert_eq!(reading.scope.as_deref(), Some("tenant"));
    let spec = reading.spec;
    assert_eq!((spec.name.as_str(), spec.display_name.as_str()), ("web_search", "Web Search!"));
    assert_eq!(spec.input_schema, json!({ "type": "object" }));
    assert_eq!(spec.output_schema, json!({ "type": "string" }));
    assert_eq!(
        (spec.execution.is_pure, spec.execution.concurrency_group.as_str(), spec.execution.max_concurrency),
        (true, "net", 4)
    );
    assert_eq!(spec.execution.timeout_ms, Some(20_000));
}

#[test]
fn a_name_without_slug_is_the_tool_name() {
    let spec = body(json!({ "name": "search", "slug": "search-web", "implementation_type": "function",
        "implementation_config": { "function_name": "f" } }))
    .spec;
    assert_eq!((spec.name.as_str(), spec.display_name.as_str()), ("search-web", "search"));
    let spec = body(json!({ "name": "search_web", "implementation_type": "function",
        "implementation_config": { "function_name": "f" } }))
    .spec;
    assert_eq!((spec.name.as_str(), spec.display_name.as_str()), ("search_web", ""));
    insta::assert_snapshot!(faults(json!({ "name": "Search the web", "implementation_type": "function",
        "implementation_config": { "function_name": "f" } })), @"`name`: tool name `Search the web` contains ' '; allowed: letters, digits, `-` and `_`; keep it as the `display_name`, or add a `slug`");
}

#[test]
fn the_outer_type_wins() {
    let spec = body(json!({ "slug": "t", "implementation_type": "function",
        "implementation_config": { "type": "http", "function_name": "f" } }))
    .spec;
    assert_eq!(spec.implementation.kind().as_str(), "function");
    let spec =
        body(json!({ "slug": "t", "implementation_config": { "type": "function", "function_name": "f" } }))
            .spec;
    assert_eq!(spec.implementation.kind().as_str(), "function");
    let spec = body(json!({ "slug": "t", "artifact_id": "a", "config_schema": {} })).spec;
    assert_eq!(spec.implementation.kind().as_str(), "artifact");
}

#[test]
fn a_retrieval_tool_always_has_a_query() {
    for (schema, expected) in [
        (
            json!({}),
            json!({ "type": "object", "properties": { "query": { "type": "string", "description": "What to look for" } }, "required": ["query"] }),
        ),
        (
            json!({ "type": "object", "properties": { "query": { "type": "string", "minLength": 3 }, "k": {} }, "required": ["k"] }),
            json!({ "type": "object", "properties": { "query": { "type": "string", "minLength": 3 }, "k": {} }, "required": ["k", "query"] }),
        ),
    ] {
        let spec = body(json!({ "slug": "t", "implementation_type": "rag_retrieval", "input_schema": schema,
            "implementation_config": { "pipeline_id": "p" } }))
        .spec;
        assert_eq!(spec.input_schema, expected);
    }
}

#[test]
fn missing_fields_are_reported() {
    let kinds = ["function", "mcp", "rag_retrieval", "agent_call", "artifact", "http", "custom", "teleport"];
    let all =
        kinds.map(|kind| faults(json!({ "slug": "t", "implementation_type": kind, "config_schema": {} })));
    insta::assert_snapshot!(all.join("\n"), @r"
`implementation_config.function`: missing required field; expected the name of a registered function
`implementation_config.server_url`: missing required field; expected the URL of the MCP server
`implementation_config.tool_name`: missing required field; expected the name of the tool on that server
`implementation_config.pipeline_id`: missing required field; expected the id of the retrieval pipeline
`implementation_config.target_agent_slug`: missing required field; expected the agent, by `target_agent_slug` or `target_agent_id`
`implementation_config.artifact_id`: missing required field; expected the id of a stored artifact, or `source` with inline code
`implementation_config.url`: missing required field; expected a URL that starts with `http://` or `https://`
`implementation_type`: `custom` is not an implementation; set `type` in `implementation_config`
`implementation_type`: unknown implementation type `teleport`; expected one of `internal`, `http`, `rag_retrieval`, `agent_call`, `function`, `custom`, `artifact`, `mcp`, `steps`
");
    insta::assert_snapshot!(faults(json!({ "slug": "t", "implementation_config": {} })), @r"`implementation_type`: missing required field; expected one of internal, http, rag_retrieval, agent_call, function, custom, artifact, mcp, steps");
    insta::assert_snapshot!(faults(json!({ "slug": "t", "implementation_type": "http",
        "implementation_config": { "url": "https://a.example" }, "status": "live", "schema": { "input": 3 },
        "execution_config": { "timeout_s": "long", "max_concurrency": -1 } })), @r"
`schema.input`: expected a JSON Schema (a map), found a number
`execution_config.max_concurrency`: expected a number of parallel calls, found -1
`execution_config.timeout_s`: expected a whole number of seconds, found a string
`status`: unknown value `live`; expected one of `draft`, `published`, `deprecated`, `disabled`
");
}
