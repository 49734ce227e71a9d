//! Chats as things: who may read and change them, their titles, agents and branches.

use haft_core::chat::{Chat, MAX_TITLE, Message as ChatMessage};
use haft_core::id::{ChatId, ManifestId, MessageId};
use haft_core::outcome::ErrorCode;
use haft_core::token::Role;
use haft_core::workspace::{ManifestInfo, ManifestSource, WorkspaceName};
use haft_store::{ChatChange, ChatScope, NewChat};

use crate::agents::visible_agent;
use crate::answers::repair_answers;
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::workspaces::StateChange;

/// Returns a chat that the caller may change: its own, and for admins those of the tenant.
pub async fn writable(app: &Context, identity: &Identity, id: &str) -> Result<Chat, ServiceError> {
    let chat = readable(app, identity, id).await?;
    if is_own(identity, &chat) {
        return Ok(chat);
    }
    let message = "the chat belongs to somebody else, who shares it for reading only";
    Err(ServiceError::new(ErrorCode::Forbidden, message))
}

fn is_own(identity: &Identity, chat: &Chat) -> bool {
    identity.role >= Role::Admin || chat.owner == *identity.id()
}

/// Returns a chat that the caller may read: its own, shared ones, and for admins those of the tenant.
pub async fn readable(app: &Context, identity: &Identity, id: &str) -> Result<Chat, ServiceError> {
    let missing = || ServiceError::not_found("chat", id);
    let parsed: ChatId = id.parse().map_err(|_| missing())?;
    let chat = app.store().chats().get(&identity.tenant, parsed).await?.ok_or_else(missing)?;
    if chat.shared || is_own(identity, &chat) { Ok(chat) } else { Err(missing()) }
}

/// Returns the slug of an agent that a chat names.
async fn slug_of(app: &Context, identity: &Identity, reference: &str) -> Result<String, ServiceError> {
    Ok(visible_agent(app, identity, reference).await?.definition.slug.to_string())
}

fn check_title(title: Option<&str>) -> Result<(), ServiceError> {
    match title {
        Some(title) if title.chars().count() > MAX_TITLE => {
            Err(ServiceError::bad_request(format!("`title` exceeds the limit of {MAX_TITLE} characters")))
        }
        _ => Ok(()),
    }
}

/// Rejects a message that is not in the chat.
pub async fn require_message(
    app: &Context,
    identity: &Identity,
    chat: &Chat,
    message: &str,
) -> Result<MessageId, ServiceError> {
    let missing = || ServiceError::not_found("message", message);
    let id: MessageId = message.parse().map_err(|_| missing())?;
    app.store().chats().message(&identity.tenant, chat.id, id).await?.ok_or_else(missing)?;
    Ok(id)
}

/// Brings the workspace to its state at a message.
pub(crate) async fn show_branch(
    app: &Context,
    identity: &Identity,
    chat: &Chat,
    leaf: MessageId,
) -> Result<(), ServiceError> {
    let missing = || ServiceError::not_found("message", &leaf.to_string());
    app.store().chats().message(&identity.tenant, chat.id, leaf).await?.ok_or_else(missing)?;
    match app.store().chats().manifest_of_message(&identity.tenant, chat.id, leaf).await? {
        Some(wanted) => show_state(app, identity, chat, Some(wanted), Some(leaf)).await,
        None => show_start(app, identity, chat).await,
    }
}

/// Restores the state of the workspace before the first message, with the files uploaded until then.
pub(crate) async fn show_start(app: &Context, identity: &Identity, chat: &Chat) -> Result<(), ServiceError> {
    let wanted = app.store().chats().manifest_before_messages(&identity.tenant, chat.id).await?;
    show_state(app, identity, chat, wanted, None).await
}

/// Restores a state of the workspace, or empties it.
async fn show_state(
    app: &Context,
    identity: &Identity,
    chat: &Chat,
    wanted: Option<ManifestId>,
    leaf: Option<MessageId>,
) -> Result<(), ServiceError> {
    let (tenant, name) = (&identity.tenant, WorkspaceName::Chat(chat.id));
    let Some(active) = app.store().workspaces().active_manifest(tenant, &name).await?.flatten() else {
        return Ok(());
    };
    if Some(active.info.id) == wanted {
        return Ok(());
    }
    let change = StateChange {
        source: ManifestSource::Branch,
        source_ref: leaf.map(|leaf| leaf.to_string()),
        by: identity.name.to_string(),
        message: None,
    };
    let shown = match wanted {
        Some(wanted) => app.workspaces().restore(tenant, &name, wanted, change).await,
        None => app.workspaces().clear(tenant, &name, change).await,
    };
    shown.map(drop).map_err(ServiceError::outside_call)
}

/// How many messages are read at once for an export.
const PAGE: u32 = 500;

/// The most messages of an export.
const MAX_EXPORTED: usize = 50_000;

