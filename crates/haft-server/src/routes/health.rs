//! `/healthz`, `/readyz` and `/metrics`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use haft_core::outcome::ErrorCode;
use haft_core::runnable::Mode;
use haft_core::token::Role;
use serde::Serialize;
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use haft_platform::Installation;

/// The process is alive.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    #[schema(example = "ok")]
    status: &'static str,
    /// The version of haft.
    #[schema(example = "0.1.0")]
    version: &'static str,
}

/// Whether the server is ready, and why not.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// `ready` or `not ready`.
    #[schema(example = "ready")]
    status: &'static str,
    mode: Mode,
    /// The number of tools.
    tools: usize,
    checks: Checks,
    sandbox: SandboxReport,
}

/// `ok` for each part that works, otherwise the reason.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Checks {
    #[schema(example = "ok")]
    store: String,
    #[schema(example = "ok")]
    ledger: String,
    #[schema(example = "ok")]
    sandbox: String,
    /// The background loops that revoked access depends on.
    #[schema(example = "ok")]
    maintenance: String,
}

/// The sandbox and its self-test.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SandboxReport {
    #[schema(example = "bubblewrap")]
    engine: &'static str,
    /// How resources are limited.
    #[schema(example = "cgroup")]
    limits: &'static str,
    probes: Vec<ProbeView>,
}

/// One probe of the self-test.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProbeView {
    #[schema(example = "files")]
    name: &'static str,
    ok: bool,
    #[schema(required)]
    failure: Option<String>,
}

/// Report that the process is alive.
#[utoipa::path(get, path = "/healthz", tag = "operation", security(()), responses((status = 200, body = Health)))]
pub(crate) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// Report whether the server is ready: the store is available, calls can be recorded, and changes of tokens and policies
/// take effect. A failing sandbox is reported, but only blocks the tools that need it.
#[utoipa::path(
    get, path = "/readyz", tag = "operation", security(()),
    responses((status = 200, body = Readiness), (status = 503, body = Readiness, description = "Not ready"))
)]
pub(crate) async fn readyz(State(app): State<Arc<Installation>>) -> Response {
    let store = app.store().ping().await.is_ok();
    let ledger_error = app.ledger().probe().await.err().map(|error| error.with_cause());
    let down = app.maintenance().down();
    let ready = store && ledger_error.is_none() && down.is_empty();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let engine = app.sandbox().settings().engine;
    let verdict = app.sandbox().probe_report(engine).await;
    let ok = || "ok".to_owned();
    let checks = Checks {
        store: if store { ok() } else { "unavailable".to_owned() },
        ledger: ledger_error.unwrap_or_else(ok),
        sandbox: verdict.reason().unwrap_or_else(ok),
        maintenance: if down.is_empty() { ok() } else { format!("restarting: {}", down.join(", ")) },
    };
    let probes = verdict.probes.iter().map(|probe| ProbeView {
        name: probe.name,
        ok: probe.failure.is_none(),
        failure: probe.failure.clone(),
    });
    let body = Readiness {
        status: if ready { "ready" } else { "not ready" },
        mode: app.settings().mode,
        tools: app.registry().snapshot().len(),
        checks,
        sandbox: SandboxReport {
            engine: engine.as_str(),
            limits: app.sandbox().limiter(),
            probes: probes.collect(),
        },
    };
    (status, Json(body)).into_response()
}

/// Return the metrics of all tenants in the Prometheus text format, for tokens of the tenant `default`.
#[utoipa::path(get, path = "/metrics", tag = "operation", responses((status = 200, content_type = "text/plain", body = String,
    example = "haft_calls_total{outcome=\"success\"} 1\n"), (status = 403, body = ErrorBody)))]
pub(crate) async fn metrics(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
) -> Result<Response, ApiError> {
    identity.require(Role::Viewer)?;
    if !identity.tenant.is_default() {
        let message = "the metrics cover all tenants; use a token of the tenant `default`";
        return Err(ApiError::new(ErrorCode::Forbidden, message));
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics_text().await).into_response())
}
