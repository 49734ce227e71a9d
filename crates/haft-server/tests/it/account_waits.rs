//! Calls that wait for an account: what they wait for next, on which surface, and what ends the wait.

use haft_testkit::upstream::Upstream;
use reqwest::Method;
use serde_json::{Value, json};

use crate::accounts::{Shared, data_tool, invite, invoke, put_key, world};
use crate::agents::{create, scripted};
use crate::harness::{Server, code, function_tool, poll, send};
use crate::people::Person;
use crate::postgres::{database, on};
use crate::runs::ended;
use crate::waiting::finished;

/// A server with the tool `data`, which needs an account at `files`.
struct Scene {
    server: Server,
    upstream: Upstream,
    world: Shared,
    ann: Person,
}

impl Scene {
    async fn new(tool: Value) -> Self {
        let (upstream, world) = world().await;
        let server = Server::start().await;
        data_tool(&server, &upstream, tool).await;
        let ann = invite(&server, "ann").await;
        Self { server, upstream, world, ann }
    }

    /// Whose data was read, in turn.
    fn read(&self) -> Vec<String> {
        self.world.lock().unwrap().read.clone()
    }

    async fn connect(&self) {
        put_key(&self.ann, &self.server, "files", "key-of-ann").await;
    }

    /// Reads the outcome as the person: the same call later is a new one.
    async fn collect(&self, call: &Value) {
        let (status, _) = self.ann.get(&self.server, &format!("/api/calls/{}", call.as_str().unwrap())).await;
        assert_eq!(status, 200);
    }

    async fn status(&self, call: &Value) -> String {
        let (_, answer) = self.server.get(&format!("/api/calls/{}", call.as_str().unwrap())).await;
        answer["data"]["status"].as_str().unwrap().to_owned()
    }
}

/// Puts a call of `data` into the queue, where it waits for the account.
async fn queue(person: &Person, server: &Server) -> Value {
    let path = "/api/tools/data/invoke?async=true";
    let (status, queued) = person.send(server, Method::POST, path, json!({"args": {}})).await;
    assert_eq!((status, code(&queued)), (202, "credential_required"), "{queued}");
    queued
}

/// Waits until an approval waits for this kind of cause.
async fn waits_for(server: &Server, approval: &Value, kind: &str) -> Value {
    let path = format!("/api/approvals/{}", approval.as_str().unwrap());
    poll(async || {
        let (_, answer) = server.get(&path).await;
        let approval = answer["data"].clone();
        (approval["status"] == "waiting" && approval["cause"]["kind"] == kind).then_some(approval)
    })
    .await
}

async fn decide(server: &Server, approval: &Value, verb: &str) -> (u16, Value) {
    server.post(&format!("/api/approvals/{}/{verb}", approval.as_str().unwrap()), json!({})).await
}

/// Calls `data` and waits for the outcome; meanwhile, something happens.
async fn invoke_and_wait(scene: &Scene, key: Option<&str>, meanwhile: impl AsyncFnOnce()) -> (u16, Value) {
    let request =
        scene.server.bare(Method::POST, "/api/tools/data/invoke").header("cookie", &scene.ann.cookie);
    let request = request.header("x-haft-session", "1").header("sec-fetch-site", "same-origin");
    let request = request.header("prefer", "wait=60").body(json!({"args": {}}).to_string());
    let request = match key {
        Some(key) => request.header("idempotency-key", key),
        None => request,
    };
    let (answer, ()) = tokio::join!(send(request), meanwhile());
    answer
}

/// Waits until a call waits for an account; returns it.
async fn waiting(server: &Server) -> Value {
    poll(async || {
        let (_, list) = server.get("/api/approvals?status=waiting").await;
        list["data"]["approvals"].get(0).cloned()
    })
    .await
}

