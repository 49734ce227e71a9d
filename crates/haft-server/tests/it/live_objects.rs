//! Live events of agents, runs, chats, pipelines, documents, artifacts, people and groups.

use reqwest::Method;
use serde_json::{Value, json};

use crate::agents::{create, scripted, token, with_helper};
use crate::events::{Events, Received};
use crate::harness::{Server, function_tool, poll};
use crate::runs::ended;
use crate::tenants::{tenant, with};

async fn watch(server: &Server, token: &str, topics: &str) -> Events {
    let mut events = Events::open(server, token, &format!("/api/events?topics={topics}"), None).await;
    events.named("ready").await;
    events
}

/// Reads events until one of a name has a value in a field.
async fn until(events: &mut Events, name: &str, field: &str, value: &str) -> Value {
    loop {
        let event = events.named(name).await;
        if event.data[field] == value {
            return event.data;
        }
    }
}

#[tokio::test]
async fn changes_of_agents_are_events_also_those_of_files() {
    let server = Server::start().await;
    let mut events = watch(&server, &server.token, "agents").await;
    let agent = create(&server, scripted("helper", &[], "turns: [{text: hi}]")).await;
    let created = events.next().await.unwrap();
    assert_eq!(
        (created.name.as_str(), created.data),
        (
            "agent",
            json!({"change": "created", "id": agent["id"], "agent": "helper", "status": "draft", "enabled": true})
        )
    );
    let mut changed = scripted("helper", &[], "turns: [{text: hi}]");
    changed["instructions"] = json!("Be brief.");
    assert_eq!(server.put("/api/agents/helper", changed.clone()).await.0, 200);
    assert_eq!(events.named("agent").await.data["change"], "updated");
    // The same definition changes nothing.
    assert_eq!(server.put("/api/agents/helper", changed).await.0, 200);
    assert_eq!(server.post("/api/agents/helper/publish", json!({})).await.0, 200);
    let published = events.named("agent").await.data;
    assert_eq!((&published["change"], &published["status"]), (&json!("published"), &json!("published")));
    assert_eq!(server.patch("/api/agents/helper", json!({"enabled": false})).await.0, 200);
    assert_eq!(events.named("agent").await.data["change"], "disabled");
    assert_eq!(server.delete("/api/agents/helper").await.0, 200);
    assert_eq!(events.named("agent").await.data["change"], "deleted");

    let folder = server.home.path().join("agents");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("reader.yaml");
    std::fs::write(&file, "name: reader\nmodel: scripted/test\ninstructions: Read.\n").unwrap();
    let of_file = events.named("agent").await.data;
    assert_eq!((&of_file["change"], &of_file["agent"]), (&json!("created"), &json!("reader")), "{of_file}");
    std::fs::write(&file, "name: reader\nmodel: scripted/test\ninstructions: Read twice.\n").unwrap();
    assert_eq!(events.named("agent").await.data["change"], "updated");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(events.named("agent").await.data["change"], "deleted");
}

#[tokio::test]
async fn events_of_resources_outside_of_an_allow_list_are_hidden() {
    let server = Server::start().await;
    let body = json!({"name": "limited", "role": "viewer", "tools": ["agents:shown"]});
    let (_, made) = server.post("/api/tokens", body).await;
    let mut events = watch(&server, made["data"]["token"].as_str().unwrap(), "agents,artifacts").await;
    let artifact = json!({"slug": "shown", "runtime": "bash", "source": "echo"});
    assert_eq!(server.post("/api/code-artifacts", artifact).await.0, 201);
    create(&server, scripted("hidden", &[], "turns: [{text: hi}]")).await;
    create(&server, scripted("shown", &[], "turns: [{text: hi}]")).await;
    let first = events.next().await.unwrap();
    assert_eq!((first.name.as_str(), &first.data["agent"]), ("agent", &json!("shown")));
}

