//! Creating, reading, changing, switching and deleting tools.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, send};

#[tokio::test]
async fn a_change_does_not_move_a_tool() {
    let server = Server::start().await;
    server.create(function_tool("greeter", "echo")).await;
    let mut changed = function_tool("greeter", "echo");
    changed["bundle"] = json!("elsewhere");
    let (status, answer) = server.put("/api/tools/greeter", changed.clone()).await;
    assert_eq!((status, &answer["data"]["bundle"]), (200, &json!("user-created")), "{answer}");
    assert!(answer["data"]["warnings"].to_string().contains("not_moved"), "{answer}");
    changed["bundle"] = json!("user-created");
    let (_, answer) = server.put("/api/tools/greeter", changed).await;
    assert!(!answer.to_string().contains("not_moved"), "{answer}");
}

#[tokio::test]
async fn a_tool_lives_from_creation_to_deletion() {
    let server = Server::start().await;
    let tool = server.create(function_tool("greeter", "echo")).await;
    assert_eq!(
        (&tool["name"], &tool["version"], &tool["bundle"], &tool["ready"], &tool["status"], &tool["source"]),
        (
            &json!("greeter"),
            &json!("1.0.0"),
            &json!("user-created"),
            &json!(true),
            &json!("draft"),
            &json!("user")
        )
    );
    let path = server.home.path().join(tool["path"].as_str().unwrap());
    assert!(path.is_file(), "{}", path.display());

    let mut changed = function_tool("greeter", "echo");
    changed["description"] = json!("Says what it is told");
    let (status, answer) = server.put("/api/tools/greeter", changed).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!((&answer["data"]["revision"], &answer["data"]["id"]), (&json!(2), &tool["id"]));
    assert!(std::fs::read_to_string(&path).unwrap().contains("Says what it is told"));

    let (status, answer) = server.patch("/api/tools/greeter", json!({"enabled": false})).await;
    assert_eq!((status, &answer["data"]["enabled"]), (200, &json!(false)));
    let before = answer["data"]["modified_at"].clone();
    let (status, answer) = server.invoke("greeter", json!({})).await;
    assert_eq!((status, code(&answer)), (409, "disabled"));
    let (_, answer) = server.patch("/api/tools/greeter", json!({"enabled": true})).await;
    assert_eq!(answer["data"]["modified_at"], before, "switching does not move modified_at");

    let (status, answer) = server.delete("/api/tools/greeter").await;
    assert_eq!((status, &answer["data"]["message"]), (200, &json!("Tool 'greeter' deleted")));
    let backup = server.home.path().join(answer["data"]["backup_path"].as_str().unwrap());
    assert!(backup.is_file() && !path.exists());
    assert_eq!(server.get("/api/tools/greeter").await.0, 404);
}

#[tokio::test]
async fn nothing_is_lost_by_a_restart() {
    let server = Server::start().await;
    let tool = server.create(function_tool("keeper", "echo")).await;
    server.patch("/api/tools/keeper", json!({"enabled": false})).await;
    let (_, answer) = server.invoke("hello", json!({"x": 1})).await;
    let call = answer["call_id"].as_str().unwrap().to_owned();

    let server = server.restart().await;
    let (_, answer) = server.get("/api/tools/keeper").await;
    assert_eq!((&answer["data"]["id"], &answer["data"]["enabled"]), (&tool["id"], &json!(false)));
    let (status, answer) = server.get(&format!("/api/calls/{call}")).await;
    assert_eq!((status, &answer["data"]["value"]), (200, &json!({"x": 1})));
    let (_, answer) = server.get("/api/tools/hello").await;
    assert_eq!(answer["data"]["usage"]["call_count"], 1);
}

#[tokio::test]
async fn a_tool_is_resolved_by_every_reference() {
    let server = Server::start().await;
    let tool = server.create(function_tool("greeter", "echo")).await;
    let id = tool["id"].as_str().unwrap();
    for reference in [
        id,
        &format!("tool-{id}"),
        "greeter",
        "user-created:greeter",
        "greeter@1.0.0",
        "user-created:greeter@1.0.0",
    ] {
        for base in ["/api/tools", "/tools"] {
            let (status, answer) = server.get(&format!("{base}/{reference}")).await;
            assert_eq!((status, &answer["data"]["id"]), (200, &tool["id"]), "{base}/{reference}");
        }
    }
}

