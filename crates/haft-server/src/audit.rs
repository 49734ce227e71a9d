//! Every attempt to change something leaves a record: who, what, when, and what came of it. Calls have their own.
//!
//! A layer around the routes that change things writes it before the answer leaves, whatever the handler answers. A
//! handler that has found what it is about says so by [`App::audit`]; else the address of the request names it. What
//! is changed is stored in one transaction with the record as far as that is known then, so that no crash leaves a
//! change without one; afterwards the layer enters what the handler knew better.

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

/// The longest target that is kept.
const MAX_LENGTH: usize = 300;

const SUCCESS: &str = "success";

tokio::task_local! {
    static NOTE: RefCell<Option<Note>>;
}

/// What a request is about.
struct Note {
    action: String,
    target: String,
}

impl App {
    /// Says what a request has changed.
    #[expect(clippy::unused_self, reason = "the record belongs to this installation")]
    pub(crate) fn audit(&self, identity: &Identity, action: &str, target: &str) {
        let request = request_id::current();
        tracing::info!(target: "haft::audit", who = %identity.caller.name, tenant = %identity.tenant, action, subject = target, request);
        let note = Note { action: action.to_owned(), target: target.to_owned() };
        // Outside of the layer there is nothing to note it in.
        let _ = NOTE.try_with(|kept| kept.replace(Some(note)));
    }

    /// Makes a change that came by the call of a tool and not by a route: to its end, even if nobody waits for it any
    /// more, and recorded in the same way.
    pub(crate) async fn change<T: Send + 'static>(
        self: &Arc<Self>,
        identity: &Identity,
        (action, target): (&str, &str),
        work: impl Future<Output = Result<T, ApiError>> + Send + 'static,
    ) -> Result<T, ApiError> {
        let note = Note { action: action.to_owned(), target: target.to_owned() };
        let (app, record) = (Arc::clone(self), new_record(self, identity, note));
        let work = NOTE.scope(RefCell::default(), async move {
            let done = Store::recorded(record.clone(), work).await;
            let note = NOTE.with(RefCell::take);
            write(&app, record, note, done.as_ref().map_or_else(|error| error.code.as_str(), |_| SUCCESS))
                .await;
            done
        });
        let work = request_id::scope(request_id::current().unwrap_or_default(), work);
        tokio::spawn(work).await.unwrap_or_else(|error| {
            tracing::error!(%error, "a change could not be handled");
            Err(ApiError::new(ErrorCode::Internal, "the change could not be made"))
        })
    }
}

impl App {
    /// Records a login to an MCP server that came to its end: it is the work of whoever began it.
    pub(crate) async fn record_login(&self, done: &LoginResult) {
        let record = self.store().new_record(AuditRecord {
            // The store gives both.
            id: Uuid::nil(),
            at: Timestamp::UNIX_EPOCH,
            tenant: done.tenant.clone(),
            actor: done.by.clone(),
            actor_id: None,
            action: "mcp_server.logged_in".to_owned(),
            target: done.id.to_string(),
            outcome: SUCCESS.to_owned(),
            request_id: request_id::current().unwrap_or_default(),
        });
        write(self, record, None, SUCCESS).await;
    }
}

/// Handles a request to its end, even if nobody waits for it any more, and records it.
pub(crate) async fn record(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return next.run(request).await;
    }
    // A stranger changes nothing, and may not fill the table.
    let Ok(identity) = identity::authenticate(&app, request.headers()) else {
        return next.run(request).await;
    };
    let guess = guess(request.method(), request.uri().path());
    let record = new_record(&app, &identity, guess);
    let work = NOTE.scope(RefCell::default(), async move {
        let response = Store::recorded(record.clone(), next.run(request)).await;
        let note = NOTE.with(RefCell::take);
        write(&app, record, note, outcome(&response)).await;
        response
    });
    let work = request_id::scope(request_id::current().unwrap_or_default(), work);
    match tokio::spawn(work).await {
        Ok(response) => response,
        Err(error) => {
            tracing::error!(%error, "a change could not be handled");
            ApiError::new(ErrorCode::Internal, "the request could not be handled").into_response()
        }
    }
}

fn outcome(response: &Response) -> &'static str {
    match response.extensions().get::<ErrorCode>() {
        Some(code) => code.as_str(),
        None if response.status().is_success() => SUCCESS,
        None => ErrorCode::Internal.as_str(),
    }
}

/// The record of a request as it stands when it comes in. It is stored only with what it changes.
fn new_record(app: &App, identity: &Identity, guess: Note) -> AuditRecord {
    app.store().new_record(AuditRecord {
        // The store gives both.
        id: Uuid::nil(),
        at: Timestamp::UNIX_EPOCH,
        tenant: identity.tenant.clone(),
        actor: identity.caller.name.to_string(),
        actor_id: identity.token_id,
        action: guess.action,
        target: excerpt(&guess.target, MAX_LENGTH),
        outcome: SUCCESS.to_owned(),
        request_id: request_id::current().unwrap_or_default(),
    })
}

async fn write(app: &App, mut record: AuditRecord, note: Option<Note>, outcome: &str) {
    if let Some(note) = note {
        (record.action, record.target) = (note.action, excerpt(&note.target, MAX_LENGTH));
    }
    outcome.clone_into(&mut record.outcome);
    if let Err(error) = app.store().record_change(record).await {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            outcome,
            "what a change came to could not be recorded"
        );
    }
}

/// Names what a request wants by its address, for those that fail before the handler knows better.
fn guess(method: &Method, path: &str) -> Note {
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
        ["tools", "bundles", bundle] => (format!("bundle.{step}"), *bundle),
        ["tools", "bundles", _, "tools", name, ..] => (format!("tool.{step}"), *name),
        ["tools", tool, "revisions", _, "restore"] => ("tool.restore".to_owned(), *tool),
        ["tools", tool] if *method == Method::PUT => ("tool.update".to_owned(), *tool),
        ["tools", tool] => (format!("tool.{step}"), *tool),
        ["tools", tool, step] => (format!("tool.{step}"), *tool),
        ["mcp-servers", server, step] if *method == Method::POST => (format!("mcp_server.{step}"), *server),
        ["calls", call, step] => (format!("call.{step}"), *call),
        [kind, rest @ ..] => (
            format!("{}.{step}", kind.strip_suffix('s').unwrap_or(kind).replace('-', "_")),
            rest.first().copied().unwrap_or(""),
        ),
        [] => (step.to_owned(), ""),
    };
    Note { action: excerpt(&action, 40), target: target.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_says_what_is_wanted() {
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
        ] {
            let Note { action, target } = guess(&method, path);
            assert_eq!(format!("{action} {target}"), expected);
        }
    }
}
