//! `/calls`: recorded calls and running calls.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use haft_core::call::{CallRecord, CallStatus};
use haft_core::id::CallId;
use haft_core::ledger::{CallQuery, CallQueue as _, Cancellation};
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_core::token::Role;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::authentication::Caller;
use crate::call_events;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::open_stream::StreamingCaller;
use crate::params::{PageParams, Params};
use crate::reply::{Success, success};
use crate::sse;
use haft_api::call::CallView;
use haft_api::call::{CallList, CancelledCall};
use haft_platform::Installation;
use haft_platform::approvals;
use haft_platform::audit;
use haft_platform::events::sees_calls_of_others;
use haft_platform::identity::Identity;
use haft_platform::rendering;

/// The largest page; smaller than that of other lists, because calls may be large.
const MAX_PAGE_SIZE: u32 = 100;
/// Longer values are omitted from lists.
pub(super) const MAX_LISTED_BYTES: usize = 16 * 1024;
/// The length that longer messages are shortened to, in characters.
const SHORT_MESSAGE: usize = 1000;

/// The longest text to search for, in characters.
const MAX_TEXT: usize = 200;

/// The filter of calls, as the OpenAPI document shows it; [`query`] parses it.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes the parameters")]
pub(crate) struct CallFilterParams {
    /// Reference to a tool
    #[param(example = "greet")]
    tool: Option<String>,
    /// The states of the calls, comma-separated: `pending`, `running`, `success`, `error`, `cancelled`,
    /// `awaiting_approval`, `denied`, `expired`, `interrupted`; the parameter may also be repeated
    #[param(
        pattern = "^(pending|running|success|error|cancelled|awaiting_approval|denied|expired|interrupted)(,(pending|running|success|error|cancelled|awaiting_approval|denied|expired|interrupted))*$",
        example = "error,interrupted"
    )]
    status: Option<String>,
    /// Who called: the name, or the id of a person, a service account or a token. An id finds the calls of all tokens of
    /// a person
    caller: Option<String>,
    /// The id of a person, a service account or a token that called: unlike a name, no two have the same
    actor: Option<String>,
    /// The interface that the calls came through: `rest`, `mcp`, `cli`, `test`, or the tool that called
    #[param(example = "rest")]
    surface: Option<String>,
    /// The id of the call that made the calls
    parent_id: Option<String>,
    /// The code of the error that the call failed with
    error_code: Option<ErrorCode>,
    /// The chat that the call belongs to
    chat_id: Option<String>,
    /// Calls from this time on, such as `2026-01-31T12:00:00Z`, or since a period before now, such as `24h` or `7d`
    #[param(example = "7d")]
    since: Option<String>,
    /// Calls before this time, in the same forms
    until: Option<String>,
    /// Part of the tool, the arguments, the value, the error message or the output of the process, in any case
    #[param(max_length = 200)]
    q: Option<String>,
    /// The same as `q`
    #[param(max_length = 200)]
    text: Option<String>,
}

