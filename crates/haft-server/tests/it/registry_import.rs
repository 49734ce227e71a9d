//! Rows of another registry.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, send};

async fn import(server: &Server, query: &str, rows: &[Value]) -> (u16, Value) {
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    let request = server.request(Method::POST, &format!("/api/import/registry{query}"));
    send(request.header("content-type", "application/x-ndjson").body(lines.join("\n"))).await
}

fn rows() -> Vec<Value> {
    vec![
        json!({
            "id": "r1", "tenant_id": "t1", "name": "Weather!", "slug": "weather", "description": "Weather of a city",
            "scope": "tenant", "is_active": true, "is_system": false, "published_at": "2024-05-01 10:00:00",
            "schema": {"input": {"type": "object", "properties": {"city": {"type": "string"}}}},
            "config_schema": {
                "implementation": {"type": "http", "url": "https://weather.example/${city}", "headers": {"api_key": "s3cr3t-key"}},
                "execution": {"timeout_s": 20},
            },
            "builtin_template_id": null, "team": "blue", "webhook_secret": "hunter2-hunter2",
        }),
        json!({
            "id": "r2", "tenant_id": "t1", "slug": "off", "name": "Off", "description": "d", "is_active": false,
            "implementation_type": "function", "config_schema": {"implementation": {"function_name": "echo"}},
        }),
        json!({
            "id": "r3", "tenant_id": "t1", "slug": "draft", "name": "Draft", "description": "d", "status": "draft",
            "version": "2.1.0", "implementation_type": "function",
            "config_schema": {"implementation": {"function_name": "echo"}},
        }),
        json!({
            "id": "r4", "tenant_id": "t1", "slug": "hello-copy", "name": "Hello", "description": "d",
            "builtin_key": "echo", "builtin_template_id": "tpl-7", "config_schema": {},
        }),
        // A built-in tool of the other system that haft has, and an artifact.
        json!({"id": "r5", "tenant_id": null, "slug": "clock", "builtin_key": "clock", "is_system": true, "config_schema": {}}),
        json!({"id": 6, "tenant_id": "t1", "slug": "report", "description": "d", "artifact_id": "a-1", "artifact_version": "3"}),
    ]
}

#[tokio::test]
async fn rows_become_tools_with_the_defaults_of_the_registry() {
    let server = Server::start().await;
    let (status, report) = import(&server, "?dry_run=true", &rows()).await;
    assert_eq!(status, 200, "{report}");
    let actions: Vec<_> = report["data"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["tool"].clone(), row["action"].clone(), row["status"].clone()))
        .collect();
    let created = |tool: &str, status: &str| (json!(tool), json!("created"), json!(status));
    assert_eq!(
        actions,
        [
            created("user-created:weather@1.0.0", "published"),
            created("user-created:off@1.0.0", "disabled"),
            created("user-created:draft@2.1.0", "draft"),
            created("user-created:hello-copy@1.0.0", "published"),
            (json!(null), json!("skipped"), json!(null)),
            created("user-created:report@1.0.0", "published"),
        ]
    );
    assert_eq!(
        server.get("/api/tools?filter=skills").await.1["data"]["total"],
        0,
        "a dry run stores nothing"
    );

    let (status, report) = import(&server, "", &rows()).await;
    assert_eq!((status, &report["data"]["created"]), (200, &json!(5)), "{report}");
    let (_, weather) = server.get("/api/tools/weather").await;
    let weather = &weather["data"];
    assert_eq!(
        (&weather["display_name"], &weather["status"], &weather["enabled"], &weather["tool_type"]),
        (&json!("Weather!"), &json!("published"), &json!(true), &json!("custom"))
    );
    assert_eq!(
        (&weather["published_at"], &weather["published_revision"]),
        (&json!("2024-05-01T10:00:00Z"), &json!(1))
    );
    assert_eq!(weather["execution"]["timeout_ms"], 20_000);
    assert_eq!(weather["implementation"]["headers"]["api_key"], "***");
    assert_eq!(
        weather["legacy"],
        json!({"id": "r1", "tenant_id": "t1", "other": {"team": "blue", "webhook_secret": "***"}})
    );
    assert!(!weather.to_string().contains("hunter2") && !weather.to_string().contains("s3cr3t-key"));
    let (_, off) = server.get("/api/tools/off").await;
    assert_eq!((&off["data"]["status"], &off["data"]["enabled"]), (&json!("disabled"), &json!(false)));
    let (_, report) = server.get("/api/tools/report").await;
    assert_eq!(
        (&report["data"]["tool_type"], &report["data"]["legacy"]["id"]),
        (&json!("artifact"), &json!("6"))
    );

    // A tenant's copy of a built-in tool is hidden from lists, but runs.
    let listed = async |query: &str| {
        let (_, list) = server.get(&format!("/api/tools?filter=skills&include_disabled=true{query}")).await;
        let tools = list["data"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed("").await, ["draft", "off", "report", "weather"]);
    assert!(listed("&include_builtin_copies=true").await.contains(&"hello-copy".to_owned()));
    let (_, copy) = server.get("/api/tools/hello-copy").await;
    assert_eq!(copy["data"]["tool_type"], "built_in", "{copy}");
    assert_eq!(
        (&copy["data"]["legacy"]["builtin_template_id"], &copy["data"]["legacy"]["builtin_key"]),
        (&json!("tpl-7"), &json!("echo"))
    );
    let (status, answer) = server.invoke("hello-copy", json!({"a": 1})).await;
    assert_eq!((status, &answer["value"]), (200, &json!({"a": 1})), "{answer}");
    let (_, definitions) = server.get("/api/tools/definitions/all").await;
    assert!(!definitions.to_string().contains("hello-copy"), "{definitions}");
    let (_, changes) = server.get("/api/audit?action=import.registry").await;
    assert_eq!(changes["data"]["records"][0]["target"], "user-created: 5 created, 0 updated");

    // What was imported survives a restart, also the fields that no file has.
    let server = server.restart().await;
    let (_, copy) = server.get("/api/tools/hello-copy").await;
    assert_eq!(copy["data"]["legacy"]["builtin_template_id"], "tpl-7", "{copy}");
}

