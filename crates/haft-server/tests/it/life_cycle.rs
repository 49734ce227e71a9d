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
    assert_eq!((status, &answer["warnings"]), (200, &json!(["this tool is deprecated"])));
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

#[tokio::test]
async fn versions_that_are_no_semver_and_duplicates_say_why() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    let mut second = function_tool("worker", "echo");
    second["version"] = json!("2.0.0");
    server.create(second).await;
    for (version, status, expected) in [
        ("1.0", 400, "expected X.Y.Z"),
        ("v1.0.0", 400, "expected X.Y.Z"),
        ("01.0.0", 400, "expected X.Y.Z"),
        ("2.0.0", 409, "`user-created:worker@2.0.0` already exists"),
        ("1.0%2F0", 400, "version"),
    ] {
        let path = format!("/api/tools/worker@1.0.0/version?new_version={version}");
        let (found, answer) = server.post(&path, json!({})).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!(found, status, "{version}: {message}");
        assert!(message.contains(expected), "{version}: {message}");
    }
    let (status, answer) = server.post("/api/tools", function_tool("worker", "echo")).await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
    let (_, tool) = server.get("/api/tools/worker@1.0.0").await;
    assert_eq!(tool["data"]["revision"], 1, "a rejected label changes nothing");
}

#[tokio::test]
async fn a_tool_that_is_not_ready_is_not_published() {
    let server = Server::start().await;
    server.create(function_tool("worker", "missing_function")).await;
    let (status, answer) = server.post("/api/tools/worker/publish", json!({})).await;
    assert_eq!((status, code(&answer)), (409, "not_ready"), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("missing_function"), "{answer}");
    let (_, tool) = server.get("/api/tools/worker").await;
    assert_eq!((&tool["data"]["status"], &tool["data"]["published_by"]), (&json!("draft"), &json!(null)));
}

#[tokio::test]
async fn status_and_enabled_agree() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    server.post("/api/tools/worker/publish", json!({})).await;
    let state = async || {
        let (_, tool) = server.get("/api/tools/worker").await;
        (tool["data"]["status"].clone(), tool["data"]["enabled"].clone())
    };
    let put = async |change: serde_json::Value| {
        let mut shown = server.get("/api/tools/worker").await.1["data"].clone();
        shown.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        server.put("/api/tools/worker", shown).await
    };
    // The client sends `enabled: true` back as it was.
    assert_eq!(put(json!({"status": "disabled"})).await.0, 200);
    assert_eq!(state().await, (json!("disabled"), json!(false)));
    assert_eq!(code(&server.invoke("worker", json!({})).await.1), "disabled");
    server.patch("/api/tools/worker", json!({"enabled": true})).await;
    assert_eq!(state().await, (json!("published"), json!(true)), "it has the status it had");
    assert_eq!(server.invoke("worker", json!({})).await.0, 200);

    put(json!({"status": "disabled"})).await;
    put(json!({"enabled": true})).await;
    assert_eq!(state().await, (json!("published"), json!(true)));
    server.patch("/api/tools/worker", json!({"enabled": false})).await;
    assert_eq!(state().await, (json!("published"), json!(false)));
    let (status, answer) = put(json!({"status": "disabled", "enabled": true})).await;
    assert_eq!(status, 400, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("`enabled`"), "{answer}");
    put(json!({"status": "disabled"})).await;
    server.post("/api/tools/worker/publish", json!({})).await;
    assert_eq!(state().await, (json!("published"), json!(true)));
}

#[tokio::test]
async fn authors_and_publishers_are_recorded() {
    let server = Server::start().await;
    let (_, token) = server.post("/api/tokens", json!({"name": "kim", "role": "editor"})).await;
    let kim = token["data"]["token"].as_str().unwrap();
    let as_kim = async |method: reqwest::Method, path: &str, body: serde_json::Value| {
        let (status, answer) =
            crate::harness::send(server.bare(method, path).bearer_auth(kim).body(body.to_string())).await;
        assert!(status < 300, "{answer}");
        answer["data"].clone()
    };
    server.create(function_tool("worker", "echo")).await;
    let updated = as_kim(reqwest::Method::PUT, "/api/tools/worker", function_tool("worker", "double")).await;
    assert_eq!((&updated["created_by"], &updated["modified_by"]), (&json!("local"), &json!("kim")));
    server.post("/api/tools/worker/publish", json!({})).await;
    as_kim(reqwest::Method::PUT, "/api/tools/worker", function_tool("worker", "fail")).await;
    let published = as_kim(reqwest::Method::POST, "/api/tools/worker/publish", json!({})).await;
    assert_eq!(published["published_by"], "kim", "{published}");
    let (_, answer) = server.get("/api/tools/worker/revisions").await;
    let revisions: Vec<_> = answer["data"]["revisions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| {
            (r["number"].clone(), r["created_by"].clone(), r["published_by"].clone(), r["published"].clone())
        })
        .collect();
    assert_eq!(
        revisions,
        [
            (json!(3), json!("kim"), json!("kim"), json!(true)),
            (json!(2), json!("kim"), json!("local"), json!(false)),
            (json!(1), json!("local"), json!(null), json!(false)),
        ]
    );
    let folder = server.home.path().join("skills/user-created");
    let file = "name: from-file\ndescription: d\nimplementation: {type: function, function: echo}\n";
    std::fs::write(folder.join("from-file.yaml"), file).unwrap();
    let tool = crate::harness::poll(async || {
        let (status, tool) = server.get("/api/tools/from-file").await;
        (status == 200).then_some(tool)
    })
    .await;
    assert_eq!(tool["data"]["created_by"], "file", "{tool}");
}

