//! The audit log: every attempt to change something leaves a record of who, what, when and the outcome. Calls have
//! records of their own.
//!
//! A layer around the routes that change things writes the record before the response is sent, whatever the outcome.
//! A handler names the action and its target with [`note`]; otherwise they are derived from the route. A preliminary
//! record is stored in one transaction with the change, so that a crash never leaves a change without a record; the
//! layer then updates it with what the handler noted.

use std::cell::RefCell;
use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::audit::AuditRecord;
use haft_core::outcome::ErrorCode;
use haft_core::principal::Principal;
use haft_core::problem::excerpt;
use haft_store::{AuditLog, PendingLogin};
use uuid::Uuid;

use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::request_id;

/// The longest recorded target, in characters.
const MAX_TARGET_LENGTH: usize = 300;

/// The outcome of a change that was made.
pub const SUCCESS: &str = "success";

tokio::task_local! {
    static NOTE: RefCell<Option<AuditNote>>;
}

/// The action of a request and its target.
struct AuditNote {
    action: String,
    target: String,
}

/// Notes what the current request changes.
pub fn note(identity: &Identity, action: &str, target: &str) {
    let request = request_id::current();
    tracing::info!(target: "haft::audit", who = %identity.name, tenant = %identity.tenant, action, subject = target, request);
    let note = AuditNote { action: action.to_owned(), target: target.to_owned() };
    // Outside of the layer there is no record to update.
    let _ = NOTE.try_with(|current| current.replace(Some(note)));
}

/// Returns the record of one of several changes of a request, to be stored with them.
pub fn change_record(app: &Context, identity: &Identity, action: &str, target: &str) -> AuditRecord {
    new_record(app, identity, AuditNote { action: action.to_owned(), target: target.to_owned() })
}

/// Runs a change requested by a tool call instead of a route: recorded in the same way, and to its end even if the
/// caller stops waiting.
pub async fn run_change<T: Send + 'static>(
    app: &Arc<Context>,
    identity: &Identity,
    change: (&str, &str),
    work: impl Future<Output = Result<T, ServiceError>> + Send + 'static,
) -> Result<T, ServiceError> {
    let outcome = |result: &Result<T, ServiceError>| {
        result.as_ref().map_or_else(|error| error.code.as_str(), |_| SUCCESS)
    };
    run_recorded(app, identity, change, work, outcome).await.unwrap_or_else(|error| Err(error))
}

/// Runs what may change something to its end, even if the caller stops waiting, and records the outcome. The action and
/// the target are those that the work notes, otherwise the given ones.
pub async fn run_recorded<T: Send + 'static>(
    app: &Arc<Context>,
    identity: &Identity,
    (action, target): (&str, &str),
    work: impl Future<Output = T> + Send + 'static,
    outcome: impl Fn(&T) -> &'static str + Send + 'static,
) -> Result<T, ServiceError> {
    let note = AuditNote { action: action.to_owned(), target: target.to_owned() };
    let (record, app) = (new_record(app, identity, note), Arc::clone(app));
    let work = async move {
        let result = AuditLog::recorded(record.clone(), work).await;
        write(&app, record, NOTE.with(RefCell::take), outcome(&result)).await;
        result
    };
    run_detached(work).await
}

/// Records the end of a login at another server, in the name of the principal that began it.
pub async fn record_login(app: &Context, login: &PendingLogin, browser: Option<&Principal>) {
    let (action, target) = match (login.actor, login.provider.strip_prefix("mcp:")) {
        (None, Some(server)) => ("mcp_server.logged_in", server),
        _ => ("account.connected", login.provider.as_str()),
    };
    let record = app.store().audit().new_record(AuditRecord {
        // The store sets both.
        id: Uuid::nil(),
        at: Timestamp::UNIX_EPOCH,
        tenant: login.tenant.clone(),
        actor: login.requested_by.clone(),
        actor_id: login.actor.map(|actor| actor.0),
        token_id: browser.and_then(|browser| browser.token),
        action: action.to_owned(),
        target: target.to_owned(),
        outcome: SUCCESS.to_owned(),
        request_id: request_id::current().unwrap_or_default(),
    });
    write(app, record, None, SUCCESS).await;
}

/// Runs a change in a task of its own, so that it ends even if the caller stops waiting.
async fn run_detached<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, ServiceError> {
    let work = NOTE.scope(RefCell::default(), work);
    let work = request_id::scope(request_id::current().unwrap_or_default(), work);
    tokio::spawn(work).await.map_err(|error| {
        tracing::error!(%error, "the task of a change failed");
        ServiceError::new(ErrorCode::Internal, "an internal error occurred; see the server log")
    })
}

/// Returns the preliminary record of a request; it is stored together with the change.
fn new_record(app: &Context, identity: &Identity, note: AuditNote) -> AuditRecord {
    app.store().audit().new_record(AuditRecord {
        // The store sets both.
        id: Uuid::nil(),
        at: Timestamp::UNIX_EPOCH,
        tenant: identity.tenant.clone(),
        actor: identity.name.to_string(),
        actor_id: identity.actor_or_token_id(),
        token_id: identity.token,
        action: note.action,
        target: excerpt(&note.target, MAX_TARGET_LENGTH),
        outcome: SUCCESS.to_owned(),
        request_id: request_id::current().unwrap_or_default(),
    })
}

async fn write(app: &Context, mut record: AuditRecord, note: Option<AuditNote>, outcome: &str) {
    if let Some(note) = note {
        (record.action, record.target) = (note.action, excerpt(&note.target, MAX_TARGET_LENGTH));
    }
    outcome.clone_into(&mut record.outcome);
    if let Err(error) = app.store().audit().record(record).await {
        let error = &error as &dyn std::error::Error;
        tracing::error!(error, outcome, "failed to write the audit record of a change");
    }
}
