//! The audit log: every attempt to change something leaves a record of who, what, when and the outcome. Calls have
//! records of their own.
//!
//! A layer around the routes that change things writes the record before the response is sent, whatever the outcome.
//! A handler names the action and its target with [`note`]; otherwise they are derived from the route. A preliminary
//! record is stored in one transaction with the change, so that a crash never leaves a change without a record; the
//! layer then updates it with what the handler noted.

use std::cell::RefCell;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::audit::AuditRecord;
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_mcp::client::LoginResult;
use haft_store::Store;
use uuid::Uuid;

use crate::app::App;
use crate::error::ApiError;
use crate::identity::{self, Identity};
use crate::request_id;

/// The longest recorded target, in characters.
const MAX_TARGET_LENGTH: usize = 300;

const SUCCESS: &str = "success";

tokio::task_local! {
    static NOTE: RefCell<Option<AuditNote>>;
}

/// The action of a request and its target.
struct AuditNote {
    action: String,
    target: String,
}

/// Notes what the current request changes.
pub(crate) fn note(identity: &Identity, action: &str, target: &str) {
    let request = request_id::current();
    tracing::info!(target: "haft::audit", who = %identity.name, tenant = %identity.tenant, action, subject = target, request);
    let note = AuditNote { action: action.to_owned(), target: target.to_owned() };
    // Outside of the layer there is no record to update.
    let _ = NOTE.try_with(|current| current.replace(Some(note)));
}

/// Returns the record of one of several changes of a request, to be stored with them.
pub(crate) fn change_record(app: &App, identity: &Identity, action: &str, target: &str) -> AuditRecord {
    new_record(app, identity, AuditNote { action: action.to_owned(), target: target.to_owned() })
}

/// Runs a change requested by a tool call instead of a route: recorded in the same way, and to its end even if the
/// caller stops waiting.
pub(crate) async fn run_change<T: Send + 'static>(
    app: &Arc<App>,
    identity: &Identity,
    (action, target): (&str, &str),
    work: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> Result<T, ApiError> {
    let note = AuditNote { action: action.to_owned(), target: target.to_owned() };
    let (record, app) = (new_record(app, identity, note), Arc::clone(app));
    let work = async move {
        let result = Store::recorded(record.clone(), work).await;
        let outcome = result.as_ref().map_or_else(|error| error.code.as_str(), |_| SUCCESS);
        write(&app, record, NOTE.with(RefCell::take), outcome).await;
        result
    };
    run_detached(work).await.unwrap_or_else(|error| Err(error))
}

/// Records the end of a login to an MCP server, in the name of the principal that started it.
pub(crate) async fn record_login(app: &App, login: &LoginResult) {
    let record = app.store().new_record(AuditRecord {
        // The store sets both.
        id: Uuid::nil(),
        at: Timestamp::UNIX_EPOCH,
        tenant: login.tenant.clone(),
        actor: login.by.clone(),
        actor_id: None,
        action: "mcp_server.logged_in".to_owned(),
        target: login.id.to_string(),
        outcome: SUCCESS.to_owned(),
        request_id: request_id::current().unwrap_or_default(),
    });
    write(app, record, None, SUCCESS).await;
}

/// Middleware: handles a request to its end, even if the client disconnects, and records it.
pub(crate) async fn record(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return next.run(request).await;
    }
    // Unauthenticated requests change nothing and must not fill the table.
    let Ok(identity) = identity::authenticate(&app, request.method(), request.headers()).await else {
        return next.run(request).await;
    };
    let record = new_record(&app, &identity, note_from_route(request.method(), request.uri().path()));
    let work = async move {
        let response = Store::recorded(record.clone(), next.run(request)).await;
        write(&app, record, NOTE.with(RefCell::take), outcome(&response)).await;
        response
    };
    run_detached(work).await.unwrap_or_else(IntoResponse::into_response)
}

/// Runs a change in a task of its own, so that it ends even if the caller stops waiting.
async fn run_detached<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, ApiError> {
    let work = NOTE.scope(RefCell::default(), work);
    let work = request_id::scope(request_id::current().unwrap_or_default(), work);
    tokio::spawn(work).await.map_err(|error| {
        tracing::error!(%error, "the task of a change failed");
        ApiError::new(ErrorCode::Internal, "an internal error occurred; see the server log")
    })
}

fn outcome(response: &Response) -> &'static str {
    match response.extensions().get::<ErrorCode>() {
        Some(code) => code.as_str(),
        None if response.status().is_success() => SUCCESS,
        None => ErrorCode::Internal.as_str(),
    }
}

/// Returns the preliminary record of a request; it is stored together with the change.
fn new_record(app: &App, identity: &Identity, note: AuditNote) -> AuditRecord {
    app.store().new_record(AuditRecord {
        // The store sets both.
        id: Uuid::nil(),
        at: Timestamp::UNIX_EPOCH,
        tenant: identity.tenant.clone(),
        actor: identity.name.to_string(),
        actor_id: identity.token,
        action: note.action,
        target: excerpt(&note.target, MAX_TARGET_LENGTH),
        outcome: SUCCESS.to_owned(),
        request_id: request_id::current().unwrap_or_default(),
    })
}

async fn write(app: &App, mut record: AuditRecord, note: Option<AuditNote>, outcome: &str) {
    if let Some(note) = note {
        (record.action, record.target) = (note.action, excerpt(&note.target, MAX_TARGET_LENGTH));
    }
    outcome.clone_into(&mut record.outcome);
    if let Err(error) = app.store().record_change(record).await {
        let error = &error as &dyn std::error::Error;
        tracing::error!(error, outcome, "failed to write the audit record of a change");
    }
}

/// Derives action and target from the route, for requests that fail before their handler notes them.
fn note_from_route(method: &Method, path: &str) -> AuditNote {
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
    AuditNote { action: excerpt(&action, 40), target: target.to_owned() }
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
        ] {
            let AuditNote { action, target } = note_from_route(&method, path);
            assert_eq!(format!("{action} {target}"), expected);
        }
    }
}
