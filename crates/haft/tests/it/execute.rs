//! Registering functions and calling them.

use haft::{Param, Params, ToolDef, Tools};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet
    name: String,
}

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

#[tokio::test]
async fn a_function_is_called_with_checked_arguments() {
    let tools = Tools::new();
    tools
        .register(ToolDef::new("greet", |args: Greet| async move { format!("Hello, {}!", args.name) }))
        .unwrap();
    let value = tools.execute("greet", object(json!({"name": "Ada"}))).await.unwrap();
    assert_eq!(value, "Hello, Ada!");
    let error = tools.execute("greet", object(json!({"name": 7}))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid_arguments: the arguments do not fit the schema: /name: 7 is not of type \"string\""
    );
}

#[tokio::test]
async fn a_schema_said_by_hand_that_is_wider_than_the_type_is_told_by_the_field() {
    let tools = Tools::new();
    let def = ToolDef::blocking("greet", |args: Greet| args.name)
        .params(Params::new().with("name", Param::integer().required()));
    tools.register(def).unwrap();
    let error = tools.execute("greet", object(json!({"name": 7}))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid_arguments: the arguments do not fit the function: `name`: invalid type: integer `7`, expected a string"
    );
}
