//! `/runs` and `/agents/{ref}/runs`: runs of agents.

use crate::request_headers::surface;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts as _, Path, Request, State};
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use haft_agent::model::{ContentPart, ModelMessage};
use haft_api::run::{CancelledRun, RunList, RunView, StepList};
use haft_api::run_event::RunEvent;
use haft_core::id::{ChatId, RunId, WebhookId};
use haft_core::outcome::ErrorCode;
use haft_core::run::{Run, RunStatus};
use haft_core::runnable::Mode;
use haft_core::token::Role;
use haft_core::webhook::WebhookEvent;
use haft_store::RunQuery;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::invoke::{CallWebhook, create_webhook, discard_webhook, mode};
use crate::authentication::Caller;
use crate::body::{self, Body};
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::open_stream::{self, StreamingCaller};
use crate::params::{PageParams, Params};
use crate::reply::{Success, success};
use crate::run_stream::run_events;
use crate::run_view;
use crate::sse;
use haft_api::call::AcceptedWebhook;
use haft_platform::Installation;
use haft_platform::agents::visible_agent;
use haft_platform::audit;
use haft_platform::error::ServiceError;
use haft_platform::identity::Identity;
use haft_platform::runs::{self, StartRun, messages_of};

/// The most steps of one page.
const MAX_STEPS: u32 = 500;

/// The largest number of variables.
const MAX_VARIABLES: usize = 100;

/// What to run.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct NewRunBody {
    /// The input of the agent: a text, or messages with `role` and `content`.
    #[schema(value_type = Value, example = "What is the weather in Paris?")]
    input: Value,
    /// The values of variables in the instructions.
    #[serde(default)]
    #[schema(value_type = Object)]
    variables: BTreeMap<String, Value>,
    /// Where the end of the run is posted, with `async=true`.
    #[serde(default, deserialize_with = "body::optional_object")]
    webhook: Option<CallWebhook>,
}

/// A request for a run or an answer, without its target.
pub(crate) struct RunRequest {
    pub(super) headers: HeaderMap,
    pub(super) extensions: Extensions,
    pub(super) params: Params,
    pub(super) body: Body,
}

impl FromRequest<Arc<Installation>> for RunRequest {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<Installation>) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let params = Params::from_request_parts(&mut parts, app).await?;
        let (headers, extensions) = (parts.headers.clone(), parts.extensions.clone());
        let body = Body::from_request(Request::from_parts(parts, body), app).await?;
        Ok(Self { headers, extensions, params, body })
    }
}

