//! Chats that an agent answers: tool calls, approvals, branches, stopping, sharing, export.

use reqwest::Method;
use serde_json::{Value, json};

use crate::agents::{create, scripted, token, with_helper};
use crate::harness::{Server, code, function_tool, poll, send};
use crate::runs::{ended, events, names};
use crate::tenants::with;

/// Creates a chat with an agent and returns the path of it.
async fn chat(server: &Server, agent: &str) -> String {
    let (status, answer) = server.post("/api/chats", json!({"agent": agent})).await;
    assert_eq!(status, 201, "{answer}");
    format!("/api/chats/{}", answer["data"]["id"].as_str().unwrap())
}

async fn say(server: &Server, chat: &str, content: &str) -> Value {
    let (status, answer) = server.post(&format!("{chat}/messages"), json!({"content": content})).await;
    assert_eq!(status, 201, "{answer}");
    answer["data"].clone()
}

fn texts(message: &Value) -> Vec<String> {
    let blocks = message["content"].as_array().unwrap().iter();
    blocks
        .map(|block| match block["type"].as_str().unwrap() {
            "tool_use" => {
                format!("{}: {}", block["name"].as_str().unwrap(), block["status"].as_str().unwrap())
            }
            kind => format!("{kind}: {}", block["text"].as_str().unwrap()),
        })
        .collect()
}

#[tokio::test]
async fn a_message_is_answered_with_a_tool() {
    let server = with_helper().await;
    let chat = chat(&server, "helper").await;
    let asked = say(&server, &chat, "Please double it\nnow").await;
    assert_eq!(
        texts(&asked["answer"]),
        ["text: One moment.", "double: success", "text: It is 42."],
        "{asked}"
    );
    assert_eq!(asked["answer"]["parent_id"], asked["message"]["id"]);
    assert_eq!((&asked["run"]["status"], &asked["run"]["surface"]), (&json!("success"), &json!("chat")));
    assert_eq!(asked["answer"]["run_id"], asked["run"]["id"]);
    let block = &asked["answer"]["content"][1];
    assert_eq!(
        (&block["args"], &block["tool"]),
        (&json!({"n": 21}), &json!("user-created:double@1.0.0")),
        "{block}"
    );
    let call = block["call_id"].as_str().unwrap();
    let (_, record) = server.get(&format!("/api/calls/{call}")).await;
    assert_eq!(record["data"]["message_id"], asked["answer"]["id"], "{record}");

    let (_, stored) = server.get(&chat).await;
    assert_eq!(stored["data"]["title"], "Please double it", "{stored}");
    assert_eq!(stored["data"]["active_leaf"], asked["answer"]["id"]);
    let body = json!({"content": "hello"}).to_string();
    let streamed = events(server.request(Method::POST, &format!("{chat}/messages")).body(body)).await;
    // An answer that is complete before the stream is read comes without its parts.
    let names: Vec<_> = names(&streamed).into_iter().filter(|name| *name != "text_delta").collect();
    assert_eq!(names, ["message", "start", "answer", "end"], "{streamed:?}");
    assert_eq!(streamed[0].1["content"], "hello");
    let (_, list) = server.get(&format!("{chat}/messages")).await;
    let list = list["data"]["messages"].as_array().unwrap();
    assert_eq!(list.len(), 4);
    assert_eq!(texts(&list[3]), ["text: Hello!"]);

    let quiet = json!({"content": "no answer, please", "answer": false});
    let (status, answer) = server.post(&format!("{chat}/messages"), quiet).await;
    assert_eq!(
        (status, &answer["data"]["answer"], &answer["data"]["run"]),
        (201, &Value::Null, &Value::Null)
    );
    let (status, answer) = server.post("/api/chats", json!({"agent": "nobody"})).await;
    assert_eq!((status, code(&answer)), (404, "not_found"), "{answer}");
}

#[tokio::test]
async fn the_model_reads_the_whole_conversation() {
    let server = with_helper().await;
    let script = r#"
turns:
  - when: {user: 'recall'}
    text: "The tool said {{results.double}}."
  - when: {tool: double}
    text: ok
  - calls: [{tool: double, arguments: {n: 5}}]
"#;
    create(&server, scripted("memory", &["double"], script)).await;
    let chat = chat(&server, "memory").await;
    say(&server, &chat, "go").await;
    let asked = say(&server, &chat, "recall").await;
    assert_eq!(texts(&asked["answer"]), ["text: The tool said 10."], "{asked}");
}

