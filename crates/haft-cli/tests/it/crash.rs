//! Processes that race and processes that are killed: one winner, and nothing acknowledged is lost.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may fail loudly")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_testkit::soak;
use serde_json::{Value, json};

use crate::client::Client;
use crate::harness::Haft;
use crate::upstream;

const KILLS: usize = 50;
const WRITERS: u32 = 4;
const CALLERS: u32 = 4;

#[test]
fn fifty_processes_that_create_the_same_tool_make_one() {
    let haft = Haft::new();
    let file = haft.write(
        "winner.json",
        r#"{"name": "winner", "version": "v1", "description": "Wins the race of the processes",
            "implementation": {"type": "http", "url": "https://api.example.com/"}}"#,
    );
    let children: Vec<_> =
        (0..50).map(|_| haft.command(&["tool", "add", &file, "--json"]).spawn().unwrap()).collect();
    let runs: Vec<_> =
        children.into_iter().map(|child| haft.finish(child.wait_with_output().unwrap())).collect();
    let count = |code| runs.iter().filter(|run| run.code == code).count();
    // 4 is the exit code of a conflict, which is a 409.
    assert_eq!((count(0), count(4)), (1, 49), "{}", runs.iter().find(|run| run.code != 4).unwrap().shown());
    assert_eq!(definition_files(&haft.home()), BTreeSet::from(["user-created/winner@v1.json".to_owned()]));
}

/// What the server has acknowledged.
#[derive(Default)]
struct Acknowledged {
    /// The newest description of every tool; `None` where its deletion was acknowledged.
    tools: BTreeMap<String, Option<String>>,
    /// Tools with a write under way when the server died: either state is right.
    open: BTreeMap<String, Option<String>>,
    calls: Vec<String>,
}

impl Acknowledged {
    /// Tells whether the state after a kill shows anything.
    fn is_enough(&self) -> bool {
        self.tools.len() > 1 && !self.calls.is_empty()
    }
}

#[test]
fn kills_under_load_lose_nothing() {
    let haft = Haft::new();
    let api = upstream::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let known = Arc::new(Mutex::new(Acknowledged::default()));
    let rounds = u32::try_from(soak::kills(KILLS)).unwrap();
    for round in 0..rounds {
        let server = haft.serve_with(&[("HAFT_EGRESS_PRIVATE_HOSTS", "127.0.0.1")]);
        let client = Client::new(&haft, &server);
        runtime.block_on(async {
            verify(&client, &known, &haft.home()).await;
            if round == 0 {
                create(&client, "caller", &format!("http://{api}/x"), "Calls the upstream of the test")
                    .await
                    .unwrap();
                known
                    .lock()
                    .unwrap()
                    .tools
                    .insert("caller".into(), Some("Calls the upstream of the test".into()));
            }
            let mut load = tokio::task::JoinSet::new();
            for writer in 0..WRITERS {
                load.spawn(write(client.clone(), Arc::clone(&known), round * WRITERS + writer));
            }
            for _ in 0..CALLERS {
                load.spawn(call(client.clone(), Arc::clone(&known)));
            }
            // The moments are spread over the first tenths of a second.
            tokio::time::sleep(Duration::from_millis(u64::from((round + 1) * 300 / rounds))).await;
            if round + 1 == rounds {
                eventually(|| known.lock().unwrap().is_enough()).await;
            }
            server.signal("KILL");
            server.wait();
            while let Some(done) = load.join_next().await {
                done.unwrap();
            }
        });
    }
    let server = haft.serve_with(&[]);
    let client = Client::new(&haft, &server);
    runtime.block_on(verify(&client, &known, &haft.home()));
    let known = known.lock().unwrap();
    assert!(known.is_enough(), "nothing was acknowledged, so nothing was shown");
}

