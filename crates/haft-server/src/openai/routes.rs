//! The routes below `/v1`. They are not in the OpenAPI document: OpenAI's own describes them.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::StreamExt as _;
use futures_util::stream::Stream;
use haft_agent::model::ModelMessage;
use haft_agent::run::conversation as continued;
use haft_core::id::RunId;
use haft_core::outcome::ErrorCode;
use haft_core::run::{Run, RunStatus, RunStep};
use haft_core::token::Role;
use serde_json::{Value, json};

use super::answer::{AnswerReader, Piece};
use super::chat_request::ChatRequest;
use super::chat_response::{ChunkWriter, CompletionHead, WholeCompletion, failure};
use super::error::OpenAiError;
use super::responses_request::{self, ResponsesRequest};
use super::responses_response::ResponseHead;
use super::responses_stream::EventWriter;
use super::start::{AnswerRequest, finish_reason, pieces, start, text_mode};
use super::{chat_stream, models, responses_stream};
use crate::authentication;
use crate::body::Body;
use crate::open_stream;
use crate::request_headers::preferred_wait;
use crate::sse;
use haft_platform::Installation;
use haft_platform::identity::Identity;
use haft_platform::runs;

/// How many steps are read at once.
const PAGE: u32 = 500;

/// Returns the routes.
pub(crate) fn router() -> Router<Arc<Installation>> {
    Router::new()
        .route("/v1/models", get(list_models))
        .route("/v1/models/{model}", get(get_model))
        .route("/v1/chat/completions", post(chat_completions))
        .route("/v1/responses", post(create_response))
        .route("/v1/responses/{id}", get(get_response))
        .route("/v1/responses/{id}/cancel", post(cancel_response))
        .route("/v1/{*path}", axum::routing::any(unknown))
        .method_not_allowed_fallback(method_not_allowed)
}

