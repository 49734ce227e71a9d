//! `/calls`: recorded calls and running calls.

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
use serde::Serialize;
use serde_json::{Value, json};
use tokio_stream::wrappers::BroadcastStream;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::audit;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::{Page, PageParams, Params};
use crate::reply::{Success, success};
use crate::view::{CallErrorView, CallView};

/// The largest page; smaller than that of other lists, because calls may be large.
const MAX_PAGE_SIZE: u32 = 100;
/// Longer values are omitted from lists.
const MAX_LISTED_BYTES: usize = 16 * 1024;
/// The length that longer messages are shortened to, in characters.
const SHORT_MESSAGE: usize = 1000;

/// The longest text to search for, in characters.
const MAX_TEXT: usize = 200;

/// A page of calls.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallList<'a> {
    calls: Vec<CallView<'a>>,
    /// The number of calls that match the filter.
    total: u64,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// List calls, newest first.
#[utoipa::path(
    get, path = "/calls", tag = "calls",
    params(("tool" = Option<String>, Query, description = "Reference to a tool", example = "greet"),
        ("status" = Option<CallStatus>, Query, description = "The state of the call"),
        ("caller" = Option<String>, Query, description = "Name of the token that called"),
        ("error_code" = Option<ErrorCode>, Query, description = "The code of the error that the call failed with"),
        ("chat_id" = Option<String>, Query, description = "The chat that the call belongs to"),
        ("since" = Option<String>, Query, description = "Calls from this time on, such as `2026-01-31T12:00:00Z`, or since a period before now, such as `24h` or `7d`", example = "7d"),
        ("until" = Option<String>, Query, description = "Calls before this time, in the same forms"),
        ("q" = Option<String>, Query, description = "Part of the tool, the arguments, the value, the error message or the output of the process, in any case", max_length = 200),
        PageParams),
    responses((status = 200, body = Success<CallList<'static>>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("calls")?;
    let limit = page.size.min(MAX_PAGE_SIZE);
    let query = CallQuery { limit, ..query(&app, &identity, &params, &page)? };
    let mut found = app.ledger().calls(query).await?;
    let next_page_token = page.token_after(&found.calls, limit, |call| call.id.to_string());
    let shortened: Vec<bool> = found.calls.iter_mut().map(shorten_call).collect();
    let mut calls: Vec<_> = found.calls.iter().map(CallView::from).collect();
    calls.iter_mut().zip(shortened).for_each(|(call, shortened)| call.shortened = shortened);
    Ok(success(CallList { calls, total: found.total, next_page_token }).into_response())
}

fn query(app: &App, identity: &Identity, params: &Params, page: &Page) -> Result<CallQuery, ApiError> {
    let tool = params.get("tool").map(|tool| super::tool::find(app, identity, tool)).transpose()?;
    let statuses = "`pending`, `running`, `success`, `error`, `cancelled`";
    let parse_code = |text: &str| ErrorCode::ALL.iter().copied().find(|code| code.as_str() == text);
    let text = |name: &str| params.get(name).map(str::to_owned);
    if params.get("q").is_some_and(|text| text.chars().count() > MAX_TEXT) {
        return Err(ApiError::bad_request(format!("`q` exceeds the limit of {MAX_TEXT} characters")));
    }
    Ok(CallQuery {
        tenant: identity.tenant.clone(),
        tool_id: tool.map(|entry| entry.tool.id),
        status: params.choice("status", CallStatus::parse, statuses)?,
        caller: text("caller"),
        error_code: params.choice("error_code", parse_code, "the error codes, for example `timeout`")?,
        chat_id: text("chat_id"),
        since: params.time("since", app.now())?,
        until: params.time("until", app.now())?,
        text: text("q"),
        before: page.after()?,
        skip: page.skip,
        limit: page.size,
    })
}

/// Removes the long values of a call for a list; returns whether there were any.
fn shorten_call(record: &mut CallRecord) -> bool {
    let is_long = |value: &Value| value.to_string().len() > MAX_LISTED_BYTES;
    let mut omitted = record.value.as_ref().is_some_and(is_long);
    if omitted {
        record.value = None;
    }
    if !record.content.is_empty() && is_long(&json!(record.content)) {
        omitted = true;
        record.content.clear();
    }
    if let Some(error) = &mut record.error {
        omitted |= shorten(error);
    }
    if is_long(&record.args) {
        omitted = true;
        record.args = Value::Null;
    }
    omitted
}

/// Shortens the long parts of an error; returns whether there were any.
fn shorten(error: &mut CallError) -> bool {
    let mut omitted = false;
    for text in [Some(&mut error.message), error.for_model.as_mut()].into_iter().flatten() {
        if text.len() > MAX_LISTED_BYTES {
            *text = excerpt(text, SHORT_MESSAGE);
            omitted = true;
        }
    }
    if error.details.as_ref().is_some_and(|details| details.to_string().len() > MAX_LISTED_BYTES) {
        error.details = None;
        omitted = true;
    }
    omitted
}

async fn find(app: &App, identity: &Identity, id: &str) -> Result<CallRecord, ApiError> {
    let missing = || ApiError::not_found("call", id);
    let parsed: CallId = id.parse().map_err(|_| missing())?;
    app.ledger().call(&identity.tenant, parsed).await?.ok_or_else(missing)
}

/// Return one call.
#[utoipa::path(
    get, path = "/calls/{id}", tag = "calls", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<CallView<'static>>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let record = find(&app, &identity, &id).await?;
    Ok(success(CallView::from(&record)).into_response())
}

