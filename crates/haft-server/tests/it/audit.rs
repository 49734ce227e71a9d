//! Every change, and every attempt, leaves an audit record.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, send};

async fn records(server: &Server, query: &str) -> Vec<Value> {
    let (status, answer) = server.get(&format!("/api/audit{query}")).await;
    assert_eq!(status, 200, "{answer}");
    answer["data"]["records"].as_array().unwrap().clone()
}

fn reported(records: &[Value]) -> Vec<String> {
    let word = |record: &Value, key: &str| record[key].as_str().unwrap().to_owned();
    let line = |r: &Value| ["actor", "action", "target", "outcome"].map(|key| word(r, key)).join(" ");
    records.iter().rev().map(line).collect()
}

#[tokio::test]
async fn every_change_is_recorded_with_actor_and_outcome() {
    let server = Server::start().await;
    let (_, answer) = server.post("/api/tokens", json!({"name": "kim", "role": "editor"})).await;
    let (kim, id) = (answer["data"]["token"].as_str().unwrap().to_owned(), answer["data"]["id"].clone());
    server.create(function_tool("greeter", "echo")).await;
    let mut changed = function_tool("greeter", "echo");
    changed["description"] = json!("Says what it is told");
    let as_kim =
        |method, path: &str| server.bare(method, path).bearer_auth(&kim).header("x-request-id", "req-7");
    send(as_kim(Method::PUT, "/tools/greeter").body(changed.to_string())).await;
    send(as_kim(Method::PATCH, "/api/tools/greeter").body(json!({"enabled": false}).to_string())).await;
    send(as_kim(Method::PUT, "/api/credentials/KEY").body(json!({"value": "hunter2-hunter2"}).to_string()))
        .await;
    send(as_kim(Method::POST, "/api/tools").body("{ nonsense")).await;
    server.put("/api/credentials/KEY", json!({"value": "hunter2-hunter2"})).await;
    server.post("/api/tools", function_tool("greeter", "echo")).await;
    server.delete("/api/tools/missing").await;
    // Neither what only reads, nor calls, nor strangers.
    server.get("/api/tools").await;
    server.invoke("hello", json!({})).await;
    server.post("/api/tools/greeter/validate", json!({})).await;
    send(server.bare(Method::DELETE, "/api/tools/greeter").bearer_auth("wrong")).await;

    let all = records(&server, "").await;
    assert_eq!(
        reported(&all),
        [
            "local token.create kim success",
            "local tool.create user-created:greeter@1.0.0 success",
            "kim tool.update user-created:greeter@1.0.0 success",
            "kim tool.disable user-created:greeter@1.0.0 success",
            "kim credential.put KEY forbidden",
            "kim tool.create  invalid_definition",
            "local credential.put KEY success",
            "local tool.create  conflict",
            "local tool.delete missing not_found",
        ]
    );
    assert!(!json!(all).to_string().contains("hunter2"));
    let update = &records(&server, "?action=tool.update").await[0];
    assert_eq!((&update["actor_id"], &update["request_id"]), (&id, &json!("req-7")));
    let local = haft_core::actor::LOCAL_OWNER.to_string();
    assert_eq!(all.last().unwrap()["actor_id"], local);
    assert_eq!(records(&server, "?actor=kim&target=greeter").await.len(), 2);
    assert_eq!(records(&server, "?since=1h").await.len(), 9);
    assert_eq!(records(&server, "?since=2999-01-01T00:00:00Z").await.len(), 0);

    let (_, first) = server.get("/api/audit?page_size=4").await;
    assert_eq!(first["data"]["total"], 9);
    let token = first["data"]["next_page_token"].as_str().unwrap();
    let second = records(&server, &format!("?page_size=4&page_token={token}")).await;
    assert_eq!(reported(&second), reported(&all)[1..5]);
    for bad in ["page_token=zzz", "since=yesterday", "page_size=0"] {
        let (status, answer) = server.get(&format!("/api/audit?{bad}")).await;
        assert_eq!(status, 400, "{bad}: {answer}");
    }
    let (status, answer) = send(as_kim(Method::GET, "/api/audit")).await;
    assert_eq!((status, code(&answer)), (403, "forbidden"));

    let server = server.restart().await;
    assert_eq!(records(&server, "").await, all);
}

#[tokio::test]
async fn all_records_are_exported_as_json_lines() {
    let server = Server::start().await;
    // More than the export reads at a time.
    for number in 0..510 {
        server.delete(&format!("/api/tools/missing-{number}")).await;
    }
    let export = async |query: &str, accept: &str| {
        let request = server.request(Method::GET, &format!("/api/audit{query}")).header("accept", accept);
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        assert_eq!(response.headers()["content-type"], "application/x-ndjson");
        let text = response.text().await.unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let filter = "action=tool.delete";
    let all = export(&format!("?format=jsonl&{filter}"), "*/*").await;
    assert_eq!(all.len(), 510);
    assert_eq!(all[..500], records(&server, &format!("?page_size=500&{filter}")).await);
    assert_eq!(export(&format!("?{filter}"), "text/html, application/x-ndjson;q=0.9").await, all);
    assert_eq!(export("?format=jsonl&target=missing-7", "*/*").await.len(), 11);
    assert!(export("?format=jsonl&action=none", "*/*").await.is_empty());
    let (status, answer) = server.get("/api/audit?format=csv").await;
    assert_eq!((status, code(&answer)), (400, "invalid_request"), "{answer}");
    let (_, answer) = server.post("/api/tokens", json!({"name": "kim", "role": "editor"})).await;
    let kim = answer["data"]["token"].as_str().unwrap();
    let (status, _) = send(server.bare(Method::GET, "/api/audit?format=jsonl").bearer_auth(kim)).await;
    assert_eq!(status, 403);
}

#[tokio::test]
async fn the_key_is_rotated_by_platform_admins() {
    let server = Server::start().await;
    let acme = crate::tenants::tenant(&server, "acme").await;
    server.put("/api/credentials/KEY", json!({"value": "hunter2-hunter2"})).await;
    let (status, answer) = send(server.bare(Method::POST, "/api/key/rotate").bearer_auth(&acme)).await;
    assert_eq!((status, code(&answer)), (403, "forbidden"), "{answer}");
    let (status, answer) = server.post("/api/key/rotate", json!({})).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["data"], json!({"generation": 2, "credentials": 1, "next_step": null}));
    let found = records(&server, "?action=key.rotate&actor=local").await;
    assert_eq!(reported(&found), ["local key.rotate generation 2 success"]);
    let server = server.restart().await;
    let (_, answer) = server.get("/api/credentials").await;
    assert_eq!(
        (&answer["data"]["total"], &answer["data"]["credentials"][0]["error"]),
        (&json!(1), &Value::Null)
    );
}

