//! Functions with `#[tool]`, called as tools and as functions.
#![expect(
    clippy::unused_async,
    clippy::too_many_arguments,
    clippy::needless_pass_by_value,
    reason = "the functions cover every kind of parameter"
)]

use std::fmt;
use std::path::Path;
use std::time::Duration;

use haft::{Args, Context, ErrorCode, Failure, ToolDef, Tools, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Calls a tool in a set of its own.
async fn call(def: ToolDef, args: Value) -> Result<Value, haft::CallError> {
    let args: Map<String, Value> = serde_json::from_value(args).unwrap();
    let tools = Tools::new();
    let name = name(&def);
    tools.register(def).unwrap();
    tools.execute(&name, args).await
}

fn name(def: &ToolDef) -> String {
    def.name().to_owned()
}

async fn check(def: ToolDef, args: Value, expected: Value) {
    let name = name(&def);
    assert_eq!(call(def, args).await, Ok(expected), "{name}");
}

async fn check_error(def: ToolDef, args: Value, expected: &str) {
    let name = name(&def);
    let error = call(def, args).await.unwrap_err();
    assert_eq!(error.to_string(), expected, "{name}");
}

/// Greets someone
/// by name.
///
/// This is not for the model.
#[tool]
async fn greet(
    /// The person to greet
    name: String,
) -> String {
    format!("Hello, {name}!")
}

#[tokio::test]
async fn a_function_stays_a_function() {
    assert_eq!(greet("Ada".into()).await, "Hello, Ada!");
    check(greet::tool(), json!({"name": "Ada"}), json!("Hello, Ada!")).await;
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Kelvin,
}

/// Is not serializable.
#[derive(Debug, Deserialize, JsonSchema)]
struct Place {
    city: String,
    country: Option<String>,
}

/// Returns the temperature.
#[tool(
    name = "weather-check",
    pure,
    timeout = "1m30s",
    retry(attempts = 2, backoff = "10ms"),
    max_parallel = 4
)]
fn weather(
    /// Where
    place: &Place,
    #[arg(default = Unit::Celsius)] unit: Unit,
    #[arg(default = "short", one_of("short", "long"))] style: &str,
    #[arg(range = 1..=14, rename = "days-ahead")] days: Option<u8>,
    #[arg(default = Place { city: "x".into(), country: None })] other: &Place,
    r#type: Option<&str>,
) -> Value {
    json!([place.city, place.country, unit, style, days, other.city, r#type])
}

#[tokio::test]
async fn arguments_of_every_kind() {
    check(
        weather::tool(),
        json!({"place": {"city": "Oslo"}}),
        json!(["Oslo", null, "celsius", "short", null, "x", null]),
    )
    .await;
    check(
        weather::tool(),
        json!({"place": {"city": "Oslo", "country": "NO"}, "unit": "kelvin", "style": "long", "days-ahead": 3,
               "other": {"city": "y"}, "type": "t"}),
        json!(["Oslo", "NO", "kelvin", "long", 3, "y", "t"]),
    )
    .await;
}

#[tokio::test]
async fn invalid_arguments_are_rejected() {
    let place = json!({"city": "Oslo"});
    for (args, expected) in [
        (json!({}), "missing required property `place`"),
        (json!({"place": {}}), "/place: missing required property `city`"),
        (json!({"place": place, "days-ahead": 15}), "/days-ahead: 15 is greater than the maximum of 14"),
        (json!({"place": place, "style": "wide"}), "/style: \"wide\" is not one of \"short\" or \"long\""),
        (json!({"place": place, "wind": true}), "unknown property `wind`"),
    ] {
        let text = format!("invalid_arguments: invalid arguments: {expected}");
        check_error(weather::tool(), args, &text).await;
    }
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// The text to search for
    query: String,
    #[serde(default)]
    limit: u32,
}

/// Finds pages.
#[tool]
async fn web_search(context: &Context, Args(search): Args<Search>) -> Result<String, Failure> {
    if search.limit > 50 {
        return Err(Failure::new("too many").retryable());
    }
    Ok(format!("{}: {} {}", context.attempt, search.query, search.limit))
}

/// Finds pages, blocking.
#[tool]
fn find(args: Args<Search>, context: haft::Context) -> String {
    format!("{} {}", args.0.query, context.is_cancelled())
}

#[tokio::test]
async fn one_type_for_all_arguments() {
    check(web_search::tool(), json!({"query": "rust", "limit": 3}), json!("0: rust 3")).await;
    check(find::tool(), json!({"query": "rust"}), json!("rust false")).await;
    let unknown = json!({"query": "rust", "page": 2});
    let text = "invalid_arguments: invalid arguments: unknown property `page`";
    check_error(web_search::tool(), unknown, text).await;
    let error = call(web_search::tool(), json!({"query": "rust", "limit": 51})).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::ExecutionFailed, true));
}

#[derive(Debug, Serialize)]
struct Broken(u8);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken {}", self.0)
    }
}

type Alias = Result<u8, Broken>;

/// Fails with a serializable error.
#[tool]
fn alias(fail: bool) -> Alias {
    if fail { Err(Broken(7)) } else { Ok(1) }
}

/// Fails with a chain of causes.
#[tool]
async fn chain() -> anyhow::Result<()> {
    Err(anyhow::anyhow!("connection refused").context("fetch the page"))
}

/// Fails with a text.
#[tool]
async fn text() -> Result<u8, &'static str> {
    Err("no")
}

/// Returns nothing.
#[tool]
async fn nothing() {}

/// Returns an unnamed type.
#[tool]
async fn unnamed() -> impl Serialize {
    (1, "two", Some(3.0))
}

