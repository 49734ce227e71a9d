//! Messages that an agent answers.
//!
//! The answer of a run is one message. It is stored when the run starts, so that everybody sees that there will be one,
//! and its content is written when the run ends or waits, wherever that is.

use std::sync::Arc;

use haft_core::agent::Agent;
use haft_core::catalog::StoreError;
use haft_core::chat::{Chat, MAX_TITLE, Message, MessageRole};
use haft_core::id::{MessageId, RunId};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_core::run::{Run, RunLease, RunStatus};
use haft_core::runnable::Mode;
use haft_store::{ChatChange, NewMessage};
use serde_json::Value;
use uuid::Uuid;

use super::blocks::{blocks, note};
use super::content::content_text;
use super::conversation::{all_steps, conversation_of};
use super::manage::show_branch;
use crate::agents::{require_runnable, visible_agent};
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::installation::Installation;
use crate::runs::StartRun;

/// The longest message, in bytes of JSON.
const MAX_MESSAGE: usize = 1 << 20;

/// The length of a title that is made from a message, in characters.
const MADE_TITLE: usize = 60;

/// A message of a person.
pub struct Question {
    /// What it says: a text, or an array of content blocks.
    pub content: Value,
    /// Who writes it.
    pub role: MessageRole,
    /// Where it is added.
    pub place: Place,
    /// Whether the agent of the chat answers. Only messages of the role `user` are answered.
    pub answer: bool,
    /// The mode of the run.
    pub mode: Mode,
    /// The interface that it came through: `chat` or `ws`.
    pub surface: &'static str,
}

/// Where a message is added to a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// After the last message of the branch that is shown.
    Leaf,
    /// After this message.
    After(MessageId),
    /// At the start of the chat, beside its first message.
    Start,
}

/// A message, and the answer that is being written to it.
pub struct Asked {
    /// The message.
    pub message: Message,
    /// The answer, whose content is empty until its run ends.
    pub answer: Option<Message>,
    /// The run that writes the answer.
    pub run: Option<Run>,
}

/// Stores a message, and starts the run that answers it if the chat has an agent.
pub async fn ask(
    app: &Arc<Installation>,
    identity: &Identity,
    chat: &Chat,
    question: Question,
) -> Result<Asked, ServiceError> {
    let Question { content, role, place, answer, mode, surface } = question;
    check_content(&content)?;
    let answers = answer && role == MessageRole::User;
    let agent = match &chat.agent {
        Some(slug) if answers => Some(answering_agent(app, identity, slug, mode).await?),
        _ => None,
    };
    require_idle(app, identity, chat).await?;
    let parent_id = match place {
        Place::Leaf => chat.active_leaf,
        Place::After(parent) => Some(parent),
        Place::Start => None,
    };
    // The branch continues from the files as they were there. Before the first message there were none to return to.
    if let Some(parent) = parent_id.filter(|parent| chat.active_leaf != Some(*parent)) {
        show_branch(app, identity, chat, parent).await?;
    }
    let title = chat.title.is_empty().then(|| title_from(&content)).flatten();
    let new = NewMessage { parent_id, role, content, run_id: None };
    let message = add(app, identity, chat, new).await?;
    if let Some(title) = title.filter(|_| role == MessageRole::User) {
        let change = ChatChange { title: Some(title), ..ChatChange::default() };
        app.store().change_chat(&identity.tenant, chat.id, change).await?;
    }
    let Some(agent) = agent else { return Ok(Asked { message, answer: None, run: None }) };
    answer_message(app, identity, chat, Answering { message, agent, mode, surface }).await
}

/// Answers a message of a person again: the answer is a branch beside the earlier ones.
pub async fn answer_again(
    app: &Arc<Installation>,
    identity: &Identity,
    chat: &Chat,
    message: Option<MessageId>,
    mode: Mode,
) -> Result<Asked, ServiceError> {
    let slug = chat.agent.as_deref().ok_or_else(|| ServiceError::bad_request("the chat has no agent"))?;
    let agent = answering_agent(app, identity, slug, mode).await?;
    require_idle(app, identity, chat).await?;
    let message = question_of(app, identity, chat, message).await?;
    // The files are those that the message was written with.
    show_branch(app, identity, chat, message.id).await?;
    answer_message(app, identity, chat, Answering { message, agent, mode, surface: "chat" }).await
}