#[tokio::test]
async fn callers_see_their_own_runs_and_chats() {
    let server = with_helper().await;
    assert_eq!(server.post("/api/agents/helper/publish", json!({})).await.0, 409, "a tool is a draft");
    let (one, other) = (token(&server, "caller").await, token(&server, "editor").await);
    let (_, made) = server.post("/api/tokens", json!({"name": "second", "role": "caller"})).await;
    let second = made["data"]["token"].as_str().unwrap().to_owned();
    let stranger = tenant(&server, "acme").await;
    let mut of_one = watch(&server, &one, "runs,chats").await;
    let mut of_editor = watch(&server, &other, "runs,chats").await;
    let mut of_second = watch(&server, &second, "runs,chats").await;
    let mut of_stranger = watch(&server, &stranger, "runs,chats").await;
    let mut of_admin = watch(&server, &server.token, "runs,chats").await;

    let body = json!({"input": "double it"});
    let path = "/api/agents/helper/runs?mode=debug";
    let run = with(&server, &one, Method::POST, path, body.clone()).await.1["data"].clone();
    for events in [&mut of_one, &mut of_editor, &mut of_admin] {
        let created = events.next().await.unwrap();
        assert_eq!(
            (created.name.as_str(), created.data),
            (
                "run",
                json!({"change": "created", "id": run["id"], "agent_id": run["agent_id"], "status": "running"})
            )
        );
        let ended = events.next().await.unwrap().data;
        assert_eq!(
            (&ended["change"], &ended["id"], &ended["status"]),
            (&json!("updated"), &run["id"], &json!("success"))
        );
    }

    // A chat: its owner and admins see it, and everybody once it is shared.
    let chat = with(&server, &one, Method::POST, "/api/chats", json!({"agent": "helper"})).await.1;
    let id = chat["data"]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/chats/{id}/messages?mode=debug");
    let (status, answer) = with(&server, &one, Method::POST, &path, json!({"content": "double it"})).await;
    assert_eq!(status, 201, "{answer}");
    for events in [&mut of_one, &mut of_admin] {
        assert_eq!(events.named("chat").await.data, json!({"change": "created", "id": id, "shared": false}));
        let message = until(events, "chat", "change", "message").await;
        assert_eq!(message["message_id"], answer["data"]["message"]["id"], "{message}");
        let complete = until(events, "chat", "change", "answer").await;
        assert_eq!(complete["message_id"], answer["data"]["answer"]["id"], "{complete}");
        assert!(!complete.to_string().contains("It is"), "{complete}");
        let ended = until(events, "run", "status", "success").await;
        assert_eq!(ended["chat_id"], id.as_str(), "{ended}");
    }
    let path = format!("/api/chats/{id}");
    for shared in [true, false] {
        assert_eq!(with(&server, &one, Method::PATCH, &path, json!({"shared": shared})).await.0, 200);
        let event = of_second.next().await.unwrap();
        assert_eq!(
            (event.name.as_str(), event.data),
            ("chat", json!({"change": "updated", "id": id, "shared": shared})),
            "nothing of somebody else before"
        );
    }
    let editor_sees = of_editor.named("chat").await.data;
    assert_eq!((&editor_sees["change"], &editor_sees["shared"]), (&json!("updated"), &json!(true)));
    assert_eq!(with(&server, &one, Method::DELETE, &path, json!({})).await.0, 200);
    assert_eq!(until(&mut of_one, "chat", "change", "deleted").await["id"], id.as_str());
    let own = with(&server, &second, Method::POST, "/api/chats", json!({})).await.1;
    assert_eq!(of_second.next().await.unwrap().data["id"], own["data"]["id"], "not the deleted one");
    let own = with(&server, &stranger, Method::POST, "/api/chats", json!({})).await.1;
    assert_eq!(of_stranger.next().await.unwrap().data["id"], own["data"]["id"], "only its own tenant");
}

