//! `POST /tools/{ref}/invoke`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{self, FromRequest, FromRequestParts as _, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
pub(super) use haft_api::call::CallWebhook;
use haft_api::call::{AcceptedCall, AcceptedWebhook, OutcomeView};
use haft_core::Timestamp;
use haft_core::exact_json::{self, InexactJson};
use haft_core::id::{ChatId, WebhookId};
use haft_core::name::NameError;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::token::Role;
use haft_core::tool::{Status, Tool};
use haft_core::webhook::WebhookEvent;
use haft_core::workspace::WorkspaceName;
use haft_runtime::pipeline::{CallOptions, CallTarget, CompletedCall, Request};
use haft_runtime::registry::{Audience, Naming};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::workspaces;
use crate::authentication::Caller;
use crate::body::{self, Body};
use crate::error::{self, ApiError, ErrorBody};
use crate::params::Params;
use crate::request_headers::{idempotency_key, preferred_wait, surface};
use haft_platform::Installation;
use haft_platform::error::ServiceError;
use haft_platform::identity::Identity;
use haft_platform::{approvals, chats, rendering, webhooks};

/// The body of a call. Without `Debug`: it may have a secret.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub(crate) struct InvokeBody {
    /// The arguments.
    #[serde(alias = "parameters", alias = "arguments", deserialize_with = "exact_json::object")]
    #[schema(value_type = Object, example = json!({"name": "Ada"}))]
    args: Map<String, Value>,
    /// The chat that the call belongs to.
    #[schema(max_length = 255, example = "chat-1")]
    chat_id: Option<String>,
    /// The message that the call belongs to.
    #[schema(max_length = 255)]
    message_id: Option<String>,
    /// The workspace that the call works in; created on first use. Default: that of the chat, if `chat_id` is one.
    #[schema(max_length = 64, example = "report")]
    workspace: Option<String>,
    /// A timeout in milliseconds, instead of the tool's.
    #[schema(example = 30000)]
    timeout_ms: Option<u64>,
    /// Where the end of the call is posted, with `async=true`.
    #[serde(deserialize_with = "body::optional_object")]
    webhook: Option<CallWebhook>,
}

/// The longest id of a chat or message, in characters.
const MAX_ID: usize = 255;

/// The response to a call that has to wait.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only describes the body")]
pub(crate) enum WaitingCall {
    /// It is in the queue.
    Queued(AcceptedCall),
    /// It waits for a person's decision.
    AwaitingApproval(ErrorBody),
}

/// The response to a call that was rejected because of the state of the server.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, clippy::large_enum_variant, reason = "only describes the body")]
pub(crate) enum RejectedCall {
    /// The limit of concurrent calls is reached.
    Outcome(OutcomeView<'static>),
    /// The call could not be recorded.
    Error(ErrorBody),
}

/// Call a tool.
#[utoipa::path(
    post, path = "/tools/{ref}/invoke", tag = "calls",
    params(
        ("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet"),
        ("mode" = Option<Mode>, Query, description = "Default: the mode of the server"),
        ("async" = Option<bool>, Query, description = "Return 202 immediately and run the call in the background"),
        ("result" = Option<String>, Query, pattern = "^inline$", description = "`inline` returns a large value itself, and not a handle"),
        ("Idempotency-Key" = Option<String>, Header, description = "A call with the same key and arguments runs only once",
            min_length = 1, max_length = 255, pattern = "^[!-~]+$"),
        ("Prefer" = Option<String>, Header, description = "`wait=30` waits up to 30 seconds for the decision about a call that needs approval", example = "wait=30"),
    ),
    request_body = Option<InvokeBody>,
    responses(
        (status = 200, body = OutcomeView<'static>, description = "The outcome, including that of a failed tool"),
        (status = 202, body = WaitingCall, description = "Accepted: the call is queued or waits for approval; see `/calls/{id}` and `/approvals/{id}`"),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 429, body = OutcomeView<'static>, description = "The rate limit of the tool is exceeded"),
        (status = 503, body = RejectedCall, description = "The server is overloaded, or the store is unavailable"),
    )
)]
pub(crate) async fn invoke(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    request: InvokeRequest,
) -> Result<Response, ApiError> {
    let invalid = |error: NameError| ApiError::from(error).of_call();
    let named: ToolRef = reference.parse().map_err(invalid)?;
    let mode = mode(&app, &identity, &request.params)?;
    let snapshot = app.registry().snapshot();
    // A tool that was offered to a model under an alias can be called by the alias.
    let audience = Audience { tenant: &identity.tenant, mode, naming: Naming::ByKind };
    let tool = match snapshot.resolve_called(&reference, &named, audience) {
        Ok(entry) => CallTarget::Resolved(snapshot.resolved(entry)),
        Err(_) => CallTarget::Named(named),
    };
    drop(snapshot);
    run(&app, &identity, tool, request).await
}

