//! Carries out what clients send: the same code as the routes of chats and approvals, and the same audit.

use std::sync::Arc;

use haft_core::agent::Agent;
use haft_core::chat::{Chat, MessageRole};
use haft_core::id::{ApprovalId, CallId, ChatId, MessageId};
use haft_core::problem::excerpt;
use haft_core::resource::ResourceKind;
use haft_store::{NewChat, ResourceQuery};

use super::client_frame::{ApprovalFrame, MessageFrame};
use haft_platform::Installation;
use haft_platform::agents::{require_runnable, visible_agent};
use haft_platform::approvals::{PersonDecision, decide_call};
use haft_platform::audit;
use haft_platform::chats::{self, InsertPosition, MessageRequest, PostedMessage, writable};
use haft_platform::error::ServiceError;
use haft_platform::identity::Identity;

/// How many agents an error lists.
const MAX_LISTED: usize = 20;

/// Writes a message, in a new chat if it names none; returns the chat and the posted message.
pub(super) async fn write_message(
    app: &Arc<Installation>,
    identity: &Identity,
    frame: MessageFrame,
) -> Result<(Chat, PostedMessage), ServiceError> {
    let (app, identity) = (Arc::clone(app), identity.clone());
    let target = frame.chat_id.map_or_else(String::new, |id| id.to_string());
    let (on, by) = (Arc::clone(&app), identity.clone());
    let work = async move {
        // Before a chat is created for it.
        chats::check_content(&frame.content)?;
        let chat = match frame.chat_id {
            Some(id) => own_chat(&on, &by, &id.to_string(), frame.agent.as_deref()).await?,
            None => new_chat(&on, &by, frame.agent.as_deref()).await?,
        };
        let request = MessageRequest {
            content: frame.content,
            role: MessageRole::User,
            place: frame.parent_id.map_or(InsertPosition::Leaf, |id| InsertPosition::After(MessageId(id))),
            answer: true,
            mode: on.settings().mode,
            surface: "ws",
        };
        audit::note(&by, "chat.message", &chat.id.to_string());
        let posted = Box::pin(chats::post_message(on.runs(), &by, &chat, request)).await?;
        Ok((chat, posted))
    };
    Box::pin(audit::run_change(&app, &identity, ("chat.message", &target), work)).await
}

/// Returns a chat that the caller may write to. It must have an agent.
async fn own_chat(
    app: &Installation,
    identity: &Identity,
    id: &str,
    agent: Option<&str>,
) -> Result<Chat, ServiceError> {
    let chat = writable(app, identity, id).await?;
    let Some(own) = &chat.agent else {
        return Err(ServiceError::bad_request("the chat has no agent; set one with `PATCH /api/chats/{id}`"));
    };
    match agent {
        Some(named) if named != own => {
            let named = excerpt(named, 64);
            let message = format!("the chat has the agent `{own}`, not `{named}`; leave `agent` out");
            Err(ServiceError::bad_request(message))
        }
        _ => Ok(chat),
    }
}

async fn new_chat(
    app: &Installation,
    identity: &Identity,
    agent: Option<&str>,
) -> Result<Chat, ServiceError> {
    let agent = match agent {
        Some(named) => {
            let agent = visible_agent(app, identity, named).await?;
            // Before the chat, so that no empty one is left behind.
            require_runnable(&agent, app.settings().mode).map_err(ServiceError::outside_call)?;
            Agent::clone(&agent)
        }
        None => only_agent(app, identity).await?,
    };
    let new = NewChat {
        title: String::new(),
        owner: identity.id().to_string(),
        owner_name: identity.name.to_string(),
        agent: Some(agent.definition.slug.to_string()),
    };
    Ok(app.store().chats().create(&identity.tenant, new).await?)
}

/// Returns the agent of a tenant that has one.
async fn only_agent(app: &Installation, identity: &Identity) -> Result<Agent, ServiceError> {
    let query =
        ResourceQuery { slugs: identity.visible_slugs(ResourceKind::Agent), ..ResourceQuery::default() };
    let (agents, _) = app.store().agents().list(&identity.tenant, &query).await?;
    let mode = app.settings().mode;
    let mut runnable: Vec<Agent> = agents
        .into_iter()
        .filter(|agent| {
            identity.allows_agent(&agent.definition.slug) && require_runnable(agent, mode).is_ok()
        })
        .collect();
    match (runnable.len(), runnable.pop()) {
        (1, Some(agent)) => Ok(agent),
        (_, None) => Err(ServiceError::bad_request("there is no agent that can run; create one first")),
        (_, Some(last)) => {
            runnable.push(last);
            let names = runnable.iter().take(MAX_LISTED).map(|agent| format!("`{}`", agent.definition.slug));
            let names = names.collect::<Vec<_>>().join(", ");
            Err(ServiceError::bad_request(format!("set `agent` to one of {names}")))
        }
    }
}

/// Decides about a call; returns it.
pub(super) async fn decide(
    app: &Arc<Installation>,
    identity: &Identity,
    frame: ApprovalFrame,
) -> Result<(ApprovalId, CallId, bool), ServiceError> {
    let ApprovalFrame { approval_id, approved, reason, args } = frame;
    let (id, on, by) = (approval_id.to_string(), Arc::clone(app), identity.clone());
    let action = if approved { "approval.approve" } else { "approval.deny" };
    let target = id.clone();
    let work = async move {
        let decision = if approved { PersonDecision::Approve(args) } else { PersonDecision::Deny(reason) };
        decide_call(&on, &by, &id, decision).await
    };
    let call = Box::pin(audit::run_change(app, identity, (action, &target), work)).await?;
    Ok((ApprovalId(approval_id), call, approved))
}

/// Stops the answer in a chat.
pub(super) async fn stop(
    app: &Arc<Installation>,
    identity: &Identity,
    chat: ChatId,
) -> Result<(), ServiceError> {
    let (on, by, id) = (Arc::clone(app), identity.clone(), chat.to_string());
    let target = id.clone();
    let work = async move {
        let chat = writable(&on, &by, &id).await?;
        match Box::pin(chats::stop(on.runs(), &by, &chat)).await? {
            Some(_) => Ok(()),
            None => Err(ServiceError::new(
                haft_core::outcome::ErrorCode::Conflict,
                "no answer is being written in this chat",
            )),
        }
    };
    audit::run_change(app, identity, ("chat.stop", &target), work).await
}
