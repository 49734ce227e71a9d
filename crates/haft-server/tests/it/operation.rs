//! Health, metrics, the API document, the page, CORS, compression, request ids.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, send};

#[tokio::test]
async fn the_document_describes_every_route_and_the_page_works_offline() {
    let server = Server::start().await;
    let (status, document) = send(server.bare(Method::GET, "/api/openapi.json")).await;
    assert_eq!((status, &document["openapi"]), (200, &json!("3.1.0")));
    let paths = document["paths"].as_object().unwrap();
    for path in [
        "/tools",
        "/tools/{ref}/invoke",
        "/tools/bundles/{id}/tools/{name}/version/{version}",
        "/calls/{id}/events",
        "/healthz",
        "/readyz",
        "/metrics",
    ] {
        assert!(paths.contains_key(path), "{path} in {:?}", paths.keys().collect::<Vec<_>>());
    }
    let server_url = |path: &str| document["paths"][path]["get"]["servers"][0]["url"].as_str();
    assert_eq!(
        (server_url("/healthz"), server_url("/metrics"), server_url("/tools")),
        (Some("/"), Some("/"), None)
    );
    assert!(document["info"]["contact"].is_null(), "{}", document["info"]);
    let operations = paths.values().flat_map(|item| item.as_object().unwrap().values());
    let ids: Vec<_> = operations.map(|operation| operation["operationId"].as_str().unwrap()).collect();
    let distinct: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    assert!(distinct.contains(&"get_tools") && distinct.contains(&"post_tools_ref_invoke"), "{ids:?}");
    for (path, part) in [
        ("/docs", "swagger-ui-bundle.js"),
        ("/ui/", "<title>haft</title>"),
        ("/ui/tools/any-address", "<title>haft</title>"),
        ("/docs/start.js", "preauthorize"),
        ("/docs/swagger-ui.css", "swagger-ui"),
    ] {
        let response = server.bare(Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        assert!(response.text().await.unwrap().contains(part), "{path}");
    }
}

#[tokio::test]
async fn metrics_count_calls() {
    let server = Server::start().await;
    server.invoke("hello", json!({})).await;
    let text = server.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    assert!(text.contains("haft_calls_total{outcome=\"success\"} 1"), "{text}");
    assert!(text.contains("haft_call_seconds_bucket"), "{text}");
}

#[tokio::test]
async fn metrics_count_timeouts_and_disconnected_clients_once() {
    let server = Server::start().await;
    let mut slow = function_tool("slow", "sleep");
    slow["execution"] = json!({"timeout_ms": 50});
    server.create(slow).await;
    server.invoke("slow", json!({})).await;
    server.create(function_tool("endless", "sleep")).await;
    let mut call = Box::pin(server.invoke("endless", json!({})));
    let metrics =
        || async { server.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap() };
    // The client disconnects once the call runs.
    tokio::select! {
        _ = &mut call => panic!("the call must not end before it is cancelled"),
        () = async { while !metrics().await.contains("haft_calls_running 1") {} } => {}
    }
    drop(call);
    while !metrics().await.contains("haft_calls_running 0") {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let text = metrics().await;
    for line in [
        "haft_calls_total{outcome=\"success\"} 0",
        "haft_calls_total{outcome=\"error\"} 0",
        "haft_calls_total{outcome=\"timeout\"} 1",
        "haft_calls_total{outcome=\"cancelled\"} 1",
        "haft_call_seconds_count 2",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[tokio::test]
async fn errors_have_one_shape_and_an_id() {
    let server = Server::start().await;
    let response =
        server.request(Method::GET, "/api/nothing").header("x-request-id", "abc-1").send().await.unwrap();
    assert_eq!(response.headers()["x-request-id"], "abc-1");
    let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!(
        body,
        json!({"status": "error", "request_id": "abc-1",
               "error": {"code": "not_found", "message": "route `/api/nothing` not found", "details": {"kind": "route"}}})
    );
    let response =
        server.request(Method::GET, "/healthz").header("x-request-id", "bad id\u{e9}").send().await.unwrap();
    let id = response.headers()["x-request-id"].to_str().unwrap();
    assert!(
        id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-'),
        "a harmful id is replaced: {id}"
    );
    let (status, answer) = server.put("/api/tools", json!({})).await;
    assert_eq!((status, code(&answer)), (405, "method_not_allowed"));
}

#[tokio::test]
async fn cross_origin_requests_need_configuration() {
    let allowed = "https://app.example.com";
    let server = Server::start_with(|settings| settings.server.cors_origins = vec![allowed.to_owned()]).await;
    for (origin, expected) in [(allowed, true), ("https://evil.example.com", false)] {
        let request = server.bare(Method::OPTIONS, "/api/tools").header("origin", origin);
        let response = request.header("access-control-request-method", "POST").send().await.unwrap();
        assert_eq!(response.headers().contains_key("access-control-allow-origin"), expected, "{origin}");
    }
}

#[tokio::test]
async fn large_responses_are_compressed_on_request() {
    let server = Server::start().await;
    for (encoding, expected) in [("gzip", true), ("identity", false)] {
        let request = server.bare(Method::GET, "/api/openapi.json").header("accept-encoding", encoding);
        let response = request.send().await.unwrap();
        // The client decompresses only if it set the header itself.
        assert_eq!(response.headers().get("content-encoding").is_some_and(|v| v == "gzip"), expected);
    }
}
