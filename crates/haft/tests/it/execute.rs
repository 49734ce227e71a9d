//! Registering functions and calling them.

use haft::{ErrorCode, Failure, ToolDef, Tools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::greet;

#[tokio::test]
async fn a_function_is_called_with_validated_arguments() {
    let tools = Tools::new();
    tools.register(greet()).unwrap();
    assert_eq!(tools.execute("greet", json!({"name": "Ada"})).await.unwrap(), "Hello, Ada!");
    let error = tools.execute("greet", json!({"name": 7})).await.unwrap_err();
    assert_eq!(error.to_string(), "invalid_arguments: invalid arguments: /name: expected a string, got 7");
}

#[tokio::test]
async fn the_model_reads_the_error_of_a_function() {
    #[derive(Deserialize, JsonSchema)]
    struct Read {
        path: String,
    }
    let tools = Tools::new();
    tools
        .register(ToolDef::blocking("read_file", |args: Read| -> Result<String, Failure> {
            Ok(std::fs::read_to_string(args.path)?)
        }))
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.txt");
    std::fs::write(&path, "hello").unwrap();
    assert_eq!(tools.execute("read_file", json!({"path": path})).await.unwrap(), "hello");
    let error = tools.execute("read_file", json!({"path": "/nowhere"})).await.unwrap_err();
    assert_eq!(error.model_text(), "Tool call failed: No such file or directory (os error 2)");
    assert_eq!(error.code, ErrorCode::ExecutionFailed);
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct SearchParams {
    /// The search query
    query: String,
    /// Max results
    #[serde(default = "ten")]
    limit: u32,
}

fn ten() -> u32 {
    10
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Hit {
    title: String,
}

fn search() -> ToolDef {
    ToolDef::new("search", |args: SearchParams| async move {
        (0..args.limit.min(2))
            .map(|n| Hit { title: format!("{} {n} of {}", args.query, args.limit) })
            .collect::<Vec<_>>()
    })
    .description("Searches")
}

#[tokio::test]
async fn struct_parameters_have_descriptions_and_defaults() {
    let tools = Tools::builder().tool(search()).build().unwrap();
    insta::assert_json_snapshot!(tools.schema(haft::Format::OpenAi), @r#"
    [
      {
        "type": "function",
        "function": {
          "name": "search",
          "description": "Searches",
          "parameters": {
            "type": "object",
            "properties": {
              "query": {
                "type": "string",
                "description": "The search query"
              },
              "limit": {
                "type": "integer",
                "default": 10,
                "minimum": 0,
                "description": "Max results"
              }
            },
            "required": [
              "query"
            ]
          }
        }
      }
    ]
    "#);
    let hits: Vec<Hit> =
        tools.execute_as("search", SearchParams { query: "x".into(), limit: 1 }).await.unwrap();
    assert_eq!(hits, [Hit { title: "x 0 of 1".into() }]);
    let hits = tools.execute("search", json!({"query": "x"})).await.unwrap();
    assert_eq!(hits[1], json!({"title": "x 1 of 10"}));
}

#[tokio::test]
async fn arguments_are_anything_that_is_an_object() {
    let tools = Tools::new();
    tools.register(ToolDef::new("echo", |args: Value| async { args })).unwrap();
    let map = serde_json::Map::from_iter([("a".to_owned(), json!(1))]);
    assert_eq!(tools.execute("echo", map).await.unwrap(), json!({"a": 1}));
    assert_eq!(
        tools.execute("echo", std::collections::BTreeMap::from([("b", 2)])).await.unwrap(),
        json!({"b": 2})
    );
    assert_eq!(tools.execute("echo", ()).await.unwrap(), json!({}));
    for (args, kind) in [(json!("x"), "a string"), (json!([1]), "an array"), (json!(true), "a boolean")] {
        let error = tools.execute("echo", args).await.unwrap_err();
        let expected = format!(
            "invalid_arguments: arguments must be a JSON object such as `{{\"name\": \"value\"}}`, got {kind}"
        );
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test]
async fn a_value_of_an_unexpected_type_is_reported_by_its_path() {
    let tools = Tools::new();
    tools.register(ToolDef::new("hit", |_: Value| async { json!([{"title": 7}]) })).unwrap();
    let error = tools.execute_as::<Vec<Hit>>("hit", ()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid_output: the value does not match the expected type: `[0].title`: invalid type: integer `7`, expected a string"
    );
}

#[tokio::test]
async fn a_deserialization_error_names_the_field() {
    #[derive(Deserialize, JsonSchema)]
    struct Typed {
        #[schemars(with = "String")]
        #[expect(dead_code, reason = "only read")]
        address: std::net::IpAddr,
    }
    let tools = Tools::new();
    tools.register(ToolDef::new("ping", |_: Typed| async {})).unwrap();
    let error = tools.execute("ping", json!({"address": "x"})).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid_arguments: invalid arguments: `address`: invalid IP address syntax"
    );
}

#[tokio::test]
async fn a_panic_is_an_outcome_and_the_next_call_runs() {
    let tools = Tools::new();
    let panics = |args: Value| async move {
        assert!(args["ok"] == true, "internal detail");
        "fine"
    };
    tools.register(ToolDef::new("risky", panics)).unwrap();
    tools
        .register(ToolDef::blocking("risky_blocking", |_: Value| -> String { panic!("internal detail") }))
        .unwrap();
    for name in ["risky", "risky_blocking"] {
        let error = tools.execute(name, json!({})).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Panicked);
        assert_eq!(error.model_text(), "Tool call failed: the tool failed unexpectedly");
    }
    assert_eq!(tools.execute("risky", json!({"ok": true})).await.unwrap(), "fine");
}

#[tokio::test]
async fn a_retryable_error_is_retried() {
    let tools = Tools::new();
    let tries = std::sync::atomic::AtomicU32::new(0);
    let def = ToolDef::new("flaky", move |_: Value| {
        let number = tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move { if number < 2 { Err(Failure::new("not yet").retryable()) } else { Ok(number) } }
    });
    tools.register(def.retry(3, std::time::Duration::from_millis(1))).unwrap();
    assert_eq!(tools.execute("flaky", ()).await.unwrap(), 2);
}

#[tokio::test]
async fn an_unknown_tool_suggests_a_similar_name() {
    let tools = Tools::new();
    tools.register(greet()).unwrap();
    for (name, expected) in [
        ("gret", "Tool call failed: tool `gret` not found; did you mean `greet`?"),
        ("weather", "Tool call failed: tool `weather` not found"),
        ("../etc", "Tool call failed: tool `../etc` not found"),
    ] {
        assert_eq!(tools.execute(name, ()).await.unwrap_err().model_text(), expected);
    }
}

#[tokio::test]
async fn an_f32_keeps_its_short_form() {
    #[derive(Serialize)]
    struct Measured {
        narrow: f32,
        wide: f64,
        list: Vec<f32>,
    }
    let tools = Tools::new();
    let measured = || Measured { narrow: 0.1, wide: f64::from(0.1_f32), list: vec![1.5, 2.3] };
    tools.register(ToolDef::new("one", |_: Value| async { 0.1_f32 })).unwrap();
    tools.register(ToolDef::new("wide", |_: Value| async { 0.1_f64 })).unwrap();
    tools.register(ToolDef::new("all", move |_: Value| async move { haft::Json(measured()) })).unwrap();
    assert_eq!(tools.execute("one", ()).await.unwrap().to_string(), "0.1");
    assert_eq!(tools.execute("wide", ()).await.unwrap().to_string(), "0.1");
    assert_eq!(
        tools.execute("all", ()).await.unwrap().to_string(),
        r#"{"narrow":0.1,"wide":0.10000000149011612,"list":[1.5,2.3]}"#
    );
}

#[tokio::test]
async fn errors_for_the_model_name_the_tool() {
    let text = |name: &str, more: &str| {
        format!(
            "name: {name}\ndescription: d\nparams: []\nimplementation: {{type: builtin, function: f}}\n{more}"
        )
    };
    let tools = Tools::new();
    for (name, more) in [
        ("off", "enabled: false\n"),
        ("gone", ""),
        ("denied", "policy: deny\n"),
        ("rare", "execution: {rate_limit: {calls: 1, per: 1h}}\n"),
    ] {
        tools.load_text(haft::FileForm::Yaml, &text(name, more)).unwrap();
    }
    let model_text = async |name: &str| tools.execute(name, ()).await.unwrap_err().model_text();
    assert_eq!(model_text("gone").await, "Tool call failed: `gone` is not ready");
    tools.register_function(ToolDef::new("f", |_: Value| async {})).unwrap();
    assert_eq!(model_text("off").await, "Tool call failed: `off` is disabled");
    assert_eq!(model_text("denied").await, "Tool call failed: calls of `denied` are denied by its policy");
    tools.execute("rare", ()).await.unwrap();
    let rare = model_text("rare").await;
    assert!(
        rare.starts_with("Tool call failed: rate limit exceeded for `rare`: 1 call per 1h; retry in "),
        "{rare}"
    );
}