async fn authenticate(
    app: &Installation,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Identity, OpenAiError> {
    Ok(authentication::authenticate(app, method, headers).await?)
}

/// Reads the body of an authenticated request.
async fn read_body(app: &Installation, request: Request) -> Result<Value, OpenAiError> {
    let limit = app.settings().server.max_body_bytes;
    let body = Body::read(request, limit, "server.max_body_bytes").await?;
    serde_json::from_slice(&body.bytes)
        .map_err(|error| OpenAiError::bad_request(format!("the request body is not valid JSON: {error}")))
}

async fn list_models(
    State(app): State<Arc<Installation>>,
    request: Request,
) -> Result<Response, OpenAiError> {
    let identity = authenticate(&app, request.method(), request.headers()).await?;
    Ok(Json(models::list(&app, &identity).await?).into_response())
}

async fn get_model(
    State(app): State<Arc<Installation>>,
    Path(model): Path<String>,
    request: Request,
) -> Result<Response, OpenAiError> {
    let identity = authenticate(&app, request.method(), request.headers()).await?;
    Ok(Json(models::get(&app, &identity, &model).await?).into_response())
}

async fn chat_completions(
    State(app): State<Arc<Installation>>,
    request: Request,
) -> Result<Response, OpenAiError> {
    let identity = authenticate(&app, request.method(), request.headers()).await?;
    let (wait, extensions) = (preferred_wait(request.headers()), request.extensions().clone());
    let ChatRequest { model, messages, stream, include_usage, overrides } =
        ChatRequest::read(&read_body(&app, request).await?)?;
    let permit = open_stream::acquire_if(stream, &app, &identity, &extensions)?;
    let asked = AnswerRequest { model: model.clone(), messages, instructions: None, overrides };
    let run = start(&app, &identity, asked).await?;
    let head = CompletionHead { run: run.id, model, created: run.created_at.as_second() };
    let pieces = pieces(&app, &identity, &run, wait);
    if let Some(permit) = permit {
        let events = chat_stream::events(ChunkWriter::new(head, include_usage), pieces);
        return Ok(sse::response(events, identity.stream_end(&app), permit));
    }
    let mut whole = WholeCompletion::default();
    let mut pieces = std::pin::pin!(pieces);
    while let Some(piece) = pieces.next().await {
        if let Some(end) = whole.add(piece) {
            return match failure(&end) {
                Some(error) => Err(error),
                None => Ok(Json(whole.body(&head, &end)).into_response()),
            };
        }
    }
    Err(cut_off())
}

async fn create_response(
    State(app): State<Arc<Installation>>,
    request: Request,
) -> Result<Response, OpenAiError> {
    let identity = authenticate(&app, request.method(), request.headers()).await?;
    let (wait, extensions) = (preferred_wait(request.headers()), request.extensions().clone());
    let body = read_body(&app, request).await?;
    let ResponsesRequest { model, instructions, input, previous, stream, overrides, metadata } =
        ResponsesRequest::read(&body)?;
    let permit = open_stream::acquire_if(stream, &app, &identity, &extensions)?;
    let mut messages = match previous {
        Some(id) => conversation(&app, &identity, id).await?,
        None => Vec::new(),
    };
    messages.extend(input);
    let format = body.pointer("/text/format").cloned().unwrap_or_else(|| json!({"type": "text"}));
    let (max_tokens, temperature) = (overrides.max_tokens, overrides.temperature);
    let asked =
        AnswerRequest { model: model.clone(), messages, instructions: instructions.clone(), overrides };
    let run = start(&app, &identity, asked).await?;
    let created = run.created_at.as_second();
    let head = ResponseHead {
        run: run.id,
        model,
        created,
        instructions,
        previous,
        metadata,
        max_tokens,
        temperature,
        format,
    };
    let pieces = pieces(&app, &identity, &run, wait);
    let writer = EventWriter::new(head);
    if let Some(permit) = permit {
        let events = responses_stream::events(writer, pieces);
        return Ok(sse::response(events, identity.stream_end(&app), permit));
    }
    whole_response(writer, pieces).await
}

/// Returns the whole response. As with OpenAI, a response that failed is a response, not an error of the request.
async fn whole_response(
    mut writer: EventWriter,
    pieces: impl Stream<Item = Piece> + Send,
) -> Result<Response, OpenAiError> {
    let mut pieces = std::pin::pin!(pieces);
    while let Some(piece) = pieces.next().await {
        let end = match &piece {
            Piece::End(end) => Some(end.clone()),
            _ => None,
        };
        writer.write(piece);
        if let Some(end) = end {
            return Ok(Json(writer.ended(&end).1).into_response());
        }
    }
    Err(cut_off())
}

/// Returns a run that the caller may see: its own, and for editors those of the tenant.
async fn visible_run(app: &Installation, identity: &Identity, id: RunId) -> Result<Option<Run>, OpenAiError> {
    let run = app.store().runs().get(&identity.tenant, id).await?;
    Ok(run.filter(|run| identity.role >= Role::Editor || identity.owns_of(&run.principal)))
}

async fn steps_of(app: &Installation, identity: &Identity, run: RunId) -> Result<Vec<RunStep>, OpenAiError> {
    let mut steps: Vec<RunStep> = Vec::new();
    loop {
        let last = steps.last().map_or(0, |step| step.number);
        let page = app.store().runs().steps(&identity.tenant, run, last, PAGE).await?;
        let is_last = u32::try_from(page.len()).is_ok_and(|count| count < PAGE);
        steps.extend(page);
        if is_last {
            return Ok(steps);
        }
    }
}

/// Returns the conversation of an earlier response, its answer included.
async fn conversation(
    app: &Installation,
    identity: &Identity,
    id: RunId,
) -> Result<Vec<ModelMessage>, OpenAiError> {
    let run = visible_run(app, identity, id).await?.ok_or_else(responses_request::no_previous)?;
    if !run.status.is_final() {
        let message = format!("the response is not complete: its run is `{}`", run.status);
        return Err(OpenAiError::invalid("previous_response_id", message));
    }
    if run.input.is_null() {
        let message = "the run was not started as a response, so that it cannot be continued as one";
        return Err(OpenAiError::invalid("previous_response_id", message));
    }
    let messages: Vec<ModelMessage> = serde_json::from_value(run.input).unwrap_or_default();
    Ok(continued(messages, &steps_of(app, identity, id).await?))
}

/// Returns the run of a response.
async fn run_of(app: &Installation, identity: &Identity, id: &str) -> Result<Run, OpenAiError> {
    let run = match responses_request::run_id(id) {
        Some(run) => visible_run(app, identity, run).await?,
        None => None,
    };
    run.ok_or_else(|| {
        let message = format!("response `{}` not found", haft_core::problem::excerpt(id, 80));
        crate::error::ApiError::new(ErrorCode::NotFound, message).into()
    })
}

async fn get_response(
    State(app): State<Arc<Installation>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, OpenAiError> {
    let identity = authenticate(&app, request.method(), request.headers()).await?;
    let run = run_of(&app, &identity, &id).await?;
    stored_response(&app, &identity, &run).await
}

async fn cancel_response(
    State(app): State<Arc<Installation>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, OpenAiError> {
    let identity = authenticate(&app, request.method(), request.headers()).await?;
    identity.require(Role::Caller)?;
    let run = run_of(&app, &identity, &id).await?;
    app.runs().cancel(&identity.tenant, run.id).await?;
    let run = app.runs().wait(&identity.tenant, run.id).await?;
    stored_response(&app, &identity, &run).await
}

/// Returns the response of a run as it is now.
async fn stored_response(
    app: &Arc<Installation>,
    identity: &Identity,
    run: &Run,
) -> Result<Response, OpenAiError> {
    let head = ResponseHead {
        run: run.id,
        model: run.definition.slug.to_string(),
        created: run.created_at.as_second(),
        instructions: None,
        previous: None,
        metadata: json!({}),
        max_tokens: run.definition.model.max_tokens,
        temperature: run.definition.model.temperature,
        format: json!({"type": "text"}),
    };
    if matches!(run.status, RunStatus::Pending | RunStatus::Running) {
        return Ok(Json(head.in_progress()).into_response());
    }
    let mut reader = AnswerReader::new(text_mode(run));
    let mut writer = EventWriter::new(head);
    let mut events = std::pin::pin!(runs::watch(app.runs(), &identity.tenant, run.id));
    while let Some(event) = events.next().await {
        for piece in reader.read(event) {
            if let Piece::End(end) = &piece {
                let mut end = end.clone();
                end.finish_reason = finish_reason(app, &identity.tenant, run.id, end.last_answer).await;
                writer.write(piece);
                return Ok(Json(writer.ended(&end).1).into_response());
            }
            writer.write(piece);
        }
    }
    Err(cut_off())
}

/// Returns the error of an answer that ended without its end.
fn cut_off() -> OpenAiError {
    let error = haft_core::run::StepError {
        code: ErrorCode::Interrupted.as_str().to_owned(),
        message: "the answer was cut off: the token was revoked, the run was deleted, or the server stops"
            .to_owned(),
    };
    OpenAiError { status: StatusCode::SERVICE_UNAVAILABLE, ..OpenAiError::failed_run(&error) }
}

async fn unknown(State(app): State<Arc<Installation>>, request: Request) -> Result<Response, OpenAiError> {
    authenticate(&app, request.method(), request.headers()).await?;
    let path = haft_core::problem::excerpt(request.uri().path(), 120);
    let message =
        format!("unknown route `{path}`; haft has `/v1/models`, `/v1/chat/completions` and `/v1/responses`");
    Err(crate::error::ApiError::new(ErrorCode::NotFound, message).into())
}

async fn method_not_allowed(request: Request) -> OpenAiError {
    let message = format!("`{}` is not allowed on `{}`", request.method(), request.uri().path());
    crate::error::ApiError::new(ErrorCode::MethodNotAllowed, message).into()
}