/// A request for a call, without the tool.
pub(crate) struct InvokeRequest {
    params: Params,
    surface: &'static str,
    idempotency_key: Option<String>,
    wait: Option<Duration>,
    body: Body,
}

impl FromRequest<Arc<Installation>> for InvokeRequest {
    type Rejection = ApiError;

    async fn from_request(request: extract::Request, state: &Arc<Installation>) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let params = Params::from_request_parts(&mut parts, state).await?;
        let surface = surface(&parts.headers);
        let idempotency_key = idempotency_key(&parts.headers).map_err(ApiError::of_call)?;
        let wait = preferred_wait(&parts.headers);
        let body = Body::from_request(extract::Request::from_parts(parts, body), state).await;
        let body = body.map_err(ApiError::of_call)?;
        Ok(Self { params, surface, idempotency_key, wait, body })
    }
}

/// Calls a tool; shared with the route below bundles.
pub(crate) async fn run(
    app: &Installation,
    identity: &Identity,
    tool: CallTarget,
    InvokeRequest { params, surface, idempotency_key, wait, body }: InvokeRequest,
) -> Result<Response, ApiError> {
    // The pipeline decides; here so that a webhook or a workspace is not created for a call that cannot run.
    identity.require(Role::Caller).map_err(ServiceError::of_call)?;
    let call: InvokeBody = body.json_or_default().map_err(|error| {
        let message = format!("{}; expected `{{\"args\": {{…}}}}`", error.0.message);
        ServiceError { message, ..error.0.of_call() }
    })?;
    if let Some(number) = exact_json::rounded_integer(&body.bytes) {
        let error = InexactJson::RoundedInteger(number.to_owned());
        return Err(ApiError::bad_request(error.to_string()).of_call());
    }
    for (name, id) in [("chat_id", &call.chat_id), ("message_id", &call.message_id)] {
        if id.as_ref().is_some_and(|id| id.chars().count() > MAX_ID) {
            let message = format!("`{name}` exceeds the limit of {MAX_ID} characters");
            return Err(ApiError::bad_request(message).of_call());
        }
    }
    let is_async = params.flag("async").map_err(ApiError::of_call)?;
    let inline = params
        .choice("result", |text| (text == "inline").then_some(()), "`inline`")
        .map_err(ApiError::of_call)?
        .is_some();
    if call.webhook.is_some() && !is_async {
        let message = "`webhook` needs `?async=true`: the response of other calls is the outcome";
        return Err(ApiError::bad_request(message).of_call());
    }
    let mode = mode(app, identity, &params)?;
    let workspace = workspace(app, identity, &call).await.map_err(ApiError::of_call)?;
    let webhook = match call.webhook {
        Some(webhook) => {
            let created = create_webhook(app, identity, webhook, WebhookEvent::CallFinished).await;
            Some(created.map_err(ApiError::of_call)?)
        }
        None => None,
    };
    let request = Request {
        mode,
        timeout: call.timeout_ms.map(Duration::from_millis),
        waits_for_account: wait.is_some(),
        options: Some(Box::new(CallOptions {
            idempotency_key,
            request_id: haft_platform::request_id::current(),
            chat_id: call.chat_id,
            message_id: call.message_id,
            workspace,
            session: None,
            webhook: webhook.as_ref().map(|webhook| WebhookId(webhook.id)),
        })),
        ..Request::new(identity.principal(), surface, call.args)
    };
    if is_async {
        let started = Box::pin(app.pipeline().start(tool, request)).await;
        let webhook = keep_webhook(app, identity, webhook, &started).await;
        return Ok(accepted(app, &started?, webhook));
    }
    let completed = match app.pipeline().call(tool, request).await {
        Err(error) if approvals::is_waiting_call(&error) && wait.is_some() => {
            decided(app, identity, error, wait.unwrap_or_default()).await?
        }
        result => result?,
    };
    let whole =
        if inline { app.pipeline().whole_value(&identity.principal(), &completed).await? } else { None };
    Ok(outcome(app, &completed, whole.as_ref()))
}

