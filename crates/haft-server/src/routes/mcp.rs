//! `/mcp`: the tools for MCP clients.
//!
//! This module checks token, host and origin; haft-mcp handles the messages.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use haft_core::name::BundleSlug;
use haft_core::outcome::ErrorCode;
use haft_core::principal::Principal;
use haft_core::token::Role;
use haft_mcp::server::{ClientContext, View};
use haft_oauth::scope;
use serde_json::json;

use crate::authentication;
use crate::error::ApiError;
use crate::mcp::{LINE_PROTOCOL, Mcp, connection_session, has_bundle};
use crate::open_stream;
use crate::step_up;
use crate::{body, browser};
use haft_platform::Installation;
use haft_platform::identity::Identity;
use haft_platform::request_id;

const ROOT: &str = "/mcp";
const BUNDLES: &str = "/mcp/bundles/";
/// The path of the metadata; the path of the resource follows.
pub(crate) const METADATA: &str = step_up::RESOURCE_METADATA;

/// The state of these routes.
#[derive(Clone)]
pub(crate) struct McpState {
    pub(crate) app: Arc<Installation>,
    pub(crate) mcp: Arc<Mcp>,
}

/// Handles an MCP request.
pub(crate) async fn handle(State(McpState { app, mcp }): State<McpState>, request: Request) -> Response {
    // Only tokens give access: no browser page is an MCP client.
    let identity = match check_source(&app, &request) {
        Ok(()) => authentication::authenticate_bearer(&app, request.headers()).await,
        Err(error) => Err(error),
    };
    let admitted = identity.and_then(|identity| Ok((view(&app, &identity, request.uri().path())?, identity)));
    let (view, identity) = match admitted {
        Ok(admitted) => admitted,
        Err(error) => return reject(&app, &request, error),
    };
    let request = match check_role(&app, &identity, request).await {
        Ok(request) => request,
        Err(response) => return response,
    };
    let client = client_context(&app, &identity, view, &request);
    let is_pipe = requests_pipe(&request);
    // A GET stream carries only notifications and stays open.
    let stays_open = is_pipe || request.method() == Method::GET;
    match open_stream::acquire_if(stays_open, &app, &identity, request.extensions()) {
        Ok(Some(permit)) if is_pipe => mcp.pipe(&app, client, (identity, permit), request),
        Ok(Some(permit)) => mcp
            .handle(client, request)
            .await
            .map(|body| Body::from_stream(open_stream::with_permit(body.into_data_stream(), permit))),
        Ok(None) => mcp.handle(client, request).await,
        Err(error) => error.into_response(),
    }
}

/// Returns the metadata of the protected resource (RFC 9728).
pub(crate) async fn metadata(State(McpState { app, .. }): State<McpState>, request: Request) -> Response {
    if let Err(error) = check_host(&app, &request) {
        return error.into_response();
    }
    let path = request.uri().path().strip_prefix(METADATA).unwrap_or_default();
    let path = if path.is_empty() { ROOT } else { path };
    if path != ROOT && !path.starts_with("/mcp/") {
        return ApiError::not_found("route", request.uri().path()).into_response();
    }
    let base = browser::own_url(&app, request.headers());
    let document = json!({
        "resource": format!("{base}{path}"),
        "resource_name": "haft",
        "authorization_servers": [base],
        // What a client asks for at first; `insufficient_scope` tells it what else it needs.
        "scopes_supported": [scope::of_role(Role::Viewer), scope::of_role(Role::Caller)],
        "bearer_methods_supported": ["header"],
    });
    Json(document).into_response()
}

