//! The documents' own examples, as printed, with a loopback server as the API.

use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use haft_core::secret::Secret;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;

use crate::harness::{Server, code, send};

const BUNDLE: &str = "018faf50-b7b6-7a01-9a05-a22a6e0af101";

/// The weather API of the first document: it wants a key, a user agent and a city.
async fn weather_api() -> SocketAddr {
    let answer = |headers: axum::http::HeaderMap, Query(query): Query<HashMap<String, String>>| async move {
        if query.get("key").map(String::as_str) != Some("k/&1") {
            return (
                axum::http::StatusCode::FORBIDDEN,
                axum::Json(json!({"error": {"key": query.get("key")}})),
            );
        }
        let city = query["q"].clone();
        let agent = headers["user-agent"].to_str().unwrap();
        let text = format!("Sunny in {city} for {agent}");
        (axum::http::StatusCode::OK, axum::Json(json!({"current": {"condition": {"text": text}}})))
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let router = Router::new().route("/v1/current.json", get(answer));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    addr
}

/// The `tool.json` of the first document with its HTTP block; only the host is another one.
fn weather(addr: SocketAddr) -> Value {
    json!({
        "schemaVersion" : "xyz",
        "bundleID"     : BUNDLE,
        "slug"         : "weather",
        "version"      : "v2",
        "displayName"  : "Weather report",
        "description"  : "Fetch current weather for a city",
        "type"         : "http",
        "isEnabled"    : true,
        "isBuiltIn"    : false,
        "argSchema"    : {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "outputSchema" : {"type": "string"},
        "impl"         : {
            "method": "GET",
            "urlTemplate": format!("http://{addr}/v1/current.json?q=${{city}}&key=${{WEATHER_API_KEY}}"),
            "headers": { "User-Agent": "MyApp/${version}" },
            "bodyTemplate": "",
            "successCodes": [200],
            "timeoutMs": 10000,
            "responseEncoding": "json",
            "extractExpr": "$.current.condition.text",
            "errorMode": "fail"
        },
        "createdAt"    : "2024-05-14T13:44:00Z",
        "modifiedAt"   : "2024-06-01T09:17:10Z"
    })
}

#[tokio::test]
async fn seed_0_weather_over_the_bundle_routes() {
    let addr = weather_api().await;
    let server = Server::start().await;
    let bundle = json!({"slug": "web", "displayName": "Web", "isEnabled": true, "description": "Web tools"});
    assert_eq!(server.put(&format!("/tools/bundles/{BUNDLE}"), bundle).await.0, 201);
    let path = format!("/tools/bundles/{BUNDLE}/tools/weather/version/v2");
    let (status, answer) = server.put(&path, weather(addr)).await;
    assert_eq!(status, 201, "{answer}");
    assert!(server.home.path().join("skills/web/weather@v2.json").is_file());

    let invoke = format!("{path}/invoke");
    let (status, answer) = server.post(&invoke, json!({"args": {"city": "Oslo"}})).await;
    assert_eq!((status, code(&answer)), (200, "secret_missing"), "{answer}");
    server.put("/api/credentials/WEATHER_API_KEY", json!({"value": "k/&1"})).await;
    let (status, answer) = server.post(&invoke, json!({"args": {"city": "São Paulo & co?"}})).await;
    assert_eq!(status, 200);
    assert_eq!(answer["value"], json!("Sunny in São Paulo & co? for MyApp/v2"), "{answer}");
    let (status, answer) = server.post(&invoke, json!({"args": {}})).await;
    assert_eq!((status, code(&answer)), (400, "invalid_arguments"));

    server.put("/api/credentials/WEATHER_API_KEY", json!({"value": "wrong-key"})).await;
    let (status, answer) = server.post(&invoke, json!({"args": {"city": "Oslo"}})).await;
    assert_eq!((status, &answer["ok"], code(&answer)), (200, &json!(false), "http_status"), "{answer}");
    assert!(!answer.to_string().contains("wrong-key"), "{answer}");
    let (_, calls) = server.get("/api/calls").await;
    assert!(!calls.to_string().contains("wrong-key") && !calls.to_string().contains("k/&1"), "{calls}");

    let (_, answer) = server.get("/tools/tools/search?q=weather").await;
    assert_eq!(answer["data"]["tools"][0]["display_name"], "Weather report");
    let (_, answer) = server.get(&format!("/tools/tools?bundleIDs={BUNDLE}&recommendedPageSize=10")).await;
    assert_eq!(answer["data"]["total"], 1);
    let (status, _) = server.delete(&path).await;
    assert_eq!(status, 200);
    assert_eq!(server.get(&path).await.0, 404);
}

#[tokio::test]
async fn seed_0_secrets_may_come_from_the_environment_where_configured() {
    let addr = weather_api().await;
    let server = Server::start_with(|settings| {
        settings.secrets.environment = vec![("WEATHER_API_KEY".to_owned(), Secret::new("k/&1".to_owned()))];
    })
    .await;
    let mut tool = weather(addr);
    tool.as_object_mut().unwrap().remove("bundleID");
    server.create(tool).await;
    let (_, answer) = server.invoke("weather", json!({"city": "Oslo"})).await;
    assert_eq!(answer["value"], json!("Sunny in Oslo for MyApp/v2"), "{answer}");
}

/// The first request of the second document, as printed.
const WEATHER_CHECK: &str = r#"{
  "name": "weather-check",
  "description": "Check current weather for a location",
  "runtime": "bash",
  "body": "curl -s 'https://api.weather.example.com/current?city=$city'",
  "parameters": {
    "type": "object",
    "properties": {
      "city": {
        "type": "string",
        "description": "City name to check weather for"
      }
    },
    "required": ["city"]
  },
  "policy": "elevated",
  "sandbox": false,
  "network": true,
  "timeout_secs": 30
}"#;

/// The requests of the second document, as printed. Running the scripts needs the script executor; what is
/// REST (creating, listing, showing, validating, describing, deleting) works on them all the same.
#[tokio::test]
async fn seed_1_rest_examples() {
    let server = Server::start().await;
    let request = server
        .request(Method::POST, "/api/tools")
        .header("content-type", "application/json")
        .body(WEATHER_CHECK);
    let (status, answer) = send(request).await;
    assert_eq!((status, &answer["status"]), (201, &json!("success")), "{answer}");
    let data = &answer["data"];
    assert_eq!(data["name"], "weather-check");
    assert_eq!(data["path"], "skills/user-created/weather-check.skill");
    let file =
        std::fs::read_to_string(server.home.path().join("skills/user-created/weather-check.skill")).unwrap();
    assert!(file.starts_with("---\nname: weather-check\n"), "{file}");
    assert!(
        file.ends_with("---\ncurl -s 'https://api.weather.example.com/current?city=$city'\n"),
        "{file:?}"
    );

    let (_, answer) = server.get("/api/tools?filter=skills&runtime=bash").await;
    assert_eq!(answer["data"]["total"], 1);
    let (_, answer) = server.get("/api/tools/weather-check").await;
    assert_eq!(
        (
            &answer["data"]["runtime"],
            &answer["data"]["policy"],
            &answer["data"]["network"],
            &answer["data"]["body"]
        ),
        (
            &json!("bash"),
            &json!("elevated"),
            &json!(true),
            &json!("curl -s 'https://api.weather.example.com/current?city=$city'")
        )
    );
    let (_, answer) = server.get("/api/tools/weather-check/definition").await;
    assert_eq!(
        answer["data"],
        json!({"type": "function", "function": {
            "name": "weather-check",
            "description": "Check current weather for a location",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "City name to check weather for"}},
                "required": ["city"],
            },
        }})
    );
    let (_, answer) = server.get("/api/tools/weather-check/definition?format=anthropic").await;
    assert_eq!(answer["data"]["input_schema"]["required"], json!(["city"]));
    let (_, answer) = server
        .post("/api/tools/weather-check/validate", json!({"check_syntax": true, "check_parameters": true}))
        .await;
    assert_eq!((&answer["data"]["valid"], &answer["data"]["errors"]), (&json!(true), &json!([])));
    let (status, answer) = server.post("/api/tools", serde_json::from_str(WEATHER_CHECK).unwrap()).await;
    assert_eq!((status, code(&answer)), (409, "conflict"));

    let mut changed: Value = serde_json::from_str(WEATHER_CHECK).unwrap();
    changed["description"] = json!("Check the weather somewhere");
    let (status, answer) = server.put("/api/tools/weather-check", changed).await;
    assert_eq!((status, &answer["data"]["description"]), (200, &json!("Check the weather somewhere")));
    let (_, answer) = server.delete("/api/tools/weather-check").await;
    assert_eq!(answer["data"]["message"], "Tool 'weather-check' deleted");
    assert!(
        answer["data"]["backup_path"].as_str().unwrap().starts_with("tool-history/weather-check"),
        "{answer}"
    );
}

