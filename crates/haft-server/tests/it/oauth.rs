//! An authorisation server that gives out a new refresh token each time and takes no old one.

use std::sync::{Arc, Mutex};

use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::extract::State;
use haft_testkit::upstream::axum::http::{HeaderMap, StatusCode};
use haft_testkit::upstream::axum::{Json, Router, routing};
use serde_json::{Value, json};

use crate::harness::{Server, send};

/// The number of the one refresh token that is good now.
#[derive(Default)]
struct Rotation(Mutex<u32>);

async fn token(State(rotation): State<Arc<Rotation>>, form: String) -> (StatusCode, Json<Value>) {
    let mut good = rotation.0.lock().unwrap();
    let sent = form.split('&').find_map(|pair| pair.strip_prefix("refresh_token="));
    if sent != Some(&format!("refresh-token-{good}")) {
        return (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_grant"})));
    }
    *good += 1;
    let answer = json!({"access_token": format!("access-{good}"), "expires_in": 0, "refresh_token": format!("refresh-token-{good}")});
    (StatusCode::OK, Json(answer))
}

async fn authorisation_server() -> Upstream {
    let data =
        |headers: HeaderMap| async move { headers["authorization"].to_str().unwrap().len().to_string() };
    let router = Router::new().route("/token", routing::post(token)).route("/data", routing::get(data));
    Upstream::serve(router.with_state(Arc::new(Rotation::default()))).await.unwrap()
}

fn tool(upstream: &Upstream) -> Value {
    json!({
        "name": "guarded", "description": "Asks with a token that rotates",
        "implementation": {
            "type": "http", "url": upstream.url("/data"),
            "auth": {"type": "oauth2", "token_url": upstream.url("/token"), "client_id": "me", "refresh_token": "${REFRESH}"},
        },
    })
}

#[tokio::test]
async fn a_rotated_refresh_token_outlives_a_restart() {
    let upstream = authorisation_server().await;
    let server = Server::start().await;
    server.put("/api/credentials/REFRESH", json!({"value": "refresh-token-0"})).await;
    server.create(tool(&upstream)).await;
    let called = async |server: &Server| {
        let (_, answer) = server.invoke("guarded", json!({})).await;
        assert_eq!(answer["ok"], true, "{answer}");
    };
    called(&server).await;
    called(&server).await;
    let server = server.restart().await;
    called(&server).await;
    // Many at once: each gets the token of the one before.
    let calls: Vec<_> = (0..8).map(|_| server.invoke("guarded", json!({}))).collect();
    for (_, answer) in futures_util::future::join_all(calls).await {
        assert_eq!(answer["ok"], true, "{answer}");
    }
    let server = server.restart().await;
    called(&server).await;
    // Nothing of it is to be seen.
    for path in ["/api/credentials", "/api/calls", "/api/tools/guarded"] {
        let (_, answer) = send(server.request(reqwest::Method::GET, path)).await;
        assert!(!answer.to_string().contains("refresh-token-"), "{path}: {answer}");
    }
    // A credential that is stored anew is what counts: here, one that the server does not take.
    server.put("/api/credentials/REFRESH", json!({"value": "refresh-token-0-again"})).await;
    let (_, answer) = server.invoke("guarded", json!({})).await;
    assert_eq!((&answer["ok"], &answer["error"]["code"]), (&json!(false), &json!("http_status")), "{answer}");
}