#[tokio::test]
async fn the_account_comes_before_the_approval() {
    let scene = Scene::new(json!({"requires_confirmation": true})).await;
    let Scene { server, ann, .. } = &scene;
    // Without waiting, it fails: nobody approves what cannot run.
    let (status, answer) = invoke(ann, server, "data").await;
    assert_eq!((status, code(&answer)), (403, "credential_required"), "{answer}");
    assert_eq!(server.get("/api/approvals").await.1["data"]["total"], 0);

    for verb in ["approve", "deny"] {
        let queued = queue(ann, server).await;
        let (approval, call) = (&queued["approval_id"], &queued["call_id"]);
        assert_eq!(decide(server, approval, verb).await.0, 403);
        scene.connect().await;
        let asked = waits_for(server, approval, "requires_confirmation").await;
        assert_eq!((&asked["call_id"], &asked["args"]), (call, &json!({})), "{asked}");
        assert_eq!(scene.status(call).await, "awaiting_approval");
        // The same call again is the same request, which now needs approval.
        let path = "/api/tools/data/invoke?async=true";
        let (status, again) = ann.send(server, Method::POST, path, json!({"args": {}})).await;
        assert_eq!((status, code(&again)), (202, "approval_required"), "{again}");
        assert_eq!(again["approval_id"], *approval, "{again}");
        assert_eq!(scene.read().len(), 0, "nothing ran before the decision");
        if verb == "deny" {
            assert_eq!(decide(server, approval, verb).await.0, 200);
            assert_eq!(finished(server, call).await["status"], "denied");
            assert_eq!(scene.read().len(), 0);
        }
        ann.send(server, Method::DELETE, "/api/accounts/files", Value::Null).await;
        if verb == "approve" {
            // Approved, but the account is gone: it fails, and does not wait for ever.
            assert_eq!(decide(server, approval, verb).await.0, 200);
            let done = finished(server, call).await;
            assert_eq!(done["error"]["code"], "credential_required", "{done}");
            assert_eq!(scene.read().len(), 0);
        }
        scene.collect(call).await;
    }
    let queued = queue(ann, server).await;
    scene.connect().await;
    waits_for(server, &queued["approval_id"], "requires_confirmation").await;
    assert_eq!(decide(server, &queued["approval_id"], "approve").await.0, 200);
    let done = finished(server, &queued["call_id"]).await;
    assert_eq!(
        (&done["value"]["data_of"], &done["decision"]["decided_by"]),
        (&json!("ann"), &json!("local"))
    );
    assert_eq!(scene.read(), ["ann"]);
}

#[tokio::test]
async fn a_tool_that_changes_before_the_account_is_connected_is_approved_as_it_is_then() {
    let scene = Scene::new(json!({"requires_confirmation": true})).await;
    let Scene { server, ann, upstream, .. } = &scene;
    let queued = queue(ann, server).await;
    let changed = |url: &str| {
        json!({
            "name": "data", "description": "Reads data", "input_schema": {"type": "object"},
            "requires_confirmation": true,
            "implementation": {"type": "http", "method": "GET", "url": upstream.url(url),
                "headers": {"authorization": "Bearer ${account:files}"}},
        })
    };
    assert_eq!(server.put("/api/tools/data", changed("/api?v=2")).await.0, 200);
    scene.connect().await;
    let asked = waits_for(server, &queued["approval_id"], "requires_confirmation").await;
    assert_eq!(asked["revision"], 2, "{asked}");
    assert!(asked["preview"].as_str().unwrap().contains("/api?v=2"), "{asked}");
    // A change after that is not covered.
    assert_eq!(server.put("/api/tools/data", changed("/api?v=3")).await.0, 200);
    let (status, answer) = decide(server, &queued["approval_id"], "approve").await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
    assert_eq!(finished(server, &queued["call_id"]).await["status"], "expired");
    assert_eq!(scene.read().len(), 0);
}

