//! Definitions that a program loads, of every kind that needs no server.

use std::time::Duration;

use haft::{ErrorCode, FileForm, Secret, SecretError, SecretSource, Tools};
use haft_testkit::upstream::Upstream;
use serde_json::json;

const SEND_SLACK: &str = r#"
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

async fn slack() -> Upstream {
    let response =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{\"ok\":true}";
    Upstream::bytes(response).await.unwrap()
}

fn at(upstream: &Upstream) -> String {
    SEND_SLACK.replace("https://slack.com/api/chat.postMessage", &upstream.url("/api/chat.postMessage"))
}

#[tokio::test]
async fn the_slack_example_sends_with_its_secret() {
    let upstream = slack().await;
    let tools = Tools::builder()
        .secret("SLACK_BOT_TOKEN", "xoxb-1")
        .private_hosts([upstream.address.to_string()])
        .build()
        .unwrap();
    assert_eq!(tools.load_text(FileForm::Yaml, &at(&upstream)).unwrap().name, "send_slack");
    let value = tools.execute("send_slack", json!({"channel": "general", "message": "hi"})).await.unwrap();
    assert_eq!(value, json!({"ok": true}));
}

#[tokio::test]
async fn hosts_and_variables_must_be_allowed() {
    let upstream = slack().await;
    let args = json!({"channel": "general", "message": "hi"});
    let tools = Tools::builder().secret("SLACK_BOT_TOKEN", "xoxb-1").build().unwrap();
    tools.load_text(FileForm::Yaml, &at(&upstream)).unwrap();
    assert_eq!(tools.execute("send_slack", &args).await.unwrap_err().code, ErrorCode::EgressRefused);

    // `PATH` is always set, but is read only if the program allows it.
    let text = at(&upstream).replace("SLACK_BOT_TOKEN", "PATH");
    let build = || Tools::builder().private_hosts([upstream.address.to_string()]);
    let tools = build().build().unwrap();
    tools.load_text(FileForm::Yaml, &text).unwrap();
    assert_eq!(tools.execute("send_slack", &args).await.unwrap_err().code, ErrorCode::SecretMissing);
    let tools = build().env(["PATH"]).build().unwrap();
    tools.load_text(FileForm::Yaml, &text).unwrap();
    assert_eq!(tools.execute("send_slack", &args).await.unwrap(), json!({"ok": true}));
}

struct Vault;

impl SecretSource for Vault {
    fn secret<'a>(
        &'a self,
        _tenant: &'a haft::TenantId,
        name: &'a str,
    ) -> haft::BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move { Ok((name == "TOKEN").then(|| Secret::new("from-the-vault".into()))) })
    }
}

#[tokio::test]
async fn secrets_of_a_source_are_redacted() {
    let tools = Tools::builder().secret_source(std::sync::Arc::new(Vault)).build().unwrap();
    let def =
        haft::ToolDef::with_context("tell", |context: haft::Context, _: serde_json::Value| async move {
            let secret = context.secret("TOKEN").await?.map(|secret| secret.expose().to_owned());
            Ok::<_, haft::CallError>(format!("it is {}", secret.unwrap_or_default()))
        });
    tools.register(def).unwrap();
    assert_eq!(tools.execute("tell", ()).await.unwrap(), "it is ***");
}

#[tokio::test]
async fn processes_need_no_home_folder() {
    let tools = Tools::new();
    tools
        .load_text(
            FileForm::Yaml,
            "name: shout\ndescription: Says it\nparams: [{name: text, type: string, required: true}]\n\
             implementation: {type: exec, command: \"echo '{{text}}' | tr a-z A-Z\", timeout: 60s}\n",
        )
        .unwrap();
    tools
        .load_text(
            FileForm::Skill,
            "---\nname: add\ndescription: Adds\nruntime: bash\nparameters:\n  type: object\n  properties:\n    a: {type: integer}\n\
             ---\necho $((a + 1))\n",
        )
        .unwrap();
    assert_eq!(tools.not_ready(), []);
    assert_eq!(tools.execute("shout", json!({"text": "it's"})).await.unwrap(), "IT'S");
    assert_eq!(tools.execute("add", json!({"a": 41})).await.unwrap(), 42);
}

#[tokio::test]
async fn python_functions_are_found_beside_their_definition() {
    let folder = tempfile::tempdir().unwrap();
    crate::support::write(
        folder.path(),
        "math/sums.py",
        "def add(workspace, a, b):\n    return {'sum': a + b}\n",
    );
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
    let definition = json!({
        "name": "add", "description": "Adds", "input_schema": schema,
        "implementation": {"type": "python", "entrypoint": "sums:add"}
    });
    crate::support::write(folder.path(), "math/add.json", &definition.to_string());
    let tools = Tools::new();
    let report = tools.load_directory(folder.path()).unwrap();
    assert!(report.is_clean(), "{report}");
    let call = tools.call("add").args(json!({"a": 1, "b": 2})).timeout(Duration::from_mins(1));
    assert_eq!(call.send().await.unwrap(), json!({"sum": 3}));
}
