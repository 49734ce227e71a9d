//! Search through the API: ranking, filters, switches, pages.

use serde_json::{Value, json};

use crate::harness::{Server, function_tool};

/// Returns the names of the tools that a search finds.
async fn found(server: &Server, query: &str) -> Vec<String> {
    let (status, answer) = server.get(&format!("/api/tools/search?{query}")).await;
    assert_eq!(status, 200, "{answer}");
    let tools = answer["data"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn changes_are_found_at_once() {
    let server = Server::start().await;
    let mut tool = function_tool("moon-phase", "echo");
    tool["description"] = json!("Tells whether the moon waxes");
    server.create(tool.clone()).await;
    assert_eq!(found(&server, "q=moon").await, ["moon-phase"]);
    assert_eq!(found(&server, "q=is+the+moon+waxing+tonight").await[0], "moon-phase");
    tool["description"] = json!("Counts craters");
    assert_eq!(server.put("/api/tools/moon-phase", tool).await.0, 200);
    assert_eq!(found(&server, "q=crater").await, ["moon-phase"]);
    assert_eq!(server.delete("/api/tools/moon-phase").await.0, 200);
    for query in ["q=moon", "q=crater", "q=how+many+craters+has+the+moon"] {
        assert!(!found(&server, query).await.contains(&"moon-phase".to_owned()), "{query}");
    }
}

#[tokio::test]
async fn a_search_is_filtered_like_a_list() {
    let server = Server::start().await;
    for (bundle, name, tags) in [
        ("red", "lamp-one", json!(["home"])),
        ("red", "lamp-two", json!(["work"])),
        ("blue", "lamp-three", json!(["home"])),
    ] {
        let mut tool = function_tool(name, "echo");
        tool["tags"] = tags;
        let (status, answer) = server.post(&format!("/api/tools?bundle={bundle}"), tool).await;
        assert_eq!(status, 201, "{answer}");
    }
    let mut denied = function_tool("lamp-denied", "echo");
    denied["policy"] = json!("deny");
    server.create(denied).await;
    let check = async |filter: &str, expected: &[&str]| {
        for query in ["q=lamp", "q=switch+on+the+lamp"] {
            let mut names = found(&server, &format!("{query}&{filter}")).await;
            names.retain(|name| name.starts_with("lamp"));
            names.sort();
            assert_eq!(names, expected, "{query}&{filter}");
        }
    };
    check("", &["lamp-one", "lamp-three", "lamp-two"]).await;
    check("bundle_ids=red", &["lamp-one", "lamp-two"]).await;
    check("tags=home", &["lamp-one", "lamp-three"]).await;
    check("tags=home&bundleIDs=blue", &["lamp-three"]).await;
    check("implementation_type=function", &["lamp-one", "lamp-three", "lamp-two"]).await;
    check("implementation_type=http", &[]).await;
    check("status=deprecated", &[]).await;
    check("include_disabled=true&bundle_ids=user-created", &["lamp-denied"]).await;
    let (status, answer) = server.get("/api/tools/search?q=lamp&status=lost").await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("invalid_request")), "{answer}");
}

#[tokio::test]
async fn a_response_shows_the_matching_words() {
    let server = Server::start().await;
    let mut tool = function_tool("stock-price", "echo");
    tool["description"] = json!("Shows the prices of shares");
    tool["input_schema"] = json!({"type": "object", "properties": {"shareName": {"type": "string"}}});
    server.create(tool).await;
    let (_, answer) = server.get("/api/tools/search?q=what+is+the+pricee+of+a+share").await;
    let best = &answer["data"]["tools"][0];
    assert_eq!(
        json!([best["name"], best["matched_words"], best["highlights"]]),
        json!(["stock-price", ["price", "prices", "shares", "share"], {"name": [[6, 11]], "description": [[10, 16], [20, 26]]}])
    );
}

#[tokio::test]
async fn sentences_find_a_bounded_number_of_tools_in_pages() {
    let server = Server::start().await;
    for number in 0..120 {
        server.create(function_tool(&format!("report-{number}"), "echo")).await;
    }
    let (mut seen, mut token) = (std::collections::HashSet::new(), String::new());
    loop {
        let path = format!("/api/tools/search?q=send+me+the+report&page_size=40&page_token={token}");
        let (_, answer) = server.get(&path).await;
        assert_eq!(answer["data"]["total"], 100);
        let page = answer["data"]["tools"].as_array().unwrap();
        seen.extend(page.iter().map(|tool| tool["id"].to_string()));
        let Some(next) = answer["data"]["next_page_token"].as_str() else { break };
        next.clone_into(&mut token);
    }
    assert_eq!(seen.len(), 100);
}

