//! The same API on PostgreSQL, and two servers that share one.

use std::time::Duration;

use haft_core::secret::Secret;
use haft_store::{Store, StoreSettings};
use haft_testkit::link::Link;
use haft_testkit::postgres::{TestDatabase, database_from};
use serde_json::json;

use crate::harness::{Server, code, function_tool, poll};

/// Creates a database with the newest schema.
pub(crate) async fn database() -> TestDatabase {
    let migrate = |url: &str| {
        let settings = StoreSettings::postgres(Secret::new(url.to_owned()));
        tokio::runtime::Handle::current().block_on(Store::migrate(&settings)).map_err(std::io::Error::other)
    };
    tokio::task::spawn_blocking(move || database_from(migrate)).await.unwrap().unwrap()
}

pub(crate) async fn on(url: &str) -> Server {
    let url = url.to_owned();
    Server::start_with(move |settings| {
        settings.database_url = Some(Secret::new(url));
        settings.key = Some(Secret::new("00".repeat(32)));
    })
    .await
}

#[tokio::test]
async fn a_tool_lives_on_postgres() {
    let database = database().await;
    let server = on(&database.url).await;
    let tool = server.create(function_tool("worker", "double")).await;
    assert_eq!(tool["path"], json!(null), "there are no files");
    assert_eq!(server.invoke("worker", json!({"n": 4})).await.1["value"], 8);
    server.put("/api/tools/worker", function_tool("worker", "echo")).await;
    server.post("/api/tools/worker/publish", json!({})).await;
    server.put("/api/credentials/KEY", json!({"value": "v-1234"})).await;
    let (status, answer) = server.post("/api/tools", function_tool("worker", "echo")).await;
    assert_eq!((status, code(&answer)), (409, "conflict"));

    let mut server = server;
    server.halt().await;
    let server = on(&database.url).await;
    let (_, answer) = server.get("/api/tools/worker").await;
    assert_eq!((&answer["data"]["revision"], &answer["data"]["status"]), (&json!(2), &json!("published")));
    assert_eq!(server.get("/api/calls?tool=worker").await.1["data"]["total"], 1);
    assert_eq!(server.get("/api/credentials").await.1["data"]["total"], 1);
}