#[tokio::test]
async fn answers_and_edits_make_branches() {
    let server = with_helper().await;
    let chat = chat(&server, "helper").await;
    let first = say(&server, &chat, "hello").await;
    let (status, again) = server.post(&format!("{chat}/answer"), json!({})).await;
    assert_eq!(status, 201, "{again}");
    assert_eq!(again["data"]["message"]["id"], first["message"]["id"], "{again}");
    assert_eq!(again["data"]["answer"]["parent_id"], first["message"]["id"]);
    assert_ne!(again["data"]["answer"]["id"], first["answer"]["id"]);
    // An edit is another message with the same parent.
    let second = say(&server, &chat, "double it").await;
    let edit = json!({"content": "hello again", "parent_id": second["message"]["parent_id"]});
    let (status, edited) = server.post(&format!("{chat}/messages"), edit).await;
    assert_eq!(
        (status, texts(&edited["data"]["answer"])),
        (201, vec!["text: Hello!".to_owned()]),
        "{edited}"
    );
    let (_, list) = server.get(&format!("{chat}/messages")).await;
    assert_eq!(list["data"]["messages"].as_array().unwrap().len(), 7, "{list}");
    let older = json!({"message_id": first["answer"]["id"]});
    let (status, answer) = server.post(&format!("{chat}/answer"), older).await;
    assert_eq!((status, &answer["data"]["message"]["id"]), (201, &first["message"]["id"]), "{answer}");
    let unknown = json!({"message_id": "018faf50-b7b6-7a01-9a05-a22a6e0af101"});
    assert_eq!(server.post(&format!("{chat}/answer"), unknown).await.0, 404);
}

/// Starts a server with a tool that needs approval, and an agent that calls it after it said something.
async fn guarded() -> (Server, String) {
    let server = Server::start().await;
    let mut tool = function_tool("deploy", "echo");
    tool["requires_confirmation"] = json!(true);
    server.create(tool).await;
    let script = r#"
turns:
  - when: {tool: deploy, failed: false}
    text: "Deployed to {{result.to}}."
  - when: {tool: deploy, failed: true}
    text: "Not deployed."
  - text: I deploy.
    calls: [{tool: deploy, arguments: {to: staging}}]
"#;
    create(&server, scripted("deployer", &["deploy"], script)).await;
    let chat = chat(&server, "deployer").await;
    (server, chat)
}

async fn answer_of(server: &Server, chat: &str, id: &Value) -> Value {
    let (_, list) = server.get(&format!("{chat}/messages")).await;
    let list = list["data"]["messages"].as_array().unwrap();
    list.iter().find(|message| message["id"] == *id).unwrap().clone()
}

#[tokio::test]
async fn an_approval_inside_a_chat_pauses_the_answer() {
    for (verb, expected) in [
        ("approve", ["text: I deploy.", "deploy: success", "text: Deployed to staging."]),
        ("deny", ["text: I deploy.", "deploy: denied", "text: Not deployed."]),
    ] {
        let (server, chat) = guarded().await;
        let asked = say(&server, &chat, "deploy").await;
        assert_eq!(asked["run"]["status"], "awaiting_approval", "{asked}");
        assert_eq!(texts(&asked["answer"]), ["text: I deploy.", "deploy: awaiting_approval"], "{asked}");
        let waiting = &asked["run"]["waiting"][0];
        assert_eq!(waiting["args"], json!({"to": "staging"}), "{asked}");
        let (status, busy) = server.post(&format!("{chat}/messages"), json!({"content": "and?"})).await;
        assert_eq!((status, code(&busy)), (409, "conflict"), "{busy}");
        assert!(busy["error"]["message"].as_str().unwrap().contains("stop it first"), "{busy}");

        let id = asked["run"]["id"].as_str().unwrap();
        let watching = tokio::spawn(events(server.request(Method::GET, &format!("/api/runs/{id}/events"))));
        let approval = waiting["approval_id"].as_str().unwrap();
        let (status, answer) = server.post(&format!("/api/approvals/{approval}/{verb}"), json!({})).await;
        assert_eq!(status, 200, "{answer}");
        ended(&server, id).await;
        let answer = answer_of(&server, &chat, &asked["answer"]["id"]).await;
        assert_eq!(texts(&answer), expected, "{answer}");
        let watched = watching.await.unwrap();
        assert!(names(&watched).contains(&"approval_request"), "{watched:?}");
        assert!(names(&watched).contains(&"approval_decided"), "{watched:?}");
        assert_eq!(watched.last().unwrap().1["status"], "success");
        say(&server, &chat, "again").await;
    }
}