#[tokio::test]
async fn definitions_of_all_tools_for_a_model() {
    let server = Server::start().await;
    let (_, answer) = server.get("/api/tools/definitions/all").await;
    let list = answer["data"].as_array().unwrap();
    assert_eq!(list.len(), 2);
    assert!(
        list.iter().all(|d| d["type"] == "function" && d["function"]["parameters"]["type"] == "object"),
        "{answer}"
    );
}

#[tokio::test]
async fn tools_can_be_called_by_their_alias() {
    let server = Server::start().await;
    server.create(crate::harness::function_tool("天気", "echo")).await;
    for bundle in ["one", "two"] {
        let path = format!("/api/tools?bundle={bundle}");
        server.post(&path, crate::harness::function_tool("twin", "echo")).await;
    }
    let (_, answer) = server.get("/api/tools/definitions/all").await;
    let names: Vec<_> = answer["data"].as_array().unwrap().iter().map(|d| &d["function"]["name"]).collect();
    assert_eq!(names.len(), 5);
    for name in names.iter().filter(|name| **name != "twin") {
        let (status, answer) = server.invoke(name.as_str().unwrap(), json!({"a": 1})).await;
        assert_eq!((status, &answer["value"]), (200, &json!({"a": 1})), "{name} {answer}");
    }
}