#[tokio::test]
async fn a_tool_with_two_accounts_waits_for_both() {
    let scene = Scene::new(json!({})).await;
    let Scene { server, ann, upstream, .. } = &scene;
    server.put("/api/account-providers/more", json!({})).await;
    server
        .create(json!({
            "name": "both", "description": "Reads data", "input_schema": {"type": "object"},
            "implementation": {"type": "http", "method": "GET", "url": upstream.url("/api"),
                "headers": {"authorization": "Bearer ${account:files}", "x-more": "${account:more}"}},
        }))
        .await;
    let path = "/api/tools/both/invoke?async=true";
    let (status, queued) = ann.send(server, Method::POST, path, json!({"args": {}})).await;
    assert_eq!((status, code(&queued)), (202, "credential_required"), "{queued}");
    let first = queued["error"]["details"]["provider"].as_str().unwrap();
    let second = if first == "files" { "more" } else { "files" };
    put_key(ann, server, first, "key-of-ann").await;
    poll(async || {
        let approval = waits_for(server, &queued["approval_id"], "account").await;
        (approval["cause"]["name"] == second).then_some(())
    })
    .await;
    put_key(ann, server, second, "key-of-ann").await;
    assert_eq!(finished(server, &queued["call_id"]).await["value"]["data_of"], "ann");
}

#[tokio::test]
async fn a_request_that_waits_gets_the_outcome_after_the_connect() {
    let scene = Scene::new(json!({})).await;
    let Scene { server, ann, .. } = &scene;
    let (status, answer) = invoke_and_wait(&scene, None, async || {
        waiting(server).await;
        scene.connect().await;
    })
    .await;
    assert_eq!((status, &answer["value"]["data_of"]), (200, &json!("ann")), "{answer}");
    assert_eq!(scene.read(), ["ann"]);

    // With an idempotency key, a repeat gets the same outcome, while it waits and afterwards.
    ann.send(server, Method::DELETE, "/api/accounts/files", Value::Null).await;
    let (status, first) = invoke_and_wait(&scene, Some("once"), async || {
        waiting(server).await;
        let repeated = invoke_and_wait(&scene, Some("once"), async || scene.connect().await);
        let (status, repeated) = Box::pin(repeated).await;
        assert_eq!((status, &repeated["value"]["data_of"]), (200, &json!("ann")), "{repeated}");
    })
    .await;
    assert_eq!((status, &first["value"]["data_of"]), (200, &json!("ann")), "{first}");
    let (_, again) = invoke_and_wait(&scene, Some("once"), async || {}).await;
    assert_eq!(again["call_id"], first["call_id"], "{again}");
    assert_eq!(scene.read(), ["ann", "ann"], "it ran once");
}

#[tokio::test]
async fn a_request_that_waits_waits_for_the_approval_too() {
    let scene = Scene::new(json!({"requires_confirmation": true})).await;
    let Scene { server, .. } = &scene;
    let (status, answer) = invoke_and_wait(&scene, None, async || {
        let approval = waiting(server).await;
        assert_eq!(approval["cause"]["kind"], "account", "{approval}");
        scene.connect().await;
        waits_for(server, &approval["id"], "requires_confirmation").await;
        assert_eq!(decide(server, &approval["id"], "approve").await.0, 200);
    })
    .await;
    assert_eq!((status, &answer["value"]["data_of"]), (200, &json!("ann")), "{answer}");
    assert_eq!(scene.read(), ["ann"]);
}

/// Creates an agent that reads the data.
async fn reader(server: &Server) {
    let script = r#"
turns:
  - when: {tool: data, failed: false}
    text: "Data of {{result.data_of}}."
  - when: {tool: data, failed: true}
    text: "No data."
  - text: I look.
    calls: [{tool: data, arguments: {}}]
"#;
    create(server, scripted("reader", &["data"], script)).await;
}

