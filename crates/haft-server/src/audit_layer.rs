//! The layer that records the requests of routes that change things in the audit log.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;

use crate::authentication::authenticate;
use crate::error::ApiError;
use haft_platform::Installation;
use haft_platform::audit::{self, SUCCESS};

/// Middleware: handles a request to its end, even if the client disconnects, and records it.
pub(crate) async fn record(State(app): State<Arc<Installation>>, request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return next.run(request).await;
    }
    // Unauthenticated requests change nothing and must not fill the table.
    let Ok(identity) = authenticate(&app, request.method(), request.headers()).await else {
        return next.run(request).await;
    };
    let (action, target) = change_of_route(request.method(), request.uri().path());
    let recorded = audit::run_recorded(&app, &identity, (&action, &target), next.run(request), outcome);
    recorded.await.unwrap_or_else(|error| ApiError::from(error).into_response())
}

fn outcome(response: &Response) -> &'static str {
    match response.extensions().get::<ErrorCode>() {
        Some(code) => code.as_str(),
        None if response.status().is_success() => SUCCESS,
        None => ErrorCode::Internal.as_str(),
    }
}

/// Derives action and target from the route, for requests that fail before their handler notes them.
fn change_of_route(method: &Method, path: &str) -> (String, String) {
    let path = path.strip_prefix("/api").unwrap_or(path);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let step = match *method {
        Method::POST => "create",
        Method::PUT => "put",
        Method::PATCH => "switch",
        Method::DELETE => "delete",
        _ => "change",
    };
    let (action, target) = match parts.as_slice() {
        ["tools"] => (format!("tool.{step}"), ""),
        ["tools", "bundles", bundle, "publish"] => ("bundle.publish".to_owned(), *bundle),
        ["tools", "bundles", bundle] => (format!("bundle.{step}"), *bundle),
        ["tools", "bundles", _, "tools", name, ..] => (format!("tool.{step}"), *name),
        ["tools", tool, "revisions", _, "restore"] => ("tool.restore".to_owned(), *tool),
        ["tools", tool] if *method == Method::PUT => ("tool.update".to_owned(), *tool),
        ["tools", tool] => (format!("tool.{step}"), *tool),
        ["tools", tool, step] => (format!("tool.{step}"), *tool),
        ["mcp-servers", server, step] if *method == Method::POST => (format!("mcp_server.{step}"), *server),
        ["scim", _, kind, rest @ ..] => {
            let kind = if *kind == "Groups" { "group" } else { "person" };
            let step = if matches!(*method, Method::PUT | Method::PATCH) { "update" } else { step };
            (format!("{kind}.{step}"), rest.first().copied().unwrap_or(""))
        }
        ["key", step] => (format!("key.{step}"), ""),
        ["tenants", tenant] if *method == Method::PATCH => ("tenant.update".to_owned(), *tenant),
        ["tokens", token] if *method == Method::PATCH => ("token.update".to_owned(), *token),
        ["tokens", token, step] => (format!("token.{step}"), *token),
        ["calls", call, step] => (format!("call.{step}"), *call),
        [kind, rest @ ..] => (
            format!("{}.{step}", kind.strip_suffix('s').unwrap_or(kind).replace('-', "_")),
            rest.first().copied().unwrap_or(""),
        ),
        [] => (step.to_owned(), ""),
    };
    (excerpt(&action, 40), target.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn action_and_target_come_from_the_route() {
        for (method, path, expected) in [
            (Method::POST, "/api/tools", "tool.create "),
            (Method::PUT, "/tools/a", "tool.update a"),
            (Method::PATCH, "/tools/a", "tool.switch a"),
            (Method::DELETE, "/api/tools/b:a@1.0.0", "tool.delete b:a@1.0.0"),
            (Method::POST, "/api/tools/a/publish", "tool.publish a"),
            (Method::POST, "/api/tools/a/revisions/1/restore", "tool.restore a"),
            (Method::PUT, "/api/tools/bundles/b", "bundle.put b"),
            (Method::DELETE, "/tools/bundles/b/tools/a/version/1", "tool.delete a"),
            (Method::POST, "/api/calls/1/cancel", "call.cancel 1"),
            (Method::POST, "/api/mcp-servers", "mcp_server.create "),
            (Method::POST, "/api/mcp-servers/a/refresh", "mcp_server.refresh a"),
            (Method::POST, "/api/mcp-servers/a/login", "mcp_server.login a"),
            (Method::DELETE, "/api/mcp-servers/a", "mcp_server.delete a"),
            (Method::PUT, "/api/credentials/KEY", "credential.put KEY"),
            (Method::POST, "/api/tokens", "token.create "),
            (Method::POST, "/api/tokens/1/rotate", "token.rotate 1"),
            (Method::PATCH, "/api/tokens/1", "token.update 1"),
            (Method::PATCH, "/api/tenants/acme", "tenant.update acme"),
            (Method::POST, "/api/key/rotate", "key.rotate "),
            (Method::POST, "/api/login-links", "login_link.create "),
            (Method::POST, "/scim/v2/Users", "person.create "),
            (Method::PATCH, "/scim/v2/Users/1", "person.update 1"),
            (Method::PUT, "/scim/v2/Groups/1", "group.update 1"),
            (Method::DELETE, "/scim/v2/Groups/1", "group.delete 1"),
        ] {
            let (action, target) = change_of_route(&method, path);
            assert_eq!(format!("{action} {target}"), expected);
        }
    }
}
