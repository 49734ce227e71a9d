//! The server says when it is not ready.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use haft_platform::Installation;
use haft_platform::settings::Settings;
use haft_platform::supervisor::{Importance, LoopSpec, LoopStates, Supervisor};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::mcp::Mcp;
use crate::router;

async fn down(states: &LoopStates, expected: &[&str]) {
    let reached = async {
        while states.down() != expected {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), reached)
        .await
        .expect("the state of the loop did not change");
}

#[tokio::test]
async fn the_server_is_not_ready_while_a_loop_that_security_rests_on_is_down() {
    let home = tempfile::tempdir().unwrap();
    let mut settings = Settings::for_home(home.path().to_owned());
    settings.built_ins.enabled = false;
    let app = Installation::open(settings).await.unwrap();
    let edge = router::edge(&app, &Arc::new(Mcp::new(&app, None)));
    let readiness = async || {
        let request = http::Request::builder().uri("/readyz").body(Body::empty()).unwrap();
        let (head, body) = edge.handle(request).await.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        (head.status, body["checks"]["maintenance"].as_str().unwrap().to_owned())
    };
    assert_eq!(readiness().await, (StatusCode::OK, "ok".to_owned()));
    let stop = CancellationToken::new();
    let supervisor = Supervisor { states: app.maintenance(), metrics: app.metrics() };
    let panics = |name, importance| LoopSpec {
        name,
        importance,
        stop: stop.clone(),
        run: Box::new(|| Box::pin(async { panic!("always") })),
    };
    let tasks = [
        supervisor.start(panics("access", Importance::Security)),
        supervisor.start(panics("search", Importance::Ordinary)),
    ];
    down(app.maintenance(), &["access"]).await;
    assert_eq!(readiness().await, (StatusCode::SERVICE_UNAVAILABLE, "restarting: access".to_owned()));
    stop.cancel();
    for task in tasks {
        task.await.unwrap();
    }
    app.close().await;
}