#[tokio::test]
async fn a_run_that_waits_or_is_cancelled_says_so() {
    let server = Server::start().await;
    server.create(function_tool("gate", "gate")).await;
    let mut guarded = function_tool("guarded", "echo");
    guarded["requires_confirmation"] = json!(true);
    server.create(guarded).await;
    create(&server, scripted("waiter", &["gate"], "turns: [{calls: [{tool: gate}]}]")).await;
    let asks = "turns: [{when: {tool: guarded}, text: done}, {calls: [{tool: guarded}]}]";
    create(&server, scripted("asker", &["guarded"], asks)).await;
    let mut events = watch(&server, &server.token, "runs").await;
    let (_, answer) = server.post("/api/agents/waiter/runs?async=true", json!({"input": "go"})).await;
    let id = answer["data"]["id"].as_str().unwrap().to_owned();
    server.gate.entered(1).await;
    assert_eq!(server.post(&format!("/api/runs/{id}/cancel"), json!({})).await.0, 200);
    assert_eq!(until(&mut events, "run", "status", "cancelled").await["id"], id.as_str());
    let (_, answer) = server.post("/api/agents/asker/runs", json!({"input": "go"})).await;
    let waiting = until(&mut events, "run", "status", "awaiting_approval").await;
    assert_eq!(waiting["id"], answer["data"]["id"], "{waiting}");
    let approval = answer["data"]["waiting"][0]["approval_id"].as_str().unwrap();
    assert_eq!(server.post(&format!("/api/approvals/{approval}/approve"), json!({})).await.0, 200);
    until(&mut events, "run", "status", "running").await;
    until(&mut events, "run", "status", "success").await;
}

/// Reads events of documents until one document is done, or many are.
async fn done(events: &mut Events) -> Vec<Received> {
    let mut seen = Vec::new();
    loop {
        let event = events.named("document").await;
        let is_done = event.data["state"] == "done" || event.data.get("id").is_none();
        seen.push(event);
        if is_done {
            return seen;
        }
    }
}

#[tokio::test]
async fn changes_of_pipelines_documents_and_artifacts_are_events() {
    let server = Server::start().await;
    let mut events = watch(&server, &server.token, "pipelines,documents,artifacts").await;
    let definition = json!({"slug": "handbook", "name": "Handbook"});
    let (status, answer) = server.post("/api/pipelines", definition.clone()).await;
    assert_eq!(status, 201, "{answer}");
    let id = answer["data"]["id"].clone();
    assert_eq!(
        events.next().await.unwrap().data,
        json!({"change": "created", "id": id, "pipeline": "handbook", "status": "draft"})
    );
    let path = "/api/pipelines/handbook";
    let text = json!({"text": "Secret words about volcanoes.", "name": "a.txt"});
    let (status, answer) = server.post(&format!("{path}/documents"), text).await;
    assert_eq!(status, 202, "{answer}");
    let document = answer["data"]["documents"][0]["id"].clone();
    let seen = done(&mut events).await;
    assert_eq!(seen[0].data["change"], "created");
    assert!(seen.iter().all(|event| event.data["id"] == document && event.data["pipeline_id"] == id));
    assert!(!format!("{seen:?}").contains("volcanoes"), "{seen:?}");

    // Many documents at once are few events.
    let texts = (0..60).map(|number| {
        let text = json!({"text": format!("Text {number}"), "name": format!("{number}.txt")});
        server.post("/api/pipelines/handbook/documents", text)
    });
    for (status, answer) in futures_util::future::join_all(texts).await {
        assert_eq!(status, 202, "{answer}");
    }
    poll(async || {
        let (_, report) = server.get(&format!("{path}/ingests")).await;
        (report["data"]["state"] == "done").then_some(())
    })
    .await;

    assert_eq!(server.post(&format!("{path}/publish"), json!({})).await.0, 200);
    let mut count = 0;
    let published = loop {
        match events.next().await.unwrap() {
            event if event.name == "pipeline" => break event,
            _ => count += 1,
        }
    };
    assert_eq!(published.data["change"], "published");
    assert!(count < 180, "{count} events for 60 documents");
    let changed = json!({"slug": "handbook", "name": "The handbook"});
    assert_eq!(server.put(path, changed).await.0, 200);
    assert_eq!(events.named("pipeline").await.data["change"], "updated");
    // A deletion that is batched with other changes has no event of its own, so wait for the other events first.
    let quiet = std::time::Duration::from_secs(1);
    while tokio::time::timeout(quiet, events.next()).await.is_ok() {}
    let document = document.as_str().unwrap();
    assert_eq!(server.delete(&format!("{path}/documents/{document}")).await.0, 200);
    assert_eq!(until(&mut events, "document", "change", "deleted").await["id"], document);
    assert_eq!(server.delete(path).await.0, 200);
    assert_eq!(events.named("pipeline").await.data["change"], "deleted");

    let artifact = json!({"slug": "greet", "runtime": "bash", "source": "echo hi"});
    let (status, made) = server.post("/api/code-artifacts", artifact).await;
    assert_eq!(status, 201, "{made}");
    let id = made["data"]["id"].as_str().unwrap();
    assert_eq!(
        events.named("artifact").await.data,
        json!({"change": "created", "id": id, "artifact": "greet", "version": 1})
    );
    let path = format!("/api/code-artifacts/{id}");
    let artifact = json!({"slug": "greet", "runtime": "bash", "source": "echo hello"});
    assert_eq!(server.put(&path, artifact).await.0, 200);
    let updated = events.named("artifact").await.data;
    assert_eq!((&updated["change"], &updated["version"]), (&json!("updated"), &json!(2)));
    assert_eq!(server.delete(&path).await.0, 200);
    assert_eq!(events.named("artifact").await.data["change"], "deleted");
}

