//! `/render/{address}`: the page of the `html` renderer, in an origin of its own.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::name::{BundleSlug, TenantId};
use haft_core::render::RenderPlan;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::calls;
use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::rendering::{self, with_data};
use haft_platform::toolsets::read_file;

/// Where the result of a call is shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RenderedResult {
    /// The path of the page, for a frame with `sandbox="allow-scripts"`.
    #[schema(example = "/render/eyJ0Ijoi…")]
    url: String,
    expires_at: Timestamp,
}

/// Get the address of the page that shows the result of a call, if its renderer is `html`. It needs no token and is
/// valid for ten minutes.
#[utoipa::path(
    get, path = "/calls/{id}/render", tag = "calls", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<RenderedResult>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn address(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let record = calls::find(&app, &identity, &id).await?;
    let plan = rendering::plan(&record, None);
    if plan.is_none_or(|plan| plan.renderer != "html") {
        let message = "the result of this call is not shown by a page: its tool has no renderer `html`";
        return Err(ApiError::new(haft_core::outcome::ErrorCode::Conflict, message));
    }
    let (text, address) = app.render_key().sign(&identity.tenant, record.id(), app.now());
    let expires_at = Timestamp::from_second(address.expires).unwrap_or_else(|_| app.now());
    Ok(success(RenderedResult { url: format!("/render/{text}"), expires_at }).into_response())
}

/// Serves the page with its data.
pub(crate) async fn page(
    State(app): State<Arc<Installation>>,
    Path(address): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some(found) = find(&app, &address).await else { return gone() };
    let artifact = found.plan.config.get("artifact").and_then(Value::as_str).unwrap_or_default();
    let artifact = artifact.trim_start_matches("./");
    let Some(bytes) = read_file(&app, &found.package, artifact).await else { return gone() };
    let data = found.plan.config.get("data").unwrap_or(&Value::Null);
    let text = with_data(&String::from_utf8_lossy(&bytes), data);
    // The scheme is that of the page, behind a proxy, too.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let host: String = host.chars().filter(|c| c.is_ascii_alphanumeric() || "-.:[]".contains(*c)).collect();
    let own = format!("{host}/render/{address}/assets/");
    let policy = format!(
        "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' {own}; \
         style-src 'unsafe-inline' {own}; img-src data: {own}; font-src data: {own}; media-src data: {own}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    );
    let mut response = text.into_response();
    set(&mut response, "text/html; charset=utf-8", &policy);
    response
}

/// Serves a file in the `assets` of the toolset.
pub(crate) async fn asset(
    State(app): State<Arc<Installation>>,
    Path((address, path)): Path<(String, String)>,
) -> Response {
    let Some(found) = find(&app, &address).await else { return gone() };
    let Some(bytes) = read_file(&app, &found.package, &format!("assets/{path}")).await else { return gone() };
    let media_type = match path.rsplit('.').next() {
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        Some("woff2") => "font/woff2",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    };
    let mut response = bytes.into_response();
    set(&mut response, media_type, "sandbox; default-src 'none'");
    response
}

fn set(response: &mut Response, media_type: &'static str, policy: &str) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Ok(policy) = HeaderValue::from_str(policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
}

fn gone() -> Response {
    let mut response = (StatusCode::NOT_FOUND, "This result is not available any more. Open the call again.")
        .into_response();
    set(&mut response, "text/plain; charset=utf-8", "default-src 'none'");
    response
}

struct Found {
    plan: RenderPlan,
    package: String,
}

async fn find(app: &Installation, address: &str) -> Option<Found> {
    let address = app.render_key().verify(address, app.now())?;
    let record = app.ledger().call(&address.tenant, address.call).await.ok().flatten()?;
    let whole = app.results().whole_for_rendering(&record).await.ok()?;
    let plan = rendering::complete_plan(&record, whole.as_ref()).filter(|plan| plan.renderer == "html")?;
    let package = package(app, &address.tenant, &record.invocation.tool).await?;
    Some(Found { plan, package })
}

/// Returns the package of the toolset that a tool belongs to.
async fn package(app: &Installation, tenant: &TenantId, tool: &str) -> Option<String> {
    let bundle: BundleSlug = tool.split(':').next()?.parse().ok()?;
    app.store().catalog().toolset(tenant, &bundle).await.ok().flatten().map(|toolset| toolset.package)
}