/// Returns the message of a person that is answered: the given one, or the last one of the branch that is shown. For an
/// answer it is the message before it.
async fn question_of(
    app: &Installation,
    identity: &Identity,
    chat: &Chat,
    message: Option<MessageId>,
) -> Result<Message, ServiceError> {
    let nothing = || ServiceError::bad_request("the chat has no message that could be answered");
    let leaf = message.or(chat.active_leaf).ok_or_else(nothing)?;
    let branch = app.store().chat_branch(&identity.tenant, chat.id, leaf).await?;
    if branch.is_empty() {
        return Err(ServiceError::not_found("message", &leaf.to_string()));
    }
    branch.into_iter().rev().find(|message| message.role == MessageRole::User).ok_or_else(nothing)
}

/// Cancels the running answer of a chat; returns its run.
pub async fn stop(
    app: &Arc<Installation>,
    identity: &Identity,
    chat: &Chat,
) -> Result<Option<Run>, ServiceError> {
    let Some(run) = running_answer(app, &identity.tenant, chat).await? else { return Ok(None) };
    app.runs().cancel(app, &identity.tenant, run.id).await?;
    Ok(Some(run))
}

/// Returns the run that answers in a chat now, or that waits for people there.
async fn running_answer(
    app: &Installation,
    tenant: &TenantId,
    chat: &Chat,
) -> Result<Option<Run>, StoreError> {
    app.store().open_run_of_chat(tenant, chat.id).await
}

async fn require_idle(app: &Installation, identity: &Identity, chat: &Chat) -> Result<(), ServiceError> {
    match running_answer(app, &identity.tenant, chat).await? {
        Some(run) => Err(busy(&run)),
        None => Ok(()),
    }
}

fn busy(run: &Run) -> ServiceError {
    let state = match run.status {
        RunStatus::AwaitingApproval => "waits for approval",
        _ => "is being written",
    };
    let message = format!("an answer {state} in this chat; stop it first");
    ServiceError::new(ErrorCode::Conflict, message)
        .with_details(serde_json::json!({"run_id": run.id, "status": run.status}))
}

async fn answering_agent(
    app: &Installation,
    identity: &Identity,
    slug: &str,
    mode: Mode,
) -> Result<Arc<Agent>, ServiceError> {
    let agent = visible_agent(app, identity, slug).await?;
    require_runnable(&agent, mode).map_err(|error| ServiceError { of_call: false, ..error.into() })?;
    Ok(agent)
}

/// A message to answer.
struct Answering {
    message: Message,
    agent: Arc<Agent>,
    mode: Mode,
    surface: &'static str,
}

async fn answer_message(
    app: &Arc<Installation>,
    identity: &Identity,
    chat: &Chat,
    answering: Answering,
) -> Result<Asked, ServiceError> {
    let Answering { message, agent, mode, surface } = answering;
    let tenant = &identity.tenant;
    let branch = app.store().chat_branch(tenant, chat.id, message.id).await?;
    let input = conversation_of(app, tenant, &branch).await?;
    let id = RunId(Uuid::now_v7());
    let new = NewMessage {
        parent_id: Some(message.id),
        role: MessageRole::Assistant,
        content: Value::Array(Vec::new()),
        run_id: Some(id),
    };
    let answer = add(app, identity, chat, new).await?;
    let start = StartRun {
        id: Some(id),
        mode,
        surface,
        chat: Some((chat.id, answer.id)),
        ..StartRun::new(agent, identity.principal(), input)
    };
    match app.runs().start(app, start).await {
        Ok(run) => Ok(Asked { message, answer: Some(answer), run: Some(run) }),
        Err(error) => {
            let text = format!("The answer did not start: {}", error.message);
            let content = Value::Array(vec![note(&text)]);
            app.store().set_message_content(tenant, chat.id, answer.id, content).await?;
            Err(ServiceError { of_call: false, ..error.into() })
        }
    }
}

