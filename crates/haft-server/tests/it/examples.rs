//! The tools in `examples/tools`: each is added and called; hosts of the internet are replaced by one on loopback.

use std::path::{Path, PathBuf};

use axum::Router;
use axum::routing::{get, post};
use haft_testkit::upstream::{Upstream, axum};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, send};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/tools")
}

async fn upstream() -> Upstream {
    let titles = json!({"query": {"search": [{"title": "Haft"}, {"title": "Hilt"}]}});
    let router = Router::new()
        .route("/{place}", get(|| async { "New York: +21°C" }))
        .route("/hook", post(|| async { "ok" }))
        .route("/api/chat.postMessage", post(|| async { axum::Json(json!({"ok": true})) }))
        .route("/w/api.php", get(move || async move { axum::Json(titles) }));
    Upstream::serve(router).await.unwrap()
}

/// Adds an example as its author would, and returns the response.
async fn add(server: &Server, upstream: &Upstream, file: &str) -> Value {
    let mut text = std::fs::read_to_string(folder().join(file)).unwrap();
    for host in ["https://wttr.in", "https://slack.com", "https://en.wikipedia.org"] {
        text = text.replace(host, upstream.url("").trim_end_matches('/'));
    }
    let form = if Path::new(file).extension().is_some_and(|extension| extension == "skill") {
        "application/x-haft-skill"
    } else {
        "application/yaml"
    };
    let request = server.request(Method::POST, "/api/tools").header("content-type", form).body(text);
    let (status, answer) = send(request).await;
    assert_eq!((status, &answer["data"]["ready"]), (201, &json!(true)), "{file}: {answer}");
    answer["data"].clone()
}

#[tokio::test]
async fn every_example_runs_without_warnings() {
    let upstream = upstream().await;
    let server = Server::start().await;
    for (name, value) in [("SLACK_WEBHOOK", upstream.url("/hook")), ("SLACK_BOT_TOKEN", "xoxb-1".to_owned())]
    {
        let (status, answer) = server.put(&format!("/api/credentials/{name}"), json!({"value": value})).await;
        assert!(status < 300, "{answer}");
    }
    let cases = [
        ("greet.yaml", json!({"name": "Ada"}), json!("Hello, Ada!")),
        (
            "greet-all.yaml",
            json!({"names": ["Ada", "Grace"]}),
            json!({"greetings": ["Hello, Ada!", "Hello, Grace!"], "first": "Hello, Ada! And so on."}),
        ),
        ("calculator.skill", json!({"expression": "(2 + 3) * -4 ** 2"}), json!(-80)),
        (
            "text-analysis.skill",
            json!({"text": "It's \"fine\". Is it?"}),
            json!({"length": 19, "words": 4, "sentences": 2}),
        ),
        (
            "json-formatter.skill",
            json!({"json": "{\"a\":[1]}"}),
            json!("{\n    \"a\": [\n        1\n    ]\n}"),
        ),
        ("weather-check.skill", json!({"city": "New York"}), json!("New York: +21°C")),
        ("search-wikipedia.yaml", json!({"query": "haft & hilt"}), json!(["Haft", "Hilt"])),
        ("send_slack.yaml", json!({"channel": "ops", "message": "done"}), json!({"ok": true})),
        ("slack-notify.skill", json!({"message": "a \"quoted\" $word"}), json!("ok")),
    ];
    let mut tested: Vec<String> = cases.iter().map(|(file, ..)| (*file).to_owned()).collect();
    for (file, args, expected) in cases {
        let tool = add(&server, &upstream, file).await;
        assert_eq!(tool.get("warnings"), None, "{file}: {tool}");
        let name = tool["name"].as_str().unwrap();
        let (status, answer) = server.invoke(name, args).await;
        assert_eq!((status, &answer["value"]), (200, &expected), "{file}: {answer}");
    }
    let seen: Vec<String> =
        upstream.seen().iter().map(|seen| format!("{} {} {}", seen.method, seen.target, seen.body)).collect();
    insta::assert_snapshot!(seen.join("\n"), @r#"
    GET /New%20York?format=3 
    GET /w/api.php?action=query&list=search&srsearch=haft%20%26%20hilt&srlimit=10&format=json 
    POST /api/chat.postMessage {"channel":"ops","text":"done"}
    POST /hook {"text": "a \"quoted\" $word"}
    "#);
    let mut files: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    files.sort();
    tested.sort();
    assert_eq!(files, tested, "every example is tested");
}

#[tokio::test]
async fn an_example_without_its_secret_is_ready_with_a_warning() {
    let upstream = upstream().await;
    let server = Server::start().await;
    let tool = add(&server, &upstream, "send_slack.yaml").await;
    assert_eq!(tool["warnings"][0]["code"], "unknown_name", "{tool}");
    let (_, listed) = server.get("/api/tools?q=send_slack&filter=skills").await;
    assert_eq!(
        listed["data"]["tools"][0]["warnings"][0]["message"],
        "secret `SLACK_BOT_TOKEN` is not stored; store it with `haft secret set SLACK_BOT_TOKEN`",
        "{listed}"
    );
}
