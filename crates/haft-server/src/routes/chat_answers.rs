//! Messages that an agent answers: `POST /chats/{id}/messages`, `/answer`, `/stop`; and `GET /chats/{id}/export`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{Extensions, HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use haft_api::chat::{AnsweredMessage, ChatExport, StoppedAnswer};
use haft_api::run::RunView;
use haft_api::run_event::RunEvent;
use haft_core::chat::{Chat, MessageRole};
use haft_core::id::MessageId;
use haft_core::problem::excerpt;
use haft_core::runnable::Mode;
use haft_core::token::Role;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::invoke::mode;
use super::runs::{RunRequest, of_run, view};
use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::open_stream;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::run_stream::run_events;
use crate::sse;
use haft_platform::Installation;
use haft_platform::audit;
use haft_platform::chats::{
    self, InsertPosition, MessageRequest, PostedMessage, all_messages, markdown, readable, shown_branch,
    writable,
};
use haft_platform::identity::Identity;
use haft_platform::runs::{self};
use haft_platform::stream_limit::StreamPermit;

/// A message to write.
#[expect(clippy::option_option, reason = "missing, null, or an id")]
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct NewMessageBody {
    /// What it says: a text, or an array of content blocks.
    #[schema(value_type = Value, example = "Summarise report.csv")]
    content: Value,
    /// Who writes it.
    #[serde(default = "user")]
    role: MessageRole,
    /// The message before it. Another message with the same one makes a branch. Default: the last one of the branch that
    /// is shown. `null`: the start of the chat, beside its first message.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<Uuid>)]
    parent_id: Option<Option<Uuid>>,
    /// Whether the agent of the chat answers a message of a person. Default: yes.
    #[serde(default = "yes")]
    #[schema(required = false)]
    answer: bool,
}

/// Distinguishes `null` from a missing field.
#[expect(clippy::option_option, reason = "missing, null, or an id")]
fn nullable<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Option<Uuid>>, D::Error> {
    Option::deserialize(value).map(Some)
}

fn user() -> MessageRole {
    MessageRole::User
}

const fn yes() -> bool {
    true
}

/// Which message to answer again.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub(crate) struct AnswerBody {
    /// The message of a person, or an answer to it. Default: the last one of the branch that is shown.
    message_id: Option<Uuid>,
}

/// How the client waits for an answer.
enum Delivery {
    /// Until it has ended or waits for approval.
    Whole,
    /// Not at all.
    Later,
    /// Event by event.
    Events(StreamPermit),
}

/// Write a message; it becomes the last one of the branch that is shown. The agent of the chat answers it.
#[utoipa::path(
    post, path = "/chats/{id}/messages", tag = "chats", request_body = NewMessageBody,
    params(
        ("id" = Uuid, Path),
        ("mode" = Option<Mode>, Query, description = "Default: the mode of the server"),
        ("async" = Option<bool>, Query, description = "Return 202 immediately; see `/runs/{id}/events`"),
        ("Accept" = Option<String>, Header, description = "`text/event-stream` streams the message and the events of the run", example = "application/json"),
    ),
    responses(
        (status = 200, content_type = "text/event-stream", body = RunEvent, description = "First an event `message`, then the events of the run"),
        (status = 201, body = Success<AnsweredMessage>, description = "The message with its answer"),
        (status = 202, body = Success<AnsweredMessage>, description = "The message; the answer follows"),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "An answer is being written in this chat"),
    )
)]
pub(crate) async fn add_message(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    RunRequest { headers, extensions, params, body }: RunRequest,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let chat = writable(&app, &identity, &id).await?;
    let NewMessageBody { content, role, parent_id, answer } = body.json()?;
    let delivery = delivery(&app, &identity, &params, (&headers, &extensions))?;
    audit::note(&identity, "chat.message", &excerpt(&id, 64));
    let request = MessageRequest {
        content,
        role,
        place: match parent_id {
            None => InsertPosition::Leaf,
            Some(None) => InsertPosition::Start,
            Some(Some(id)) => InsertPosition::After(MessageId(id)),
        },
        answer,
        mode: mode(&app, &identity, &params)?,
        surface: "chat",
    };
    let posted = chats::post_message(app.runs(), &identity, &chat, request).await?;
    deliver(&app, &identity, &chat, posted, delivery).await
}

