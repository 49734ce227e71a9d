//! Errors of registering tools and building sets.

use haft::{BuildError, Format, Param, Params, ToolDef, Tools};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Greet, greet, named, of_function};

#[test]
fn a_name_can_be_used_once() {
    let tools = Tools::new();
    tools.register(greet()).unwrap();
    let expected = "cannot register tool `greet`: a tool with this name already exists; remove it first or choose another \
                    name";
    assert_eq!(tools.register(greet()).unwrap_err().to_string(), expected);
    assert_eq!(tools.register_function(greet()).unwrap_err().to_string(), expected);
    assert!(tools.remove("greet"));
    assert!(!tools.remove("greet"));
    tools.register_function(greet()).unwrap();
    assert_eq!(tools.register(greet()).unwrap_err().to_string(), expected);
    let twice = Tools::builder().tool(greet()).tool(greet()).build().unwrap_err();
    assert!(matches!(twice, BuildError::Tool(_)), "{twice}");
}

#[test]
fn an_invalid_name_is_rejected() {
    let tools = Tools::new();
    let error = tools.register(ToolDef::new("a b", |_: Value| async {}).description("x").pure()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot register tool `a b`: tool name `a b` contains ' '; allowed: letters, digits, `-` and `_`"
    );
}

#[tokio::test]
async fn a_schema_that_does_not_match_the_type_is_rejected() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema matters")]
    struct Nested {
        id: String,
        size: Option<u32>,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema matters")]
    struct Args {
        action: String,
        data: Nested,
    }
    let check = |params: Params, expected: &str| {
        let def = ToolDef::new("complex_tool", |_: Args| async {}).params(params);
        let message =
            Tools::new().register(def).map_err(|error| error.kind.to_string()).err().unwrap_or_default();
        assert_eq!(message, expected);
    };
    let data = |id: Param| Param::object(Params::new().with("id", id)).required();
    let action = || Param::string().required().one_of(["create", "update", "delete"]);
    let id = || Param::string().required();
    check(Params::new().with("action", action()).with("data", data(id())), "");
    check(
        Params::new().with("action", Param::integer().required()).with("data", data(id())),
        "`input_schema.action`: the schema allows `integer`, but the function takes `string`",
    );
    let missing = "the function requires this field; make it required in the schema, give it a default, or make the \
                   field an `Option`";
    check(
        Params::new().with("action", Param::string()).with("data", data(Param::string())),
        &format!("`input_schema.action`: {missing}; `input_schema.data.id`: {missing}"),
    );
    check(Params::new().with("data", data(id())), &format!("`input_schema.action`: {missing}"));
}

#[tokio::test]
async fn a_default_of_the_schema_reaches_the_function() {
    let tools = Tools::new();
    let def = ToolDef::new("greet", |args: Greet| async move { args.name })
        .params(Params::new().with("name", Param::string().default("you")));
    tools.register(def).unwrap();
    assert_eq!(tools.execute("greet", ()).await.unwrap(), "you");
    assert_eq!(tools.execute("greet", json!({"name": "Ada"})).await.unwrap(), "Ada");
}

#[tokio::test]
async fn definitions_become_ready_with_their_function() {
    let tools = Tools::new();
    tools.load_text(haft::FileForm::Yaml, &of_function("first", "work")).unwrap();
    let not_ready = tools.not_ready().remove(0).to_string();
    assert_eq!(
        not_ready,
        "`first` is not ready: `implementation.function`: function `work` is not registered in this program"
    );
    assert_eq!(tools.execute("first", ()).await.unwrap_err().code, haft::ErrorCode::NotReady);

    tools.register_function(ToolDef::new("work", |_: Value| async { 1 })).unwrap();
    assert_eq!(tools.execute("first", ()).await.unwrap(), 1);
    tools.load_text(haft::FileForm::Yaml, &of_function("second", "work")).unwrap();
    assert_eq!(tools.execute("second", ()).await.unwrap(), 1);

    assert!(tools.remove("work"));
    assert!(!tools.is_ready("first") && !tools.is_ready("second"));
    assert_eq!(tools.execute("first", ()).await.unwrap_err().code, haft::ErrorCode::NotReady);

    tools.register(ToolDef::new("work", |_: Value| async { 2 })).unwrap();
    assert_eq!(tools.not_ready(), []);
    for name in ["first", "second", "work"] {
        assert_eq!(tools.execute(name, ()).await.unwrap(), 2, "{name}");
    }
}