#[tokio::test]
async fn a_bare_name_is_resolved_in_order_and_ambiguity_is_reported() {
    let server = Server::start().await;
    server.create(function_tool("hello", "fail")).await;
    let (_, answer) = server.invoke("hello", json!({"a": 1})).await;
    assert_eq!(answer["value"], json!({"a": 1}), "the built-in comes first");
    for bundle in ["one", "two"] {
        let (status, answer) =
            server.post(&format!("/api/tools?bundle={bundle}"), function_tool("twin", "echo")).await;
        assert_eq!(status, 201, "{answer}");
    }
    let (status, answer) = server.get("/api/tools/twin").await;
    assert_eq!((status, code(&answer)), (409, "ambiguous_name"));
    assert_eq!(answer["error"]["details"]["candidates"], json!(["one:twin@1.0.0", "two:twin@1.0.0"]));
    assert_eq!(server.get("/api/tools/two:twin").await.0, 200);
}

#[tokio::test]
async fn lists_filter_and_page() {
    let server = Server::start().await;
    for index in 0..7 {
        let mut tool = function_tool(&format!("tool-{index}"), "echo");
        tool["tags"] = json!([if index % 2 == 0 { "even" } else { "odd" }]);
        server.create(tool).await;
    }
    server.create(function_tool("orphan", "not_registered")).await;
    server.patch("/api/tools/tool-6", json!({"enabled": false})).await;
    let names = |answer: &Value| -> Vec<String> {
        answer["data"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let (_, answer) = server.get("/api/tools?filter=skills").await;
    assert_eq!(
        (&answer["data"]["total"], &answer["data"]["ready"], &answer["data"]["failed"]),
        (&json!(7), &json!(6), &json!(1))
    );
    let (_, answer) = server.get("/api/tools?tags=even&includeDisabled=true").await;
    assert_eq!(names(&answer), ["tool-0", "tool-2", "tool-4", "tool-6"]);
    let (_, answer) = server.get("/tools/tools?bundleIDs=user-created&recommendedPageSize=2").await;
    assert_eq!(names(&answer), ["orphan", "tool-0"]);
    let mut seen = Vec::new();
    let mut token = String::new();
    loop {
        let (_, answer) = server.get(&format!("/api/tools?page_size=3&page_token={token}")).await;
        seen.extend(names(&answer));
        match answer["data"]["next_page_token"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => break,
        }
    }
    assert_eq!(
        seen,
        ["orphan", "tool-0", "tool-1", "tool-2", "tool-3", "tool-4", "tool-5", "clock", "hello"]
    );
    let (_, answer) = server.get("/api/tools?skip=3&limit=2").await;
    assert_eq!(names(&answer), ["tool-2", "tool-3"]);
    let (_, answer) = server.get("/api/tools?filter=built-in").await;
    assert_eq!(names(&answer), ["clock", "hello"]);
    for bad in [
        "filter=x",
        "status=x",
        "page_token=zzz",
        "page_size=0",
        "page_size=-1",
        "skip=a",
        "include_disabled=maybe",
    ] {
        let (status, answer) = server.get(&format!("/api/tools?{bad}")).await;
        assert_eq!(status, 400, "{bad}: {answer}");
    }
}

#[tokio::test]
async fn a_missing_function_makes_a_tool_not_ready() {
    let server = Server::start().await;
    let tool = server.create(function_tool("orphan", "not_registered")).await;
    assert_eq!(tool["ready"], false);
    assert!(tool["error"].as_str().unwrap().contains("not_registered"), "{tool}");
    let (status, answer) = server.invoke("orphan", json!({})).await;
    assert_eq!((status, code(&answer)), (409, "not_ready"));
}

#[tokio::test]
async fn built_in_tools_are_read_only_except_enabled() {
    let server = Server::start().await;
    for (method, path) in [
        (Method::PUT, "/api/tools/clock"),
        (Method::DELETE, "/api/tools/clock"),
        (Method::POST, "/api/tools/clock/publish"),
        (Method::POST, "/api/tools/clock/version?new_version=2.0.0"),
        (Method::DELETE, "/api/tools/bundles/builtin"),
        (Method::PUT, "/api/tools/bundles/builtin"),
    ] {
        let body = if path.contains("bundles") { json!({}) } else { function_tool("clock", "echo") };
        let (status, answer) = send(server.request(method.clone(), path).body(body.to_string())).await;
        assert_eq!((status, code(&answer)), (403, "read_only"), "{method} {path} {answer}");
    }
    let (status, answer) = server.patch("/api/tools/clock", json!({"enabled": false})).await;
    assert_eq!((status, &answer["data"]["enabled"]), (200, &json!(false)));
    let (status, _) = server.patch("/api/tools/bundles/builtin", json!({"enabled": false})).await;
    assert_eq!(status, 200);
    assert_eq!(server.invoke("hello", json!({})).await.0, 409);
    let (_, answer) = server.get("/api/tools/builtins/templates").await;
    assert_eq!(answer["data"]["total"], 2);
}

#[tokio::test]
async fn a_literal_secret_is_masked_and_the_mask_means_unchanged() {
    let server = Server::start().await;
    let tool = json!({
        "name": "private", "description": "Calls with a literal key",
        "implementation": {"type": "http", "url": "https://api.example.com/", "headers": {"X-Api-Key": "hunter2"}},
    });
    let created = server.create(tool).await;
    assert_eq!(created["implementation"]["headers"]["X-Api-Key"], "***");
    for path in ["", "/source", "/revisions", "/source?format=yaml"] {
        let (status, answer) = server.get(&format!("/api/tools/private{path}")).await;
        assert_eq!(status, 200);
        assert!(!answer.to_string().contains("hunter2"), "{path}: {answer}");
    }
    let mut shown = server.get("/api/tools/private").await.1["data"].clone();
    shown["description"] = json!("Calls with the same literal key");
    let (status, answer) = server.put("/api/tools/private", shown).await;
    assert_eq!(status, 200, "{answer}");
    let file = server.home.path().join(answer["data"]["path"].as_str().unwrap());
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("hunter2") && text.contains("the same literal key"), "{text}");
}

#[tokio::test]
async fn the_mask_means_unchanged_in_the_registry_form_and_on_bundle_routes() {
    let server = Server::start().await;
    let row = json!({
        "slug": "private", "name": "Private", "description": "Calls with a literal key",
        "implementation_type": "http",
        "implementation_config": {"url": "https://api.example.com/", "headers": {"api_key": "hunter2-hunter2"}},
    });
    server.put("/api/tools/bundles/demo", json!({})).await;
    let path = "/api/tools/bundles/demo/tools/private/version/1.0.0";
    let (status, created) = server.put(path, row.clone()).await;
    assert_eq!(status, 201, "{created}");
    for path in [path, "/api/tools/bundles/demo", "/api/tools?bundle_ids=demo", "/api/tools/search?q=private"]
    {
        let (_, answer) = server.get(path).await;
        assert!(!answer.to_string().contains("hunter2"), "{path}: {answer}");
    }
    let mut masked = row;
    masked["implementation_config"]["headers"]["api_key"] = json!("***");
    masked["description"] = json!("Calls with the same literal key");
    let (status, answer) = server.put("/api/tools/private", masked.clone()).await;
    assert_eq!((status, &answer["data"]["revision"]), (200, &json!(2)), "{answer}");
    let file = server.home.path().join(answer["data"]["path"].as_str().unwrap());
    assert!(std::fs::read_to_string(file).unwrap().contains("hunter2-hunter2"));
    let (_, diff) = server.get("/api/tools/private/diff").await;
    let fields: Vec<_> =
        diff["data"]["changes"].as_array().unwrap().iter().map(|change| &change["field"]).collect();
    assert_eq!(fields, ["description"], "{diff}");
    masked["slug"] = json!("fresh");
    let (status, answer) = server.post("/api/tools", masked).await;
    assert_eq!(
        (status, code(&answer)),
        (400, "invalid_definition"),
        "a mask without a stored value: {answer}"
    );
}

#[tokio::test]
async fn an_unknown_template_name_gets_a_warning() {
    let server = Server::start().await;
    let doubts = async |url: &str| {
        let definition = json!({
            "name": "get-weather", "description": "Gets the weather of a city",
            "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
            "implementation": {"type": "http", "url": url},
        });
        let (_, answer) = server.post("/api/tools/x/validate", json!({"definition": definition})).await;
        answer["data"]["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["message"].clone())
            .collect::<Value>()
    };
    assert_eq!(
        doubts("https://a.example/${cty}").await,
        json!(["`cty` is neither an argument nor a stored secret; did you mean the argument `city`?"])
    );
    let keyed = "https://a.example/${city}?key=${WEATHER_KEY}";
    let expected = json!(["secret `WEATHER_KEY` is not stored; store it with `haft secret set WEATHER_KEY`"]);
    assert_eq!(doubts(keyed).await, expected);
    let (status, answer) = server.put("/api/credentials/WEATHER_KEY", json!({"value": "k"})).await;
    assert!(status < 300, "{answer}");
    assert_eq!(doubts(keyed).await, json!([]));
}

#[tokio::test]
async fn all_errors_of_a_text_are_reported_with_their_lines() {
    let server = Server::start().await;
    let text = "name: bad one\ndescription: Lists a folder\npolicy: maybe\nparams:\n  - {name: a, type: integer, default: x}\n  \
                - {name: b, type: string, defalt: x}\nimplementation:\n  type: exec\n  command: |\n    ls\n    eval {{b}}\n  \
                env: {1X: y}\n";
    let (_, answer) = server.post("/api/tools/x/validate", json!({"text": text, "format": "yaml"})).await;
    let shown = |key: &str| {
        let problems = answer["data"][key].as_array().unwrap().iter();
        problems.map(|one| format!("{} {}", one["line"], one["field"].as_str().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(
        shown("errors"),
        ["1 name", "3 policy", "5 params[0].default", "12 implementation.env.1X", "9 implementation.command"],
        "{answer}"
    );
    assert_eq!(shown("warnings"), ["6 params[1].defalt"], "{answer}");

    // The same when it is stored: an ignored field is not an error.
    let request = server.request(Method::POST, "/api/tools");
    let (_, created) = send(request.header("content-type", "application/yaml").body(text)).await;
    let details = &created["error"]["details"];
    assert_eq!(details["problems"].as_array().unwrap().len(), 5, "{created}");
    assert_eq!(details["warnings"][0]["field"], "params[1].defalt", "{created}");
    assert!(!created["error"]["message"].as_str().unwrap().contains("defalt"), "{created}");

    // Errors that only the content shows have lines, too.
    let text =
        "name: lister\ndescription: Lists a folder\nimplementation:\n  type: exec\n  command: ls {{nope}}\n";
    let (_, answer) = server.post("/api/tools/x/validate", json!({"text": text, "format": "yaml"})).await;
    assert_eq!(answer["data"]["errors"][0]["line"], 5, "{answer}");
}

#[tokio::test]
async fn validate_reports_all_problems_without_storing() {
    let server = Server::start().await;
    let (status, answer) = server
        .post(
            "/api/tools/anything/validate",
            json!({"definition": {
                "name": "tool1", "description": "x",
                "implementation": {"type": "http", "url": "ftp://example.com/${city}", "extract": "$.["},
                "input_schema": {"type": "objec"},
            }}),
        )
        .await;
    assert_eq!((status, &answer["data"]["valid"]), (200, &json!(false)), "{answer}");
    let fields: Vec<_> =
        answer["data"]["errors"].as_array().unwrap().iter().map(|e| e["field"].clone()).collect();
    assert!(fields.contains(&json!("implementation.url")), "{answer}");
    assert!(fields.iter().any(|f| f.as_str().unwrap().starts_with("input_schema")), "{answer}");
    assert!(!answer["data"]["warnings"].as_array().unwrap().is_empty(), "{answer}");
    assert_eq!(server.get("/api/tools/tool1").await.0, 404);

    server.create(function_tool("greeter", "echo")).await;
    let (_, answer) = server
        .post("/api/tools/greeter/validate", json!({"check_syntax": true, "check_parameters": true}))
        .await;
    assert_eq!(answer["data"]["valid"], true, "{answer}");
}

#[tokio::test]
async fn writing_back_a_definition_changes_nothing() {
    let server = Server::start().await;
    let http = json!({"type": "http", "method": "POST", "url": "https://api.example.com/${x}", "body": {"a": "${x}"}});
    for definition in [
        function_tool("plain", "echo"),
        json!({"name": "fetch", "description": "Fetches a thing by its name", "implementation": http,
               "input_schema": {"type": "object", "properties": {"x": {"type": "string"}}}}),
        json!({"name": "say", "description": "Says a word to the caller", "runtime": "bash", "body": "echo $x", "timeout_secs": 7,
               "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}, "policy": "elevated"}),
    ] {
        let created = server.create(definition).await;
        let path = format!("/api/tools/{}", created["name"].as_str().unwrap());
        let shown = server.get(&path).await.1["data"].clone();
        let (status, answer) = server.put(&path, shown).await;
        assert_eq!((status, &answer["data"]["revision"]), (200, &json!(1)), "{answer}");
        let codes: Vec<_> =
            answer["data"]["warnings"].as_array().into_iter().flatten().map(|w| &w["code"]).collect();
        assert!(codes.iter().all(|code| **code == "no_executor"), "{answer}");
    }
}

#[tokio::test]
async fn summaries_of_tools_are_small() {
    let server = Server::start().await;
    let mut large = function_tool("large", "echo");
    large["description"] = json!("word ".repeat(200));
    large["input_schema"] =
        json!({"type": "object", "properties": {"a": {"description": "x".repeat(10_000)}}});
    server.create(large).await;
    let mut warned = function_tool("warned", "echo");
    warned["implementation"] = json!({"type": "http", "url": "http://127.0.0.1:9/${MISSING_SECRET}"});
    server.create(warned).await;
    let (status, answer) = server.get("/api/tools?fields=summary&filter=skills").await;
    assert_eq!(status, 200, "{answer}");
    let tools = answer["data"]["tools"].as_array().unwrap();
    assert_eq!((tools.len(), &answer["data"]["total"]), (2, &json!(2)));
    for tool in tools {
        for field in ["input_schema", "output_schema", "implementation", "execution", "body", "warnings"] {
            assert_eq!(tool.get(field), None, "{field}");
        }
        assert!(tool.to_string().len() < 900, "{tool}");
    }
    assert_eq!((&tools[0]["name"], &tools[0]["warning_count"]), (&json!("large"), &json!(0)));
    assert_eq!((&tools[1]["name"], &tools[1]["warning_count"]), (&json!("warned"), &json!(1)));
    let (_, all) = server.get("/api/tools?fields=all&filter=skills").await;
    assert!(all["data"]["tools"][0]["input_schema"].is_object());
    for field in ["id", "description", "tags", "policy", "callable", "modified_at", "source"] {
        let (short, full) = (&tools[1][field], &all["data"]["tools"][1][field]);
        assert_eq!(short, full, "{field}");
    }
    assert_eq!(server.get("/api/tools?fields=names").await.0, 400);
}

/// 10,000 rows of this size have less than 5 MB.
#[tokio::test]
async fn many_summaries_come_in_one_page() {
    let server = Server::start().await;
    let definitions: Vec<Value> = (0..60).map(|n| function_tool(&format!("tool-{n:04}"), "echo")).collect();
    let (status, answer) =
        server.post("/api/import/tools", json!({"text": json!(definitions).to_string()})).await;
    assert_eq!((status, &answer["data"]["created"]), (200, &json!(60)), "{}", answer["data"]["failed"]);
    let path = "/api/tools?fields=summary&page_size=5000&filter=skills";
    let text = server.request(Method::GET, path).send().await.unwrap().text().await.unwrap();
    let page: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(page["data"]["tools"].as_array().unwrap().len(), 60);
    assert_eq!(page["data"]["next_page_token"], Value::Null);
    assert!(text.len() < 60 * 500, "{} bytes", text.len());
}