/// The definitions that the second document creates with curl, as printed. Without a type, as `curl -d` sends them.
#[tokio::test]
async fn seed_1_definitions_are_created_as_printed() {
    let server = Server::start().await;
    let bodies = [
        r#"{
    "name": "calculator",
    "description": "Perform math calculations",
    "runtime": "bash",
    "body": "python3 -c \"import sys; print(eval(sys.argv[1]))\" \"$expression\"",
    "parameters": {
      "type": "object",
      "properties": {
        "expression": {
          "type": "string",
          "description": "Math expression to evaluate (e.g., 2+2, 10*5)"
        }
      },
      "required": ["expression"]
    },
    "policy": "allow",
    "sandbox": true,
    "timeout_secs": 5
  }"#,
        r#"{
    "name": "slack-notify",
    "description": "Send a message to Slack channel",
    "runtime": "bash",
    "body": "curl -X POST ${SLACK_WEBHOOK} -H \"Content-Type: application/json\" -d \"{\\\"text\\\":\\\"${message}\\\"}\"",
    "parameters": {
      "type": "object",
      "properties": {
        "message": {
          "type": "string",
          "description": "Message to send to Slack"
        }
      },
      "required": ["message"]
    },
    "policy": "elevated",
    "sandbox": false,
    "network": true,
    "timeout_secs": 10
  }"#,
        r#"{
    "name": "text-analysis",
    "description": "Analyze text sentiment and length",
    "runtime": "python",
    "body": "import json; text = \"${text}\"; print(json.dumps({\"length\": len(text), \"words\": len(text.split())}))",
    "parameters": {
      "type": "object",
      "properties": {
        "text": {
          "type": "string",
          "description": "Text to analyze"
        }
      },
      "required": ["text"]
    },
    "policy": "allow",
    "sandbox": true,
    "timeout_secs": 10
  }"#,
    ];
    for body in bodies {
        let (status, answer) = send(server.request(Method::POST, "/api/tools").body(body)).await;
        assert_eq!((status, &answer["status"]), (201, &json!("success")), "{answer}");
        let name = answer["data"]["name"].as_str().unwrap();
        assert_eq!(answer["data"]["path"], format!("skills/user-created/{name}.skill"));
        let printed: Value = serde_json::from_str(body).unwrap();
        let (_, shown) = server.get(&format!("/api/tools/{name}")).await;
        for key in ["name", "description", "runtime", "body", "parameters", "policy", "sandbox"] {
            assert_eq!(shown["data"][key], printed[key], "{name}: {key}");
        }
    }
    let (_, answer) = server.get("/api/tools?filter=skills").await;
    assert_eq!(answer["data"]["total"], 3);
}