#[tokio::test]
async fn a_definition_may_have_the_name_of_its_function() {
    let tools = Tools::new();
    tools.load_text(haft::FileForm::Yaml, &of_function("same", "same")).unwrap();
    assert!(!tools.is_ready("same"));
    tools.register_function(ToolDef::new("same", |_: Value| async { 7 })).unwrap();
    assert_eq!(tools.execute("same", ()).await.unwrap(), 7);
}

#[test]
fn invalid_settings_are_rejected() {
    let build = |builder: haft::Builder| builder.build().map(|_| ()).unwrap_err().to_string();
    assert_eq!(build(Tools::builder().max_running_calls(0)), "`max_running_calls` must be at least 1");
    assert_eq!(build(Tools::builder().max_value_bytes(0)), "`max_value_bytes` must be at least 1");
    assert_eq!(
        build(Tools::builder().sandbox("/nowhere/at/all")),
        "cannot use `/nowhere/at/all` as sandbox `workspace`: No such file or directory (os error 2)"
    );
    assert_eq!(build(Tools::builder().read_only("x")), "read-only sandbox `x` does not exist");
    assert!(build(Tools::builder().private_hosts(["http://x/"])).contains("private_hosts"));
}

#[tokio::test]
async fn limits_apply() {
    let tools = Tools::builder()
        .max_value_bytes(10)
        .tool(ToolDef::new("long", |_: Value| async { "x".repeat(100) }))
        .build()
        .unwrap();
    let error = tools.execute("long", ()).await.unwrap_err();
    assert_eq!(error.code, haft::ErrorCode::TooLarge);

    let tools = named(&["a"]);
    assert_eq!(format!("{tools:?}"), r#"Tools { names: ["a"], .. }"#);
    let tools = Tools::builder().deny_elevated().tool(greet().elevated()).build().unwrap();
    assert_eq!(
        tools.schema(Format::OpenAi),
        Vec::<Value>::new(),
        "tools that cannot be called are not listed"
    );
    let error = tools.execute("greet", json!({"name": "x"})).await.unwrap_err();
    assert_eq!(error.code, haft::ErrorCode::ApprovalRequired);
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
enum Change {
    Add { text: String, note: Option<String> },
    Remove { number: usize },
}

#[tokio::test]
async fn arguments_of_a_strict_enum_schema_are_accepted() {
    let change = ToolDef::new("change", |change: Change| async move {
        match change {
            Change::Add { text, note } => format!("+{text}{}", note.unwrap_or_default()),
            Change::Remove { number } => format!("-{number}"),
        }
    });
    let tools = Tools::builder().tool(change).build().unwrap();
    for (args, expected) in [
        (json!({"action": "add", "text": "x", "note": null, "number": null}), "+x"),
        (json!({"action": "add", "text": "x", "note": "y", "number": null}), "+xy"),
        (json!({"action": "remove", "text": null, "note": null, "number": 7}), "-7"),
        (json!({"action": "remove", "number": 7}), "-7"),
    ] {
        assert_eq!(tools.execute("change", &args).await.unwrap(), expected, "{args}");
    }
    let error =
        tools.execute("change", json!({"action": "remove", "text": "x", "number": 7})).await.unwrap_err();
    assert_eq!(error.code, haft::ErrorCode::InvalidArguments);
}

#[tokio::test]
async fn newtypes_options_and_units_are_accepted() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Query {
        q: String,
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Wrapped(Query);
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing;
    let tools = haft::Tools::new();
    tools.register(haft::ToolDef::new("wrapped", |args: Wrapped| async move { args.0.q })).unwrap();
    tools
        .register(haft::ToolDef::new("some", |args: Option<Query>| async move { args.map(|a| a.q) }))
        .unwrap();
    tools.register(haft::ToolDef::new("none", |(): ()| async { 1 })).unwrap();
    tools.register(haft::ToolDef::new("unit", |_: Nothing| async { 2 })).unwrap();
    for (name, args, expected) in [
        ("wrapped", serde_json::json!({"q": "x"}), serde_json::json!("x")),
        ("some", serde_json::json!({"q": "x"}), serde_json::json!("x")),
        ("none", serde_json::json!({}), serde_json::json!(1)),
        ("unit", serde_json::json!({}), serde_json::json!(2)),
    ] {
        assert_eq!(tools.execute(name, args).await, Ok(expected), "{name}");
    }
}
