//! Publishing, deprecating, labelling, revisions.

use serde_json::json;

use crate::harness::{Server, code, function_tool};

#[tokio::test]
async fn production_runs_the_published_revision_while_a_draft_is_edited() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    let production = "/api/tools/worker/invoke?mode=production";
    let (status, answer) = server.post(production, json!({"args": {"a": 1}})).await;
    assert_eq!((status, code(&answer)), (409, "not_published"));

    let (status, answer) = server.post("/api/tools/worker/publish", json!({})).await;
    assert_eq!((status, &answer["data"]["status"]), (200, &json!("published")));
    assert!(answer["data"]["published_at"].is_string());
    server.put("/api/tools/worker", function_tool("worker", "double")).await;

    let (_, answer) = server.post(production, json!({"args": {"n": 4}})).await;
    assert_eq!(answer["value"], json!({"n": 4}), "the published revision runs");
    let (_, answer) = server.post("/api/tools/worker/invoke?mode=debug", json!({"args": {"n": 4}})).await;
    assert_eq!(answer["value"], json!(8), "the head runs");

    let (_, answer) = server.get("/api/tools/worker/diff").await;
    assert_eq!(
        answer["data"],
        json!({"from": 1, "to": 2, "changes": [
            {"field": "implementation.function", "before": "echo", "after": "double"},
        ]})
    );
    server.post("/api/tools/worker/publish", json!({})).await;
    let (_, answer) = server.post(production, json!({"args": {"n": 4}})).await;
    assert_eq!(answer["value"], json!(8));

    let (status, answer) = server.post("/api/tools/worker/revisions/1/restore", json!({})).await;
    assert_eq!((status, &answer["data"]["revision"]), (200, &json!(3)), "{answer}");
    let (_, answer) = server.get("/api/tools/worker/revisions").await;
    let numbers: Vec<_> =
        answer["data"]["revisions"].as_array().unwrap().iter().map(|r| r["number"].clone()).collect();
    assert_eq!(numbers, [3, 2, 1]);
    assert_eq!(server.post("/api/tools/worker/revisions/9/restore", json!({})).await.0, 404);
}

#[tokio::test]
async fn published_is_reached_by_its_endpoint_only() {
    let server = Server::start().await;
    let mut tool = function_tool("worker", "echo");
    tool["status"] = json!("published");
    let (status, answer) = server.post("/api/tools", tool.clone()).await;
    assert_eq!(status, 400, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("publish"), "{answer}");
    server.create(function_tool("worker", "echo")).await;
    assert_eq!(server.put("/api/tools/worker", tool.clone()).await.0, 400);
    server.post("/api/tools/worker/publish", json!({})).await;
    let shown = server.get("/api/tools/worker").await.1["data"].clone();
    let (status, answer) = server.put("/api/tools/worker", shown).await;
    assert_eq!(
        (status, &answer["data"]["revision"]),
        (200, &json!(1)),
        "writing back what is there changes nothing"
    );
    let (status, answer) = server
        .post(
            "/api/tools",
            json!({
                "slug": "other", "name": "Other", "description": "d", "scope": "global",
                "implementation_type": "function", "implementation_config": {"function_name": "echo"},
            }),
        )
        .await;
    assert_eq!(status, 400, "{answer}");
}

#[tokio::test]
async fn labels_and_deprecation() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    for bad in ["", "2", "v2.0.0", "1.2.x"] {
        let (status, _) =
            server.post(&format!("/api/tools/worker/version?new_version={bad}"), json!({})).await;
        assert_eq!(status, 400, "{bad}");
    }
    let (status, answer) = server.post("/api/tools/worker/version?new_version=1.1.0", json!({})).await;
    assert_eq!((status, &answer["data"]["version"]), (200, &json!("1.1.0")), "{answer}");
    assert_eq!(server.get("/api/tools/worker@1.1.0").await.0, 200);
    assert_eq!(server.get("/api/tools/worker@1.0.0").await.0, 404);

    let (_, answer) = server.post("/api/tools/worker/deprecate", json!({})).await;
    assert_eq!(answer["data"]["status"], "deprecated");
    let (status, answer) = server.invoke("worker", json!({})).await;
    assert_eq!((status, &answer["warning"]), (200, &json!("this tool is deprecated")));
}

#[tokio::test]
async fn a_draft_of_a_newer_version_does_not_stop_production() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    server.post("/api/tools/worker/publish", json!({})).await;
    let mut newer = function_tool("worker", "fail");
    newer["version"] = json!("2.0.0");
    server.create(newer).await;
    let production = "/api/tools/worker/invoke?mode=production";
    let (status, answer) = server.post(production, json!({"args": {"a": 1}})).await;
    assert_eq!((status, &answer["value"]), (200, &json!({"a": 1})), "{answer}");
    assert_eq!(
        code(&server.invoke("worker", json!({})).await.1),
        "execution_failed",
        "debug runs the newest"
    );
}
