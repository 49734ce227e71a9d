//! Large results: a preview and a handle instead of the value, and the value by its handle.

use haft_core::secret::Secret;
use haft_testkit::s3::{self, S3};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, poll, send};
use crate::mcp::client::{Session, token_of};
use crate::tenants::{tenant, with};

/// A value of about 20 KiB.
fn rows() -> Value {
    let rows: Vec<Value> =
        (0..400).map(|n| json!({"n": n, "name": format!("row number {n} of many")})).collect();
    json!({"rows": rows, "title": "Sales"})
}

async fn start() -> Server {
    let server = Server::start_whole(|settings| settings.results.max_inline_bytes = 4096).await;
    server.create(function_tool("echo", "echo")).await;
    server
}

async fn parsed(response: reqwest::Response) -> Value {
    serde_json::from_str(&response.text().await.unwrap()).unwrap()
}

/// Calls the tool with a large value; returns the handle.
async fn large(server: &Server) -> (Value, String) {
    let (status, answer) = server.invoke("echo", rows()).await;
    assert_eq!((status, &answer["ok"]), (200, &json!(true)), "{answer}");
    let handle = answer["value"]["handle"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    assert_eq!(handle, format!("$result:{}", answer["call_id"].as_str().unwrap()));
    (answer, handle)
}

#[tokio::test]
async fn a_large_result_is_a_handle_that_works_as_an_argument() {
    let server = start().await;
    let (answer, handle) = large(&server).await;
    assert_eq!(answer["value"]["bytes"], rows().to_string().len(), "{answer}");
    assert_eq!(answer["value"]["shape"], "object with the keys rows, title");
    assert!(answer.to_string().len() < 6000, "a preview");

    // Whole in an argument, or a part of it; the record keeps the handle.
    let (_, whole) = server.invoke("echo", json!({"x": format!("{handle}#/rows/7")})).await;
    assert_eq!(whole["value"], json!({"x": {"n": 7, "name": "row number 7 of many"}}), "{whole}");
    let (_, record) = server.get(&format!("/api/calls/{}", whole["call_id"].as_str().unwrap())).await;
    assert_eq!(record["data"]["args"], json!({"x": format!("{handle}#/rows/7")}), "{record}");
    let (_, answer) = server.invoke("echo", json!({"x": handle})).await;
    assert_eq!(answer["value"]["shape"], "object with the keys x", "a large result again");
    let (status, answer) = server.invoke("echo", json!({"x": format!("{handle}#/gone")})).await;
    assert_eq!((status, code(&answer)), (400, "invalid_arguments"), "{answer}");
    let missing = "$result:018faf50-b7b6-7a01-9a05-a22a6e0af101";
    let (status, answer) = server.invoke("echo", json!({"x": missing})).await;
    assert_eq!((status, code(&answer)), (404, "not_found"), "{answer}");
    let (_, answer) = server.invoke("echo", json!({"x": "$result: is text"})).await;
    assert_eq!(answer["value"]["x"], "$result: is text");

    // As a file of a workspace.
    let body = json!({"args": {"path": "rows.json", "content": format!("{handle}#/rows")}, "workspace": "w"});
    let (_, written) = server.post("/api/tools/write_file/invoke", body).await;
    assert_eq!(written["ok"], true, "{written}");
    let file = server.request(Method::GET, "/api/workspaces/w/files/rows.json").send().await.unwrap();
    assert_eq!(parsed(file).await, rows()["rows"]);
}

#[tokio::test]
async fn a_large_result_is_returned_whole_where_that_is_asked_for() {
    let server = start().await;
    let (_, answer) = server.post("/api/tools/echo/invoke?result=inline", json!({"args": rows()})).await;
    assert_eq!(answer["value"], rows());
    let (status, answer) = server.post("/api/tools/echo/invoke?result=x", json!({"args": {}})).await;
    assert_eq!((status, code(&answer)), (400, "invalid_request"), "{answer}");

    let (answer, _) = large(&server).await;
    let path = format!("/api/calls/{}", answer["call_id"].as_str().unwrap());
    let (_, record) = server.get(&path).await;
    assert_eq!(record["data"]["stored_bytes"], rows().to_string().len(), "{record}");
    let response = server.request(Method::GET, &format!("{path}/result?download=true")).send().await.unwrap();
    let disposition = response.headers().get("content-disposition").unwrap().to_str().unwrap().to_owned();
    assert!(disposition.starts_with("attachment; filename=\"result-"), "{disposition}");
    assert_eq!(parsed(response).await, rows());
    assert_eq!(server.get(&format!("{path}/result?pointer=/rows/3/n")).await.1, json!(3));
    assert_eq!(server.get(&format!("{path}/result?pointer=/gone")).await.0, 404);

    let (_, small) = server.invoke("echo", json!({"a": 1})).await;
    let path = format!("/api/calls/{}/result", small["call_id"].as_str().unwrap());
    assert_eq!(server.get(&path).await, (200, json!({"a": 1})), "every result has this address");
    server.create(function_tool("fails", "fail")).await;
    let (_, failed) = server.invoke("fails", json!({})).await;
    let path = format!("/api/calls/{}/result", failed["call_id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.0, 409);
}

#[tokio::test]
async fn results_belong_to_who_may_see_the_call() {
    let server = start().await;
    let (_, handle) = large(&server).await;
    let own = token_of(&server, "other-caller", "caller").await;
    let (status, answer) =
        with(&server, &own, Method::POST, "/api/tools/echo/invoke", json!({"args": {"x": handle}})).await;
    assert_eq!((status, code(&answer)), (404, "not_found"), "another caller: {answer}");
    let foreign = tenant(&server, "acme").await;
    let request = server.bare(Method::POST, "/api/tools").bearer_auth(&foreign);
    send(request.body(function_tool("echo", "echo").to_string())).await;
    let (status, answer) =
        with(&server, &foreign, Method::POST, "/api/tools/echo/invoke", json!({"args": {"x": handle}})).await;
    assert_eq!((status, code(&answer)), (404, "not_found"), "another tenant: {answer}");
    let path = format!("/api/calls/{}/result", handle.strip_prefix("$result:").unwrap());
    assert_eq!(send(server.bare(Method::GET, &path).bearer_auth(&foreign)).await.0, 404);
}

#[tokio::test]
async fn queued_calls_and_mcp_clients_get_handles_unless_the_tool_declares_its_value() {
    let server = start().await;
    let (_, handle) = large(&server).await;
    let body = json!({"args": {"x": format!("{handle}#/rows")}});
    let (status, accepted) = server.post("/api/tools/echo/invoke?async=true", body).await;
    assert_eq!(status, 202, "{accepted}");
    let path = format!("/api/calls/{}", accepted["call_id"].as_str().unwrap());
    let ended = poll(async || {
        let record = server.get(&path).await.1;
        (record["data"]["status"] == "success").then_some(record)
    })
    .await;
    assert_eq!(ended["data"]["value"]["shape"], "object with the keys x", "{ended}");

    let mut declared = function_tool("declared", "echo");
    declared["output_schema"] = json!({"type": "object", "properties": {"title": {"type": "string"}}});
    server.create(declared).await;
    let session = Session::open(&server, "/mcp", &server.token, "2025-11-25").await;
    for (tool, title) in [("echo", Value::Null), ("declared", json!("Sales"))] {
        let params = json!({"name": tool, "arguments": rows()});
        let result = session.ask("tools/call", params).await.last()["result"].clone();
        assert_eq!(result["structuredContent"]["title"], title, "{tool}");
        assert_eq!(result["structuredContent"]["handle"].is_string(), title.is_null(), "{tool}");
    }
}

#[tokio::test]
async fn a_renderer_gets_large_parts_by_handle() {
    let server = start().await;
    let mut tool = function_tool("shown", "echo");
    tool["renderers"] =
        json!([{"renderer": "table", "config": {"data": "$return.rows", "title": "$return.title"}}]);
    server.create(tool).await;
    let (_, answer) = server.invoke("shown", rows()).await;
    let id = answer["call_id"].as_str().unwrap();
    let expected = json!({"data": format!("$result:{id}#/rows"), "title": "Sales"});
    assert_eq!(answer["render_plan"]["config"], expected, "{answer}");
    let (_, record) = server.get(&format!("/api/calls/{id}")).await;
    assert_eq!(record["data"]["render_plan"]["config"], expected, "{record}");
}

#[tokio::test]
async fn nodes_share_results_and_files_in_a_bucket() {
    let database = crate::postgres::database().await;
    let bucket = S3::start().await.unwrap();
    let node = async || {
        Server::start_whole(|settings| {
            settings.database_url = Some(Secret::new(database.url.clone()));
            settings.key = Some(Secret::new("00".repeat(32)));
            settings.results.max_inline_bytes = 4096;
            settings.blobs.url = Some(format!("s3://{}/prefix", s3::BUCKET));
            settings.blobs.endpoint = Some(bucket.endpoint.clone());
            settings.blobs.access_key_id = Some(s3::KEY_ID.to_owned());
            settings.blobs.secret_access_key = Some(Secret::new(s3::KEY.to_owned()));
        })
        .await
    };
    let (one, other) = (node().await, node().await);
    one.create(function_tool("echo", "echo")).await;
    let (_, handle) = large(&one).await;
    let path = format!("/api/calls/{}/result", handle.strip_prefix("$result:").unwrap());
    let read = send(other.bare(Method::GET, &path).bearer_auth(&other.token)).await;
    assert_eq!(read, (200, rows()), "the other node reads the result");

    // The calls of both nodes take turns in one workspace, and see each other's files.
    let append = |server: &'static Server, n: usize| async move {
        let body = json!({"args": {"path": "log.txt", "content": format!("{n}\n")}, "workspace": "shared"});
        server.post("/api/tools/append_file/invoke", body).await.1
    };
    let (one, other): (&'static Server, &'static Server) =
        (Box::leak(Box::new(one)), Box::leak(Box::new(other)));
    let calls = (0..10).map(|n| append(if n % 2 == 0 { one } else { other }, n));
    let done = futures_util::future::join_all(calls).await;
    assert!(done.iter().all(|answer| answer["ok"] == true), "{done:?}");
    for server in [one, other] {
        let file = server.request(Method::GET, "/api/workspaces/shared/files/log.txt").send().await.unwrap();
        let text = file.text().await.unwrap();
        let mut lines: Vec<usize> = text.lines().map(|line| line.parse().unwrap()).collect();
        lines.sort_unstable();
        assert_eq!(lines, (0..10).collect::<Vec<_>>(), "{text}");
    }
    let stored = std::fs::read_dir(bucket.folder.path().join(s3::BUCKET).join("prefix")).unwrap().count();
    assert_eq!(stored, 2, "`packs` and `results`");
}