/// A call whose cancellation was requested.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CancelledCall {
    call_id: Uuid,
    #[schema(example = "cancellation requested")]
    message: &'static str,
}

/// Cancel a background call.
#[utoipa::path(
    post, path = "/calls/{id}/cancel", tag = "calls", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<CancelledCall>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let record = find(&app, &identity, &id).await?;
    let Some(running) = app.pipeline().background().get(&record.tenant, record.id) else {
        let message = format!("the call is not running: its status is `{}`", record.status.as_str());
        return Err(ApiError::new(ErrorCode::Conflict, message));
    };
    running.cancel.cancel();
    audit::note(&identity, "call.cancel", &id);
    Ok(success(CancelledCall { call_id: record.id.0, message: "cancellation requested" }).into_response())
}

/// One event of the stream of a call.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only describes the stream")]
pub(crate) struct StreamedEvent {
    /// `status`, `output` or `progress`.
    #[schema(example = "status")]
    event: String,
    /// The event as JSON; a line of output as text.
    #[schema(example = r#"{"status":"success","duration_ms":12.3,"value":1}"#)]
    data: String,
}

/// Stream the events of a call: `status`, `output` and `progress`; the last event carries the outcome.
#[utoipa::path(
    get, path = "/calls/{id}/events", tag = "calls", params(("id" = Uuid, Path)),
    responses((status = 200, content_type = "text/event-stream", body = StreamedEvent, description = "One of these per event"),
        (status = 404, body = ErrorBody))
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
    let status = stream::iter([event("status", &json!({"status": "running"}))]);
    let (past, receiver) = running.subscribe();
    let past = stream::iter(past).map(|event| call_event(&event));
    let following = BroadcastStream::new(receiver).map(|received| match received {
        Ok(event) => call_event(&event),
        Err(lagged) => event("lagged", &json!({"message": lagged.to_string()})),
    });
    status.chain(past).chain(following)
}

fn call_event(call_event: &CallEvent) -> Event {
    match call_event {
        CallEvent::Output(line) | CallEvent::Value(line) => event("output", &json!({"line": line})),
        CallEvent::Progress(progress, message) => {
            event("progress", &json!({"progress": progress, "message": message}))
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
