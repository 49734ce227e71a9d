//! Who depends on a tool.

use reqwest::Method;
use serde_json::json;

use crate::harness::{Server, function_tool, send};

#[tokio::test]
async fn usage_names_tokens_rules_tools_and_callers() {
    let server = Server::start().await;
    let mut pay = function_tool("pay", "echo");
    pay["tags"] = json!(["money"]);
    server.create(pay).await;
    server.create(function_tool("old-pay", "echo")).await;
    server.create(function_tool("other", "echo")).await;
    server.post("/api/tools/old-pay/deprecate", json!({"replaced_by": "pay"})).await;
    let token = async |name: &str, tools: serde_json::Value| {
        let body = json!({"name": name, "role": "caller", "tools": tools});
        let (status, answer) = server.post("/api/tokens", body).await;
        assert_eq!(status, 201, "{answer}");
        answer["data"]["token"].as_str().unwrap().to_owned()
    };
    let named = token("named", json!(["pay", "x:*"])).await;
    token("tagged", json!(["tag:money"])).await;
    token("elsewhere", json!(["other"])).await;
    let rules = json!({"rules": [
        {"name": "no-pay", "match": {"tools": ["pa*"], "roles": ["viewer"]}, "effect": "deny"},
        {"name": "money", "match": {"tags": ["money"], "roles": ["viewer"]}, "effect": "approve"},
        {"name": "others", "match": {"tools": ["other"]}, "effect": "deny"},
        {"name": "all", "match": {"roles": ["viewer"]}, "effect": "deny"},
    ]});
    assert_eq!(server.put("/api/policy", rules).await.0, 200);
    for _ in 0..3 {
        let request = server.bare(Method::POST, "/api/tools/pay/invoke").bearer_auth(&named);
        assert_eq!(send(request).await.0, 200);
    }
    server.invoke("pay", json!({})).await;

    let (status, answer) = server.get("/api/tools/pay/usage").await;
    assert_eq!(status, 200, "{answer}");
    let usage = &answer["data"];
    assert_eq!(usage["tool"], "user-created:pay@1.0.0");
    let tokens: Vec<_> = usage["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| (token["name"].clone(), token["rules"].clone()))
        .collect();
    assert_eq!(tokens.len(), 2, "{usage}");
    assert!(tokens.contains(&(json!("named"), json!(["pay"]))), "{tokens:?}");
    assert!(tokens.contains(&(json!("tagged"), json!(["tag:money"]))), "{tokens:?}");
    let rules: Vec<_> = usage["policy_rules"].as_array().unwrap().iter().map(|rule| &rule["name"]).collect();
    assert_eq!(rules, ["no-pay", "money"]);
    assert_eq!(usage["tools"][0]["tool"], "user-created:old-pay@1.0.0");
    assert_eq!(usage["mcp_views"], json!(["/mcp", "/mcp/bundles/user-created"]));
    let callers: Vec<_> = usage["callers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|caller| (caller["name"].clone(), caller["calls"].clone()))
        .collect();
    assert_eq!(callers, [(json!("named"), json!(3)), (json!("local"), json!(1))]);
    assert!(usage["callers"][0]["last_called_at"].is_string());

    let request = server.bare(Method::GET, "/api/tools/pay/usage").bearer_auth(&named);
    assert_eq!(send(request).await.0, 403, "a caller does not learn who else calls");
    let (_, answer) = server.delete("/api/tools/pay").await;
    assert_eq!(answer["data"]["usage"]["callers"][0]["name"], "named", "{answer}");
}