#[tokio::test]
async fn an_approval_survives_a_restart() {
    let (server, chat) = guarded().await;
    let asked = say(&server, &chat, "deploy").await;
    let approval = asked["run"]["waiting"][0]["approval_id"].as_str().unwrap().to_owned();
    let server = server.restart().await;
    let (status, answer) = server.post(&format!("/api/approvals/{approval}/approve"), json!({})).await;
    assert_eq!(status, 200, "{answer}");
    ended(&server, asked["run"]["id"].as_str().unwrap()).await;
    let answer = answer_of(&server, &chat, &asked["answer"]["id"]).await;
    assert_eq!(
        texts(&answer),
        ["text: I deploy.", "deploy: success", "text: Deployed to staging."],
        "{answer}"
    );
    let (_, calls) = server.get("/api/calls?tool=deploy").await;
    assert_eq!(calls["data"]["total"], 1, "{calls}");
}

#[tokio::test]
async fn a_running_or_waiting_answer_is_stopped() {
    let (server, chat) = guarded().await;
    let asked = say(&server, &chat, "deploy").await;
    let (status, stopped) = server.post(&format!("{chat}/stop"), json!({})).await;
    assert_eq!((status, &stopped["data"]["run_id"]), (200, &asked["run"]["id"]), "{stopped}");
    let answer = answer_of(&server, &chat, &asked["answer"]["id"]).await;
    assert_eq!(texts(&answer), ["text: I deploy.", "deploy: cancelled", "note: Stopped."], "{answer}");
    let (_, stopped) = server.post(&format!("{chat}/stop"), json!({})).await;
    assert_eq!(stopped["data"]["run_id"], Value::Null);

    server.create(function_tool("gate", "gate")).await;
    create(&server, scripted("waiter", &["gate"], "turns: [{text: Wait., calls: [{tool: gate}]}]")).await;
    server.patch(&chat, json!({"agent": "waiter"})).await;
    let path = format!("{chat}/messages?async=true");
    let (status, asked) = server.post(&path, json!({"content": "go"})).await;
    assert_eq!((status, &asked["data"]["answer"]["content"]), (202, &json!([])), "{asked}");
    server.gate.entered(1).await;
    server.post(&format!("{chat}/stop"), json!({})).await;
    ended(&server, asked["data"]["run"]["id"].as_str().unwrap()).await;
    let answer = answer_of(&server, &chat, &asked["data"]["answer"]["id"]).await;
    assert_eq!(texts(&answer), ["text: Wait.", "gate: cancelled", "note: Stopped."], "{answer}");
}

#[tokio::test]
async fn a_failed_answer_keeps_what_was_said() {
    let server = with_helper().await;
    let script = "turns: [{text: Half an, error: broken_stream}]";
    create(&server, scripted("broken", &[], script)).await;
    let chat = chat(&server, "broken").await;
    let asked = say(&server, &chat, "go").await;
    assert_eq!(asked["run"]["status"], "error", "{asked}");
    let said = texts(&asked["answer"]);
    assert!(said.last().unwrap().starts_with("note: The agent failed: "), "{said:?}");
    server.patch(&chat, json!({"agent": "helper"})).await;
    assert_eq!(texts(&say(&server, &chat, "hello").await["answer"]), ["text: Hello!"]);
}