/// Returns the workspace of a call: the one that it names, or that of its chat.
async fn workspace(
    app: &Installation,
    identity: &Identity,
    call: &InvokeBody,
) -> Result<Option<WorkspaceName>, ApiError> {
    if let Some(name) = &call.workspace {
        return workspaces::parse_name(name).map(Some).map_err(|_| {
            let name = excerpt(name, 64);
            ApiError::bad_request(format!(
                "invalid `workspace`: `{name}`; use 1 to 64 letters, digits, `-` and `_`"
            ))
        });
    }
    // Ids in other formats are labels: the chat is in another system.
    let Some(id) = call.chat_id.as_ref().filter(|id| id.parse::<ChatId>().is_ok()) else { return Ok(None) };
    let chat = chats::writable(app, identity, id).await?;
    if let Some(message) = &call.message_id {
        chats::require_message(app, identity, &chat, message).await?;
    }
    Ok(Some(WorkspaceName::Chat(chat.id)))
}

/// Stores the webhook of a call or a run before it starts: it must not end without it.
pub(super) async fn create_webhook(
    app: &Installation,
    identity: &Identity,
    webhook: CallWebhook,
    event: WebhookEvent,
) -> Result<AcceptedWebhook, ApiError> {
    let given = (webhook.url.as_str(), webhook.secret.as_deref());
    let (id, secret) = webhooks::create_for_one(app, identity, given, event).await?;
    let secret = secret.map(|secret| secret.secret().expose().to_owned());
    Ok(AcceptedWebhook { id: id.0, secret })
}

/// Deletes the webhook of a call that was rejected, or that is an earlier one with the same key.
async fn keep_webhook(
    app: &Installation,
    identity: &Identity,
    webhook: Option<AcceptedWebhook>,
    started: &Result<CompletedCall, CallError>,
) -> Option<AcceptedWebhook> {
    let webhook = webhook?;
    let id = WebhookId(webhook.id);
    let is_used = match started {
        Ok(started) => started.record.invocation.webhook == Some(id),
        // The stored call has it.
        Err(error) => approvals::is_waiting_call(error),
    };
    if is_used {
        return Some(webhook);
    }
    discard_webhook(app, identity, &webhook).await;
    None
}

/// Deletes the webhook of a call or a run that did not start.
pub(super) async fn discard_webhook(app: &Installation, identity: &Identity, webhook: &AcceptedWebhook) {
    webhooks::discard(app, identity, WebhookId(webhook.id)).await;
}

