//! `/chats`: conversations, their messages and branches.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_api::chat::{ChatList, ChatState, MessageList, MessageManifest};
use haft_core::chat::Chat;
use haft_core::id::{ManifestId, MessageId};
use haft_core::problem::excerpt;
use haft_core::token::Role;
use haft_store::{ChatChange, ChatQuery};
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use haft_platform::Installation;
use haft_platform::answers::repair_answers;
use haft_platform::chats::{self, ChatFields, listed_scope, manifest_at, readable, writable};
use haft_platform::identity::Identity;

/// The longest text to search for, in characters.
const MAX_SEARCH: usize = 200;

/// A chat to create.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub(crate) struct NewChatBody {
    /// The title.
    #[schema(example = "Quarterly report", max_length = 200)]
    title: Option<String>,
    /// The slug of the agent that answers.
    #[schema(example = "assistant", max_length = 64)]
    agent: Option<String>,
}

/// What to change in a chat.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct ChatPatch {
    /// The new title.
    #[schema(max_length = 200)]
    title: Option<String>,
    /// The last message of the branch to show. The workspace is brought to its state at that message.
    #[serde(alias = "active_leaf_message_id")]
    active_leaf: Option<Uuid>,
    /// The state of the workspace to restore.
    active_manifest_id: Option<Uuid>,
    /// Whether everybody in the tenant may read it.
    shared: Option<bool>,
    /// The slug of the agent that answers from now on.
    #[schema(max_length = 64)]
    agent: Option<String>,
}

async fn state(app: &Installation, identity: &Identity, chat: Chat) -> Result<ChatState, ApiError> {
    let active_manifest_id = chats::active_manifest(app, identity, &chat).await?;
    Ok(ChatState { active_leaf_message_id: chat.active_leaf, active_manifest_id, chat })
}

/// List chats, newest first. Callers see their own; admins those of the tenant.
#[utoipa::path(
    get, path = "/chats", tag = "chats",
    params(
        ("q" = Option<String>, Query, description = "A part of the title or of a message"),
        ("shared" = Option<bool>, Query, description = "Those that everybody in the tenant may read"),
        PageParams,
    ),
    responses((status = 200, body = Success<ChatList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("chats")?;
    let scope = listed_scope(&identity, params.flag("shared")?);
    let q = params.get("q").map(|text| excerpt(text, MAX_SEARCH));
    let query = ChatQuery { scope, q, before: page.after()?, limit: page.size };
    let found = app.store().chats().list(&identity.tenant, &query).await?;
    let next_page_token = page.token_after(&found, page.size, |chat| chat.id.to_string());
    Ok(success(ChatList { chats: found, next_page_token }).into_response())
}

/// Create a chat.
#[utoipa::path(
    post, path = "/chats", tag = "chats", request_body = Option<NewChatBody>,
    responses((status = 201, body = Success<ChatState>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn create(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let NewChatBody { title, agent } = body.json_or_default()?;
    let chat = chats::create(&app, &identity, ChatFields { title, agent }).await?;
    Ok(created(state(&app, &identity, chat).await?))
}

/// Get a chat.
#[utoipa::path(
    get, path = "/chats/{id}", tag = "chats", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<ChatState>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let chat = readable(&app, &identity, &id).await?;
    Ok(success(state(&app, &identity, chat).await?).into_response())
}

/// Rename or share a chat, choose its agent, or show another branch or another state of its workspace. Showing a branch
/// restores the state of the workspace at its last message.
#[utoipa::path(
    patch, path = "/chats/{id}", tag = "chats", params(("id" = Uuid, Path)), request_body = ChatPatch,
    responses((status = 200, body = Success<ChatState>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let chat = writable(&app, &identity, &id).await?;
    let ChatPatch { title, active_leaf, active_manifest_id, shared, agent } = body.json()?;
    let change = ChatChange { title, active_leaf: active_leaf.map(MessageId), shared, agent };
    let chat = chats::update(&app, &identity, &chat, change, active_manifest_id.map(ManifestId)).await?;
    Ok(success(state(&app, &identity, chat).await?).into_response())
}

/// Delete a chat with its messages and its workspace.
#[utoipa::path(
    delete, path = "/chats/{id}", tag = "chats", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let chat = writable(&app, &identity, &id).await?;
    chats::delete(&app, &identity, &chat).await?;
    Ok(reply::message("Chat deleted"))
}

/// List the messages of a chat, all branches, in the order in which they were written.
#[utoipa::path(
    get, path = "/chats/{id}/messages", tag = "chats", params(("id" = Uuid, Path), PageParams),
    responses((status = 200, body = Success<MessageList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn messages(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let chat = readable(&app, &identity, &id).await?;
    let page = params.page("messages")?;
    let mut found = app.store().chats().messages(&identity.tenant, chat.id, page.after()?, page.size).await?;
    repair_answers(&app, &identity.tenant, &chat, &mut found).await?;
    let next_page_token = page.token_after(&found, page.size, |message| message.id.to_string());
    Ok(success(MessageList { messages: found, next_page_token }).into_response())
}

/// Get the state of the workspace at a message: its own, or that of the nearest message before it.
#[utoipa::path(
    get, path = "/chats/{id}/messages/{message_id}/manifest", tag = "chats",
    params(("id" = Uuid, Path), ("message_id" = Uuid, Path)),
    responses((status = 200, body = Success<MessageManifest>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn message_manifest(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((id, message)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let chat = readable(&app, &identity, &id).await?;
    let manifest = manifest_at(&app, &identity, &chat, &message).await?;
    Ok(success(MessageManifest { manifest }).into_response())
}
