//! `/chats`: conversations, their messages and branches.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::chat::{Chat, MAX_TITLE, Message as ChatMessage};
use haft_core::id::{ChatId, MessageId};
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_core::token::Role;
use haft_core::workspace::{ManifestInfo, ManifestSource, WorkspaceName};
use haft_store::{ChatChange, ChatQuery, ChatScope, NewChat};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::workspaces::of_route;
use crate::agents::visible_agent;
use crate::app::App;
use crate::audit;
use crate::body::Body;
use crate::chats::repair_answers;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use crate::workspaces::StateChange;

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
    active_leaf: Option<Uuid>,
    /// Whether everybody in the tenant may read it.
    shared: Option<bool>,
    /// The slug of the agent that answers from now on.
    #[schema(max_length = 64)]
    agent: Option<String>,
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

/// Returns a chat that the caller may change: its own, and for admins those of the tenant.
pub(crate) async fn visible(app: &App, identity: &Identity, id: &str) -> Result<Chat, ApiError> {
    let chat = readable(app, identity, id).await?;
    if is_own(identity, &chat) {
        return Ok(chat);
    }
    let message = "the chat belongs to somebody else, who shares it for reading only";
    Err(ApiError::new(ErrorCode::Forbidden, message))
}

fn is_own(identity: &Identity, chat: &Chat) -> bool {
    identity.role >= Role::Admin || chat.owner == *identity.id()
}

/// Returns a chat that the caller may read: its own, shared ones, and for admins those of the tenant.
pub(super) async fn readable(app: &App, identity: &Identity, id: &str) -> Result<Chat, ApiError> {
    let missing = || ApiError::not_found("chat", id);
    let parsed: ChatId = id.parse().map_err(|_| missing())?;
    let chat = app.store().chat(&identity.tenant, parsed).await?.ok_or_else(missing)?;
    if chat.shared || is_own(identity, &chat) { Ok(chat) } else { Err(missing()) }
}

/// Returns the slug of an agent that a chat names.
async fn slug_of(app: &App, identity: &Identity, reference: &str) -> Result<String, ApiError> {
    Ok(visible_agent(app, identity, reference).await?.definition.slug.to_string())
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
    get, path = "/chats", tag = "chats",
    params(
        ("q" = Option<String>, Query, description = "A part of the title or of a message"),
        ("shared" = Option<bool>, Query, description = "Those that everybody in the tenant may read"),
        PageParams,
    ),
    responses((status = 200, body = Success<ChatList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("chats")?;
    let scope = match (params.flag("shared")?, identity.role >= Role::Admin) {
        (true, _) => ChatScope::Shared,
        (false, true) => ChatScope::All,
        (false, false) => ChatScope::Owner(identity.id().to_string()),
    };
    let q = params.get("q").map(|text| excerpt(text, MAX_SEARCH));
    let query = ChatQuery { scope, q, before: page.after()?, limit: page.size };
    let found = app.store().chats(&identity.tenant, &query).await?;
    let next_page_token = page.token_after(&found, page.size, |chat| chat.id.to_string());
    Ok(success(ChatList { chats: found, next_page_token }).into_response())
}

/// Create a chat.
#[utoipa::path(
    post, path = "/chats", tag = "chats", request_body = Option<NewChatBody>,
    responses((status = 201, body = Success<Chat>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    identity: Identity,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let NewChatBody { title, agent } = body.json_or_default()?;
    check_title(title.as_deref())?;
    let agent = match agent {
        Some(reference) => Some(slug_of(&app, &identity, &reference).await?),
        None => None,
    };
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
    Ok(success(readable(&app, &identity, &id).await?).into_response())
}

/// Rename or share a chat, choose its agent, or show another branch; the workspace is then brought to its state there.
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
    let ChatPatch { title, active_leaf, shared, agent } = body.json()?;
    check_title(title.as_deref())?;
    let agent = match agent {
        Some(reference) => Some(slug_of(&app, &identity, &reference).await?),
        None => None,
    };
    audit::note(&identity, "chat.update", &id);
    let leaf = active_leaf.map(MessageId);
    if let Some(leaf) = leaf {
        show_branch(&app, &identity, &chat, leaf).await?;
    }
    let change = ChatChange { title, active_leaf: leaf, shared, agent };
    let changed = app.store().change_chat(&identity.tenant, chat.id, change).await?;
    Ok(success(changed.ok_or_else(|| ApiError::not_found("chat", &id))?).into_response())
}

/// Brings the workspace to its state at a message.
pub(crate) async fn show_branch(
    app: &App,
    identity: &Identity,
    chat: &Chat,
    leaf: MessageId,
) -> Result<(), ApiError> {
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
    let chat = readable(&app, &identity, &id).await?;
    let page = params.page("messages")?;
    let mut found = app.store().messages(&identity.tenant, chat.id, page.after()?, page.size).await?;
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
    State(app): State<Arc<App>>,
    identity: Identity,
    Path((id, message)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let chat = readable(&app, &identity, &id).await?;
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