/// Waits for the decision about a call and for its outcome.
async fn decided(
    app: &Installation,
    identity: &Identity,
    error: CallError,
    wait: Duration,
) -> Result<CompletedCall, ApiError> {
    let Some(id) = error.call_id else { return Err(error.into()) };
    let deadline = Instant::now() + wait;
    match app.pipeline().wait_for(&identity.tenant, id, deadline).await? {
        Some(record) => {
            approvals::collect(app, &record).await;
            Ok(CompletedCall::uncounted(record, false))
        }
        // It may wait for something else than at first.
        None => Err(app.pipeline().current_wait(&identity.tenant, id).await?.unwrap_or(error).into()),
    }
}

/// Returns the mode of a call or a run: that of the query if the token permits it, otherwise the server's.
pub(super) fn mode(app: &Installation, identity: &Identity, params: &Params) -> Result<Mode, ApiError> {
    let requested = params.choice("mode", Mode::parse, "`production`, `debug`").map_err(ApiError::of_call)?;
    let default = app.settings().mode;
    match requested {
        Some(Mode::Debug) if default == Mode::Production => {
            identity.require(Role::Editor).map_err(ServiceError::of_call)?;
            Ok(Mode::Debug)
        }
        Some(mode) => Ok(mode),
        None => Ok(default),
    }
}

/// Writes the outcome; `inline` is the whole value, if it is wanted although it is large.
fn outcome(app: &Installation, completed: &CompletedCall, inline: Option<&Value>) -> Response {
    let record = &completed.record;
    let snapshot = app.registry().snapshot();
    let tool = snapshot.tool(record.tenant(), record.invocation.tool_id).map(|entry| &entry.tool);
    let notice = tool.and_then(|tool| tool.deprecation_notice(None));
    let rejected = record.error.as_ref();
    let rejected = rejected.filter(|e| [ErrorCode::Overloaded, ErrorCode::RateLimited].contains(&e.code));
    let status = rejected.map_or(StatusCode::OK, |error| error::status(error.code));
    let warnings = notice.into_iter().collect();
    let mut view = OutcomeView::new(record, rendering::plan(record, completed.whole.as_deref()), warnings);
    view.replace_value(inline);
    let mut response = (status, Json(view)).into_response();
    let limit = rejected.and_then(|error| error::rate_limit(error.code, error.details.as_deref()));
    if let Some(rate) = completed.rate {
        error::set_rate_limit(&mut response, rate);
    }
    error::set_retry_after(&mut response, rejected.and_then(|error| error.retry_after), limit);
    if let Some(tool) = tool.filter(|tool| tool.status == Status::Deprecated) {
        set_deprecation(response.headers_mut(), tool);
    }
    if completed.replayed {
        response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    response
}

/// Sets `Deprecation` (RFC 9745) and `Sunset` (RFC 8594).
fn set_deprecation(headers: &mut HeaderMap, tool: &Tool) {
    let deprecation = tool.deprecation();
    let since = deprecation.and_then(|deprecation| deprecation.deprecated_at).unwrap_or(tool.modified_at);
    if let Ok(value) = HeaderValue::from_str(&format!("@{}", since.as_second())) {
        headers.insert("deprecation", value);
    }
    let sunset = deprecation.and_then(|deprecation| deprecation.removal_date);
    if let Some(value) = sunset.and_then(|at| HeaderValue::from_str(&http_date(at)).ok()) {
        headers.insert("sunset", value);
    }
}

/// Writes a time as HTTP headers have it, such as `Sun, 31 Jan 2027 00:00:00 GMT`.
fn http_date(at: Timestamp) -> String {
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

fn accepted(app: &Installation, started: &CompletedCall, webhook: Option<AcceptedWebhook>) -> Response {
    let record = &started.record;
    if started.replayed {
        return outcome(app, started, None);
    }
    let location = format!("/api/calls/{}", record.id());
    let events = format!("{location}/events");
    let body = AcceptedCall { call_id: record.id().0, status: record.status, events, webhook };
    let mut response = (StatusCode::ACCEPTED, Json(body)).into_response();
    if let Ok(value) = HeaderValue::from_str(&location) {
        response.headers_mut().insert("location", value);
    }
    response
}
