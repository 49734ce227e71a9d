//! `/chats`: conversations, their messages and branches.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::chat::{Chat, MAX_TITLE, Message as ChatMessage, MessageRole};
use haft_core::id::{ChatId, MessageId};
use haft_core::problem::excerpt;
use haft_core::token::Role;
use haft_core::workspace::{ManifestInfo, ManifestSource, WorkspaceName};
use haft_store::{ChatChange, NewChat, NewMessage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::workspaces::of_route;
use crate::app::App;
use crate::audit;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use crate::workspaces::StateChange;

/// The longest message, in bytes of JSON.
const MAX_MESSAGE: usize = 1 << 20;

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
    active_leaf: Option<Uuid>,
}

/// A message to write.
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
    /// is shown.
    #[serde(default)]
    parent_id: Option<Uuid>,
}

fn user() -> MessageRole {
    MessageRole::User
}

/// A page of chats.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatList {
    chats: Vec<Chat>,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// A page of messages, in the order in which they were written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageList {
    messages: Vec<ChatMessage>,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// The state of the workspace at a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageManifest {
    /// The state; `null` if there was none yet.
    #[schema(required)]
    manifest: Option<ManifestInfo>,
}

/// Returns a chat that the caller may see: its own, and for admins those of the tenant.
pub(super) async fn visible(app: &App, identity: &Identity, id: &str) -> Result<Chat, ApiError> {
    let missing = || ApiError::not_found("chat", id);
    let parsed: ChatId = id.parse().map_err(|_| missing())?;
    let chat = app.store().chat(&identity.tenant, parsed).await?.ok_or_else(missing)?;
    let is_visible = identity.role >= Role::Admin || chat.owner == *identity.id();
    if is_visible { Ok(chat) } else { Err(missing()) }
}

fn check_title(title: Option<&str>) -> Result<(), ApiError> {
    match title {
        Some(title) if title.chars().count() > MAX_TITLE => {
            Err(ApiError::bad_request(format!("`title` exceeds the limit of {MAX_TITLE} characters")))
        }
        _ => Ok(()),
    }
}

/// List chats, newest first. Callers see their own; admins those of the tenant.
#[utoipa::path(
    get, path = "/chats", tag = "chats", params(PageParams), responses((status = 200, body = Success<ChatList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("chats")?;
    let owner = (identity.role < Role::Admin).then(|| identity.id().to_string());
    let found = app.store().chats(&identity.tenant, owner.as_deref(), page.after()?, page.size).await?;
    let next_page_token = page.token_after(&found, page.size, |chat| chat.id.to_string());
    Ok(success(ChatList { chats: found, next_page_token }).into_response())
}

/// Create a chat.
#[utoipa::path(
    post, path = "/chats", tag = "chats", request_body = Option<NewChatBody>,
    responses((status = 201, body = Success<Chat>))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    identity: Identity,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let NewChatBody { title, agent } = body.json_or_default()?;
    check_title(title.as_deref())?;
    if agent.as_ref().is_some_and(|agent| agent.chars().count() > 64) {
        return Err(ApiError::bad_request("`agent` exceeds the limit of 64 characters"));
    }
    let new = NewChat {
        title: title.unwrap_or_default(),
        owner: identity.id().to_string(),
        owner_name: identity.name.to_string(),
        agent,
    };
    let chat = app.store().create_chat(&identity.tenant, new).await?;
    audit::note(&identity, "chat.create", &chat.id.to_string());
    Ok(created(chat))
}

/// Get a chat.
#[utoipa::path(
    get, path = "/chats/{id}", tag = "chats", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<Chat>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    Ok(success(visible(&app, &identity, &id).await?).into_response())
}