/// Returns all messages of a chat, in the order in which they were written.
pub async fn all_messages(
    app: &Context,
    identity: &Identity,
    chat: &Chat,
) -> Result<Vec<ChatMessage>, ServiceError> {
    let mut all: Vec<ChatMessage> = Vec::new();
    loop {
        let after = all.last().map(|message| message.id);
        let mut page = app.store().chats().messages(&identity.tenant, chat.id, after, PAGE).await?;
        let is_last = u32::try_from(page.len()).is_ok_and(|count| count < PAGE);
        repair_answers(app, &identity.tenant, chat, &mut page).await?;
        all.append(&mut page);
        if is_last || all.len() >= MAX_EXPORTED {
            return Ok(all);
        }
    }
}

/// The request for a new chat.
pub struct ChatFields {
    pub title: Option<String>,
    /// The slug of the agent that answers.
    pub agent: Option<String>,
}

/// Creates a chat.
pub async fn create(app: &Context, identity: &Identity, fields: ChatFields) -> Result<Chat, ServiceError> {
    let ChatFields { title, agent } = fields;
    check_title(title.as_deref())?;
    let agent = match agent {
        Some(reference) => Some(slug_of(app, identity, &reference).await?),
        None => None,
    };
    let new = NewChat {
        title: title.unwrap_or_default(),
        owner: identity.id().to_string(),
        owner_name: identity.name.to_string(),
        agent,
    };
    let chat = app.store().chats().create(&identity.tenant, new).await?;
    audit::note(identity, "chat.create", &chat.id.to_string());
    Ok(chat)
}

/// Returns the state of the workspace of a chat; `None` if it never had files.
pub async fn active_manifest(
    app: &Context,
    identity: &Identity,
    chat: &Chat,
) -> Result<Option<ManifestId>, ServiceError> {
    let active =
        app.store().workspaces().active_manifest(&identity.tenant, &WorkspaceName::Chat(chat.id)).await?;
    Ok(active.flatten().map(|active| active.info.id))
}

/// Changes a chat. Another active branch restores its workspace state, unless a state is given.
pub async fn update(
    app: &Context,
    identity: &Identity,
    chat: &Chat,
    change: ChatChange,
    manifest: Option<ManifestId>,
) -> Result<Chat, ServiceError> {
    check_title(change.title.as_deref())?;
    if let Some(manifest) = manifest {
        let found = app
            .store()
            .workspaces()
            .manifest(&identity.tenant, &WorkspaceName::Chat(chat.id), manifest)
            .await?;
        found.ok_or_else(|| ServiceError::not_found("workspace state", &manifest.to_string()))?;
    }
    let agent = match &change.agent {
        Some(reference) => Some(slug_of(app, identity, reference).await?),
        None => None,
    };
    let id = chat.id.to_string();
    audit::note(identity, "chat.update", &id);
    if let Some(leaf) = change.active_leaf {
        show_branch(app, identity, chat, leaf).await?;
    }
    if let Some(manifest) = manifest {
        show_state(app, identity, chat, Some(manifest), None).await?;
    }
    let change = ChatChange { agent, ..change };
    let changed = app.store().chats().change(&identity.tenant, chat.id, change).await?;
    changed.ok_or_else(|| ServiceError::not_found("chat", &id))
}

/// Deletes a chat with its messages and its workspace.
pub async fn delete(app: &Context, identity: &Identity, chat: &Chat) -> Result<(), ServiceError> {
    audit::note(identity, "chat.delete", &chat.id.to_string());
    app.store().chats().delete(&identity.tenant, chat.id).await?;
    app.workspaces().forget(&identity.tenant, &WorkspaceName::Chat(chat.id)).await;
    Ok(())
}

/// Returns the listed chats: the shared ones, the own ones, or for admins all of the tenant.
pub fn listed_scope(identity: &Identity, shared: bool) -> ChatScope {
    match (shared, identity.role >= Role::Admin) {
        (true, _) => ChatScope::Shared,
        (false, true) => ChatScope::All,
        (false, false) => ChatScope::Owner(identity.id().to_string()),
    }
}

/// Returns the state of the workspace at a message: its own, or that of the nearest message before it.
pub async fn manifest_at(
    app: &Context,
    identity: &Identity,
    chat: &Chat,
    message: &str,
) -> Result<Option<ManifestInfo>, ServiceError> {
    let tenant = &identity.tenant;
    let parsed = require_message(app, identity, chat, message).await?;
    let manifest = match app.store().chats().manifest_of_message(tenant, chat.id, parsed).await? {
        Some(id) => app.store().workspaces().manifest(tenant, &WorkspaceName::Chat(chat.id), id).await?,
        None => None,
    };
    Ok(manifest.map(|manifest| manifest.info))
}

/// Returns the messages of the branch that is shown.
pub async fn shown_branch(
    app: &Context,
    identity: &Identity,
    chat: &Chat,
) -> Result<Vec<ChatMessage>, ServiceError> {
    match chat.active_leaf {
        Some(leaf) => Ok(app.store().chats().branch(&identity.tenant, chat.id, leaf).await?),
        None => Ok(Vec::new()),
    }
}