async fn add(
    app: &Installation,
    identity: &Identity,
    chat: &Chat,
    new: NewMessage,
) -> Result<Message, ServiceError> {
    let missing = match new.parent_id {
        Some(parent) => ServiceError::not_found("message", &parent.to_string()),
        None => ServiceError::not_found("chat", &chat.id.to_string()),
    };
    app.store().add_message(&identity.tenant, chat.id, new).await?.ok_or(missing)
}

/// Checks the kind and the size of a message.
pub fn check_content(content: &Value) -> Result<(), ServiceError> {
    if !(content.is_string() || content.is_array()) {
        return Err(ServiceError::bad_request("`content` must be a text or an array of content blocks"));
    }
    if content.to_string().len() > MAX_MESSAGE {
        return Err(ServiceError::bad_request("`content` exceeds the limit of 1 MiB"));
    }
    Ok(())
}

/// Makes a title from the first line of a message.
fn title_from(content: &Value) -> Option<String> {
    let text = content_text(content);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(excerpt(line, MADE_TITLE.min(MAX_TITLE)))
}

/// Writes the answer of a run into its chat: under the lease of the node that runs it, as it ends or waits; without one
/// when it has ended.
pub async fn write_answer(
    app: &Installation,
    run: &Run,
    lease: Option<&RunLease>,
    (status, error): (RunStatus, Option<&CallError>),
) -> Result<(), StoreError> {
    // A run inside another one belongs to the answer of that.
    let (Some(chat), Some(message), None) = (run.chat_id, run.message_id, run.parent_call) else {
        return Ok(());
    };
    let tenant = &run.principal.tenant;
    let steps = all_steps(app, tenant, run.id).await?;
    let content = blocks(&steps, status, error);
    // Without a message, the chat was deleted meanwhile.
    app.store().write_answer(tenant, (chat, message), (run.id, lease), content).await.map(drop)
}

/// Writes the answer of a run that has ended without writing it.
pub async fn complete_answer(app: &Installation, tenant: &TenantId, run: RunId) {
    let completed = async {
        match app.store().run_by_id(tenant, run).await? {
            Some(run) if run.status.is_final() => {
                write_answer(app, &run, None, (run.status, run.error.as_ref())).await
            }
            _ => Ok(()),
        }
    };
    if let Err(error) = completed.await {
        tracing::warn!(%run, error = &error as &dyn std::error::Error, "cannot write the answer of a run");
    }
}

/// Writes answers that are empty although their runs have ended: the node was killed between the two.
pub async fn repair_answers(
    app: &Installation,
    tenant: &TenantId,
    chat: &Chat,
    messages: &mut [Message],
) -> Result<(), StoreError> {
    for message in messages {
        let is_empty = message.content.as_array().is_some_and(Vec::is_empty);
        let Some(id) = message.run_id.filter(|_| is_empty) else { continue };
        let (content, has_run) = match app.store().run_by_id(tenant, id).await? {
            Some(run) if run.status.is_final() => {
                (blocks(&all_steps(app, tenant, id).await?, run.status, run.error.as_ref()), true)
            }
            Some(_) => continue,
            // It is created right after its message.
            None if app.now().duration_since(message.created_at).as_secs() < 60 => continue,
            None => (Value::Array(vec![note("The answer did not start.")]), false),
        };
        if content.as_array().is_some_and(|blocks| !blocks.is_empty()) {
            let store = app.store();
            if has_run {
                store.write_answer(tenant, (chat.id, message.id), (id, None), content.clone()).await?;
            } else {
                store.set_message_content(tenant, chat.id, message.id, content.clone()).await?;
            }
            message.content = content;
        }
    }
    Ok(())
}
