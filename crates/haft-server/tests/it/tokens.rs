//! Tokens: what they may grant, rotation, expiry, and last use.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, poll, send};
use crate::tenants::{tenant, with};

async fn create(server: &Server, token: &str, body: Value) -> (u16, Value) {
    with(server, token, Method::POST, "/api/tokens", body).await
}

fn value(answer: &Value) -> String {
    answer["data"]["token"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[tokio::test]
async fn nobody_creates_a_token_that_is_stronger_than_its_own() {
    let server = Server::start().await;
    let local = server.token.clone();
    let of_acme = tenant(&server, "acme").await;
    let body = json!({"name": "limited", "role": "admin", "tools": ["web:*", "tag:safe"]});
    let limited = value(&create(&server, &local, body).await.1);
    let platform = json!({"name": "ops", "role": "admin", "platform": true});
    let (_, ops) = create(&server, &local, platform.clone()).await;
    for (token, body, expected) in [
        (&limited, json!({"name": "x"}), 403),
        (&limited, json!({"name": "x", "tools": ["fetch"]}), 403),
        (&limited, json!({"name": "x", "tools": ["web:fetch"], "elevated": true}), 403),
        (&limited, json!({"name": "x", "tools": ["web:fetch"], "role": "admin", "platform": true}), 403),
        (&limited, json!({"name": "x", "tools": ["web:fetch", "tag:safe"]}), 201),
        (&limited, json!({"name": "x", "tools": []}), 201),
        (&limited, json!({"name": "x", "tools": ["web:x"], "tenant": "acme"}), 403),
        (&limited, json!({"name": "x", "tools": ["web:x"], "tenant": "nobody"}), 403),
        (&of_acme, json!({"name": "x", "tenant": "default"}), 403),
        (&of_acme, json!({"name": "x", "role": "admin", "platform": true}), 400),
        (&of_acme, json!({"name": "x", "tenant": "acme", "elevated": true}), 201),
        (&local, json!({"name": "x", "tenant": "nobody"}), 404),
        (&local, json!({"name": "x", "role": "editor", "platform": true}), 400),
        (&local, json!({"name": "x", "role": "admin", "platform": true, "tenant": "acme"}), 400),
        (&local, json!({"name": "x", "tools": ["a b"]}), 400),
    ] {
        let (status, answer) = create(&server, token, body.clone()).await;
        assert_eq!(status, expected, "{body} {answer}");
    }
    // Nor does it get the value of a stronger one, or the tokens of another tenant.
    let ops = format!("/api/tokens/{}", ops["data"]["id"].as_str().unwrap());
    let rotate = format!("{ops}/rotate");
    for (token, expected) in [(&limited, 403), (&of_acme, 404)] {
        assert_eq!(with(&server, token, Method::POST, &rotate, json!({})).await.0, expected);
        assert_eq!(with(&server, token, Method::DELETE, &ops, json!({})).await.0, expected);
    }
    assert_eq!(with(&server, &of_acme, Method::GET, &ops, json!({})).await.0, 404);
    assert_eq!(with(&server, &of_acme, Method::GET, "/api/tokens?tenant=default", json!({})).await.0, 403);
    let (_, listed) = server.get("/api/tokens?tenant=acme").await;
    assert_eq!(listed["data"]["total"], 2, "{listed}");
    assert_eq!(server.get(&ops).await.1["data"]["platform"], true);
}

#[tokio::test]
async fn a_rotated_token_has_one_value_or_two_for_a_while() {
    let server = Server::start().await;
    let (_, answer) = server.post("/api/tokens", json!({"name": "ci", "expires_in": "90d"})).await;
    let (first, path) = (value(&answer), format!("/api/tokens/{}", answer["data"]["id"].as_str().unwrap()));
    let status = async |token: &str| with(&server, token, Method::GET, "/api/session", json!({})).await.0;
    let (status_code, answer) = server.post(&format!("{path}/rotate"), json!({"grace": "10m"})).await;
    assert_eq!(status_code, 200, "{answer}");
    let second = value(&answer);
    assert!(answer["data"]["previous_expires_at"].is_string() && answer["data"]["expires_at"].is_string());
    assert_eq!((status(&first).await, status(&second).await), (200, 200));
    let third = value(&send(server.request(Method::POST, &format!("{path}/rotate"))).await.1);
    assert_eq!((status(&first).await, status(&second).await, status(&third).await), (401, 401, 200));
    for bad in [json!({"grace": "soon"}), json!({"grace": "8d"}), json!({"grase": "1m"})] {
        assert_eq!(server.post(&format!("{path}/rotate"), bad.clone()).await.0, 400, "{bad}");
    }
    let (_, answer) = server.get(&path).await;
    assert!(!answer.to_string().contains(&third) && answer["data"]["last_used_at"].is_string(), "{answer}");
}

#[tokio::test]
async fn rejected_tokens_get_the_same_error() {
    let server = Server::start().await;
    let mut values = vec!["haft_x".to_owned(), server.token[..20].to_owned(), format!("{}x", server.token)];
    let (_, expired) = server.post("/api/tokens", json!({"name": "a", "expires_in": "1ms"})).await;
    values.push(value(&expired));
    let (_, revoked) = server.post("/api/tokens", json!({"name": "b"})).await;
    values.push(value(&revoked));
    server.delete(&format!("/api/tokens/{}", revoked["data"]["id"].as_str().unwrap())).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    for token in values {
        let (status, answer) = with(&server, &token, Method::GET, "/api/tools", json!({})).await;
        assert_eq!((status, code(&answer)), (401, "unauthorized"));
        assert_eq!(answer["error"]["message"], "the token is invalid or has expired");
    }
}

#[tokio::test]
async fn the_last_use_survives_a_restart() {
    let server = Server::start().await;
    let (_, answer) = server.post("/api/tokens", json!({"name": "ci"})).await;
    let path = format!("/api/tokens/{}", answer["data"]["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.1["data"]["last_used_at"], json!(null));
    with(&server, &value(&answer), Method::GET, "/api/tools", json!({})).await;
    let used = server.get(&path).await.1["data"]["last_used_at"].clone();
    assert!(used.is_string());
    let server = server.restart().await;
    poll(async || (server.get(&path).await.1["data"]["last_used_at"] == used).then_some(())).await;
}