#[tokio::test]
async fn search_tools_answers_briefly_and_describe_tool_in_full() {
    let server = Server::start_whole(|_| {}).await;
    let schema = json!({"type": "object", "required": ["city"], "properties": {
        "days": {"type": "integer", "description": "How many days ".repeat(20)},
        "city": {"type": "string", "description": "Where"}}});
    for number in 0..30 {
        let mut tool = function_tool(&format!("forecast_{number}"), "echo");
        tool["description"] = json!(format!("Weather forecast {number}. {}", "It is long. ".repeat(100)));
        tool["input_schema"] = schema.clone();
        server.create(tool).await;
    }
    let (_, answer) = server.invoke("search_tools", json!({"query": "forecast_7"})).await;
    let hits = answer["value"].as_array().unwrap();
    assert_eq!(hits.len(), 5, "{answer}");
    assert_eq!(
        (&hits[0]["name"], &hits[0]["arguments"]),
        (&json!("forecast_7"), &json!("city: string, days?: integer"))
    );
    assert_eq!(hits[0].get("input_schema"), None);
    let (_, answer) = server.invoke("search_tools", json!({"query": "weather", "limit": 20})).await;
    let length = answer["value"].to_string().len();
    assert!(answer["value"].as_array().unwrap().len() > 10 && length < 8000, "{length} {answer}");

    let (_, answer) = server.invoke("describe_tool", json!({"tool": "forecast_7"})).await;
    let value = &answer["value"];
    assert_eq!(
        (&value["input_schema"], &value["tool"]),
        (&schema, &json!("user-created:forecast_7@1.0.0")),
        "{answer}"
    );
    assert!(value["description"].as_str().unwrap().len() > 1000);
    server.patch("/api/tools/forecast_7", json!({"enabled": false})).await;
    for arguments in [
        json!({"tool": "forecast_7"}),
        json!({"tool": "lost"}),
        json!({"tool": "forecast_8", "bundle": "other"}),
    ] {
        let (_, answer) = server.invoke("describe_tool", arguments).await;
        assert_eq!(answer["error"]["code"], "not_found", "{answer}");
    }
    let (_, answer) = server.invoke("search_tools", json!({"query": "forecast_7"})).await;
    assert!(
        answer["value"].as_array().unwrap().iter().all(|hit: &Value| hit["name"] != "forecast_7"),
        "{answer}"
    );
}

#[tokio::test]
async fn prefix_then_word_then_fuzzy() {
    let server = Server::start().await;
    for (name, description) in [
        ("weather-report", "Shows a forecast"),
        ("daily-brief", "Includes the weather of the day"),
        ("wether-herd", "Counts sheep"),
        ("stock-price", "Shows a price"),
    ] {
        let mut tool = function_tool(name, "echo");
        tool["description"] = json!(description);
        server.create(tool).await;
    }
    let names = async |query: &str| -> Vec<String> {
        let (status, answer) = server.get(&format!("/tools/tools/search?{query}")).await;
        assert_eq!(status, 200, "{answer}");
        answer["data"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names("q=weather").await, ["weather-report", "daily-brief", "wether-herd"]);
    assert_eq!(names("q=pric").await, ["stock-price"]);
    let (_, answer) = server.get("/api/tools/search?q=what+does+a+stock+cost").await;
    let best = &answer["data"]["tools"][0];
    assert_eq!(
        (&best["name"], &best["highlights"]["name"]),
        (&json!("stock-price"), &json!([[0, 5]])),
        "{best}"
    );
    assert!(best["score"].as_f64().unwrap() > 0.0);
    server.patch("/api/tools/daily-brief", json!({"enabled": false})).await;
    assert_eq!(names("q=weather").await, ["weather-report", "wether-herd"]);
    assert_eq!(names("q=weather&includeDisabled=true").await.len(), 3);
    assert_eq!(names("q=%F0%9F%8C%A7").await, Vec::<String>::new());
    let (_, answer) = server.get("/api/tools/search?q=weather&pageSize=1").await;
    let token = answer["data"]["next_page_token"].as_str().unwrap();
    assert_eq!(names(&format!("q=weather&pageSize=1&pageToken={token}")).await, ["wether-herd"]);
    assert_eq!(server.get("/api/tools/search").await.0, 400);
    assert_eq!(server.get("/api/tools/search?q=a&page_token=zz").await.0, 400);
}