/// Panics.
#[tool]
fn panics() -> u8 {
    "x".parse().unwrap()
}

#[tokio::test]
async fn return_values_become_outcomes() {
    check(alias::tool(), json!({"fail": false}), json!(1)).await;
    check_error(alias::tool(), json!({"fail": true}), "execution_failed: broken 7").await;
    check_error(chain::tool(), json!({}), "execution_failed: fetch the page: connection refused").await;
    check_error(text::tool(), json!({}), "execution_failed: no").await;
    check(nothing::tool(), json!({}), Value::Null).await;
    check(unnamed::tool(), json!({}), json!([1, "two", 3.0])).await;
    let error = call(panics::tool(), json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Panicked);
}

/// Exceeds its timeout.
#[tool(timeout = "20ms")]
async fn slow() {
    tokio::time::sleep(Duration::from_mins(10)).await;
}

/// Needs trust.
#[tool(elevated, description = "Needs very much trust.")]
fn trusted() {}

#[tokio::test]
async fn options_apply() {
    let error = call(slow::tool(), json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Timeout);
    check(trusted::tool(), json!({}), Value::Null).await;
}

mod elsewhere {
    //! Tools of another module are imported together with their functions.

    use haft as renamed;

    /// Adds two numbers.
    #[renamed::tool(crate = renamed)]
    #[must_use]
    pub(crate) fn add(left: i64, right: i64) -> i64 {
        left + right
    }

    /// Is not built.
    #[renamed::tool]
    #[cfg(any())]
    pub(crate) fn never(missing: Missing) {}
}

#[tokio::test]
async fn a_tool_is_imported_with_its_function() {
    use elsewhere::add;
    assert_eq!(add(1, 2), 3);
    check(add::tool(), json!({"left": 1, "right": 2}), json!(3)).await;
}

#[tokio::test]
async fn a_tool_can_be_defined_inside_a_function() {
    #[derive(Deserialize, JsonSchema)]
    struct Local(u8);

    /// Doubles.
    #[tool]
    fn double(double: Local) -> u8 {
        double.0 * 2
    }
    check(double::tool(), json!({"double": 4}), json!(8)).await;
}

/// Joins parts.
#[tool]
async fn join(parts: &[String], folder: &Path, number: &u8, #[arg(default = "-")] with: &String) -> String {
    format!("{}{with}{}{with}{number}", folder.display(), parts.join(with))
}

#[tokio::test]
async fn a_function_can_borrow_its_arguments() {
    let args = json!({"parts": ["a", "b"], "folder": "/x", "number": 3});
    check(join::tool(), args, json!("/x-a-b-3")).await;
}

mod foreign {
    use super::*;

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Empty {}

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Named {
        pub(super) name: String,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "action", rename_all = "snake_case")]
    pub(super) enum Tagged {
        Create { name: String },
        Copy(Named),
        Clear,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(untagged)]
    pub(super) enum Either {
        Named(Named),
        Counted { count: u32 },
    }

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Flat {
        #[serde(flatten)]
        pub(super) inner: Named,
        pub(super) size: u32,
    }

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Open {
        #[serde(flatten)]
        pub(super) rest: Map<String, Value>,
    }

    /// Takes nothing.
    #[tool]
    pub(super) fn empty(_args: Args<Empty>) -> &'static str {
        "empty"
    }

    /// Takes one of several.
    #[tool]
    pub(super) fn tagged(Args(args): Args<Tagged>) -> String {
        match args {
            Tagged::Create { name } | Tagged::Copy(Named { name }) => name,
            Tagged::Clear => "clear".to_owned(),
        }
    }

    /// Takes one of two.
    #[tool]
    pub(super) fn either(Args(args): Args<Either>) -> String {
        match args {
            Either::Named(named) => named.name,
            Either::Counted { count } => count.to_string(),
        }
    }

    /// Takes both.
    #[tool]
    pub(super) fn flat(Args(args): Args<Flat>) -> String {
        format!("{}{}", args.inner.name, args.size)
    }

    /// Takes anything.
    #[tool]
    pub(super) fn open(Args(args): Args<Open>) -> usize {
        args.rest.len()
    }

    /// Takes anything.
    #[tool]
    pub(super) fn any(Args(args): Args<Value>) -> Value {
        args
    }
}

#[tokio::test]
async fn unknown_arguments_are_rejected_for_every_type() {
    let tools = Tools::new();
    for def in [
        foreign::empty::tool(),
        foreign::tagged::tool(),
        foreign::either::tool(),
        foreign::flat::tool(),
        foreign::open::tool(),
        foreign::any::tool(),
    ] {
        tools.register(def).unwrap();
    }
    for (tool, good) in [
        ("empty", json!({})),
        ("tagged", json!({"action": "create", "name": "a"})),
        ("tagged", json!({"action": "copy", "name": "a"})),
        ("tagged", json!({"action": "clear"})),
        ("either", json!({"name": "a"})),
        ("either", json!({"count": 1})),
        ("flat", json!({"name": "a", "size": 1})),
    ] {
        tools.execute(tool, &good).await.unwrap();
        let mut unknown = good;
        unknown["colour"] = json!("red");
        let error = tools.execute(tool, &unknown).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{tool} {unknown}");
        assert!(error.message.contains("colour") || tool == "tagged" || tool == "either", "{error}");
    }
    assert_eq!(tools.execute("open", json!({"a": 1, "b": 2})).await.unwrap(), 2);
    assert_eq!(tools.execute("any", json!({"a": 1})).await.unwrap(), json!({"a": 1}));
}