#[tokio::test]
async fn files_follow_the_branches_of_answers() {
    let server = Server::start_whole(|_| {}).await;
    let script = r#"
turns:
  - when: {tool: write_file}
    text: Written.
  - when: {user: 'write (?<word>\w+)'}
    calls: [{tool: write_file, arguments: {path: a.txt, content: "{{match.word}}"}}]
"#;
    create(&server, scripted("writer", &["write_file"], script)).await;
    let chat = chat(&server, "writer").await;
    let file = async || {
        let request = server.request(Method::GET, &format!("{chat}/workspace/files/a.txt"));
        request.send().await.unwrap().text().await.unwrap()
    };
    let first = say(&server, &chat, "write one").await;
    assert_eq!(file().await, "one", "{first}");
    say(&server, &chat, "write two").await;
    assert_eq!(file().await, "two");
    let back = json!({"active_leaf": first["answer"]["id"]});
    assert_eq!(server.patch(&chat, back).await.0, 200);
    assert_eq!(file().await, "one");
    let manifest = format!("{chat}/messages/{}/manifest", first["answer"]["id"].as_str().unwrap());
    assert!(server.get(&manifest).await.1["data"]["manifest"].is_object());
    // The answer starts from the files as they were at the question: without any.
    let (_, again) =
        server.post(&format!("{chat}/answer"), json!({"message_id": first["message"]["id"]})).await;
    assert_eq!(again["data"]["run"]["status"], "success", "{again}");
}

