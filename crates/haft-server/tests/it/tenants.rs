//! Tenants: who manages them, and what they share: nothing.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, send};

/// Creates a tenant and an admin token of it.
pub(crate) async fn tenant(server: &Server, id: &str) -> String {
    let (status, answer) = server.post("/api/tenants", json!({"id": id, "name": "Acme"})).await;
    assert_eq!(status, 201, "{answer}");
    let body = json!({"tenant": id, "role": "admin", "name": "admin", "elevated": true});
    let (status, answer) = server.post("/api/tokens", body).await;
    assert_eq!((status, &answer["data"]["tenant"]), (201, &json!(id)), "{answer}");
    answer["data"]["token"].as_str().unwrap().to_owned()
}

/// Sends a request with a token.
pub(crate) async fn with(
    server: &Server,
    token: &str,
    method: Method,
    path: &str,
    body: Value,
) -> (u16, Value) {
    send(server.bare(method, path).bearer_auth(token).body(body.to_string())).await
}

#[tokio::test]
async fn a_platform_admin_manages_tenants() {
    let server = Server::start().await;
    let (_, list) = server.get("/api/tenants").await;
    assert_eq!((&list["data"]["total"], &list["data"]["tenants"][0]["id"]), (&json!(1), &json!("default")));
    let token = tenant(&server, "acme").await;
    assert_eq!(code(&server.post("/api/tenants", json!({"id": "acme"})).await.1), "conflict");
    for bad in [json!({}), json!({"id": "Acme"}), json!({"id": "../x"}), json!({"id": "b", "name": ""})] {
        assert_eq!(server.post("/api/tenants", bad.clone()).await.0, 400, "{bad}");
    }
    let patch = json!({
        "name": "Acme Inc.",
        "environment": ["KEY"],
        "file_roots": [{"name": "data", "path": "/srv/acme", "read_only": true}],
        "limits": {"calls_per_minute": 600, "max_parallel": 8, "max_tools": 5, "max_queued_calls": 9, "max_stored_bytes": 1_000_000,
            "max_runs": 100, "max_parallel_runs": 3, "max_chats": 20, "max_messages_per_chat": 50, "max_workspaces": 4,
            "max_documents": 30},
    });
    let (status, answer) = server.patch("/api/tenants/acme", patch.clone()).await;
    assert_eq!(status, 200, "{answer}");
    for (key, value) in patch.as_object().unwrap() {
        assert_eq!(&answer["data"][key], value);
    }
    assert_eq!(server.get("/api/tenants/acme").await.1["data"], answer["data"]);
    let home = server.home.path().to_str().unwrap();
    for bad in [
        json!({"limits": {"max_tools": 0}}),
        json!({"limits": {"max_tools": "many"}}),
        json!({"limits": {"max_toolz": 1}}),
        json!({"environment": ["A B"]}),
        json!({"file_roots": [{"name": "x", "path": "relative"}]}),
        json!({"file_roots": [{"name": "x", "path": home}]}),
        json!({"file_roots": [{"name": "x", "path": format!("{home}/skills")}]}),
        json!({"file_roots": [{"name": "x", "path": "/"}]}),
        json!({"nam": "x"}),
    ] {
        let (status, answer) = server.patch("/api/tenants/acme", bad.clone()).await;
        assert_eq!(status, 400, "{bad} {answer}");
    }
    // An admin of a tenant is no admin of the platform.
    let plain = server.post("/api/tokens", json!({"name": "plain", "role": "admin"})).await.1;
    for token in [token.as_str(), plain["data"]["token"].as_str().unwrap()] {
        for (method, path) in [
            (Method::GET, "/api/tenants"),
            (Method::POST, "/api/tenants"),
            (Method::GET, "/api/tenants/acme"),
            (Method::PATCH, "/api/tenants/acme"),
            (Method::DELETE, "/api/tenants/acme?confirm=acme"),
        ] {
            let (status, answer) = with(&server, token, method, path, json!({})).await;
            assert_eq!((status, code(&answer)), (403, "forbidden"), "{path}");
        }
    }
    let disabled = server.patch("/api/tenants/default", json!({"enabled": false})).await.1;
    assert_eq!(code(&disabled), "read_only");
    assert_eq!(code(&server.delete("/api/tenants/default?confirm=default").await.1), "read_only");
    assert_eq!(server.delete("/api/tenants/none?confirm=none").await.0, 404);
}

