//! Search through the API: ranking, switches, pages.

use serde_json::json;

use crate::harness::{Server, function_tool};

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