/// Run an agent.
#[utoipa::path(
    post, path = "/agents/{ref}/runs", tag = "runs", request_body = NewRunBody,
    params(
        ("ref" = String, Path, description = "Slug or id of the agent", example = "assistant"),
        ("mode" = Option<Mode>, Query, description = "Default: the mode of the server"),
        ("async" = Option<bool>, Query, description = "Return 202 immediately"),
        ("Accept" = Option<String>, Header, description = "`text/event-stream` streams the events of the run", example = "application/json"),
    ),
    responses(
        (status = 200, content((Success<RunView> = "application/json"), (RunEvent = "text/event-stream")),
            description = "The run, when it has ended or waits for approval; also if it failed"),
        (status = 202, body = Success<RunView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn start(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    RunRequest { headers, extensions, params, body }: RunRequest,
) -> Result<Response, ApiError> {
    let agent = visible_agent(&app, &identity, &reference).await?;
    let NewRunBody { input, variables, webhook } = body.json()?;
    let is_async = params.flag("async")?;
    if webhook.is_some() && !is_async {
        return Err(ApiError::bad_request("`webhook` needs `?async=true`"));
    }
    if variables.len() > MAX_VARIABLES {
        let message = format!("`variables` exceeds the limit of {MAX_VARIABLES}");
        return Err(ApiError::bad_request(message));
    }
    let mode = mode(&app, &identity, &params)?;
    let input = conversation(&input)?;
    let is_stream = !is_async && sse::is_accepted(&headers);
    let permit = open_stream::acquire_if(is_stream, &app, &identity, &extensions)?;
    let webhook = match webhook {
        Some(webhook) => {
            // The pipeline checks the role; here so that no webhook is created for a run that cannot start.
            identity.require(Role::Caller)?;
            Some(create_webhook(&app, &identity, webhook, WebhookEvent::RunFinished).await?)
        }
        None => None,
    };
    let start = StartRun {
        mode,
        surface: surface(&headers),
        variables,
        webhook: webhook.as_ref().map(|webhook| WebhookId(webhook.id)),
        ..StartRun::new(agent, identity.principal(), input)
    };
    let started = app.runs().start(start).await;
    if let (Err(_), Some(webhook)) = (&started, &webhook) {
        discard_webhook(&app, &identity, webhook).await;
    }
    let run = started.map_err(of_run)?;
    if is_async {
        return Ok(accepted(&run, webhook));
    }
    if let Some(permit) = permit {
        let events = runs::watch_numbered(app.runs(), &identity.tenant, run.id);
        return Ok(run_events(Vec::new(), events, identity.stream_end(&app), permit));
    }
    let run = app.runs().wait(&identity.tenant, run.id).await.map_err(of_run)?;
    Ok(success(view(&app, &run).await?).into_response())
}

/// Reads the conversation.
fn conversation(input: &Value) -> Result<Vec<ModelMessage>, ApiError> {
    let messages = match input {
        Value::String(_) | Value::Array(_) => messages_of(input).map_err(of_run)?,
        _ => return Err(ApiError::bad_request("`input` must be a text or an array of messages")),
    };
    let is_blank = |part: &ContentPart| matches!(part, ContentPart::Text { text } if text.trim().is_empty());
    if messages.iter().all(|message| message.content.iter().all(is_blank)) {
        return Err(ApiError::bad_request("`input` is empty"));
    }
    Ok(messages)
}

/// Converts the error of a run into that of a request.
pub(super) fn of_run(error: haft_core::outcome::CallError) -> ApiError {
    let code = match error.code {
        ErrorCode::InvalidArguments => ErrorCode::InvalidRequest,
        code => code,
    };
    ServiceError { of_call: false, code, ..error.into() }.into()
}

/// Answers that a run was stored.
fn accepted(run: &Run, webhook: Option<AcceptedWebhook>) -> Response {
    let view = RunView::from(run).with_webhook(webhook);
    let mut response = (StatusCode::ACCEPTED, success(view)).into_response();
    if let Ok(value) = HeaderValue::from_str(&format!("/api/runs/{}", run.id)) {
        response.headers_mut().insert(header::LOCATION, value);
    }
    response
}

/// Returns a run with the calls that it waits for.
pub(super) async fn view(app: &Installation, run: &Run) -> Result<RunView, ApiError> {
    if run.status != RunStatus::AwaitingApproval {
        return Ok(RunView::from(run));
    }
    let steps = app.store().runs().steps(&run.principal.tenant, run.id, 0, 20_000).await?;
    Ok(run_view::with_waiting(run, &steps))
}

/// Returns a run that the caller may see: its own, and for editors those of the tenant.
async fn find(app: &Installation, identity: &Identity, id: &str) -> Result<Run, ApiError> {
    let missing = || ApiError::not_found("run", id);
    let parsed: RunId = id.parse().map_err(|_| missing())?;
    let run = app.store().runs().get(&identity.tenant, parsed).await?.ok_or_else(missing)?;
    let is_visible = identity.role >= Role::Editor || identity.owns_of(&run.principal);
    if is_visible { Ok(run) } else { Err(missing()) }
}

/// List runs, newest first. Callers see their own; editors and admins those of the tenant.
#[utoipa::path(
    get, path = "/runs", tag = "runs",
    params(
        ("agent" = Option<String>, Query, description = "Slug or id of an agent"),
        ("status" = Option<RunStatus>, Query),
        ("chat_id" = Option<Uuid>, Query, description = "The chat that they answer in"),
        ("parent_id" = Option<Uuid>, Query, description = "The run that started them"),
        PageParams,
    ),
    responses((status = 200, body = Success<RunList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page_up_to("runs", 100)?;
    let statuses = "`pending`, `running`, `awaiting_approval`, `success`, `error`, `cancelled`";
    let agent = match params.get("agent") {
        Some(reference) => Some(visible_agent(&app, &identity, reference).await?.id),
        None => None,
    };
    let query = RunQuery {
        agent,
        status: params.choice("status", RunStatus::parse, statuses)?,
        chat_id: params.parsed::<ChatId>("chat_id", "the id of a chat")?,
        parent_run: params.parsed::<RunId>("parent_id", "the id of a run")?,
        principal: (identity.role < Role::Editor).then(|| identity.id().to_string()),
        before: page.after()?,
        limit: page.size,
        ..RunQuery::new(identity.tenant.clone())
    };
    let found = app.store().runs().list(&query).await?;
    let next_page_token = page.token_after(&found, page.size, |run| run.id.to_string());
    let runs = found.iter().map(RunView::from).collect();
    Ok(success(RunList { runs, next_page_token }).into_response())
}

/// Get a run.
#[utoipa::path(
    get, path = "/runs/{id}", tag = "runs", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<RunView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let run = find(&app, &identity, &id).await?;
    Ok(success(view(&app, &run).await?).into_response())
}

/// List the steps of a run, in their order.
#[utoipa::path(
    get, path = "/runs/{id}/steps", tag = "runs",
    params(
        ("id" = Uuid, Path),
        ("after" = Option<u32>, Query, description = "Only steps after this number"),
        ("limit" = Option<u32>, Query, description = "The maximum number of steps; at most 500"),
    ),
    responses((status = 200, body = Success<StepList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn steps(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let run = find(&app, &identity, &id).await?;
    let after = params.parsed("after", "the number of a step")?.unwrap_or(0);
    let limit: u32 = params.parsed("limit", "a number from 1 to 500")?.unwrap_or(MAX_STEPS);
    let limit = limit.clamp(1, MAX_STEPS);
    let steps = app.store().runs().steps(&identity.tenant, run.id, after, limit).await?;
    let is_full = u32::try_from(steps.len()).is_ok_and(|count| count == limit);
    let next_after = steps.last().filter(|_| is_full).map(|step| step.number);
    Ok(success(StepList { steps, next_after }).into_response())
}

/// Stream the events of a run, from its first one until it has ended. It goes on while the run waits for approval. The id
/// of an event is the number of the step that is complete with it.
#[utoipa::path(
    get, path = "/runs/{id}/events", tag = "runs",
    params(
        ("id" = Uuid, Path),
        ("Last-Event-ID" = Option<String>, Header, description = "Only what follows the step with this number; text of an answer that is not complete is sent from its beginning", example = "7"),
    ),
    responses(
        (status = 200, content_type = "text/event-stream", body = RunEvent, description = "One of these per event"),
        (status = 404, body = ErrorBody),
        (status = 503, body = ErrorBody, description = "Too many streams are open"),
    )
)]
pub(crate) async fn events(
    State(app): State<Arc<Installation>>,
    StreamingCaller(identity, permit): StreamingCaller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let run = find(&app, &identity, &id).await?;
    let last_seen = sse::last_event_id(&headers).and_then(|id| id.parse().ok());
    let events = runs::follow_after(app.runs(), &identity.tenant, run.id, last_seen.unwrap_or_default());
    Ok(run_events(Vec::new(), events, identity.stream_end(&app), permit))
}

/// Cancel a run on any node.
#[utoipa::path(
    post, path = "/runs/{id}/cancel", tag = "runs", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<CancelledRun>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn cancel(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let run = find(&app, &identity, &id).await?;
    if run.status.is_final() {
        let message = format!("the run is not running: its status is `{}`", run.status);
        return Err(ApiError::new(ErrorCode::Conflict, message));
    }
    audit::note(&identity, "run.cancel", &id);
    let status = app.runs().cancel(&identity.tenant, run.id).await?;
    let status = status.ok_or_else(|| ApiError::not_found("run", &id))?;
    let message = if status.is_final() { "the run was cancelled" } else { "cancellation requested" };
    Ok(success(CancelledRun { run_id: run.id.0, status, message: message.into() }).into_response())
}
