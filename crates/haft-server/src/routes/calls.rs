//! `/calls`: what was called, what came of it, and calls that still run.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use haft_core::call::{CallRecord, CallStatus};
use haft_core::executor::CallEvent;
use haft_core::id::CallId;
use haft_core::ledger::CallQuery;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_core::token::Role;
use haft_runtime::events::BackgroundCall;
use serde_json::{Value, json};
use tokio_stream::wrappers::BroadcastStream;

use crate::app::App;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::success;
use crate::view::CallErrorView;

/// Calls may be large: a page of them has fewer than other lists.
const MAX_PAGE: u32 = 100;
/// Longer values are left out of a list.
const LONG_VALUE: usize = 16 * 1024;
/// As much is shown of a text that is long.
const SHORT_TEXT: usize = 1000;

/// List calls, newest first.
#[utoipa::path(
    get, path = "/calls", tag = "calls",
    params(("tool" = Option<String>, Query, description = "A tool, named in any way"),
        ("status" = Option<String>, Query, description = "`pending`, `running`, `success`, `error`, `cancelled`"),
        ("page_size" = Option<u32>, Query), ("page_token" = Option<String>, Query),
        ("skip" = Option<u32>, Query), ("limit" = Option<u32>, Query)),
    responses((status = 200, body = Object), (status = 400, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("calls")?;
    let tool = params.get("tool").map(|tool| super::tool::find(&app, &identity, tool)).transpose()?;
    let words = "`pending`, `running`, `success`, `error`, `cancelled`";
    let before = page.after.as_deref().map(str::parse).transpose();
    let query = CallQuery {
        tenant: identity.tenant.clone(),
        tool_id: tool.map(|entry| entry.tool.id),
        status: params.choice("status", CallStatus::parse, words)?,
        before: before.map_err(|_| haft_core::page::PageTokenError)?,
        skip: page.skip,
        limit: page.size.min(MAX_PAGE),
    };
    let found = app.ledger().calls(query).await?;
    let full = u32::try_from(found.calls.len()).is_ok_and(|length| length == page.size.min(MAX_PAGE));
    let next_page_token = found.calls.last().filter(|_| full).map(|last| page.token(&last.id.to_string()));
    let calls: Vec<_> = found.calls.into_iter().map(shortened).collect();
    Ok(success(json!({"calls": calls, "total": found.total, "next_page_token": next_page_token}))
        .into_response())
}

/// A list is to look through: what is long stands in the call itself.
fn shortened(mut record: CallRecord) -> Value {
    let long = |value: &Value| value.to_string().len() > LONG_VALUE;
    let mut omitted = record.value.as_ref().is_some_and(long);
    if omitted {
        record.value = None;
    }
    if !record.content.is_empty() && long(&json!(record.content)) {
        omitted = true;
        record.content.clear();
    }
    if let Some(error) = &mut record.error {
        omitted |= shorten(error);
    }
    let args_omitted = long(&record.args);
    if args_omitted {
        record.args = Value::Null;
    }
    let mut shown = shown(&record);
    if let (true, Some(map)) = (omitted || args_omitted, shown.as_object_mut()) {
        map.insert("shortened".to_owned(), Value::Bool(true));
    }
    shown
}

/// Leaves out what is long of an error; tells whether it did.
fn shorten(error: &mut CallError) -> bool {
    let mut omitted = false;
    for text in [Some(&mut error.message), error.for_model.as_mut()].into_iter().flatten() {
        if text.len() > LONG_VALUE {
            *text = excerpt(text, SHORT_TEXT);
            omitted = true;
        }
    }
    if error.details.as_ref().is_some_and(|details| details.to_string().len() > LONG_VALUE) {
        error.details = None;
        omitted = true;
    }
    omitted
}

/// Shows a record; its error is the one of an outcome, with the text for the model under the same name.
fn shown(record: &CallRecord) -> Value {
    let mut shown = json!(record);
    if let (Some(error), Some(map)) = (&record.error, shown.as_object_mut()) {
        map.insert("error".to_owned(), json!(CallErrorView::from(error)));
    }
    shown
}

async fn find(app: &App, identity: &Identity, id: &str) -> Result<CallRecord, ApiError> {
    let missing = || ApiError::not_found("call", id);
    let parsed: CallId = id.parse().map_err(|_| missing())?;
    app.ledger().call(&identity.tenant, parsed).await?.ok_or_else(missing)
}

/// Show one call.
#[utoipa::path(
    get, path = "/calls/{id}", tag = "calls", params(("id" = String, Path)),
    responses((status = 200, body = Object), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let record = find(&app, &identity, &id).await?;
    Ok(success(shown(&record)).into_response())
}

/// Stop a call that runs in the background.
#[utoipa::path(
    post, path = "/calls/{id}/cancel", tag = "calls", params(("id" = String, Path)),
    responses((status = 200, body = Object), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let record = find(&app, &identity, &id).await?;
    let Some(running) = app.pipeline().background().get(&record.tenant, record.id) else {
        let message = format!("the call is over: its status is `{}`", record.status.as_str());
        return Err(ApiError::new(ErrorCode::Conflict, message));
    };
    running.cancel.cancel();
    app.audit(&identity, "call.cancel", &id);
    Ok(success(json!({"call_id": record.id, "message": "the call is being cancelled"})).into_response())
}

/// Watch a call: `status`, `output` and `progress` events, the last one with the outcome.
#[utoipa::path(
    get, path = "/calls/{id}/events", tag = "calls", params(("id" = String, Path)),
    responses((status = 200, content_type = "text/event-stream", body = String), (status = 404, body = ErrorBody))
)]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let record = find(&app, &identity, &id).await?;
    let running = app.pipeline().background().get(&record.tenant, record.id);
    let live = running.map(|running| live(&running));
    let last = {
        let (app, tenant, id) = (Arc::clone(&app), record.tenant.clone(), record.id);
        stream::once(async move { app.ledger().call(&tenant, id).await.ok().flatten() })
            .filter_map(|found| async move { found.map(|record| status_event(&record)) })
    };
    let events = stream::iter(live).flatten().chain(last).map(Ok::<_, Infallible>);
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

fn live(running: &BackgroundCall) -> impl Stream<Item = Event> + use<> {
    let first = stream::iter([event("status", &json!({"status": "running"}))]);
    let (past, coming) = running.subscribe();
    let past = stream::iter(past).map(|told| call_event(&told));
    let following = BroadcastStream::new(coming).map(|received| match received {
        Ok(told) => call_event(&told),
        Err(lagged) => event("lagged", &json!({"message": lagged.to_string()})),
    });
    first.chain(past).chain(following)
}

fn call_event(told: &CallEvent) -> Event {
    match told {
        CallEvent::Output(line) => event("output", &json!({"line": line})),
        CallEvent::Progress(share, message) => {
            event("progress", &json!({"progress": share, "message": message}))
        }
    }
}

fn status_event(record: &CallRecord) -> Event {
    let mut data = json!({"status": record.status, "duration_ms": record.duration_ms});
    match (&record.error, data.as_object_mut()) {
        (Some(error), Some(map)) => {
            map.insert("error".to_owned(), json!(CallErrorView::from(error)));
        }
        (None, Some(map)) => {
            map.insert("value".to_owned(), record.value.clone().unwrap_or(Value::Null));
        }
        (_, None) => {}
    }
    if let (false, Some(map)) = (record.content.is_empty(), data.as_object_mut()) {
        map.insert("content".to_owned(), json!(record.content));
    }
    event("status", &data)
}

fn event(name: &str, data: &Value) -> Event {
    Event::default().event(name).data(data.to_string())
}
