//! `/healthz`, `/readyz` and `/metrics`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use haft_core::token::Role;
use serde_json::json;

use crate::app::App;
use crate::error::ApiError;
use crate::identity::Identity;

/// Report that the process is alive.
#[utoipa::path(get, path = "/healthz", tag = "operation", security(()), responses((status = 200, body = Object)))]
pub(crate) async fn healthz() -> Json<serde_json::Value> {
    Json(json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))
}

/// Report whether the server is ready: the store is available and calls can be recorded. A failing sandbox is reported,
/// but only blocks the tools that need it.
#[utoipa::path(
    get, path = "/readyz", tag = "operation", security(()),
    responses((status = 200, body = Object), (status = 503, body = Object))
)]
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> Response {
    let store = app.store().ping().await.is_ok();
    let ledger_error = app.ledger().probe().await.err().map(|error| error.with_cause());
    let ready = store && ledger_error.is_none();
    let tools = app.registry().snapshot().len();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let engine = app.sandbox().settings().engine;
    let verdict = app.sandbox().probe_report(engine).await;
    let checks = json!({
        "store": if store { "ok" } else { "unavailable" },
        "ledger": ledger_error.unwrap_or_else(|| "ok".to_owned()),
        "sandbox": verdict.reason().unwrap_or_else(|| "ok".to_owned()),
    });
    let summary = if ready { "ready" } else { "not ready" };
    let sandbox = json!({
        "engine": engine.as_str(),
        "limits": app.sandbox().limiter(),
        "probes": verdict.probes.iter().map(|probe| {
            json!({"name": probe.name, "ok": probe.failure.is_none(), "failure": probe.failure})
        }).collect::<Vec<_>>(),
    });
    let mode = app.settings().mode;
    let body = json!({"status": summary, "mode": mode, "tools": tools, "checks": checks, "sandbox": sandbox});
    (status, Json(body)).into_response()
}

/// Return the metrics in the Prometheus text format.
#[utoipa::path(get, path = "/metrics", tag = "operation", responses((status = 200, content_type = "text/plain", body = String)))]
pub(crate) async fn metrics(State(app): State<Arc<App>>, identity: Identity) -> Result<Response, ApiError> {
    identity.require(Role::Viewer)?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics_text()).into_response())
}