/// Rename a chat, or show another branch; the workspace is then brought to its state in that branch.
#[utoipa::path(
    patch, path = "/chats/{id}", tag = "chats", params(("id" = Uuid, Path)), request_body = ChatPatch,
    responses((status = 200, body = Success<Chat>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let chat = visible(&app, &identity, &id).await?;
    let ChatPatch { title, active_leaf } = body.json()?;
    check_title(title.as_deref())?;
    audit::note(&identity, "chat.update", &id);
    let leaf = active_leaf.map(MessageId);
    if let Some(leaf) = leaf {
        show_branch(&app, &identity, &chat, leaf).await?;
    }
    let change = ChatChange { title, active_leaf: leaf };
    let changed = app.store().change_chat(&identity.tenant, chat.id, change).await?;
    Ok(success(changed.ok_or_else(|| ApiError::not_found("chat", &id))?).into_response())
}

/// Brings the workspace to its state at a message.
async fn show_branch(app: &App, identity: &Identity, chat: &Chat, leaf: MessageId) -> Result<(), ApiError> {
    let (tenant, name) = (&identity.tenant, WorkspaceName::Chat(chat.id));
    let missing = || ApiError::not_found("message", &leaf.to_string());
    app.store().message(tenant, chat.id, leaf).await?.ok_or_else(missing)?;
    let Some(wanted) = app.store().manifest_of_message(tenant, chat.id, leaf).await? else { return Ok(()) };
    let active = app.store().active_manifest(tenant, &name).await?.flatten();
    if active.is_some_and(|active| active.info.id == wanted) {
        return Ok(());
    }
    let change = StateChange {
        source: ManifestSource::Branch,
        source_ref: Some(leaf.to_string()),
        by: identity.name.to_string(),
        message: None,
    };
    app.workspaces().restore(tenant, &name, wanted, change).await.map_err(of_route)?;
    Ok(())
}

/// Delete a chat with its messages and its workspace.
#[utoipa::path(
    delete, path = "/chats/{id}", tag = "chats", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let chat = visible(&app, &identity, &id).await?;
    audit::note(&identity, "chat.delete", &id);
    app.store().delete_chat(&identity.tenant, chat.id).await?;
    app.workspaces().forget(&identity.tenant, &WorkspaceName::Chat(chat.id)).await;
    Ok(reply::message("Chat deleted"))
}

/// List the messages of a chat, all branches, in the order in which they were written.
#[utoipa::path(
    get, path = "/chats/{id}/messages", tag = "chats", params(("id" = Uuid, Path), PageParams),
    responses((status = 200, body = Success<MessageList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn messages(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let chat = visible(&app, &identity, &id).await?;
    let page = params.page("messages")?;
    let found = app.store().messages(&identity.tenant, chat.id, page.after()?, page.size).await?;
    let next_page_token = page.token_after(&found, page.size, |message| message.id.to_string());
    Ok(success(MessageList { messages: found, next_page_token }).into_response())
}

/// Write a message; it becomes the last one of the branch that is shown.
#[utoipa::path(
    post, path = "/chats/{id}/messages", tag = "chats", params(("id" = Uuid, Path)), request_body = NewMessageBody,
    responses((status = 201, body = Success<ChatMessage>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn add_message(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let chat = visible(&app, &identity, &id).await?;
    let NewMessageBody { content, role, parent_id } = body.json()?;
    if !(content.is_string() || content.is_array()) {
        return Err(ApiError::bad_request("`content` must be a text or an array of content blocks"));
    }
    if content.to_string().len() > MAX_MESSAGE {
        return Err(ApiError::bad_request("`content` exceeds the limit of 1 MiB"));
    }
    let parent = parent_id.map(MessageId);
    if let Some(parent) = parent.filter(|parent| chat.active_leaf != Some(*parent)) {
        // The branch continues from the files as they were there.
        show_branch(&app, &identity, &chat, parent).await?;
    }
    let parent_id = parent.or(chat.active_leaf);
    let new = NewMessage { parent_id, role, content };
    let added = app.store().add_message(&identity.tenant, chat.id, new).await?;
    audit::note(&identity, "chat.message", &excerpt(&id, 64));
    Ok(created(added.ok_or_else(|| ApiError::not_found("chat", &id))?))
}

/// Get the state of the workspace at a message: its own, or that of the nearest message before it.
#[utoipa::path(
    get, path = "/chats/{id}/messages/{message_id}/manifest", tag = "chats",
    params(("id" = Uuid, Path), ("message_id" = Uuid, Path)),
    responses((status = 200, body = Success<MessageManifest>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn message_manifest(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path((id, message)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let chat = visible(&app, &identity, &id).await?;
    let missing = || ApiError::not_found("message", &message);
    let parsed: MessageId = message.parse().map_err(|_| missing())?;
    let tenant = &identity.tenant;
    app.store().message(tenant, chat.id, parsed).await?.ok_or_else(missing)?;
    let manifest = match app.store().manifest_of_message(tenant, chat.id, parsed).await? {
        Some(id) => app.store().manifest(tenant, &WorkspaceName::Chat(chat.id), id).await?,
        None => None,
    };
    Ok(success(MessageManifest { manifest: manifest.map(|manifest| manifest.info) }).into_response())
}