/// Waits until a condition holds, at most a minute.
pub(crate) async fn eventually(holds: impl Fn() -> bool) {
    for _ in 0..1200 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Creates, changes and deletes tools until the server is gone.
async fn write(client: Client, known: Arc<Mutex<Acknowledged>>, writer: u32) {
    for index in 0.. {
        let name = format!("tool-{writer}-{index}");
        let mut now = None;
        for step in 0..4 {
            let next = (step < 3).then(|| format!("State {step} of the tool {name}"));
            known.lock().unwrap().open.insert(name.clone(), next.clone());
            let done = match (step, &next) {
                (0, Some(text)) => create(&client, &name, "https://api.example.com/", text).await,
                (_, Some(text)) => update(&client, &name, text).await,
                // Every other tool stays.
                (_, None) if index % 2 == 0 => delete(&client, &name).await,
                (_, None) => {
                    known.lock().unwrap().open.remove(&name);
                    break;
                }
            };
            if done.is_none() {
                return;
            }
            now.clone_from(&next);
            let mut known = known.lock().unwrap();
            known.open.remove(&name);
            known.tools.insert(name.clone(), now.clone());
        }
    }
}

/// Calls a tool until the server is gone.
async fn call(client: Client, known: Arc<Mutex<Acknowledged>>) {
    while let Some(answer) = client.send("POST", "/api/tools/caller/invoke", json!({})).await {
        known.lock().unwrap().calls.push(answer["call_id"].as_str().unwrap().to_owned());
    }
}

/// Everything acknowledged is there, files and index agree, and nothing half-written lies about.
async fn verify(client: &Client, known: &Mutex<Acknowledged>, home: &Path) {
    let mut found = BTreeMap::new();
    let mut files = BTreeSet::new();
    let mut page = String::new();
    loop {
        let path = format!("/api/tools?include_disabled=true&page_size=500&page_token={page}");
        let answer = client.send("GET", &path, Value::Null).await.unwrap();
        assert_eq!(answer["data"]["failed"], 0, "{answer}");
        for tool in answer["data"]["tools"].as_array().unwrap() {
            let text = |key: &str| tool[key].as_str().unwrap().to_owned();
            found.insert(text("name"), text("description"));
            files.insert(text("path").strip_prefix("skills/").unwrap().to_owned());
        }
        match answer["data"]["next_page_token"].as_str() {
            Some(next) => next.clone_into(&mut page),
            None => break,
        }
    }
    assert_eq!(definition_files(home), files, "files and index agree");
    let calls = {
        let mut known = known.lock().unwrap();
        let open = std::mem::take(&mut known.open);
        for (name, state) in open {
            // A write that was under way is there whole, or not at all.
            if found.get(&name) == state.as_ref() {
                known.tools.insert(name, state);
            }
        }
        for (name, state) in &known.tools {
            assert_eq!(found.get(name), state.as_ref(), "{name}");
        }
        known.calls.clone()
    };
    for id in calls.iter().rev().take(40) {
        let answer = client.send("GET", &format!("/api/calls/{id}"), Value::Null).await.unwrap();
        assert_eq!(answer["data"]["status"], "success", "{answer}");
    }
    let answer = client.send("GET", "/api/calls?status=success", Value::Null).await.unwrap();
    assert!(
        answer["data"]["total"].as_u64().unwrap() >= calls.len() as u64,
        "{} {}",
        answer["data"]["total"],
        calls.len()
    );
}

/// Every file under `skills/` but the lock and the descriptions of bundles.
fn definition_files(home: &Path) -> BTreeSet<String> {
    let skills = home.join("skills");
    let mut files = BTreeSet::new();
    let Ok(bundles) = std::fs::read_dir(&skills) else { return files };
    for bundle in bundles.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        for file in std::fs::read_dir(&bundle).unwrap() {
            let path = file.unwrap().path();
            if path.file_name().unwrap() != "bundle.yaml" {
                files.insert(path.strip_prefix(&skills).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    files
}

async fn create(client: &Client, name: &str, url: &str, description: &str) -> Option<Value> {
    client.send("POST", "/api/tools", definition(name, url, description)).await
}

async fn update(client: &Client, name: &str, description: &str) -> Option<Value> {
    let body = definition(name, "https://api.example.com/", description);
    client.send("PUT", &format!("/api/tools/{name}"), body).await
}

async fn delete(client: &Client, name: &str) -> Option<Value> {
    client.send("DELETE", &format!("/api/tools/{name}"), Value::Null).await
}

fn definition(name: &str, url: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "implementation": {"type": "http", "url": url}})
}