#[tokio::test]
async fn servers_learn_of_each_others_changes() {
    let database = database().await;
    let (one, other) = (on(&database.url).await, on(&database.url).await);
    one.create(function_tool("shared", "double")).await;
    for _ in 0..250 {
        let (status, answer) = other.invoke("shared", json!({"n": 21})).await;
        if status == 200 {
            assert_eq!(answer["value"], 42);
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the other server did not learn of the tool");
}

#[tokio::test]
async fn a_revoked_token_stops_working_on_every_server() {
    let database = database().await;
    let (one, other) = (on(&database.url).await, on(&database.url).await);
    let (_, answer) = one.post("/api/tokens", json!({"name": "ci", "role": "viewer"})).await;
    let (token, id) = (answer["data"]["token"].as_str().unwrap(), answer["data"]["id"].as_str().unwrap());
    let status = async || {
        let request = other.bare(reqwest::Method::GET, "/api/tools").bearer_auth(token);
        crate::harness::send(request).await.0
    };
    let becomes = async |wanted: u16| {
        for _ in 0..250 {
            if status().await == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the other server did not learn of the token");
    };
    becomes(200).await;
    assert_eq!(one.delete(&format!("/api/tokens/{id}")).await.0, 200);
    becomes(401).await;
}

#[tokio::test]
async fn a_queued_call_of_a_new_token_and_tool_runs_on_a_node_that_does_not_know_them_yet() {
    let database = database().await;
    let url = database.url.clone();
    let one = Server::start_with(move |settings| {
        settings.database_url = Some(Secret::new(url));
        settings.key = Some(Secret::new("00".repeat(32)));
        settings.queue.workers = 1;
    })
    .await;
    // From here on, the other node runs every queued call.
    start_held_call(&one).await;
    let other = on(&database.url).await;
    for round in 0..20 {
        let name = format!("fresh_{round}");
        one.create(function_tool(&name, "echo")).await;
        let (_, made) = one.post("/api/tokens", json!({"name": name, "role": "caller"})).await;
        let request = one
            .bare(reqwest::Method::POST, &format!("/api/tools/{name}/invoke?async=true"))
            .bearer_auth(made["data"]["token"].as_str().unwrap())
            .body(json!({"args": {"n": round}}).to_string());
        let (status, answer) = crate::harness::send(request).await;
        assert_eq!(status, 202, "{answer}");
        let done = crate::waiting::finished(&other, &answer["call_id"]).await;
        assert_eq!((&done["status"], &done["value"]["n"]), (&json!("success"), &json!(round)), "{done}");
    }
    one.gate.open();
}

#[tokio::test]
async fn a_rejected_change_of_a_workspace_does_not_keep_it_from_other_servers() {
    let database = database().await;
    let one = on(&database.url).await;
    let body = "head -c 200000 /dev/urandom > filled";
    one.create(json!({"name": "fill", "description": "d", "sandbox": true,
                      "implementation": {"type": "script", "runtime": "bash", "body": body}}))
        .await;
    let limits = json!({"limits": {"max_stored_bytes": 100_000}});
    assert_eq!(one.patch("/api/tenants/default", limits).await.0, 200);
    let other = on(&database.url).await;
    let (_, ran) = one.post("/api/tools/fill/invoke", json!({"args": {}, "workspace": "w"})).await;
    let error = ran["workspace_use"]["error"].as_str().unwrap();
    assert!(error.contains("its limit is 100000"), "{ran}");
    let request = other.request(reqwest::Method::PUT, "/api/workspaces/w/files/a.txt").body("text");
    assert_eq!(crate::harness::send(request).await.0, 200);
}

#[tokio::test]
async fn tenants_and_sessions_reach_every_server_within_a_second() {
    let database = database().await;
    let one = on(&database.url).await;
    let other = on(&database.url).await;
    let token = crate::tenants::tenant(&one, "acme").await;
    let link =
        crate::harness::send(one.bare(reqwest::Method::POST, "/api/login-links").bearer_auth(&token)).await.1;
    let code = link["data"]["url"].as_str().unwrap().split_once("code=").unwrap().1.to_owned();
    let status = async |request: reqwest::RequestBuilder| crate::harness::send(request).await.0;
    let with_token = || other.bare(reqwest::Method::GET, "/api/session").bearer_auth(&token);
    let becomes = async |expected: u16, request: &dyn Fn() -> reqwest::RequestBuilder| {
        let start = std::time::Instant::now();
        while status(request()).await != expected {
            assert!(start.elapsed() < Duration::from_secs(1), "not {expected} within a second");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    becomes(200, &with_token).await;
    // A session that one server opens works on the other at once.
    let client =
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let login = client.get(one.url(&format!("/login?code={code}"))).send().await.unwrap();
    assert_eq!(login.status(), 303);
    let cookie = login.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let with_cookie = || other.bare(reqwest::Method::GET, "/api/session").header("cookie", &cookie);
    assert_eq!(status(with_cookie()).await, 200);
    one.patch("/api/tenants/acme", json!({"enabled": false})).await;
    becomes(401, &with_token).await;
    becomes(401, &with_cookie).await;
    one.patch("/api/tenants/acme", json!({"enabled": true})).await;
    becomes(200, &with_token).await;
    one.delete("/api/tenants/acme?confirm=acme").await;
    becomes(401, &with_token).await;
    assert_eq!(other.get("/api/tenants").await.1["data"]["total"], 1);
}

/// Starts a call of the function `gate` in the queue and waits until it runs; another node must not be there yet to
/// take it.
pub(crate) async fn start_held_call(server: &Server) -> String {
    server.create(function_tool("held", "gate")).await;
    let (status, answer) = server.post("/api/tools/held/invoke?async=true", json!({})).await;
    assert_eq!(status, 202, "{answer}");
    server.gate.entered(1).await;
    format!("/api/calls/{}", answer["call_id"].as_str().unwrap())
}

#[tokio::test]
async fn a_node_that_loses_its_connection_keeps_its_running_calls() {
    let database = database().await;
    let (host, name) = database.url.split_once('@').unwrap().1.split_once('/').unwrap();
    let link = Link::start(host.parse().unwrap()).await.unwrap();
    let cut_off = on(&format!("postgres://haft@{}/{name}", link.addr)).await;
    let call = start_held_call(&cut_off).await;
    let other = on(&database.url).await;
    link.cut();
    // The call ends while its node cannot reach the database.
    cut_off.gate.open();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(other.get(&call).await.1["data"]["status"], "running");
    link.mend();
    let record = finished(&other, &call).await;
    assert_eq!((&record["status"], &record["value"]), (&json!("success"), &json!("passed")), "{record}");
}

#[tokio::test]
async fn a_result_replaces_the_verdict_that_a_call_was_interrupted() {
    let database = database().await;
    let (host, name) = database.url.split_once('@').unwrap().1.split_once('/').unwrap();
    let link = Link::start(host.parse().unwrap()).await.unwrap();
    let cut_off = on(&format!("postgres://haft@{}/{name}", link.addr)).await;
    let call = start_held_call(&cut_off).await;
    let other = on(&database.url).await;
    link.cut();
    // Longer than the lease: the other node cannot know that the call still runs.
    assert_eq!(finished(&other, &call).await["status"], "interrupted");
    link.mend();
    cut_off.gate.open();
    poll(async || (other.get(&call).await.1["data"]["status"] == "success").then_some(())).await;
}

async fn finished(server: &Server, call: &str) -> serde_json::Value {
    poll(async || {
        let (status, answer) = server.get(call).await;
        (status == 200 && answer["data"]["status"] != "running").then(|| answer["data"].clone())
    })
    .await
}