#[tokio::test]
async fn a_run_and_a_chat_go_on_after_the_connect() {
    let scene = Scene::new(json!({})).await;
    let Scene { server, ann, .. } = &scene;
    reader(server).await;
    let (status, run) =
        ann.send(server, Method::POST, "/api/agents/reader/runs", json!({"input": "go"})).await;
    let run = &run["data"];
    assert_eq!((status, &run["status"]), (200, &json!("awaiting_approval")), "{run}");
    let cause = waits_for(server, &run["waiting"][0]["approval_id"], "account").await;
    assert_eq!(cause["cause"]["name"], "files", "{cause}");
    // An answer in a chat waits, too, and shows for what.
    let (_, chat) = ann.send(server, Method::POST, "/api/chats", json!({"agent": "reader"})).await;
    let chat = format!("/api/chats/{}", chat["data"]["id"].as_str().unwrap());
    let message = json!({"content": "go"});
    let (_, asked) = ann.send(server, Method::POST, &format!("{chat}/messages"), message).await;
    let asked = &asked["data"];
    assert_eq!(asked["run"]["status"], "awaiting_approval", "{asked}");
    assert_eq!(asked["answer"]["content"][1]["status"], "awaiting_approval", "{asked}");
    let (_, shown) = ann
        .get(
            server,
            &format!("/api/approvals/{}", asked["run"]["waiting"][0]["approval_id"].as_str().unwrap()),
        )
        .await;
    assert_eq!(shown["data"]["cause"], json!({"kind": "account", "name": "files"}), "{shown}");

    scene.connect().await;
    let done = ended(server, run["id"].as_str().unwrap()).await;
    assert_eq!((&done["status"], &done["output"]), (&json!("success"), &json!("Data of ann.")), "{done}");
    ended(server, asked["run"]["id"].as_str().unwrap()).await;
    let (_, list) = ann.get(server, &format!("{chat}/messages")).await;
    assert_eq!(list["data"]["messages"][1]["content"][2]["text"], "Data of ann.", "{list}");
    assert_eq!(scene.read(), ["ann", "ann"]);
}

#[tokio::test]
async fn a_run_waits_for_the_account_and_then_for_the_approval() {
    let scene = Scene::new(json!({"requires_confirmation": true})).await;
    let Scene { server, ann, .. } = &scene;
    reader(server).await;
    let (_, run) = ann.send(server, Method::POST, "/api/agents/reader/runs", json!({"input": "go"})).await;
    let (id, approval) = (run["data"]["id"].as_str().unwrap(), &run["data"]["waiting"][0]["approval_id"]);
    waits_for(server, approval, "account").await;
    scene.connect().await;
    waits_for(server, approval, "requires_confirmation").await;
    let (_, still) = server.get(&format!("/api/runs/{id}")).await;
    assert_eq!(still["data"]["status"], "awaiting_approval", "{still}");
    assert_eq!(decide(server, approval, "approve").await.0, 200);
    let done = ended(server, id).await;
    assert_eq!((&done["status"], &done["output"]), (&json!("success"), &json!("Data of ann.")), "{done}");
    assert_eq!(scene.read(), ["ann"]);
}

