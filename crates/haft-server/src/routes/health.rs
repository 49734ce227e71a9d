//! `/healthz`, `/readyz` and `/metrics`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use haft_core::catalog::StoreError;
use haft_core::token::Role;
use serde_json::json;

use crate::app::App;
use crate::error::ApiError;
use crate::identity::Identity;

/// The process is alive.
#[utoipa::path(get, path = "/healthz", tag = "operation", security(()), responses((status = 200, body = Object)))]
pub(crate) async fn healthz() -> Json<serde_json::Value> {
    Json(json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))
}

/// The server can take requests: its store answers, and calls can be recorded. A sandbox that does not hold is told, and only keeps tools
/// that need it from running.
#[utoipa::path(
    get, path = "/readyz", tag = "operation", security(()),
    responses((status = 200, body = Object), (status = 503, body = Object))
)]
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> Response {
    let store = app.store().ping().await.is_ok();
    let unrecorded = app.ledger().probe().await.err().map(|error| match error {
        StoreError::Unavailable { doing, source } => format!("{doing}: {source}"),
        other => other.to_string(),
    });
    let ready = store && unrecorded.is_none();
    let tools = app.registry().snapshot().len();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let engine = app.sandbox().settings().engine;
    let verdict = app.sandbox().probe_report(engine).await;
    let checks = json!({
        "store": if store { "ok" } else { "not available" },
        "ledger": unrecorded.unwrap_or_else(|| "ok".to_owned()),
        "sandbox": verdict.reason().unwrap_or_else(|| "ok".to_owned()),
    });
    let word = if ready { "ready" } else { "not ready" };
    let sandbox = json!({
        "engine": engine.as_str(),
        "limits": app.sandbox().limiter(),
        "probes": verdict.probes.iter().map(|probe| {
            json!({"name": probe.name, "ok": probe.failure.is_none(), "failure": probe.failure})
        }).collect::<Vec<_>>(),
    });
    let mode = app.settings().mode;
    let body = json!({"status": word, "mode": mode, "tools": tools, "checks": checks, "sandbox": sandbox});
    (status, Json(body)).into_response()
}

/// Counters and times, in the text form of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operation", responses((status = 200, content_type = "text/plain", body = String)))]
pub(crate) async fn metrics(State(app): State<Arc<App>>, identity: Identity) -> Result<Response, ApiError> {
    identity.require(Role::Viewer)?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics_text()).into_response())
}
