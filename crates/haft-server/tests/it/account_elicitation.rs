//! A client of another project whose person is asked to connect an account during a call, in both eras of the protocol.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use haft_testkit::prerequisite::{Prerequisite, skip};
use haft_testkit::upstream::Upstream;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::accounts::{Shared, data_tool, invite, put_key, world};
use crate::harness::{Server, poll};
use crate::people::Person;
use crate::waiting::finished;

/// How the client chooses the version, and the version that it then speaks.
const ERAS: [(&str, &str); 2] = [("legacy", "2025-11-25"), ("auto", "2026-07-28")];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Returns the Python with the SDK, if it is installed.
fn python() -> Option<PathBuf> {
    let file = folder().join("../../../target/peers/python/bin/python");
    if !file.exists() {
        skip(Prerequisite::McpPeers, &format!("`{}` is not installed", file.display()));
        return None;
    }
    Some(file)
}

/// What a client tells the test.
#[derive(Debug)]
enum Told {
    /// A question for its person.
    Asked(Value),
    /// The result.
    Read(Value),
}

/// A client that calls `data` and asks its person.
struct Client {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Client {
    #[expect(clippy::disallowed_methods, reason = "the client of another project is under test")]
    fn start(python: &Path, server: &Server, token: &str, mode: &str) -> Self {
        let mut command = Command::new(python);
        command.arg(folder().join("peers/elicit.py")).arg(server.url("/mcp")).args([token, mode]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { _child: child, stdin, lines }
    }

    async fn next(&mut self) -> Told {
        let line = tokio::time::timeout(Duration::from_mins(1), self.lines.next_line());
        let line = line.await.unwrap().unwrap().unwrap();
        let (kind, text) = line.split_once(' ').unwrap();
        let value = serde_json::from_str(text).unwrap();
        match kind {
            "ASK" => Told::Asked(value),
            _ => Told::Read(value),
        }
    }

    async fn question(&mut self) -> Value {
        match self.next().await {
            Told::Asked(question) => question,
            other @ Told::Read(_) => panic!("{other:?}"),
        }
    }

    async fn result(&mut self) -> Value {
        match self.next().await {
            Told::Read(result) => result,
            other @ Told::Asked(_) => panic!("{other:?}"),
        }
    }

    async fn answer(&mut self, answer: Value) {
        self.stdin.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }
}

struct Scene {
    server: Server,
    world: Shared,
    ann: Person,
    token: String,
    _upstream: Upstream,
}

impl Scene {
    async fn new(tool: Value, wait: Duration) -> Self {
        let (upstream, world) = world().await;
        let server = Server::start_with(|settings| {
            settings.mcp.public_url = Some("https://haft.example.com".to_owned());
            settings.mcp.connect_wait = wait;
        })
        .await;
        data_tool(&server, &upstream, tool).await;
        let ann = invite(&server, "ann").await;
        let (_, token) = ann.token(&server, json!({"role": "caller"})).await;
        Self { server, world, ann, token, _upstream: upstream }
    }

    async fn connect(&self) {
        put_key(&self.ann, &self.server, "files", "key-of-ann").await;
    }

    async fn disconnect(&self) {
        let (status, _) =
            self.ann.send(&self.server, Method::DELETE, "/api/accounts/files", Value::Null).await;
        assert_eq!(status, 200);
    }

    fn read(&self) -> usize {
        self.world.lock().unwrap().read.len()
    }