#[tokio::test]
async fn nested_calls_do_not_wait() {
    let (upstream, world) = world().await;
    let server = Server::start_whole(|_| {}).await;
    data_tool(&server, &upstream, json!({})).await;
    let ann = invite(&server, "ann").await;
    server
        .create(json!({"name": "stepped", "description": "d", "input_schema": {"type": "object"},
            "implementation": {"type": "steps", "steps": [{"id": "a", "tool": "data"}]}}))
        .await;
    reader(&server).await;
    server
        .create(json!({"name": "asked", "description": "d",
            "implementation": {"type": "agent_call", "target_agent_slug": "reader"},
            "input_schema": {"type": "object", "properties": {"input": {"type": "string"}}}}))
        .await;
    let invoke = async |tool: &str, args: Value| {
        let path = format!("/api/tools/{tool}/invoke?async=true");
        let (status, queued) = ann.send(&server, Method::POST, &path, json!({"args": args})).await;
        assert_eq!(status, 202, "{queued}");
        finished(&server, &queued["call_id"]).await
    };
    let done = invoke("stepped", json!({})).await;
    assert_eq!(done.pointer("/error/details/error/code"), Some(&json!("credential_required")), "{done}");
    assert!(done.to_string().contains("/ui/accounts?connect=files"), "{done}");
    let (_, approvals) = server.get("/api/approvals").await;
    assert!(!approvals.to_string().contains("\"account\""), "{approvals}");
    // A run below waits; the result says so, and the run goes on.
    let done = invoke("asked", json!({"input": "go"})).await;
    assert_eq!(done["value"]["status"], "awaiting_approval", "{done}");
    put_key(&ann, &server, "files", "key-of-ann").await;
    let below = ended(&server, done["value"]["run_id"].as_str().unwrap()).await;
    assert_eq!(below["output"], "Data of ann.", "{below}");
    assert_eq!(world.lock().unwrap().read, ["ann"]);
}

#[tokio::test]
async fn a_call_of_a_disabled_person_does_not_run_when_the_access_is_given_back() {
    let scene = Scene::new(json!({})).await;
    let Scene { server, ann, .. } = &scene;
    let queued = queue(ann, server).await;
    let person = format!("/api/people/{}", ann.id);
    assert_eq!(server.patch(&person, json!({"status": "disabled"})).await.0, 200);
    let done = finished(server, &queued["call_id"]).await;
    assert_eq!(
        (&done["status"], &done["error"]["code"]),
        (&json!("cancelled"), &json!("cancelled")),
        "{done}"
    );
    assert_eq!(server.get("/api/approvals?status=waiting").await.1["data"]["total"], 0);
    assert_eq!(server.patch(&person, json!({"status": "active"})).await.0, 200);
    let again = Person::log_in(server, &ann.id).await;
    put_key(&again, server, "files", "key-of-ann").await;
    assert_eq!(invoke(&again, server, "data").await.1["value"]["data_of"], "ann");
    assert_eq!(scene.read(), ["ann"], "the call that waited did not run");
}

#[tokio::test]
async fn what_is_in_the_queue_does_not_use_an_account_that_was_revoked() {
    let (upstream, world) = world().await;
    let server = Server::start_with(|settings| settings.queue.workers = 1).await;
    data_tool(&server, &upstream, json!({})).await;
    let ann = invite(&server, "ann").await;
    put_key(&ann, &server, "files", "key-of-ann").await;
    server.create(function_tool("held", "gate")).await;
    let (_, held) = server.post("/api/tools/held/invoke?async=true", json!({"args": {}})).await;
    server.gate.entered(1).await;
    let path = "/api/tools/data/invoke?async=true";
    let (status, queued) = ann.send(&server, Method::POST, path, json!({"args": {}})).await;
    assert_eq!((status, &queued["error"]), (202, &Value::Null), "{queued}");
    assert_eq!(ann.send(&server, Method::DELETE, "/api/accounts/files", Value::Null).await.0, 200);
    server.gate.open();
    finished(&server, &held["call_id"]).await;
    let done = finished(&server, &queued["call_id"]).await;
    assert_eq!(done["error"]["code"], "credential_required", "{done}");
    assert_eq!(world.lock().unwrap().read.len(), 0);
}

#[tokio::test]
async fn a_call_that_waits_outlives_a_restart() {
    let scene = Scene::new(json!({"requires_confirmation": true})).await;
    let queued = queue(&scene.ann, &scene.server).await;
    let Scene { server, upstream, world, ann } = scene;
    let server = server.restart().await;
    let scene = Scene { server, upstream, world, ann };
    scene.connect().await;
    waits_for(&scene.server, &queued["approval_id"], "requires_confirmation").await;
    let Scene { server, upstream, world, ann } = scene;
    let server = server.restart().await;
    let scene = Scene { server, upstream, world, ann };
    assert_eq!(decide(&scene.server, &queued["approval_id"], "approve").await.0, 200);
    assert_eq!(finished(&scene.server, &queued["call_id"]).await["value"]["data_of"], "ann");
}