/// Rejects calls of an application that may only read, with the status by which it notices that it may ask for more. Other
/// callers get an error of MCP.
async fn check_role(app: &Installation, identity: &Identity, request: Request) -> Result<Request, Response> {
    if !identity.is_application() || identity.role >= Role::Caller || request.method() != Method::POST {
        return Ok(request);
    }
    let limit = app.settings().server.max_body_bytes;
    if body::content_length_exceeds(request.headers(), limit) {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    let read = axum::body::to_bytes(body, limit).await;
    let bytes = read
        .map_err(|_| ApiError::bad_request("the request body is incomplete or too large").into_response())?;
    let messages: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let is_call = |message: &serde_json::Value| message["method"] == "tools/call";
    let calls = match messages.as_array() {
        Some(batch) => batch.iter().any(is_call),
        None => is_call(&messages),
    };
    let request = Request::from_parts(parts, Body::from(bytes));
    match identity.require(Role::Caller) {
        Err(error) if calls => Err(ApiError::from(error).into_response()),
        _ => Ok(request),
    }
}

/// Returns whether the client requests an upgrade to one message per line, as `haft mcp` does.
fn requests_pipe(request: &Request) -> bool {
    request.headers().get(header::UPGRADE).is_some_and(|name| name == LINE_PROTOCOL)
}

/// Rejects requests for other hosts, and of pages of other origins.
fn check_source(app: &Installation, request: &Request) -> Result<(), ApiError> {
    check_host(app, request)?;
    check_origin(app, request)
}

fn client_context(app: &Installation, identity: &Identity, view: View, request: &Request) -> ClientContext {
    // A client can drop the elevation of its token before it lets a model make calls.
    let drops_elevation = request.headers().get("x-haft-elevated").is_some_and(|value| value == "false");
    let principal = if identity.elevated && drops_elevation {
        Arc::new(Principal::clone(identity).elevated(false))
    } else {
        identity.principal()
    };
    ClientContext {
        principal,
        mode: app.settings().mode,
        view,
        request_id: request_id::current(),
        // haft-mcp knows the sessions of the HTTP transport.
        session: requests_pipe(request).then(connection_session),
        policy: Arc::clone(app.policy().handle()),
    }
}

/// Returns the view that a path selects.
fn view(app: &Installation, identity: &Identity, path: &str) -> Result<View, ApiError> {
    if path == ROOT {
        return Ok(View::All);
    }
    let slug = path.strip_prefix(BUNDLES).ok_or_else(|| ApiError::not_found("route", path))?;
    let unknown = || ApiError::not_found("bundle", slug);
    let named: BundleSlug = slug.parse().map_err(|_| unknown())?;
    if has_bundle(app, &identity.tenant, &named) { Ok(View::Bundle(named)) } else { Err(unknown()) }
}

/// Rejects unknown host names, against DNS rebinding. IP addresses and `localhost` cannot be rebound.
pub(super) fn check_host(app: &Installation, request: &Request) -> Result<(), ApiError> {
    let fail = |message: String| ApiError::new(ErrorCode::Forbidden, message);
    let Some(named) = authority(request) else {
        return Err(ApiError::bad_request("missing or invalid `Host` header"));
    };
    let host = normalize_host(named.host());
    if host == "localhost" || host.parse::<std::net::IpAddr>().is_ok() {
        return Ok(());
    }
    let settings = &app.settings().mcp;
    let listed = |entry: &String| entry == "*" || matches_host(entry, &named);
    if settings.allowed_hosts.iter().any(listed) || public_authority(app).is_some_and(|own| own == named) {
        return Ok(());
    }
    let host = haft_core::problem::excerpt(&host, 120);
    Err(fail(format!("host `{host}` is not allowed; add it to `mcp.allowed_hosts`")))
}

/// Returns whether an entry of the list matches a host; an entry without a port matches every port.
fn matches_host(entry: &str, named: &Authority) -> bool {
    let Ok(entry) = entry.parse::<Authority>() else { return false };
    normalize_host(entry.host()) == normalize_host(named.host())
        && (entry.port().is_none() || entry.port_u16() == named.port_u16())
}

/// Rejects requests from pages of other origins, except the configured ones.
fn check_origin(app: &Installation, request: &Request) -> Result<(), ApiError> {
    let Some(origin) = request.headers().get(header::ORIGIN) else { return Ok(()) };
    let text = origin.to_str().unwrap_or_default();
    let listed = &app.settings().server.cors_origins;
    if listed.iter().any(|entry| entry == "*" || entry == text) {
        return Ok(());
    }
    let own = text.split_once("://").and_then(|(_, rest)| rest.parse::<Authority>().ok());
    if own.is_some() && own == authority(request) {
        return Ok(());
    }
    let origin = haft_core::problem::excerpt(text, 120);
    let message = format!("origin `{origin}` is not allowed; add it to `server.cors_origins`");
    Err(ApiError::new(ErrorCode::Forbidden, message))
}

fn authority(request: &Request) -> Option<Authority> {
    match request.headers().get(header::HOST) {
        Some(host) => host.to_str().ok()?.parse().ok(),
        None => request.uri().authority().cloned(),
    }
}

fn normalize_host(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

/// Returns the host of `mcp.public_url`.
fn public_authority(app: &Installation) -> Option<Authority> {
    let url = app.settings().mcp.public_url.as_deref()?;
    url.split_once("://")?.1.split('/').next()?.parse().ok()
}

/// Returns the configured URL of this server, otherwise one with the host of a request.
pub(crate) fn public_url(app: &Installation, host: Option<&Authority>) -> String {
    match &app.settings().mcp.public_url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => format!("http://{}", host.map_or("localhost", Authority::as_str)),
    }
}

/// Returns an error; if a token is missing, with the URL of the metadata.
fn reject(app: &Installation, request: &Request, error: ApiError) -> Response {
    let mut response = error.into_response();
    if response.status() == StatusCode::UNAUTHORIZED {
        let has_token = request.headers().contains_key(header::AUTHORIZATION);
        let error = if has_token { "error=\"invalid_token\", " } else { "" };
        let base = browser::own_url(app, request.headers());
        let metadata = format!("{base}{METADATA}{}", request.uri().path());
        let scope = scope::of_role(scope::DEFAULT);
        let challenge = format!("Bearer {error}scope=\"{scope}\", resource_metadata=\"{metadata}\"");
        if let Ok(challenge) = HeaderValue::from_str(&challenge) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_compared_without_case_and_with_the_port_if_given() {
        let check = |entry: &str, named: &str, expected: bool| {
            assert_eq!(matches_host(entry, &named.parse().unwrap()), expected, "{entry} {named}");
        };
        check("tools.example.com", "Tools.Example.com", true);
        check("tools.example.com", "tools.example.com:8443", true);
        check("tools.example.com:8443", "tools.example.com:8443", true);
        check("tools.example.com:8443", "tools.example.com", false);
        check("example.com", "tools.example.com", false);
        check("not a host", "example.com", false);
    }
}
