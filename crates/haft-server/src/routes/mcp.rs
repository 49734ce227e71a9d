//! `/mcp`: the tools for any MCP client.
//!
//! Who may come is decided here: token, host and origin. What the messages mean is haft-mcp's business.

use std::sync::Arc;

use axum::Json;
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use haft_core::name::BundleSlug;
use haft_core::outcome::ErrorCode;
use haft_core::token::Role;
use haft_mcp::server::{ClientContext, View};
use serde_json::json;

use crate::app::App;
use crate::error::ApiError;
use crate::identity::{self, Identity};
use crate::mcp::has_bundle;
use crate::request_id;

const ROOT: &str = "/mcp";
const BUNDLES: &str = "/mcp/bundles/";
/// The name of the protocol that carries messages line by line, in both directions.
pub(crate) const PIPE: &str = "mcp-lines";
const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Tells whether a request is for MCP, as the path says.
pub(crate) fn is_meant(path: &str) -> bool {
    path == ROOT || path.strip_prefix(ROOT).is_some_and(|rest| rest.starts_with('/'))
}

/// Tells whether a request asks what it takes to be let in.
pub(crate) fn asks_metadata(path: &str) -> bool {
    path.strip_prefix(METADATA).is_some_and(|rest| rest.is_empty() || is_meant(rest))
}

/// Answers a request for MCP.
pub(crate) async fn answer(app: &App, request: Request) -> Response {
    match admit(app, &request) {
        Ok(seat) if wants_pipe(&request) => app.mcp().pipe(seat, request),
        Ok(seat) => app.mcp().answer(seat, request).await,
        Err(error) => refuse(app, &request, error),
    }
}

/// Says of a path which tokens it takes (RFC 9728). There is no server that gives them out: an administrator does.
pub(crate) fn metadata(app: &App, request: &Request) -> Response {
    if let Err(error) = check_host(app, request) {
        return error.into_response();
    }
    let path = request.uri().path();
    let path = path.strip_prefix(METADATA).filter(|rest| !rest.is_empty()).unwrap_or(ROOT);
    let document = json!({
        "resource": format!("{}{path}", base(app, request)),
        "resource_name": "haft",
        "bearer_methods_supported": ["header"],
    });
    Json(document).into_response()
}

/// Tells whether the connection shall carry messages line by line from here on, as `haft mcp` wants it.
fn wants_pipe(request: &Request) -> bool {
    request.headers().get(header::UPGRADE).is_some_and(|name| name == PIPE)
}

fn admit(app: &App, request: &Request) -> Result<ClientContext, ApiError> {
    check_host(app, request)?;
    check_origin(app, request)?;
    let identity = identity::authenticate(app, request.headers())?;
    let view = view(app, &identity, request.uri().path())?;
    Ok(seat(app, &identity, view, request))
}

fn seat(app: &App, identity: &Identity, view: View, request: &Request) -> ClientContext {
    let mut caller = identity.caller.clone();
    // Whoever hands the token to a model may keep the elevation back.
    caller.elevated &= request.headers().get("x-haft-elevated").is_none_or(|value| value != "false");
    ClientContext {
        tenant: identity.tenant.clone(),
        token: identity
            .token_id
            .map_or_else(|| Arc::clone(&identity.caller.name), |id| id.to_string().into()),
        caller,
        may_call: identity.role >= Role::Caller,
        mode: app.settings().mode,
        view,
        request_id: request_id::current(),
    }
}

/// Finds out which tools a path shows.
fn view(app: &App, identity: &Identity, path: &str) -> Result<View, ApiError> {
    if path == ROOT {
        return Ok(View::All);
    }
    let slug = path.strip_prefix(BUNDLES).ok_or_else(|| ApiError::not_found("route", path))?;
    let unknown = || ApiError::not_found("bundle", slug);
    let named: BundleSlug = slug.parse().map_err(|_| unknown())?;
    if has_bundle(app, &identity.tenant, &named) { Ok(View::Bundle(named)) } else { Err(unknown()) }
}

