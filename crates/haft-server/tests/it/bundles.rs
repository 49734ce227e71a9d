//! Bundles and the tools under their full address.

use serde_json::json;

use crate::harness::{Server, code};

const ID: &str = "018faf50-b7b6-7a01-9a05-a22a6e0af101";

fn tool_json() -> serde_json::Value {
    json!({"type": "go", "description": "Echoes", "argSchema": {"type": "object"}, "impl": {"goFunc": "echo"}})
}

#[tokio::test]
async fn a_bundle_is_created_disabled_deleted_and_restored() {
    let server = Server::start().await;
    let path = format!("/tools/bundles/{ID}");
    let body =
        json!({"slug": "acme", "displayName": "Acme", "isEnabled": true, "description": "Tools of Acme"});
    let (status, answer) = server.put(&path, body.clone()).await;
    assert_eq!(
        (status, &answer["data"]["id"], &answer["data"]["slug"]),
        (201, &json!(ID), &json!("acme")),
        "{answer}"
    );
    let (status, _) = server.put(&path, body.clone()).await;
    assert_eq!(status, 200);

    let tool = format!("{path}/tools/weather/version/v2");
    assert_eq!(server.put(&tool, tool_json()).await.0, 201);
    let (status, answer) = server.put(&tool, json!({"type": "go", "impl": {"goFunc": "fail"}})).await;
    assert_eq!((status, code(&answer)), (409, "conflict"));
    let (_, answer) = server.get(&tool).await;
    assert_eq!(answer["data"]["implementation"]["function"], "echo", "the existing one is unchanged");
    let (status, answer) = server.post(&format!("{tool}/invoke"), json!({"args": {"a": 1}})).await;
    assert_eq!((status, &answer["ok"], &answer["value"]), (200, &json!(true), &json!({"a": 1})));

    let (status, answer) = server.delete(&path).await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "a bundle with tools stays");
    server.patch(&path, json!({"isEnabled": false})).await;
    for (status, answer) in [
        server.put(&format!("{path}/tools/other/version/v1"), tool_json()).await,
        server.patch(&tool, json!({"isEnabled": false})).await,
        server.post(&format!("{tool}/invoke"), json!({})).await,
    ] {
        assert_eq!((status, code(&answer)), (409, "disabled"), "{answer}");
    }
    server.patch(&path, json!({"isEnabled": true})).await;
    assert_eq!(server.patch(&tool, json!({"isEnabled": false})).await.0, 200);
    assert_eq!(server.patch(&tool, json!({"isEnabled": false, "description": "x"})).await.0, 400);
    assert_eq!(server.delete(&tool).await.0, 200);
    assert_eq!(server.delete(&path).await.0, 200);
    let (_, answer) = server.get("/tools/bundles").await;
    let slugs: Vec<_> =
        answer["data"]["bundles"].as_array().unwrap().iter().map(|b| b["slug"].clone()).collect();
    assert!(!slugs.contains(&json!("acme")), "{slugs:?}");
    let (_, revived) = server.put(&path, body).await;
    assert_eq!(revived["data"]["soft_deleted_at"], json!(null));
    assert_eq!((&revived["data"]["kind"], &revived["data"]["built_in"]), (&json!("user"), &json!(false)));
}

#[tokio::test]
async fn names_on_these_routes_have_no_underscore() {
    let server = Server::start().await;
    server.put(&format!("/tools/bundles/{ID}"), json!({"slug": "acme"})).await;
    for (name, version) in [
        ("a_b", "v1"),
        ("a", "v_1"),
        ("a%20b", "v1"),
        ("a%2Fb", "v1"),
        ("..", "v1"),
        ("%2e%2e", "v1"),
        ("a%00", "v1"),
        ("%F0%9F%8C%A7", "v1"),
        (&"x".repeat(65), "v1"),
        ("a", ".."),
    ] {
        let (status, answer) =
            server.put(&format!("/tools/bundles/{ID}/tools/{name}/version/{version}"), tool_json()).await;
        assert!(status == 400 || status == 404, "{name} {version}: {status} {answer}");
    }
    let (status, answer) =
        server.put("/tools/bundles/018faf50-b7b6-4a01-9a05-a22a6e0af101", json!({"slug": "x"})).await;
    assert_eq!(status, 400, "{answer}");
    let (status, answer) =
        server.put(&format!("/tools/bundles/{ID}/tools/w%C3%A9ather/version/1.0"), tool_json()).await;
    assert_eq!(status, 201, "{answer}");
}

#[tokio::test]
async fn two_bundles_can_have_the_same_name_and_version() {
    let server = Server::start().await;
    for slug in ["one", "two"] {
        server.put(&format!("/tools/bundles/{slug}"), json!({})).await;
        let (status, answer) =
            server.put(&format!("/tools/bundles/{slug}/tools/weather/version/v1"), tool_json()).await;
        assert_eq!(status, 201, "{answer}");
    }
    let (_, answer) = server.get("/tools/bundles?bundleIDs=one,two&pageSize=1").await;
    assert_eq!(answer["data"]["total"], 2);
    assert_eq!(answer["data"]["bundles"][0]["tool_count"], 1);
    let token = answer["data"]["next_page_token"].as_str().unwrap();
    let (_, answer) =
        server.get(&format!("/tools/bundles?bundleIDs=one,two&pageSize=1&pageToken={token}")).await;
    assert_eq!(answer["data"]["bundles"][0]["slug"], "two");
    assert_eq!(answer["data"]["next_page_token"], json!(null));
}

#[tokio::test]
async fn lists_show_built_in_bundles_last() {
    let server = Server::start().await;
    for slug in ["aaa", "zzz"] {
        server.put(&format!("/tools/bundles/{slug}"), json!({})).await;
    }
    let mut slugs = Vec::new();
    let mut path = "/tools/bundles?page_size=1".to_owned();
    loop {
        let (_, answer) = server.get(&path).await;
        slugs.push(answer["data"]["bundles"][0]["slug"].as_str().unwrap().to_owned());
        let Some(token) = answer["data"]["next_page_token"].as_str() else { break };
        path = format!("/tools/bundles?page_size=1&page_token={token}");
    }
    let position = |slug: &str| slugs.iter().position(|found| found == slug).unwrap();
    assert!(position("aaa") < position("zzz") && position("zzz") < position("builtin"), "{slugs:?}");
}

#[tokio::test]
async fn fifty_concurrent_creations_make_one_tool() {
    let server = Server::start().await;
    server.put("/tools/bundles/race", json!({})).await;
    let tries = (0..50).map(|_| server.put("/tools/bundles/race/tools/winner/version/v1", tool_json()));
    let answers = futures_util::future::join_all(tries).await;
    let count = |wanted| answers.iter().filter(|(status, _)| *status == wanted).count();
    assert_eq!((count(201), count(409)), (1, 49));
    let files = std::fs::read_dir(server.home.path().join("skills/race")).unwrap();
    let files: Vec<_> =
        files.map(|f| f.unwrap().file_name()).filter(|n| n.to_string_lossy().ends_with(".json")).collect();
    assert_eq!(files, ["winner@v1.json"]);
}