/// List calls, newest first.
#[utoipa::path(
    get, path = "/calls", tag = "calls", params(CallFilterParams, PageParams),
    responses((status = 200, body = Success<CallList<'static>>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("calls")?;
    let limit = page.size.min(MAX_PAGE_SIZE);
    let (before, skip) = (page.after()?, page.skip);
    let query = CallQuery { before, skip, limit, ..query(&app, &identity, &params)? };
    let mut found = app.ledger().calls(query).await?;
    // A text search continues after the calls that it has searched, even if none matched.
    let next_page_token = page
        .token_after(&found.calls, limit, |call| call.id().to_string())
        .or_else(|| found.searched_to.map(|id| page.token(&id.to_string())));
    let shortened: Vec<bool> = found.calls.iter_mut().map(shorten_call).collect();
    let mut calls: Vec<_> = found.calls.iter().map(CallView::from).collect();
    calls.iter_mut().zip(shortened).for_each(|(call, shortened)| call.shortened = shortened);
    Ok(success(CallList { calls, total: found.total, next_page_token }).into_response())
}

/// Parses the filter of calls. Callers see their own calls, editors and admins those of the tenant.
pub(super) fn query(app: &Installation, identity: &Identity, params: &Params) -> Result<CallQuery, ApiError> {
    let tool = params.get("tool").map(|tool| haft_platform::tools::find(app, identity, tool)).transpose()?;
    let statuses = "`pending`, `running`, `success`, `error`, `cancelled`, `awaiting_approval`, `denied`, `expired`, \
                    `interrupted`";
    let parse_code = |text: &str| ErrorCode::ALL.iter().copied().find(|code| code.as_str() == text);
    let text = |name: &str| params.get(name).map(str::to_owned);
    if params.get("q").is_some() && params.get("text").is_some() {
        return Err(ApiError::bad_request("`q` and `text` are the same filter; use one of them"));
    }
    for name in ["q", "text"] {
        if params.get(name).is_some_and(|text| text.chars().count() > MAX_TEXT) {
            let message = format!("`{name}` exceeds the limit of {MAX_TEXT} characters");
            return Err(ApiError::bad_request(message));
        }
    }
    let of_caller = params.get("caller").and_then(|caller| Uuid::try_parse(caller).ok());
    let actor = params.parsed::<Uuid>("actor", "the id of a person, a service account or a token")?;
    let visible = visible_calls(identity);
    let principals =
        [of_caller, actor].into_iter().flatten().fold(visible.principals.clone(), |found, id| {
            let ids = app.access().owner_ids(&identity.tenant, id);
            Some(match found {
                Some(found) => found.into_iter().filter(|found| ids.contains(found)).collect(),
                None => ids,
            })
        });
    Ok(CallQuery {
        tool_id: tool.map(|entry| entry.tool.id),
        statuses: params.choices("status", CallStatus::parse, statuses)?,
        caller: text("caller").filter(|_| of_caller.is_none()),
        principals,
        surface: text("surface"),
        parent_id: params.parsed("parent_id", "the id of a call")?,
        error_code: params.choice("error_code", parse_code, "the error codes, for example `timeout`")?,
        chat_id: text("chat_id"),
        since: params.time("since", app.now())?,
        until: params.time("until", app.now())?,
        text: text("q").or_else(|| text("text")),
        ..visible
    })
}

/// Returns the query for all visible calls: callers see their own, editors and admins those of the tenant.
pub(super) fn visible_calls(identity: &Identity) -> CallQuery {
    let principals = (!sees_calls_of_others(identity)).then(|| identity.own_ids());
    CallQuery { principals, ..CallQuery::of_tenant(identity.tenant.clone()) }
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
    if is_long(&record.invocation.args) {
        omitted = true;
        record.invocation.args = Value::Null;
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

pub(super) async fn find(app: &Installation, identity: &Identity, id: &str) -> Result<CallRecord, ApiError> {
    let missing = || ApiError::not_found("call", id);
    let parsed: CallId = id.parse().map_err(|_| missing())?;
    let record = app.ledger().call(&identity.tenant, parsed).await?.ok_or_else(missing)?;
    // Callers see their own calls; editors and admins those of the tenant.
    if !sees_calls_of_others(identity) && !identity.owns_of(&record.invocation.principal) {
        return Err(missing());
    }
    Ok(record)
}

/// Return one call.
#[utoipa::path(
    get, path = "/calls/{id}", tag = "calls", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<CallView<'static>>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let record = find(&app, &identity, &id).await?;
    if record.status.is_final() && identity.owns_of(&record.invocation.principal) {
        approvals::collect(&app, &record).await;
    }
    let mut view = CallView::from(&record);
    let whole = app.results().whole_for_rendering(&record).await?;
    view.render_plan = rendering::plan(&record, whole.as_ref());
    Ok(success(view).into_response())
}

/// The value that a tool returned.
#[derive(ToSchema)]
#[schema(example = json!({"greeting": "Hello, Ada!"}))]
#[serde(untagged)]
#[expect(dead_code, reason = "only describes the body")]
pub(crate) enum ResultValue {
    Object(serde_json::Map<String, Value>),
    Array(Vec<Value>),
    Text(String),
    Number(f64),
    Boolean(bool),
}

/// Return the result of a call, whole even if it is large.
#[utoipa::path(
    get, path = "/calls/{id}/result", tag = "calls",
    params(
        ("id" = Uuid, Path),
        ("pointer" = Option<String>, Query, description = "The part to return, as a JSON pointer", example = "/items/0",
            pattern = "^(/.*)?$"),
        ("download" = Option<bool>, Query, description = "Let browsers save the result as a file"),
    ),
    responses(
        (status = 200, body = ResultValue, description = "The value that the tool returned"),
        (status = 404, body = ErrorBody, description = "The call or the part does not exist, or the result is no longer stored"),
        (status = 409, body = ErrorBody, description = "The call has not ended, or it failed"),
    )
)]
pub(crate) async fn result(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let record = find(&app, &identity, &id).await?;
    if let Some(error) = &record.error {
        let message =
            format!("the call failed, so it has no result: {}", excerpt(&error.message, SHORT_MESSAGE));
        return Err(ApiError::new(ErrorCode::Conflict, message));
    }
    let loaded = app.results().of_record(&record).await.map_err(ApiError::outside_call)?;
    let pointer = params.get("pointer").unwrap_or_default();
    let part =
        loaded.value.pointer(pointer).ok_or_else(|| ApiError::not_found("part of the result", pointer))?;
    let mut response = Json(part).into_response();
    if params.flag("download")? {
        let name = format!("attachment; filename=\"result-{}.json\"", record.id());
        if let Ok(value) = HeaderValue::from_str(&name) {
            response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
        }
    }
    Ok(response)
}