#[tokio::test]
async fn another_first_message_starts_from_the_files_before_it() {
    let server = Server::start_whole(|_| {}).await;
    let (_, created) = server.post("/api/chats", json!({})).await;
    let id = created["data"]["id"].as_str().unwrap().to_owned();
    let (chat, files) = (format!("/api/chats/{id}"), format!("/api/chats/{id}/workspace/files"));
    let put = async |path: &str| {
        let request = server.request(Method::PUT, &format!("{files}/{path}")).body("x");
        assert!(request.send().await.unwrap().status().is_success());
    };
    let paths = async || {
        let (_, list) = server.get(&files).await;
        let found = list["data"]["files"].as_array().unwrap().clone();
        found.iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let say = async |body: Value| {
        let (status, answer) = server.post(&format!("{chat}/messages"), body).await;
        assert_eq!(status, 201, "{answer}");
        answer["data"]["message"]["id"].as_str().unwrap().to_owned()
    };
    put("uploaded.txt").await;
    let first = say(json!({"content": "one"})).await;
    let write = |message: &str| {
        let args = json!({"path": "a.txt", "content": "1"});
        json!({"args": args, "chat_id": id, "message_id": message})
    };
    let (_, written) = server.post("/api/tools/write_file/invoke", write(&first)).await;
    assert_eq!(written["ok"], true, "{written}");
    assert_eq!(paths().await, ["a.txt", "uploaded.txt"]);
    let another = say(json!({"content": "another one", "parent_id": null})).await;
    assert_eq!(paths().await, ["uploaded.txt"]);
    assert_eq!(server.patch(&chat, json!({"active_leaf": first})).await.0, 200);
    assert_eq!(paths().await, ["a.txt", "uploaded.txt"]);
    // The state of the workspace and the branch are read and set.
    let (_, shown) = server.get(&chat).await;
    let (leaf, state) =
        (&shown["data"]["active_leaf_message_id"], shown["data"]["active_manifest_id"].clone());
    assert_eq!((leaf, state.is_string()), (&json!(first), true), "{shown}");
    assert_eq!(*leaf, shown["data"]["active_leaf"]);
    put("later.txt").await;
    let (status, set) = server.patch(&chat, json!({"active_manifest_id": state})).await;
    assert_eq!((status, &set["data"]["active_manifest_id"].is_string()), (200, &true), "{set}");
    assert_eq!(paths().await, ["a.txt", "uploaded.txt"]);
    let other = json!({"active_leaf_message_id": another, "active_manifest_id": state});
    let (status, set) = server.patch(&chat, other).await;
    assert_eq!((status, &set["data"]["active_leaf_message_id"]), (200, &json!(another)), "{set}");
    assert_eq!(paths().await, ["a.txt", "uploaded.txt"]);
    let (status, answer) = server.patch(&chat, json!({"active_manifest_id": first})).await;
    assert_eq!((status, answer["error"]["code"].as_str()), (404, Some("not_found")), "{answer}");
    // Nothing is written for a chat or a message that does not exist.
    let unknown = uuid::Uuid::now_v7().to_string();
    for body in [json!({"chat_id": unknown}), json!({"chat_id": id, "message_id": unknown})] {
        let mut call = write(&first);
        body.as_object().unwrap().iter().for_each(|(key, value)| call[key] = value.clone());
        let (status, answer) = server.post("/api/tools/write_file/invoke", call).await;
        assert_eq!((status, answer["error"]["code"].as_str()), (404, Some("not_found")), "{answer}");
    }
}

#[tokio::test]
async fn a_chat_is_shared_searched_and_exported() {
    let server = with_helper().await;
    let (owner, other) = (token(&server, "caller").await, token(&server, "viewer").await);
    let (_, made) = with(&server, &owner, Method::POST, "/api/chats", json!({"agent": "helper"})).await;
    let chat = format!("/api/chats/{}", made["data"]["id"].as_str().unwrap());
    let body = json!({"content": "Zanzibar: double it"});
    let (status, asked) = with(&server, &owner, Method::POST, &format!("{chat}/messages"), body).await;
    assert_eq!(status, 201, "{asked}");
    assert_eq!(with(&server, &other, Method::GET, &chat, Value::Null).await.0, 404);
    let (status, shared) = with(&server, &owner, Method::PATCH, &chat, json!({"shared": true})).await;
    assert_eq!((status, &shared["data"]["shared"]), (200, &json!(true)), "{shared}");
    assert_eq!(with(&server, &other, Method::GET, &chat, Value::Null).await.0, 200);
    let messages = format!("{chat}/messages");
    assert_eq!(with(&server, &other, Method::GET, &messages, Value::Null).await.0, 200);
    let third = token(&server, "editor").await;
    let (status, answer) = with(&server, &third, Method::POST, &messages, json!({"content": "x"})).await;
    assert_eq!((status, code(&answer)), (403, "forbidden"), "{answer}");

    for (who, query, expected) in [
        (&owner, "/api/chats?q=zanzibar", 1),
        (&owner, "/api/chats?q=nothing", 0),
        (&other, "/api/chats", 0),
        (&other, "/api/chats?shared=true", 1),
    ] {
        let (_, list) = with(&server, who, Method::GET, query, Value::Null).await;
        assert_eq!(list["data"]["chats"].as_array().unwrap().len(), expected, "{query}: {list}");
    }
    let request = server.bare(Method::GET, &format!("{chat}/export")).bearer_auth(&owner);
    let text = request.send().await.unwrap().text().await.unwrap();
    for expected in
        ["# Zanzibar: double it", "## User", "## Assistant", "**Tool `double`**: success", "It is 42."]
    {
        assert!(text.contains(expected), "{text}");
    }
    let (_, exported) =
        with(&server, &owner, Method::GET, &format!("{chat}/export?format=json"), Value::Null).await;
    assert_eq!(exported["data"]["messages"].as_array().unwrap().len(), 2, "{exported}");
    let request = server.bare(Method::GET, &format!("{chat}/export?format=pdf")).bearer_auth(&owner);
    assert_eq!(send(request).await.0, 400);
}

#[tokio::test]
async fn only_one_of_many_messages_at_once_is_answered() {
    let server = Server::start().await;
    server.create(function_tool("gate", "gate")).await;
    let script = "turns: [{when: {tool: gate}, text: done}, {calls: [{tool: gate}]}]";
    create(&server, scripted("waiter", &["gate"], script)).await;
    let chat = chat(&server, "waiter").await;
    let path = format!("{chat}/messages?async=true");
    let body = json!({"content": "go"});
    let requests = (0..8).map(|_| server.post(&path, body.clone()));
    let answers = futures_util::future::join_all(requests).await;
    let started = answers.iter().filter(|(status, _)| *status == 202).count();
    assert_eq!(started, 1, "{answers:?}");
    assert!(answers.iter().all(|(status, _)| [202, 409].contains(status)), "{answers:?}");
    server.gate.open();
    poll(async || {
        let (_, list) = server.get("/api/runs?status=running").await;
        list["data"]["runs"].as_array().unwrap().is_empty().then_some(())
    })
    .await;
}