#[tokio::test]
async fn calls_are_audited_with_their_decision() {
    let server = Server::start().await;
    server.create(function_tool("pay", "echo")).await;
    server.create(function_tool("greet", "echo")).await;
    let rules = json!({"rules": [{"name": "no-large-sums", "match": {"tools": ["pay"]}, "when": "args.sum > 100",
        "effect": "deny"}]});
    let (status, answer) = server.put("/api/policy", rules).await;
    assert_eq!(status, 200, "{answer}");
    server.invoke("pay", json!({"sum": 7, "card": "hunter2"})).await;
    server.invoke("pay", json!({"sum": 700, "card": "hunter2"})).await;
    server.invoke("greet", json!({})).await;

    let calls = records(&server, "?kind=calls").await;
    assert_eq!(
        reported(&calls),
        [
            "local call user-created:pay@1.0.0 success",
            "local call user-created:pay@1.0.0 policy_denied",
            "local call user-created:greet@1.0.0 success",
        ]
    );
    assert!(!json!(calls).to_string().contains("hunter2"), "{calls:?}");
    let denied = &calls[1];
    let digest = haft_core::hash::of_args(&json!({"sum": 700, "card": "hunter2"}));
    for (key, expected) in [
        ("decision", json!("denied")),
        ("rule", json!("no-large-sums")),
        ("args_digest", json!(digest)),
        ("role", json!("admin")),
        ("surface", json!("rest")),
        ("status", json!("error")),
        ("revision", json!(1)),
    ] {
        assert_eq!(denied["call"][key], expected, "{key} in {denied}");
    }
    assert!(denied["call"]["duration_ms"].is_number() && denied["kind"] == "call", "{denied}");

    for (query, expected) in [
        ("?kind=calls&decision=denied", 1),
        ("?kind=calls&decision=allowed", 2),
        ("?kind=calls&rule=no-large-sums", 1),
        ("?kind=calls&tool=greet", 1),
        ("?kind=calls&outcome=policy_denied", 1),
        ("?kind=calls&outcome=success&actor=local", 2),
        ("?kind=calls&status=error", 1),
        ("?kind=calls&actor=nobody", 0),
        ("?kind=calls&until=1h", 0),
        ("?kind=all", 6),
        ("?kind=all&action=call", 3),
        ("?kind=all&action=tool.create", 2),
        ("?kind=all&rule=no-large-sums", 1),
        ("?kind=all&tool=greet", 2),
        ("?action=call", 3),
        ("", 3),
    ] {
        let (_, answer) = server.get(&format!("/api/audit{query}")).await;
        let data = &answer["data"];
        assert_eq!(
            (data["records"].as_array().unwrap().len(), &data["total"]),
            (expected, &json!(expected)),
            "{query}: {answer}"
        );
    }
    for (query, field) in [
        ("?kind=changes&rule=x", "rule"),
        ("?status=error", "status"),
        ("?kind=calls&target=x", "target"),
        ("?kind=calls&action=tool.create", "action"),
        ("?kind=other", "kind"),
        ("?kind=calls&decision=maybe", "decision"),
    ] {
        let (status, answer) = server.get(&format!("/api/audit{query}")).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(status == 400 && message.contains(&format!("`{field}`")), "{query}: {answer}");
    }
}

#[tokio::test]
async fn changes_and_calls_are_paged_and_exported_together() {
    let server = Server::start().await;
    for number in 0..4 {
        server.delete(&format!("/api/tools/missing-{number}")).await;
        server.invoke("hello", json!({"number": number})).await;
        server.invoke("clock", json!({})).await;
    }
    let all = records(&server, "?kind=all").await;
    let kinds: Vec<&str> = all.iter().rev().map(|record| record["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["change", "call", "call"].repeat(4));
    let (mut paged, mut token) = (Vec::new(), String::new());
    loop {
        let (_, answer) = server.get(&format!("/api/audit?kind=all&page_size=5{token}")).await;
        assert_eq!(answer["data"]["total"], 12);
        paged.extend(answer["data"]["records"].as_array().unwrap().clone());
        match answer["data"]["next_page_token"].as_str() {
            Some(next) => token = format!("&page_token={next}"),
            None => break,
        }
    }
    assert_eq!(paged, all);
    assert_eq!(records(&server, "?kind=all&skip=3&page_size=4").await, all[3..7]);
    let response = server.request(Method::GET, "/api/audit?kind=all&format=jsonl").send().await.unwrap();
    let text = response.text().await.unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, all);
}