    /// Starts a client, and reads its question, which must be about the account.
    async fn asked(&self, python: &Path, mode: &str) -> Client {
        let mut client = Client::start(python, &self.server, &self.token, mode);
        let question = client.question().await;
        assert_eq!(question["mode"], "url", "{question}");
        assert_eq!(question["url"], "https://haft.example.com/ui/accounts?connect=files", "{question}");
        client
    }
}

fn data(result: &Value, version: &str) {
    assert_eq!((&result["error"], &result["version"]), (&json!(false), &json!(version)), "{result}");
    assert!(result["text"].as_str().unwrap().contains("ann"), "{result}");
}

#[tokio::test]
async fn the_call_goes_on_after_the_person_has_connected() {
    let Some(python) = python() else { return };
    let scene = Scene::new(json!({}), Duration::from_secs(50)).await;
    for (mode, version) in ERAS {
        let before = scene.read();
        // It answers early: the person has only opened the page.
        let mut client = scene.asked(&python, mode).await;
        client.answer(json!({"action": "accept"})).await;
        scene.connect().await;
        data(&client.result().await, version);
        assert_eq!(scene.read(), before + 1);
        scene.disconnect().await;

        // It answers late: the call has run by then, and does not run again.
        let mut client = scene.asked(&python, mode).await;
        scene.connect().await;
        poll(async || (scene.read() == before + 2).then_some(())).await;
        client.answer(json!({"action": "accept"})).await;
        data(&client.result().await, version);
        assert_eq!(scene.read(), before + 2);
        scene.disconnect().await;
    }
}

#[tokio::test]
async fn a_person_who_declines_ends_the_call_and_one_who_cancels_does_not() {
    let Some(python) = python() else { return };
    let scene = Scene::new(json!({}), Duration::from_secs(50)).await;
    for (mode, _) in ERAS {
        let mut client = scene.asked(&python, mode).await;
        client.answer(json!({"action": "decline"})).await;
        let result = client.result().await;
        assert!(result["text"].as_str().unwrap().contains("declined to connect an account"), "{result}");
        let (_, calls) = scene.server.get("/api/calls?tool=data").await;
        assert_eq!(calls["data"]["calls"][0]["status"], "cancelled", "{calls}");
        let before = scene.read();
        scene.connect().await;
        assert_eq!(scene.server.get("/api/approvals?status=waiting").await.1["data"]["total"], 0);
        assert_eq!(scene.read(), before);
        scene.disconnect().await;

        let mut client = scene.asked(&python, mode).await;
        client.answer(json!({"action": "cancel"})).await;
        let result = client.result().await;
        assert!(result["text"].as_str().unwrap().contains("the call runs by itself"), "{result}");
        let (_, waiting) = scene.server.get("/api/approvals?status=waiting").await;
        scene.connect().await;
        let done = finished(&scene.server, &waiting["data"]["approvals"][0]["call_id"]).await;
        assert_eq!(done["status"], "success", "{done}");
        // Its person reads it: the same call later is a new one.
        scene.ann.get(&scene.server, &format!("/api/calls/{}", done["id"].as_str().unwrap())).await;
        scene.disconnect().await;
    }
}

#[tokio::test]
async fn the_person_connects_and_then_approves() {
    let Some(python) = python() else { return };
    let scene = Scene::new(json!({"requires_confirmation": true}), Duration::from_secs(50)).await;
    for (round, (mode, version)) in ERAS.into_iter().enumerate() {
        let mut client = scene.asked(&python, mode).await;
        client.answer(json!({"action": "accept"})).await;
        scene.connect().await;
        let question = client.question().await;
        assert_eq!(question["mode"], "form", "{question}");
        assert_eq!(scene.read(), round, "it does not run before");
        client.answer(json!({"action": "accept", "content": {"decision": "approve"}})).await;
        data(&client.result().await, version);
        assert_eq!(scene.read(), round + 1);
        scene.disconnect().await;
    }
}

#[tokio::test]
async fn a_client_without_a_session_is_asked_again() {
    let Some(python) = python() else { return };
    let scene = Scene::new(json!({}), Duration::from_millis(50)).await;
    let mut client = scene.asked(&python, "auto").await;
    client.answer(json!({"action": "accept"})).await;
    assert_eq!(client.question().await["mode"], "url");
    scene.connect().await;
    poll(async || (scene.read() == 1).then_some(())).await;
    client.answer(json!({"action": "accept"})).await;
    data(&client.result().await, "2026-07-28");
    scene.disconnect().await;

    // Not for ever: the client gives up, and the call still waits.
    let mut client = scene.asked(&python, "auto").await;
    let mut questions = 1;
    let result = loop {
        client.answer(json!({"action": "accept"})).await;
        match client.next().await {
            Told::Asked(_) => questions += 1,
            Told::Read(result) => break result,
        }
        assert!(questions <= 10, "the client asks at most ten times");
    };
    assert!(result["text"].as_str().unwrap().contains("more than 10 rounds"), "{result}");
    let (_, waiting) = scene.server.get("/api/approvals?status=waiting").await;
    assert_eq!(waiting["data"]["total"], 1, "{waiting}");
    assert_eq!(scene.read(), 1);
}
