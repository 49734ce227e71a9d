//! Processes that are killed in the middle of approvals and queued calls: none is lost, none runs twice.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests may fail loudly")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft_testkit::postgres;
use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::{Router, routing::post};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::harness::Haft;

const CALLS: usize = 200;
/// How many calls of each kind are acknowledged before the kill.
const BEFORE_THE_KILL: usize = 60;
const FINAL: [&str; 2] = ["success", "interrupted"];

/// Counts what was acknowledged and tells when it is time to kill.
#[derive(Default)]
struct Progress {
    queued: AtomicUsize,
    approved: AtomicUsize,
    enough: Notify,
}

impl Progress {
    fn count(&self, counter: &AtomicUsize) {
        counter.fetch_add(1, Ordering::Relaxed);
        if [&self.queued, &self.approved].iter().all(|one| one.load(Ordering::Relaxed) >= BEFORE_THE_KILL) {
            self.enough.notify_one();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_on_sqlite_loses_no_waiting_call_and_repeats_none() {
    let haft = Haft::new();
    let upstream = upstream().await;
    let environment = [("HAFT_EGRESS_PRIVATE_HOSTS", "127.0.0.1")];
    let server = haft.serve_with(&environment);
    let client = Client::new(&haft, &server);
    let agent = prepare(&client, &upstream).await;
    let (progress, calls) = (Arc::new(Progress::default()), request_approvals(&agent).await);
    let mut load = load(&[client], &agent, &calls, &progress);
    progress.enough.notified().await;
    server.signal("KILL");
    server.wait();
    let queued = collect(&mut load).await;
    let server = haft.serve_with(&environment);
    let client = Client::new(&haft, &server);
    settle(&client, &upstream, calls, queued).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_of_one_of_two_nodes_loses_no_waiting_call_and_repeats_none() {
    let database = postgres::database().unwrap();
    let (one, other) = (Haft::new(), Haft::new());
    let key = "00".repeat(32);
    let environment = [
        ("HAFT_EGRESS_PRIVATE_HOSTS", "127.0.0.1"),
        ("HAFT_DATABASE_URL", database.url.as_str()),
        ("HAFT_KEY", key.as_str()),
        ("HAFT_TOKEN", "the-token-of-both-nodes-0123456789"),
    ];
    let upstream = upstream().await;
    let (killed, survivor) = (one.serve_with(&environment), other.serve_with(&environment));
    let token = json!("the-token-of-both-nodes-0123456789");
    let clients = [Client::at(&killed).with_token(&token), Client::at(&survivor).with_token(&token)];
    let agent = prepare(&clients[0], &upstream).await;
    let (progress, calls) = (Arc::new(Progress::default()), request_approvals(&agent).await);
    let mut load = load(&clients, &agent, &calls, &progress);
    progress.enough.notified().await;
    killed.signal("KILL");
    killed.wait();
    let queued = collect(&mut load).await;
    settle(&clients[1], &upstream, calls, queued).await;
}

/// An API that is slow enough to be hit by a kill.
async fn upstream() -> Upstream {
    let slow = || async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        "{}"
    };
    Upstream::serve(Router::new().route("/{kind}/{n}", post(slow))).await.unwrap()
}

/// Creates a tool that runs at once and one that needs approval; returns a client without rights to skip it.
async fn prepare(client: &Client, upstream: &Upstream) -> Client {
    for (name, confirm) in [("book", false), ("guarded", true)] {
        let url = upstream.url(&format!("/{name}/${{n}}"));
        let tool = json!({
            "name": name, "description": "Books something at the upstream", "requires_confirmation": confirm,
            "implementation": {"type": "http", "method": "POST", "url": url},
            "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        });
        client.send("POST", "/api/tools", tool).await.unwrap();
    }
    let token = json!({"name": "agent", "role": "caller"});
    let answer = client.send("POST", "/api/tokens", token).await.unwrap();
    client.with_token(&answer["data"]["token"])
}

/// Makes calls that wait for approval; returns the ids of their approvals and calls.
async fn request_approvals(agent: &Client) -> Vec<(Value, Value)> {
    let mut waiting = Vec::new();
    for n in 0..CALLS {
        let body = json!({"args": {"n": n}});
        let (status, answer) = agent.request("POST", "/api/tools/guarded/invoke", &body).await.unwrap();
        assert_eq!(status, 202, "{answer}");
        waiting.push((answer["approval_id"].clone(), answer["call_id"].clone()));
    }
    waiting
}

/// Approves all calls and queues others, spread over the nodes; returns the ids of acknowledged queued calls.
fn load(
    nodes: &[Client],
    agent: &Client,
    waiting: &[(Value, Value)],
    progress: &Arc<Progress>,
) -> JoinSet<Vec<Value>> {
    let mut load = JoinSet::new();
    for (index, node) in nodes.iter().enumerate() {
        let share = |n: &usize| n % nodes.len() == index;
        let approvals: Vec<Value> = (0..CALLS).filter(share).map(|n| waiting[n].0.clone()).collect();
        let (client, counted) = (node.clone(), Arc::clone(progress));
        load.spawn(async move {
            for approval in approvals {
                let path = format!("/api/approvals/{}/approve", approval.as_str().unwrap());
                if client.send("POST", &path, json!({})).await.is_none() {
                    break;
                }
                counted.count(&counted.approved);
            }
            Vec::new()
        });
        let numbers: Vec<usize> = (0..CALLS).filter(share).collect();
        let (client, counted) = (node.with_token(&json!(agent.token)), Arc::clone(progress));
        load.spawn(async move {
            let mut acknowledged = Vec::new();
            for n in numbers {
                let body = json!({"args": {"n": n}});
                let path = "/api/tools/book/invoke?async=true";
                let Some(answer) = client.send("POST", path, body).await else { break };
                acknowledged.push(answer["call_id"].clone());
                counted.count(&counted.queued);
            }
            acknowledged
        });
    }
    load
}

async fn collect(load: &mut JoinSet<Vec<Value>>) -> Vec<Value> {
    let mut queued = Vec::new();
    while let Some(done) = load.join_next().await {
        queued.extend(done.unwrap());
    }
    queued
}

/// Approves what was not approved, waits for the end of all calls and compares them with what the upstream saw.
async fn settle(client: &Client, upstream: &Upstream, waiting: Vec<(Value, Value)>, queued: Vec<Value>) {
    assert!(queued.len() >= BEFORE_THE_KILL, "{} queued calls were acknowledged", queued.len());
    for (approval, _) in &waiting {
        let path = format!("/api/approvals/{}/approve", approval.as_str().unwrap());
        let (status, answer) = client.request("POST", &path, &json!({})).await.unwrap();
        // 409: the decision was stored, though its answer was lost.
        assert!([200, 409].contains(&status), "{answer}");
    }
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    let mut ended: BTreeMap<String, usize> = BTreeMap::new();
    let calls = waiting.into_iter().map(|(_, call)| call).chain(queued);
    let mut succeeded = Vec::new();
    for call in calls {
        let record = finished(client, call.as_str().unwrap()).await;
        let status = record["status"].as_str().unwrap().to_owned();
        let target = format!("/{}/{}", name(&record), record["args"]["n"]);
        if status == "success" {
            succeeded.push(target);
        }
        *ended.entry(status).or_default() += 1;
    }
    for request in upstream.seen() {
        *runs.entry(request.target).or_default() += 1;
    }
    assert!(runs.values().all(|count| *count == 1), "a call ran twice: {runs:?}");
    assert!(succeeded.iter().all(|target| runs.contains_key(target)), "a call succeeded without running");
    // Only calls that were running are cut off, and 16 run at once on a node.
    assert!(ended.get("interrupted").is_none_or(|count| *count <= 16), "{ended:?}");
    assert!(ended.keys().all(|status| FINAL.contains(&status.as_str())), "{ended:?}");
}

/// Returns the name in `bundle:name@version`.
fn name(record: &Value) -> &str {
    record["tool"].as_str().unwrap().split([':', '@']).nth(1).unwrap()
}

async fn finished(client: &Client, call: &str) -> Value {
    let path = format!("/api/calls/{call}");
    for _ in 0..600 {
        let record = client.send("GET", &path, Value::Null).await.unwrap()["data"].clone();
        if FINAL.contains(&record["status"].as_str().unwrap()) {
            return record;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{call} did not end within a minute");
}
