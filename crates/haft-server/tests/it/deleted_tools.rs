//! Deletion of tools: tools in use are deleted only with `force`, and deleted tools can be restored.

use reqwest::Method;
use serde_json::{Value, json};

use crate::agents::{create, scripted, token};
use crate::harness::{Server, code, function_tool};
use crate::tenants::{tenant, with};

const ONE: &str = "/api/tools/worker";

#[tokio::test]
async fn a_tool_that_others_need_is_deleted_by_force_only() {
    let server = Server::start_whole(|_| {}).await;
    for name in ["worker", "other"] {
        server.create(function_tool(name, "echo")).await;
    }
    let steps = json!([{"id": "one", "tool": "worker"}]);
    let tool = json!({"name": "trip", "description": "Calls it", "input_schema": {"type": "object"},
                      "implementation": {"type": "steps", "steps": steps}});
    server.create(tool).await;
    create(&server, scripted("boss", &["worker"], "turns: [{text: hi}]")).await;
    create(&server, scripted("any", &["work*"], "turns: [{text: hi}]")).await;
    server.post("/api/tools/other/deprecate", json!({"replaced_by": "worker"})).await;

    let (_, answer) = server.get(&format!("{ONE}/usage")).await;
    let usage = &answer["data"];
    let fields: Vec<(&str, &str)> = usage["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| (tool["tool"].as_str().unwrap(), tool["field"].as_str().unwrap()))
        .collect();
    assert!(fields.contains(&("user-created:trip@1.0.0", "implementation.steps")), "{usage}");
    assert!(fields.contains(&("user-created:other@1.0.0", "replaced_by")), "{usage}");
    let agents: Vec<&Value> =
        usage["agents"].as_array().unwrap().iter().map(|agent| &agent["agent"]).collect();
    assert_eq!(agents, ["any", "boss"]);

    let by_pair = "/api/tools/bundles/user-created/tools/worker/version/1.0.0";
    for path in [ONE, by_pair] {
        let (status, answer) = server.delete(path).await;
        assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
        // A pattern and a replacement do not need it.
        let users = json!(["user-created:trip@1.0.0", "agents:boss"]);
        assert_eq!(answer["error"]["details"]["used_by"], users, "{answer}");
        assert_eq!(
            answer["error"]["message"],
            "tool `user-created:worker@1.0.0` is in use by `user-created:trip@1.0.0`, `agents:boss`; change these, or \
             delete it anyway with `force=true` (`haft tool delete --force`)"
        );
    }
    let (_, answer) = server.invoke("delete_tool", json!({"tool": "worker"})).await;
    assert_eq!(code(&answer), "conflict", "{answer}");
    let (status, answer) = server.delete(&format!("{ONE}?force=true")).await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer["data"]["backup_path"].is_string(), "{answer}");
    assert_eq!(server.get(ONE).await.0, 404);
}

#[tokio::test]
async fn another_version_keeps_an_agent_supplied() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    let mut second = function_tool("worker", "echo");
    second["version"] = json!("2.0.0");
    server.create(second).await;
    create(&server, scripted("boss", &["worker"], "turns: [{text: hi}]")).await;
    let (status, answer) = server.delete("/api/tools/worker@1.0.0").await;
    assert_eq!(status, 200, "{answer}");
    let (status, answer) = server.delete("/api/tools/worker@2.0.0").await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
}

#[tokio::test]
async fn a_deleted_tool_is_listed_and_comes_back_as_it_was() {
    let server = Server::start().await;
    let text = "# Why it is here.\nname: worker\ndescription: first\nimplementation: {type: function, function: echo}\n";
    let body =
        server.request(Method::POST, "/api/tools").header("content-type", "application/yaml").body(text);
    assert_eq!(crate::harness::send(body).await.0, 201);
    assert_eq!(server.post(&format!("{ONE}/publish"), json!({})).await.0, 200);
    let mut changed = function_tool("worker", "echo");
    changed["description"] = json!("second");
    assert_eq!(server.put(ONE, changed).await.0, 200);
    let example = json!({"args": {"a": 1}});
    assert_eq!(server.put(&format!("{ONE}/examples/first"), example).await.0, 200);
    let before = server.get(ONE).await.1["data"].clone();
    let id = before["id"].as_str().unwrap().to_owned();

    let (viewer, stranger) = (token(&server, "viewer").await, tenant(&server, "acme").await);
    let undelete = format!("{ONE}/undelete");
    let (status, answer) = server.post(&undelete, json!({})).await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
    assert_eq!(server.delete(ONE).await.0, 200);
    let deleted = "/api/tools?deleted=true";
    assert_eq!(with(&server, &viewer, Method::GET, deleted, json!({})).await.0, 403);
    assert_eq!(with(&server, &viewer, Method::POST, &undelete, json!({})).await.0, 403);
    assert_eq!(with(&server, &stranger, Method::GET, deleted, json!({})).await.1["data"]["total"], 0);
    let by_id = format!("/api/tools/{id}/undelete");
    assert_eq!(with(&server, &stranger, Method::POST, &by_id, json!({})).await.0, 404);
    let (_, answer) = server.get(deleted).await;
    let listed = &answer["data"]["tools"];
    assert_eq!((&answer["data"]["total"], &listed[0]["id"]), (&json!(1), &before["id"]), "{answer}");
    assert!(listed[0]["deleted_at"].is_string(), "{answer}");
    assert_eq!(server.get(&format!("{deleted}&q=nothing")).await.1["data"]["total"], 0);
    for path in ["", "/revisions", "/examples"] {
        assert_eq!(server.get(&format!("/api/tools/{id}{path}")).await.0, 404, "{path}");
    }

    let server = server.restart().await;
    let (status, answer) = server.post(&undelete, json!({})).await;
    assert_eq!(status, 200, "{answer}");
    for key in ["id", "revision", "published_revision", "status", "description", "path", "created_at"] {
        assert_eq!(answer["data"][key], before[key], "{key}");
    }
    let (_, revisions) = server.get(&format!("{ONE}/revisions")).await;
    assert_eq!(revisions["data"]["total"], 2);
    assert_eq!(server.get(&format!("{ONE}/examples")).await.1["data"]["examples"][0]["name"], "first");
    let (_, answer) = server.invoke("worker", json!({"a": 1})).await;
    assert_eq!(answer["ok"], true, "{answer}");
    assert_eq!(server.get(deleted).await.1["data"]["total"], 0);
    let (_, log) = server.get("/api/audit?page_size=100").await;
    let mut actions = log["data"]["records"].as_array().unwrap().iter();
    assert!(actions.any(|record| record["action"] == "tool.undelete"), "{log}");

    // Without a backup it is gone.
    assert_eq!(server.delete(&format!("{ONE}?keep_backup=false")).await.0, 200);
    let (status, answer) = server.post(&undelete, json!({})).await;
    assert_eq!((status, code(&answer)), (404, "not_found"), "{answer}");
}
