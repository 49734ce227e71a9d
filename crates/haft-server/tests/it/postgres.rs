//! The same API on PostgreSQL, and two servers that share one.

use std::time::Duration;

use haft_core::secret::Secret;
use haft_testkit::postgres;
use serde_json::json;

use crate::harness::{Server, code, function_tool};

async fn on(url: &str) -> Server {
    let url = url.to_owned();
    Server::start_with(move |settings| {
        settings.database_url = Some(Secret::new(url));
        settings.key = Some(Secret::new("00".repeat(32)));
    })
    .await
}

#[tokio::test]
async fn a_tool_lives_on_postgres() {
    let database = postgres::database().unwrap();
    let server = on(&database.url).await;
    let tool = server.create(function_tool("worker", "double")).await;
    assert_eq!(tool["path"], json!(null), "there are no files");
    assert_eq!(server.invoke("worker", json!({"n": 4})).await.1["value"], 8);
    server.put("/api/tools/worker", function_tool("worker", "echo")).await;
    server.post("/api/tools/worker/publish", json!({})).await;
    server.put("/api/credentials/KEY", json!({"value": "v-1234"})).await;
    let (status, answer) = server.post("/api/tools", function_tool("worker", "echo")).await;
    assert_eq!((status, code(&answer)), (409, "conflict"));

    let mut server = server;
    server.halt().await;
    let server = on(&database.url).await;
    let (_, answer) = server.get("/api/tools/worker").await;
    assert_eq!((&answer["data"]["revision"], &answer["data"]["status"]), (&json!(2), &json!("published")));
    assert_eq!(server.get("/api/calls?tool=worker").await.1["data"]["total"], 1);
    assert_eq!(server.get("/api/credentials").await.1["data"]["total"], 1);
}

#[tokio::test]
async fn servers_learn_of_each_others_changes() {
    let database = postgres::database().unwrap();
    let (one, other) = (on(&database.url).await, on(&database.url).await);
    one.create(function_tool("shared", "double")).await;
    for _ in 0..250 {
        let (status, answer) = other.invoke("shared", json!({"n": 21})).await;
        if status == 200 {
            assert_eq!(answer["value"], 42);
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the other server did not learn of the tool");
}

#[tokio::test]
async fn a_revoked_token_stops_working_on_every_server() {
    let database = postgres::database().unwrap();
    let (one, other) = (on(&database.url).await, on(&database.url).await);
    let (_, answer) = one.post("/api/tokens", json!({"name": "ci", "role": "viewer"})).await;
    let (token, id) = (answer["data"]["token"].as_str().unwrap(), answer["data"]["id"].as_str().unwrap());
    let status = async || {
        let request = other.bare(reqwest::Method::GET, "/api/tools").bearer_auth(token);
        crate::harness::send(request).await.0
    };
    let becomes = async |wanted: u16| {
        for _ in 0..250 {
            if status().await == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the other server did not learn of the token");
    };
    becomes(200).await;
    assert_eq!(one.delete(&format!("/api/tokens/{id}")).await.0, 200);
    becomes(401).await;
}
