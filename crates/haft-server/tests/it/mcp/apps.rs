//! MCP Apps: the pages of tools for clients that show them.

use std::path::Path;

use haft_package::{folder, zip};
use reqwest::Method;
use serde_json::{Value, json};

use super::client::{modern_message, request, send};
use crate::harness::Server;

const PAGE: &str = "ui://my-toolset/artifacts/results.html";

async fn install(server: &Server) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/toolsets/my-toolset");
    let mut files = folder::read(&path).unwrap();
    let manifest = files.text("toolset.yaml").unwrap().to_owned();
    let manifest = manifest.split("# Optional: MCP servers").next().unwrap().to_owned();
    let manifest =
        manifest.replace("data: \"$return\"", "data: {stats: \"$return.stats\", file: \"$args.filename\"}");
    files.put_text("toolset.yaml", manifest).unwrap();
    let python = "def run(workspace, filename):\n    return {'stats': {'rows': 2}, 'other': 7}\n";
    files.put_text("tools/analyze.py", python).unwrap();
    let page = files
        .text("artifacts/results.html")
        .unwrap()
        .replace("</head>", "<script src=\"assets/own.js\"></script></head>");
    files.put_text("artifacts/results.html", page).unwrap();
    files.put_text("assets/own.js", "window.own = 1;").unwrap();
    let request = server.request(Method::POST, "/api/toolsets").header("content-type", "application/zip");
    let (status, answer) = crate::harness::send(request.body(zip::write(&files).unwrap())).await;
    assert_eq!(status, 201, "{answer}");
}

/// Sends a request of a client that shows pages, or of one that does not.
async fn ask(server: &Server, method: &str, params: Value, shows_pages: bool) -> Value {
    let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
    let mut message = modern_message(method, params);
    if shows_pages {
        let kinds = json!({"mimeTypes": ["text/html;profile=mcp-app"]});
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"extensions": {"io.modelcontextprotocol/ui": kinds}});
    }
    let mut request = request(server, "/mcp", &server.token, &message)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if let Some(name) = name {
        request = request.header("mcp-name", name);
    }
    send(request).await.last()
}

fn tool<'a>(list: &'a Value, name: &str) -> &'a Value {
    let tools = list["result"]["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap()
}

#[tokio::test]
async fn pages_are_resources_of_clients_that_show_them() {
    let server = Server::start_whole(|_| {}).await;
    install(&server).await;
    let list = ask(&server, "tools/list", json!({}), true).await;
    assert_eq!(tool(&list, "analyze_data")["_meta"]["ui"]["resourceUri"], PAGE, "{list}");
    assert!(tool(&list, "transform_file")["_meta"].is_null(), "its renderer is `code`");
    let plain = ask(&server, "tools/list", json!({}), false).await;
    assert!(tool(&plain, "analyze_data")["_meta"].is_null());

    let resources = ask(&server, "resources/list", json!({}), true).await;
    let page = &resources["result"]["resources"][0];
    assert_eq!(
        (&page["uri"], &page["mimeType"]),
        (&json!(PAGE), &json!("text/html;profile=mcp-app")),
        "{resources}"
    );
    let none = ask(&server, "resources/list", json!({}), false).await;
    assert_eq!(none["result"]["resources"], json!([]));

    let read = ask(&server, "resources/read", json!({"uri": PAGE}), true).await;
    let contents = &read["result"]["contents"][0];
    assert_eq!(contents["mimeType"], "text/html;profile=mcp-app", "{read}");
    let csp = json!({"connectDomains": [], "resourceDomains": [], "frameDomains": [], "baseUriDomains": []});
    assert_eq!(contents["_meta"]["ui"]["csp"], csp);
    let html = contents["text"].as_str().unwrap();
    assert!(html.contains("ui/initialize") && html.contains("default-src 'none'"), "{html}");
    assert!(
        html.contains("window.own = 1;") && !html.contains("assets/own.js"),
        "assets are written into the page"
    );
    for uri in [
        "ui://my-toolset/toolset.yaml",
        "ui://my-toolset/artifacts/../toolset.yaml",
        "ui://other/x.html",
        "ui://",
    ] {
        let unknown = ask(&server, "resources/read", json!({"uri": uri}), true).await;
        assert_eq!(unknown["error"]["code"], -32602, "{uri}: {unknown}");
    }
}

#[tokio::test]
async fn the_result_has_the_data_of_the_page() {
    let server = Server::start_whole(|_| {}).await;
    install(&server).await;
    let params = json!({"name": "analyze_data", "arguments": {"filename": "data.csv"}});
    let called = ask(&server, "tools/call", params.clone(), true).await;
    let result = &called["result"];
    assert_eq!(result["_meta"]["haft/data"]["file"], "data.csv", "{called}");
    assert_eq!(result["_meta"]["haft/data"]["stats"], json!({"rows": 2}));
    assert_eq!(result["structuredContent"]["other"], 7, "{called}");
    let plain = ask(&server, "tools/call", params, false).await;
    assert!(plain["result"]["_meta"]["haft/data"].is_null(), "{plain}");
}
