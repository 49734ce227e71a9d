//! Lists show a caller exactly what it may call.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, function_tool, send};

async fn token(server: &Server, body: Value) -> String {
    let (status, answer) = server.post("/api/tokens", body).await;
    assert_eq!(status, 201, "{answer}");
    answer["data"]["token"].as_str().unwrap().to_owned()
}

async fn get(server: &Server, token: &str, path: &str) -> Value {
    let (status, answer) = send(server.bare(Method::GET, path).bearer_auth(token)).await;
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

fn names(list: &Value) -> Vec<String> {
    let tools = list["data"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_caller_lists_what_allow_list_and_policy_let_it_call() {
    let server = Server::start().await;
    for name in ["greet-all", "greet-one", "greet-secret", "other"] {
        server.create(function_tool(name, "echo")).await;
    }
    server.create(function_tool("greet-broken", "missing_function")).await;
    server.create(function_tool("greet-off", "echo")).await;
    server.patch("/api/tools/greet-off", json!({"enabled": false})).await;
    let rule = json!({"rules": [{"name": "secret", "match": {"tools": ["greet-secret"], "roles": ["caller"]}, "effect": "deny"}]});
    assert_eq!(server.put("/api/policy", rule).await.0, 200);
    let caller = token(&server, json!({"name": "limited", "role": "caller", "tools": ["greet-*"]})).await;
    let free = token(&server, json!({"name": "free", "role": "caller"})).await;
    let viewer = token(&server, json!({"name": "viewer", "role": "viewer"})).await;
    let editor = token(&server, json!({"name": "editor", "role": "editor"})).await;

    let list = get(&server, &caller, "/api/tools").await;
    assert_eq!(names(&list), ["greet-all", "greet-one"]);
    assert_eq!((&list["data"]["total"], &list["data"]["ready"]), (&json!(2), &json!(2)));
    assert!(list["data"]["tools"].as_array().unwrap().iter().all(|tool| tool["callable"] == true));
    let page = get(&server, &caller, "/api/tools?page_size=1").await;
    assert_eq!((names(&page), &page["data"]["total"]), (vec!["greet-all".to_owned()], &json!(2)));
    let next = page["data"]["next_page_token"].as_str().unwrap();
    let page = get(&server, &caller, &format!("/api/tools?page_size=1&page_token={next}")).await;
    assert_eq!(
        (names(&page), &page["data"]["next_page_token"]),
        (vec!["greet-one".to_owned()], &json!(null))
    );
    let all = get(&server, &caller, "/api/tools?include_disabled=true").await;
    assert_eq!(names(&all), ["greet-all", "greet-broken", "greet-off", "greet-one"]);

    let found = get(&server, &caller, "/api/tools/search?q=greet").await;
    let mut listed = names(&found);
    listed.sort();
    assert_eq!(
        (listed, &found["data"]["total"]),
        (vec!["greet-all".to_owned(), "greet-one".to_owned()], &json!(2))
    );
    let definitions = get(&server, &caller, "/api/tools/definitions/all").await;
    let offered: Vec<_> =
        definitions["data"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(offered, ["greet-all", "greet-one"]);
    let missing =
        server.bare(Method::GET, "/api/tools/definitions/all?names=greet-secret").bearer_auth(&caller);
    assert_eq!(send(missing).await.0, 404);

    let list = get(&server, &free, "/api/tools?filter=skills").await;
    assert_eq!(names(&list), ["greet-all", "greet-one", "other"]);
    // What a list shows can be called, and nothing else.
    for (name, expected) in [("greet-all", 200), ("greet-secret", 403), ("other", 403)] {
        let request = server.bare(Method::POST, &format!("/api/tools/{name}/invoke")).bearer_auth(&caller);
        assert_eq!(send(request).await.0, expected, "{name}");
    }

    let everything = ["greet-all", "greet-broken", "greet-one", "greet-secret", "other"];
    let list = get(&server, &editor, "/api/tools?filter=skills").await;
    assert_eq!(names(&list), everything);
    let callable: Vec<_> = list["data"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["callable"].as_bool().unwrap())
        .collect();
    assert_eq!(callable, [true, false, true, true, true]);
    let list = get(&server, &viewer, "/api/tools?filter=skills").await;
    assert_eq!(names(&list), everything);
    assert!(list["data"]["tools"].as_array().unwrap().iter().all(|tool| tool["callable"] == false));
}