/// Cancel a background call.
#[utoipa::path(
    post, path = "/calls/{id}/cancel", tag = "calls", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<CancelledCall>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn cancel(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let record = find(&app, &identity, &id).await?;
    // At once if it runs on this node; the node that runs it looks for the request otherwise.
    let here = app.pipeline().background().get(record.tenant(), record.id());
    let cancelled = match here {
        Some(running) => {
            running.cancel.cancel();
            Some(Cancellation::Requested)
        }
        None => app.store().calls().cancel(record.tenant(), record.id()).await?,
    };
    let message = match cancelled.ok_or_else(|| ApiError::not_found("call", &id))? {
        Cancellation::Cancelled => "the call was cancelled before it ran",
        Cancellation::Requested => "cancellation requested",
        Cancellation::Ended(status) => {
            let message = format!("the call is not running: its status is `{}`", status.as_str());
            return Err(ApiError::new(ErrorCode::Conflict, message));
        }
    };
    audit::note(&identity, "call.cancel", &id);
    Ok(success(CancelledCall { call_id: record.id().0, message: message.into() }).into_response())
}

/// One event of the stream of a call.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only describes the stream")]
pub(crate) struct StreamedEvent {
    /// `status`, `output` or `progress`.
    #[schema(example = "status")]
    event: String,
    /// The event as JSON; `output` has a `line` and its `stream`, `stdout` or `stderr`.
    #[schema(example = r#"{"status":"success","duration_ms":12.3,"value":1}"#)]
    data: String,
}

/// Stream the events of a call: `status`, `output` and `progress`; the last event carries the outcome.
#[utoipa::path(
    get, path = "/calls/{id}/events", tag = "calls",
    params(("id" = Uuid, Path),
        ("Last-Event-ID" = Option<String>, Header, description = "Continue after the event with this number", example = "7")),
    responses((status = 200, content_type = "text/event-stream", body = StreamedEvent, description = "One of these per event"),
        (status = 404, body = ErrorBody),
        (status = 503, body = ErrorBody, description = "Too many streams are open"))
)]
pub(crate) async fn events(
    State(app): State<Arc<Installation>>,
    StreamingCaller(identity, permit): StreamingCaller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let record = find(&app, &identity, &id).await?;
    let last_seen = sse::last_event_id(&headers).and_then(|id| id.parse().ok());
    let ended = identity.stream_end(&app);
    let events = call_events::stream(app, record, last_seen.unwrap_or_default());
    Ok(sse::response(events, ended, permit))
}
