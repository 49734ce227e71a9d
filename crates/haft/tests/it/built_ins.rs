//! The built-in tools in the set of a program.

use haft::{ErrorCode, Tools};
use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::Router;
use haft_testkit::upstream::axum::response::Html;
use haft_testkit::upstream::axum::routing::get;
use serde_json::{Value, json};

use crate::support::write;

const WITHOUT_SANDBOX: [&str; 9] = [
    "bash",
    "datetime_utils",
    "exec",
    "http_request",
    "json_transform",
    "send_email",
    "send_whatsapp",
    "web_fetch",
    "web_search",
];

async fn check(tools: &Tools, name: &str, args: Value, expected: Value) {
    assert_eq!(tools.execute(name, args).await.map_err(|error| error.message), Ok(expected), "{name}");
}

#[tokio::test]
async fn built_in_tools_run() {
    let folder = tempfile::tempdir().unwrap();
    let page = "<html><head><title>Page</title></head><body><h1>Hello</h1></body></html>";
    let router = Router::new().route("/", get(move || async move { Html(page) }));
    let upstream = Upstream::serve(router).await.unwrap();
    let tools =
        Tools::builder().sandbox(folder.path()).private_hosts(["127.0.0.1"]).built_ins().build().unwrap();
    for (name, args, expected) in [
        (
            "write_file",
            json!({"path": "a/b.txt", "content": "one"}),
            json!({"path": "a/b.txt", "size": 3, "created": true}),
        ),
        (
            "append_file",
            json!({"path": "a/b.txt", "content": " two"}),
            json!({"path": "a/b.txt", "size": 7, "appended": 4, "created": false}),
        ),
        ("read_file", json!({"path": "a/b.txt"}), json!("one two")),
        ("json_transform", json!({"data": {"a": [1, 2]}, "query": "$.a[1]"}), json!(2)),
        ("bash", json!({"script": "echo '[1, 2]'"}), json!([1, 2])),
    ] {
        check(&tools, name, args, expected).await;
    }
    let listed = tools.execute("list_files", json!({"path": "a"})).await.unwrap();
    assert_eq!(listed[0]["name"], "b.txt");
    let time = json!({"operation": "convert", "time": "2026-03-28T12:00:00Z", "timezone": "Europe/Berlin"});
    assert_eq!(tools.execute("datetime_utils", time).await.unwrap()["iso"], "2026-03-28T13:00:00+01:00");
    let fetched = tools.execute("web_fetch", json!({"url": upstream.url("/")})).await.unwrap();
    assert_eq!((&fetched["title"], &fetched["content"]), (&json!("Page"), &json!("# Hello")));
    let response = tools.execute("http_request", json!({"url": upstream.url("/")})).await.unwrap();
    assert_eq!((&response["status"], &response["body"]), (&json!(200), &json!(page)));
}

#[tokio::test]
async fn built_in_tools_respect_the_limits_of_the_set() {
    let folder = tempfile::tempdir().unwrap();
    let builder = Tools::builder().sandbox(folder.path()).built_ins();
    let tools = builder.deny_elevated().build().unwrap();
    for (name, args, code) in [
        ("read_file", json!({"path": "../../etc/passwd"}), ErrorCode::PathEscapes),
        ("read_file", json!({}), ErrorCode::InvalidArguments),
        ("http_request", json!({"url": "http://127.0.0.1:1/"}), ErrorCode::EgressRefused),
        ("exec", json!({"command": "true"}), ErrorCode::ApprovalRequired),
        ("send_email", json!({"to": "a@example.com", "subject": "x", "body": "y"}), ErrorCode::SecretMissing),
        ("web_search", json!({"query": "x"}), ErrorCode::SecretMissing),
    ] {
        let error = tools.execute(name, args).await.unwrap_err();
        assert_eq!(error.code, code, "{name}: {}", error.message);
    }
}

#[test]
fn without_a_sandbox_there_are_no_file_tools() {
    let tools = Tools::builder().built_ins().build().unwrap();
    assert_eq!(tools.names(), WITHOUT_SANDBOX);
    assert_eq!(Tools::new().names(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_tool_of_the_program_overrides_a_built_in_tool() {
    let own = haft::ToolDef::new("web_search", |_: Value| async { "mine" });
    let tools = Tools::builder().tool(own).built_ins().build().unwrap();
    assert_eq!(tools.names(), WITHOUT_SANDBOX);
    check(&tools, "web_search", json!({}), json!("mine")).await;

    let again = haft::ToolDef::new("web_fetch", |_: Value| async { "mine" });
    assert!(tools.register(again.clone()).is_err());
    assert!(tools.remove("web_fetch"));
    tools.register(again).unwrap();
    check(&tools, "web_fetch", json!({}), json!("mine")).await;
}

#[tokio::test]
async fn a_definition_can_use_a_built_in_function_but_not_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let tools = Tools::builder().built_ins().build().unwrap();
    let definition = |name: &str| {
        format!(
            "name: {name}\ndescription: Picks\nparams: [{{name: data, type: object, required: true}}, {{name: query, type: string}}]\n\
             implementation: {{type: builtin, function: json_transform}}\n"
        )
    };
    write(folder.path(), "pick.yaml", &definition("pick"));
    write(folder.path(), "exec.yaml", &definition("exec"));
    let report = tools.load_directory(folder.path()).unwrap();
    assert_eq!(report.loaded, ["pick"]);
    let error = report.failed[0].to_string();
    assert!(error.ends_with("the name `exec` is already used by a built-in tool; choose another"), "{error}");
    check(&tools, "pick", json!({"data": {"a": 1}, "query": "$.a"}), json!(1)).await;
}

#[tokio::test]
async fn a_filter_applies_to_built_in_tools() {
    let tools = Tools::builder().built_ins().build().unwrap();
    let view = tools.filter(["json_transform"]).unwrap();
    assert_eq!(view.names(), ["json_transform"]);
    assert_eq!(view.execute("exec", json!({"command": "true"})).await.unwrap_err().code, ErrorCode::NotFound);
}