#[tokio::test]
async fn a_connect_on_one_node_lets_a_call_of_another_go_on() {
    let (upstream, world) = world().await;
    let database = database().await;
    let (one, other) = (on(&database.url).await, on(&database.url).await);
    data_tool(&one, &upstream, json!({"requires_confirmation": true})).await;
    let (ann, bob) = (invite(&one, "ann").await, invite(&one, "bob").await);
    let queued = queue(&ann, &one).await;
    let of_bob = queue(&bob, &one).await;
    poll(async || (ann.get(&other, "/api/accounts").await.0 == 200).then_some(())).await;
    put_key(&ann, &other, "files", "key-of-ann").await;
    waits_for(&one, &queued["approval_id"], "requires_confirmation").await;
    waits_for(&other, &of_bob["approval_id"], "account").await;
    assert_eq!(decide(&one, &queued["approval_id"], "approve").await.0, 200);
    assert_eq!(finished(&other, &queued["call_id"]).await["value"]["data_of"], "ann");
    assert_eq!(world.lock().unwrap().read, ["ann"]);
    // Disabled on one node, the wait of the other ends.
    assert_eq!(other.patch(&format!("/api/people/{}", bob.id), json!({"status": "disabled"})).await.0, 200);
    assert_eq!(finished(&one, &of_bob["call_id"]).await["status"], "cancelled");
}

/// A program of its own for each person.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/person_program.py");

/// Returns whether a process runs that has this value in its environment.
fn is_held(key: &str) -> bool {
    let holds = |entry: std::fs::DirEntry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.windows(key.len()).any(|part| part == key.as_bytes())
    };
    std::fs::read_dir("/proc").unwrap().flatten().any(holds)
}

#[tokio::test]
async fn each_person_has_a_program_with_the_own_account() {
    let server = Server::start().await;
    let (ann, bob) = (invite(&server, "ann").await, invite(&server, "bob").await);
    server.put("/api/account-providers/files", json!({})).await;
    let body = json!({"id": "own", "command": "python3", "args": [PROGRAM], "credentials": "person",
        "env": {"KEY": "${account:files}"}});
    let (status, answer) = server.post("/api/mcp-servers", body).await;
    assert_eq!(status, 201, "{answer}");
    let key = |name: &str| format!("key-of-{name}-{}", server.home.path().display());
    put_key(&ann, &server, "files", &key("ann")).await;
    put_key(&bob, &server, "files", &key("bobby")).await;
    let call = async |person: &Person| {
        let answered = poll(async || {
            let (status, answer) = invoke(person, &server, "own:who").await;
            (status != 404).then_some(answer)
        });
        answered.await["value"].clone()
    };
    let (of_ann, of_bob) = (call(&ann).await, call(&bob).await);
    assert_eq!(of_ann["length"], key("ann").len(), "{of_ann}");
    assert_eq!(of_bob["length"], key("bobby").len(), "{of_bob}");
    assert_ne!(of_ann["process"], of_bob["process"]);
    assert_eq!(call(&ann).await["process"], of_ann["process"], "it stays open");
    assert!(is_held(&key("ann")) && is_held(&key("bobby")));

    assert_eq!(ann.send(&server, Method::DELETE, "/api/accounts/files", Value::Null).await.0, 200);
    poll(async || (!is_held(&key("ann"))).then_some(())).await;
    assert_eq!(code(&invoke(&ann, &server, "own:who").await.1), "credential_required");
    assert_eq!(call(&bob).await["process"], of_bob["process"]);
    assert_eq!(server.patch(&format!("/api/people/{}", bob.id), json!({"status": "disabled"})).await.0, 200);
    poll(async || (!is_held(&key("bobby"))).then_some(())).await;
}