/// Refuses a name that another site could have given to this machine (DNS rebinding). An address cannot be one:
/// a browser that goes by it is where it wanted to go.
fn check_host(app: &App, request: &Request) -> Result<(), ApiError> {
    let fail = |message: String| ApiError::new(ErrorCode::Forbidden, message);
    let Some(named) = authority(request) else {
        return Err(ApiError::bad_request("the request has no valid Host header"));
    };
    let host = bare(named.host());
    if host == "localhost" || host.parse::<std::net::IpAddr>().is_ok() {
        return Ok(());
    }
    let settings = &app.settings().mcp;
    let listed = |entry: &String| entry == "*" || is_host(entry, &named);
    if settings.allowed_hosts.iter().any(listed) || own_authority(app).is_some_and(|own| own == named) {
        return Ok(());
    }
    let host = haft_core::problem::excerpt(&host, 120);
    Err(fail(format!(
        "the host `{host}` is not one of this server; name it in the setting `mcp.allowed_hosts`"
    )))
}

/// Tells whether an entry of the list means this host; one without a port means every port.
fn is_host(entry: &str, named: &Authority) -> bool {
    let Ok(entry) = entry.parse::<Authority>() else { return false };
    bare(entry.host()) == bare(named.host())
        && (entry.port().is_none() || entry.port_u16() == named.port_u16())
}

/// Refuses pages of other sites, but for those that the server's settings let in.
fn check_origin(app: &App, request: &Request) -> Result<(), ApiError> {
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
    let message = format!(
        "pages of the origin `{origin}` may not come here; name it in the setting `server.cors_origins`"
    );
    Err(ApiError::new(ErrorCode::Forbidden, message))
}

fn authority(request: &Request) -> Option<Authority> {
    match request.headers().get(header::HOST) {
        Some(host) => host.to_str().ok()?.parse().ok(),
        None => request.uri().authority().cloned(),
    }
}

fn bare(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

/// Returns the host of the address that the settings tell.
fn own_authority(app: &App) -> Option<Authority> {
    let url = app.settings().mcp.public_url.as_deref()?;
    url.split_once("://")?.1.split('/').next()?.parse().ok()
}

/// Returns the address of this server, as its clients know it.
fn base(app: &App, request: &Request) -> String {
    own_address(app, authority(request).as_ref())
}

/// Returns the address of this server, as the settings say it, or else as a request names it.
pub(crate) fn own_address(app: &App, named: Option<&Authority>) -> String {
    match &app.settings().mcp.public_url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => format!("http://{}", named.map_or("localhost", Authority::as_str)),
    }
}

/// Says no, and where it says what it takes.
fn refuse(app: &App, request: &Request, error: ApiError) -> Response {
    let mut response = error.into_response();
    if response.status() == StatusCode::UNAUTHORIZED {
        let given = request.headers().contains_key(header::AUTHORIZATION);
        let wrong = if given { "error=\"invalid_token\", " } else { "" };
        let place = format!("{}{METADATA}{}", base(app, request), request.uri().path());
        let challenge = format!("Bearer {wrong}resource_metadata=\"{place}\"");
        if let Ok(challenge) = HeaderValue::from_str(&challenge) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
    }
    response
}

/// Headers of MCP that browsers have to be told of.
pub(crate) const HEADERS: [&str; 5] =
    ["mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_apart() {
        for (path, expected) in [
            ("/mcp", true),
            ("/mcp/bundles/web", true),
            ("/mcp/", true),
            ("/mcpx", false),
            ("/api/mcp", false),
            ("/mcp-servers", false),
        ] {
            assert_eq!(is_meant(path), expected, "{path}");
            assert_eq!(asks_metadata(&format!("{METADATA}{path}")), expected, "{path}");
        }
        assert!(asks_metadata(METADATA));
    }

    #[test]
    fn hosts_are_compared_without_case_and_with_the_port_where_there_is_one() {
        let check = |entry: &str, named: &str, expected: bool| {
            assert_eq!(is_host(entry, &named.parse().unwrap()), expected, "{entry} {named}");
        };
        check("tools.example.com", "Tools.Example.com", true);
        check("tools.example.com", "tools.example.com:8443", true);
        check("tools.example.com:8443", "tools.example.com:8443", true);
        check("tools.example.com:8443", "tools.example.com", false);
        check("example.com", "tools.example.com", false);
        check("not a host", "example.com", false);
    }
}