/// Answer a message again: a branch beside the earlier answers.
#[utoipa::path(
    post, path = "/chats/{id}/answer", tag = "chats", request_body = Option<AnswerBody>,
    params(
        ("id" = Uuid, Path),
        ("mode" = Option<Mode>, Query, description = "Default: the mode of the server"),
        ("async" = Option<bool>, Query, description = "Return 202 immediately; see `/runs/{id}/events`"),
        ("Accept" = Option<String>, Header, description = "`text/event-stream` streams the events of the run", example = "application/json"),
    ),
    responses(
        (status = 200, content_type = "text/event-stream", body = RunEvent, description = "First an event `message`, then the events of the run"),
        (status = 201, body = Success<AnsweredMessage>),
        (status = 202, body = Success<AnsweredMessage>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "An answer is being written in this chat"),
    )
)]
pub(crate) async fn answer(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    RunRequest { headers, extensions, params, body }: RunRequest,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let chat = writable(&app, &identity, &id).await?;
    let AnswerBody { message_id } = body.json_or_default()?;
    let delivery = delivery(&app, &identity, &params, (&headers, &extensions))?;
    audit::note(&identity, "chat.answer", &excerpt(&id, 64));
    let mode = mode(&app, &identity, &params)?;
    let posted = chats::answer_again(app.runs(), &identity, &chat, message_id.map(MessageId), mode).await?;
    deliver(&app, &identity, &chat, posted, delivery).await
}

/// Returns how the client waits, and counts its stream before the answer starts.
fn delivery(
    app: &Installation,
    identity: &Identity,
    params: &Params,
    (headers, extensions): (&HeaderMap, &Extensions),
) -> Result<Delivery, ApiError> {
    if params.flag("async")? {
        return Ok(Delivery::Later);
    }
    let permit = open_stream::acquire_if(sse::is_accepted(headers), app, identity, extensions)?;
    Ok(permit.map_or(Delivery::Whole, Delivery::Events))
}

async fn deliver(
    app: &Arc<Installation>,
    identity: &Identity,
    chat: &Chat,
    posted: PostedMessage,
    delivery: Delivery,
) -> Result<Response, ApiError> {
    let PostedMessage { message, answer, run } = posted;
    let Some(run) = run else {
        let body = AnsweredMessage { message, answer, run: None };
        return Ok((StatusCode::CREATED, success(body)).into_response());
    };
    match delivery {
        Delivery::Later => {
            let body = AnsweredMessage { message, answer, run: Some(RunView::from(&run)) };
            Ok((StatusCode::ACCEPTED, success(body)).into_response())
        }
        Delivery::Events(permit) => {
            let first = vec![sse::event("message", &message)];
            let events = runs::watch_numbered(app.runs(), &identity.tenant, run.id);
            Ok(run_events(first, events, identity.stream_end(app), permit))
        }
        Delivery::Whole => {
            let run = app.runs().wait(&identity.tenant, run.id).await.map_err(of_run)?;
            let answer = match answer {
                Some(answer) => app.store().chats().message(&identity.tenant, chat.id, answer.id).await?,
                None => None,
            };
            let run = Some(view(app, &run).await?);
            let body = AnsweredMessage { message, answer, run };
            Ok((StatusCode::CREATED, success(body)).into_response())
        }
    }
}

/// Stop the answer that is being written in a chat. What it says so far is kept.
#[utoipa::path(
    post, path = "/chats/{id}/stop", tag = "chats", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<StoppedAnswer>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn stop(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let chat = writable(&app, &identity, &id).await?;
    audit::note(&identity, "chat.stop", &excerpt(&id, 64));
    let run = chats::stop(app.runs(), &identity, &chat).await?;
    Ok(success(StoppedAnswer { run_id: run.map(|run| run.id.0) }).into_response())
}

/// Export a chat: the branch that is shown as Markdown, or everything as JSON.
#[utoipa::path(
    get, path = "/chats/{id}/export", tag = "chats",
    params(
        ("id" = Uuid, Path),
        ("format" = Option<String>, Query, description = "`markdown` (the default) or `json`", pattern = "^(markdown|json)$"),
    ),
    responses(
        (status = 200, content((String = "text/markdown"), (Success<ChatExport> = "application/json")), description = "The chat"),
        (status = 404, body = ErrorBody),
    )
)]
pub(crate) async fn export(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let chat = readable(&app, &identity, &id).await?;
    let parse = |text: &str| match text {
        "markdown" | "md" => Some(true),
        "json" => Some(false),
        _ => None,
    };
    let is_markdown = params.choice("format", parse, "`markdown`, `json`")?.unwrap_or(true);
    let disposition = |extension: &str| format!("attachment; filename=\"chat-{}.{extension}\"", chat.id);
    if is_markdown {
        let branch = shown_branch(&app, &identity, &chat).await?;
        let headers = [
            (header::CONTENT_TYPE, "text/markdown; charset=utf-8".to_owned()),
            (header::CONTENT_DISPOSITION, disposition("md")),
        ];
        return Ok((headers, markdown(&chat, &branch)).into_response());
    }
    let messages = all_messages(&app, &identity, &chat).await?;
    let headers = [(header::CONTENT_DISPOSITION, disposition("json"))];
    Ok((headers, success(ChatExport { chat: chat.clone(), messages })).into_response())
}