#[tokio::test]
async fn events_of_objects_reach_other_nodes_and_so_do_pipelines() {
    let database = crate::postgres::database().await;
    let (one, other) = (crate::postgres::on(&database.url).await, crate::postgres::on(&database.url).await);
    // From then on the other node listens.
    one.create(function_tool("first", "echo")).await;
    poll(async || (other.get("/api/tools/first").await.0 == 200).then_some(())).await;
    let mut events = watch(&other, &other.token, "agents,runs,chats,pipelines,documents,artifacts").await;
    create(&one, scripted("helper", &[], "turns: [{text: hi}]")).await;
    assert_eq!(events.named("agent").await.data["change"], "created");
    let (_, answer) = one.post("/api/agents/helper/runs?async=true", json!({"input": "go"})).await;
    let run = answer["data"]["id"].as_str().unwrap().to_owned();
    ended(&one, &run).await;
    assert_eq!(until(&mut events, "run", "status", "success").await["id"], run.as_str());
    let (_, chat) = one.post("/api/chats", json!({})).await;
    assert_eq!(events.named("chat").await.data["id"], chat["data"]["id"]);

    // A new pipeline and its documents can be queried on the other node at once.
    let (status, answer) = one.post("/api/pipelines", json!({"slug": "handbook", "name": "Handbook"})).await;
    assert_eq!(status, 201, "{answer}");
    let text = json!({"text": "The whale shark is a fish.", "name": "a.txt"});
    assert_eq!(other.post("/api/pipelines/handbook/documents", text).await.0, 202);
    assert_eq!(events.named("pipeline").await.data["change"], "created");
    done(&mut events).await;
    for node in [&one, &other] {
        let (_, found) = node.post("/api/pipelines/handbook/query", json!({"query": "shark"})).await;
        assert_eq!(found["data"]["hits"].as_array().map(Vec::len), Some(1), "{found}");
    }
    // A tool that queries it is ready on the other node as soon as that one knows the name.
    let tool = json!({"name": "lookup", "description": "Looks up", "bundle": "user-created",
        "implementation": {"type": "rag_retrieval", "pipeline_id": "handbook"}});
    one.create(tool).await;
    poll(async || {
        let (_, tool) = other.get("/api/tools/lookup").await;
        (tool["data"]["ready"] == true).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_stream_of_a_run_continues_after_a_step() {
    let server = with_helper().await;
    server.create(function_tool("gate", "gate")).await;
    let script = "turns: [{when: {tool: gate}, text: Done.}, {when: {tool: double}, text: Next., calls: [{tool: gate}]}, \
                  {text: First., calls: [{tool: double, arguments: {n: 2}}]}]";
    create(&server, scripted("worker", &["double", "gate"], script)).await;
    let (_, answer) = server.post("/api/agents/worker/runs?async=true", json!({"input": "go"})).await;
    let path = format!("/api/runs/{}/events", answer["data"]["id"].as_str().unwrap());
    server.gate.entered(1).await;
    let mut names = Vec::new();
    let mut live = Events::open(&server, &server.token, &path, None).await;
    loop {
        let event = live.next().await.unwrap();
        names.push((event.name.clone(), event.id.clone()));
        if (event.name.as_str(), event.id.as_str()) == ("answer", "3") {
            break;
        }
    }
    let numbered: Vec<_> = names.iter().filter(|(_, id)| !id.is_empty()).cloned().collect();
    let expected = [("answer", "1"), ("tool_use", "2"), ("answer", "3")];
    assert_eq!(numbered, expected.map(|(name, id)| (name.to_owned(), id.to_owned())), "{names:?}");
    drop(live);
    // While it runs: nothing before the step.
    let mut live = Events::open(&server, &server.token, &path, Some("2")).await;
    let first = loop {
        let event = live.next().await.unwrap();
        if event.name != "text_delta" {
            break event;
        }
    };
    assert_eq!((first.name.as_str(), first.id.as_str()), ("answer", "3"), "{first:?}");
    server.gate.open();
    while live.next().await.is_some_and(|event| event.name != "end") {}
    // After its end, from the stored steps.
    let cases: [(&str, &[(&str, &str)]); 3] = [
        ("3", &[("tool_use", "4"), ("answer", "5"), ("end", "")]),
        ("5", &[("end", "")]),
        (
            "nonsense",
            &[
                ("start", ""),
                ("answer", "1"),
                ("tool_use", "2"),
                ("answer", "3"),
                ("tool_use", "4"),
                ("answer", "5"),
                ("end", ""),
            ],
        ),
    ];
    for (last, expected) in cases {
        let mut stored = Events::open(&server, &server.token, &path, Some(last)).await;
        let mut found = Vec::new();
        while let Some(event) = stored.next().await {
            found.push((event.name, event.id));
        }
        let expected: Vec<_> =
            expected.iter().map(|(name, id)| ((*name).to_owned(), (*id).to_owned())).collect();
        assert_eq!(found, expected, "after {last}");
    }
}

#[tokio::test]
async fn changes_of_people_and_groups_are_events_for_admins() {
    let server = Server::start().await;
    let mut events = watch(&server, &server.token, "people").await;
    let (_, made) = server.post("/api/tokens", json!({"name": "editor", "role": "editor"})).await;
    let mut of_editor = watch(&server, made["data"]["token"].as_str().unwrap(), "people,agents").await;
    let (_, ann) = server.post("/api/people", json!({"name": "Ann"})).await;
    let ann = &ann["data"]["id"];
    let expected = |change: &str, kind: &str, id: &Value| json!({"change": change, "kind": kind, "id": id});
    assert_eq!(events.named("member").await.data, expected("created", "person", ann));
    server.patch("/api/people/Ann", json!({"status": "disabled"})).await;
    assert_eq!(events.named("member").await.data, expected("updated", "person", ann));
    let (_, group) = server.post("/api/groups", json!({"name": "g", "members": ["Ann"]})).await;
    assert_eq!(events.named("member").await.data, expected("created", "group", &group["data"]["id"]));
    let (_, account) = server.post("/api/service-accounts", json!({"name": "nightly"})).await;
    let account = &account["data"]["id"];
    assert_eq!(events.named("member").await.data, expected("created", "service_account", account));
    server.delete("/api/service-accounts/nightly").await;
    assert_eq!(events.named("member").await.data, expected("deleted", "service_account", account));
    // Editors do not see people: their first event is the agent.
    create(&server, scripted("helper", &[], "turns: [{text: hi}]")).await;
    assert_eq!(of_editor.next().await.unwrap().name, "agent");
}
