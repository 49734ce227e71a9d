//! A server that is killed while an agent answers: no call with side effects runs twice, and the chat can go on.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests may fail loudly")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use haft_testkit::soak;
use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::{Router, routing::post};
use serde_json::{Value, json};

use crate::client::Client;
use crate::harness::Haft;

/// How often the server is killed under `make soak`.
const KILLS: usize = 50;
/// The calls of one answer.
const CALLS: usize = 20;
/// About how long one answer takes, in milliseconds.
const DURATION: usize = 1500;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_repeat_no_call_of_an_agent_and_leave_a_chat_to_go_on() {
    let haft = Haft::new();
    let upstream = upstream().await;
    let environment = [("HAFT_EGRESS_PRIVATE_HOSTS", "127.0.0.1")];
    let mut server = haft.serve_with(&environment);
    let mut client = Client::new(&haft, &server);
    prepare(&client, &upstream).await;
    let rounds = soak::kills(KILLS);
    let mut statuses: BTreeMap<String, usize> = BTreeMap::new();
    for round in 0..rounds {
        let chat = client.send("POST", "/api/chats", json!({"agent": "booker"})).await.unwrap();
        let chat = format!("/api/chats/{}", chat["data"]["id"].as_str().unwrap());
        let asked = json!({"content": format!("r{round}")});
        let path = format!("{chat}/messages?async=true");
        let asked = client.send("POST", &path, asked).await.unwrap()["data"].clone();
        // The moments are spread over the whole answer.
        let moment = (2 * round + 1) * DURATION / (2 * rounds) + round * 7 % 40;
        tokio::time::sleep(Duration::from_millis(u64::try_from(moment).unwrap())).await;
        server.signal("KILL");
        server.wait();
        server = haft.serve_with(&environment);
        client = Client::new(&haft, &server);
        let run = ended(&client, asked["run"]["id"].as_str().unwrap()).await;
        *statuses.entry(run["status"].as_str().unwrap().to_owned()).or_default() += 1;
        check_answer(&client, &chat, &asked, &run).await;
        // The chat goes on.
        let more = json!({"content": "thanks"});
        let (status, answer) = client.request("POST", &format!("{chat}/messages"), &more).await.unwrap();
        assert_eq!((status, &answer["data"]["run"]["status"]), (201, &json!("success")), "{answer}");
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for request in upstream.seen() {
        *seen.entry(request.target).or_default() += 1;
    }
    assert!(seen.values().all(|count| *count == 1), "a call ran twice: {seen:?}");
    // A call that was cut off is not repeated, and the model goes on.
    assert!(seen.len() + rounds >= rounds * CALLS, "{} of {} calls ran", seen.len(), rounds * CALLS);
    assert_eq!(statuses, BTreeMap::from([("success".to_owned(), rounds)]));
}

/// An API that is slow enough to be hit by a kill.
async fn upstream() -> Upstream {
    let slow = || async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        "{}"
    };
    Upstream::serve(Router::new().route("/{round}/{n}", post(slow))).await.unwrap()
}

/// Creates a tool with side effects, and an agent that calls it again and again.
async fn prepare(client: &Client, upstream: &Upstream) {
    let tool = json!({
        "name": "book", "description": "Books something at the upstream",
        "implementation": {"type": "http", "method": "POST", "url": upstream.url("/${round}/${n}")},
        "input_schema": {"type": "object", "required": ["round", "n"],
            "properties": {"round": {"type": "string"}, "n": {"type": "integer"}}},
    });
    client.send("POST", "/api/tools", tool).await.unwrap();
    let mut script = "turns:\n  - {when: {user: thanks}, text: You are welcome.}\n".to_owned();
    for n in 0..CALLS {
        let call = format!("{{tool: book, arguments: {{round: '{{{{user}}}}', n: {n}}}}}");
        writeln!(script, "  - {{text: Booking {n}., calls: [{call}]}}").unwrap();
    }
    script.push_str("  - {text: All booked.}\n");
    let agent =
        json!({"slug": "booker", "tools": ["book"], "model": {"name": "scripted/booker", "script": script}});
    client.send("POST", "/api/agents", agent).await.unwrap();
}

async fn ended(client: &Client, run: &str) -> Value {
    for _ in 0..600 {
        let found =
            client.send("GET", &format!("/api/runs/{run}"), Value::Null).await.unwrap()["data"].clone();
        if ["success", "error", "cancelled"].contains(&found["status"].as_str().unwrap()) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{run} did not end within a minute");
}

/// Checks that the answer is whole: every call of it has ended, and the text after the last one is there.
async fn check_answer(client: &Client, chat: &str, asked: &Value, run: &Value) {
    let messages = client.send("GET", &format!("{chat}/messages"), Value::Null).await.unwrap();
    let messages = messages["data"]["messages"].as_array().unwrap();
    let answer = messages.iter().find(|message| message["id"] == asked["answer"]["id"]).unwrap();
    let blocks = answer["content"].as_array().unwrap();
    let calls: Vec<_> = blocks.iter().filter(|block| block["type"] == "tool_use").collect();
    assert_eq!(calls.len(), CALLS, "{run} {answer}");
    let cut_off = calls.iter().filter(|call| call["status"] != "success").count();
    assert!(cut_off <= 1, "{answer}");
    assert_eq!(blocks.last().unwrap()["text"], "All booked.", "{answer}");
}