#[tokio::test]
async fn a_repeated_import_updates_only_what_changed() {
    let server = Server::start().await;
    import(&server, "?bundle=legacy", &rows()).await;
    let (status, report) = import(&server, "?bundle=legacy", &rows()).await;
    assert_eq!(status, 200, "{report}");
    assert_eq!(
        (&report["data"]["created"], &report["data"]["updated"], &report["data"]["unchanged"]),
        (&json!(0), &json!(0), &json!(5))
    );
    assert_eq!(server.get("/api/tools/weather").await.1["data"]["revision"], 1);
    let mut changed = rows();
    changed[0]["description"] = json!("Weather of a place");
    changed[1]["is_active"] = json!(true);
    // A secret that was exported masked stays as it is stored.
    changed[0]["config_schema"]["implementation"]["headers"]["api_key"] = json!("***");
    let (status, report) = import(&server, "?bundle=legacy", &changed).await;
    assert_eq!(
        (status, &report["data"]["updated"], &report["data"]["unchanged"]),
        (200, &json!(2), &json!(3)),
        "{report}"
    );
    let (_, weather) = server.get("/api/tools/weather").await;
    assert_eq!(
        (&weather["data"]["revision"], &weather["data"]["published_revision"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(server.get("/api/tools/off").await.1["data"]["status"], "published");
}

#[tokio::test]
async fn nothing_is_imported_if_a_row_is_invalid() {
    let server = Server::start().await;
    server.create(crate::harness::function_tool("draft", "echo")).await;
    let mut bad = rows();
    bad.push(json!({"id": "r7", "slug": "bad name", "implementation_type": "function"}));
    bad.push(json!({"id": "r8", "slug": "teleport", "description": "d", "implementation_type": "teleport"}));
    bad.push(json!({"id": "r9", "slug": "weather", "description": "d", "implementation_type": "function",
        "config_schema": {"implementation": {"function_name": "echo"}}}));
    bad.push(json!([1]));
    bad.push(json!({"id": "r10", "slug": "x", "status": "live", "implementation_type": "function"}));
    bad.push(json!({"id": "r11", "slug": "draft", "version": "1.0.0", "description": "d", "implementation_type": "function",
        "config_schema": {"implementation": {"function_name": "echo"}}}));
    let (status, answer) = import(&server, "", &bad).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
    let failed: Vec<_> = answer["error"]["details"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["line"].as_u64().unwrap(), row["reason"].as_str().unwrap().to_owned()))
        .collect();
    for ((line, reason), (expected_line, expected)) in failed.iter().zip([
        (7, "bad name"),
        (8, "unknown implementation type `teleport`"),
        (9, "another row has the same name and version"),
        (10, "expected a JSON object"),
        (11, "`status`: unknown value"),
        (12, "was not imported from this row"),
    ]) {
        assert_eq!(*line, expected_line, "{failed:?}");
        assert!(reason.contains(expected), "{line}: {reason}");
    }
    assert_eq!(failed.len(), 6, "{failed:?}");
    assert_eq!(server.get("/api/tools?filter=skills").await.1["data"]["total"], 1);
    assert!(!server.home.path().join("skills/user-created/weather.json").exists());

    let mut two = rows();
    two[1]["tenant_id"] = json!("t2");
    let (status, answer) = import(&server, "", &two).await;
    assert_eq!(status, 400);
    assert!(answer["error"]["message"].as_str().unwrap().contains("`t1`, `t2`"), "{answer}");
    let (status, report) = import(&server, "?tenant_id=t2&bundle=two", &two).await;
    assert_eq!(
        (status, &report["data"]["created"], &report["data"]["skipped"]),
        (200, &json!(1), &json!(5)),
        "{report}"
    );
    for empty in ["", "\n\n"] {
        let request = server.request(Method::POST, "/api/import/registry").body(empty);
        assert_eq!(send(request).await.0, 400);
    }
    let huge = "{}\n".repeat(10_001);
    let (status, answer) = send(server.request(Method::POST, "/api/import/registry").body(huge)).await;
    assert_eq!(status, 400);
    assert!(answer["error"]["message"].as_str().unwrap().contains("10000"), "{answer}");
}