#[tokio::test]
async fn a_bundle_is_published_as_a_whole_or_not_at_all() {
    let server = Server::start().await;
    for (name, function) in [("one", "echo"), ("two", "missing_function"), ("three", "echo"), ("old", "echo")]
    {
        let (status, answer) = server.post("/api/tools?bundle=demo", function_tool(name, function)).await;
        assert_eq!(status, 201, "{answer}");
    }
    server.post("/api/tools/three/publish", json!({})).await;
    server.post("/api/tools/old/deprecate", json!({})).await;
    let publish = "/api/tools/bundles/demo/publish";
    let (status, report) = server.post(&format!("{publish}?dry_run=true"), json!({})).await;
    assert_eq!(status, 200, "{report}");
    let actions: Vec<_> = report["data"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (line["tool"].as_str().unwrap(), line["action"].as_str().unwrap()))
        .collect();
    assert_eq!(
        actions,
        [
            ("demo:old@1.0.0", "skipped"),
            ("demo:one@1.0.0", "published"),
            ("demo:three@1.0.0", "unchanged"),
            ("demo:two@1.0.0", "failed"),
        ]
    );
    let (status, answer) = server.post(publish, json!({})).await;
    assert_eq!((status, code(&answer)), (409, "not_ready"), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("demo:two@1.0.0"), "{answer}");
    assert_eq!(server.get("/api/tools/one").await.1["data"]["status"], "draft", "nothing was published");

    server.put("/api/tools/two", function_tool("two", "double")).await;
    let (status, report) = server.post(publish, json!({})).await;
    assert_eq!((status, &report["data"]["published"]), (200, &json!(2)), "{report}");
    for name in ["one", "two"] {
        let (_, tool) = server.get(&format!("/api/tools/{name}")).await;
        assert_eq!(
            (&tool["data"]["status"], &tool["data"]["published_by"]),
            (&json!("published"), &json!("local"))
        );
    }
    let (_, report) = server.post(publish, json!({})).await;
    assert_eq!((&report["data"]["published"], &report["data"]["unchanged"]), (&json!(0), &json!(3)));
    assert_eq!(server.post("/api/tools/bundles/none/publish", json!({})).await.0, 404);
    let (status, answer) = server.post("/api/tools/bundles/builtin/publish", json!({})).await;
    assert_eq!((status, code(&answer)), (403, "read_only"), "{answer}");
}

#[tokio::test]
async fn a_steps_tool_is_ready_while_the_tools_of_its_steps_exist() {
    let server = Server::start().await;
    server.create(function_tool("first", "echo")).await;
    let made = server
        .create(json!({
            "name": "both", "description": "Runs two tools", "input_schema": {"type": "object"},
            "implementation": {"type": "steps", "steps": [{"id": "a", "tool": "first"}, {"id": "b", "tool": "second"}]},
        }))
        .await;
    let reason = "`implementation.steps[1].tool`: tool `second` not found";
    assert_eq!((&made["ready"], &made["error"]), (&json!(false), &json!(reason)), "{made}");
    assert!(made["warnings"].to_string().contains("tool `second` not found"), "{made}");
    let (status, answer) = server.post("/api/tools/both/publish", json!({})).await;
    assert_eq!((status, code(&answer)), (409, "not_ready"), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().ends_with(reason), "{answer}");
    assert_eq!(server.invoke("both", json!({})).await.0, 409);

    server.create(function_tool("second", "echo")).await;
    assert_eq!(server.get("/api/tools/both").await.1["data"]["ready"], true);
    assert_eq!(server.invoke("both", json!({})).await.0, 200);
    assert_eq!(server.post("/api/tools/both/publish", json!({})).await.0, 200);
    server.delete("/api/tools/second?force=true").await;
    assert_eq!(server.get("/api/tools/both").await.1["data"]["ready"], false);
}