#[tokio::test]
async fn tools_files_and_calls_of_a_tenant_are_its_own() {
    let server = Server::start_with(|settings| {
        settings.secrets.environment =
            vec![("KEY".to_owned(), haft_core::secret::Secret::new("v-1234".into()))];
    })
    .await;
    let token = tenant(&server, "acme").await;
    let acme = |method, path: &'static str, body| with(&server, &token, method, path, body);
    let (status, tool) = acme(Method::POST, "/api/tools", function_tool("worker", "echo")).await;
    assert_eq!(status, 201, "{tool}");
    assert_eq!(tool["data"]["path"], "skills/@acme/user-created/worker@1.0.0.json");
    assert!(server.home.path().join("skills/@acme/user-created/worker@1.0.0.json").exists());
    let (status, answer) = acme(Method::POST, "/api/tools/worker/invoke", json!({"args": {"a": 1}})).await;
    assert_eq!((status, &answer["value"]), (200, &json!({"a": 1})), "{answer}");
    let call = format!("/api/calls/{}", answer["call_id"].as_str().unwrap());
    assert_eq!(server.get("/api/tools/worker").await.0, 404);
    assert_eq!(server.get(&call).await.0, 404);

    // Files: the same path is another file.
    let write = json!({
        "name": "note", "description": "Writes a note",
        "implementation": {"type": "file_write", "path": "note.txt", "content": "{{text}}"},
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    });
    assert_eq!(acme(Method::POST, "/api/tools", write.clone()).await.0, 201);
    server.create(write).await;
    let (_, answer) =
        acme(Method::POST, "/api/tools/note/invoke", json!({"args": {"text": "of acme"}})).await;
    assert_eq!(answer["ok"], true, "{answer}");
    assert_eq!(server.invoke("note", json!({"text": "of default"})).await.1["ok"], true);
    let read = |path: &str| std::fs::read_to_string(server.home.path().join(path)).unwrap();
    assert_eq!(
        (read("files/acme/note.txt"), read("workspace/note.txt")),
        ("of acme".into(), "of default".into())
    );

    // Environment secrets: only those that the tenant may read.
    let reads = json!({
        "name": "env", "description": "Writes a secret",
        "implementation": {"type": "file_write", "path": "secret.txt", "content": "${KEY}"},
    });
    assert_eq!(acme(Method::POST, "/api/tools", reads).await.0, 201);
    let (_, answer) = acme(Method::POST, "/api/tools/env/invoke", json!({})).await;
    assert_eq!(answer["ok"], false, "{answer}");
    server.patch("/api/tenants/acme", json!({"environment": ["KEY"]})).await;
    let (_, answer) = acme(Method::POST, "/api/tools/env/invoke", json!({})).await;
    assert_eq!(
        (answer["ok"].as_bool(), read("files/acme/secret.txt").as_str()),
        (Some(true), "v-1234"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_deleted_tenant_leaves_nothing() {
    let server = Server::start().await;
    let token = tenant(&server, "acme").await;
    with(&server, &token, Method::POST, "/api/tools", function_tool("worker", "echo")).await;
    with(&server, &token, Method::POST, "/api/tools/worker/invoke", json!({})).await;
    with(&server, &token, Method::PUT, "/api/credentials/KEY", json!({"value": "v-1234"})).await;
    let (status, answer) = server.delete("/api/tenants/acme").await;
    assert_eq!(status, 400, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("confirm it with `?confirm=acme`"), "{message}");
    assert_eq!(server.delete("/api/tenants/acme?confirm=acm").await.0, 400);
    assert_eq!(server.delete("/api/tenants/acme?confirm=acme").await.0, 200);
    assert_eq!(with(&server, &token, Method::GET, "/api/tools", json!({})).await.0, 401);
    assert_eq!(server.get("/api/tenants/acme").await.0, 404);
    assert!(!server.home.path().join("skills/@acme").exists());
    // Its successor starts empty.
    let token = tenant(&server, "acme").await;
    for (path, list) in [
        ("/api/tools", "tools"),
        ("/api/calls", "calls"),
        ("/api/credentials", "credentials"),
        ("/api/tools/bundles", "bundles"),
    ] {
        let (_, answer) = with(&server, &token, Method::GET, path, json!({})).await;
        // Built-in tools belong to everyone.
        let own = answer["data"][list].as_array().unwrap().iter().filter(|item| !item["tenant"].is_null());
        assert_eq!(own.collect::<Vec<_>>(), Vec::<&Value>::new(), "{path}");
    }
    let (_, audit) = with(&server, &token, Method::GET, "/api/audit", json!({})).await;
    let seen: Vec<&Value> =
        audit["data"]["records"].as_array().unwrap().iter().map(|record| &record["action"]).collect();
    assert!(!seen.iter().any(|action| *action == "tool.create" || *action == "credential.put"), "{audit}");
    let (_, audit) = server.get("/api/audit?action=tenant.delete").await;
    assert_eq!(audit["data"]["records"][0]["target"], "acme", "{audit}");
}

#[tokio::test]
async fn tokens_of_a_disabled_tenant_stop_working() {
    let server = Server::start().await;
    let token = tenant(&server, "acme").await;
    let status = async || with(&server, &token, Method::GET, "/api/tools", json!({})).await.0;
    assert_eq!(status().await, 200);
    server.patch("/api/tenants/acme", json!({"enabled": false})).await;
    assert_eq!(status().await, 401);
    server.patch("/api/tenants/acme", json!({"enabled": true})).await;
    assert_eq!(status().await, 200);
}

#[tokio::test]
async fn the_limits_of_a_tenant_hold() {
    let server = Server::start().await;
    let (acme, other) = (tenant(&server, "acme").await, tenant(&server, "other").await);
    for token in [&acme, &other] {
        with(&server, token, Method::POST, "/api/tools", function_tool("greeter", "echo")).await;
    }
    let limits = json!({"limits": {"calls_per_minute": 2, "max_queued_calls": 1}});
    let (status, answer) =
        send(server.request(Method::PATCH, "/api/tenants/acme").body(limits.to_string())).await;
    assert_eq!(status, 200, "{answer}");
    let invoke = async |token: &str| {
        let request = server.bare(Method::POST, "/api/tools/greeter/invoke").bearer_auth(token);
        let request = request.header("content-type", "application/json");
        request.body(json!({"args": {"text": "a"}}).to_string()).send().await.unwrap()
    };
    for _ in 0..2 {
        assert_eq!(invoke(&acme).await.status().as_u16(), 200);
    }
    let rejected = invoke(&acme).await;
    assert_eq!(rejected.status().as_u16(), 429);
    let number = |name: &str| rejected.headers()[name].to_str().unwrap().parse::<u64>().unwrap();
    assert_eq!((number("ratelimit-limit"), number("ratelimit-remaining")), (2, 0));
    assert_eq!(number("ratelimit-reset"), number("retry-after"));
    assert!((1..=60).contains(&number("retry-after")));
    let answer: Value = serde_json::from_slice(&rejected.bytes().await.unwrap()).unwrap();
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("`acme` (`limits.calls_per_minute`): 2 calls per 1m; retry in "), "{message}");
    for _ in 0..3 {
        assert_eq!(invoke(&other).await.status().as_u16(), 200, "other tenants have their own limit");
    }
    // The rate holds queued calls back, so they stay in the queue.
    let path = "/api/tools/greeter/invoke?async=true";
    let queue = async || with(&server, &acme, Method::POST, path, json!({"args": {"text": "a"}})).await;
    assert_eq!(queue().await.0, 202);
    let mut last = queue().await;
    // A worker may be looking at a queued call, which then does not count.
    for _ in 0..100 {
        if last.0 == 503 {
            break;
        }
        last = queue().await;
    }
    assert_eq!((last.0, code(&last.1)), (503, "overloaded"), "{}", last.1);
    assert!(last.1.to_string().contains("limit of 1 queued calls"), "{}", last.1);
    let (_, answer) =
        send(server.request(Method::PATCH, "/api/tenants/acme").body(json!({"limits": {}}).to_string()))
            .await;
    assert_eq!(answer["data"]["limits"], json!({}));
    assert_eq!(invoke(&acme).await.status().as_u16(), 200);
}
