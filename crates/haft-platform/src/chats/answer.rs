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
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_core::run::{Run, RunStatus};
use haft_core::runnable::Mode;
use haft_store::{ChatChange, NewMessage};
use serde_json::Value;
use uuid::Uuid;

use super::conversation::conversation_of;
use super::manage::{show_branch, show_start};
use crate::agents::{require_runnable, visible_agent};
use crate::answers::{content_text, note};
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::runs::{RunEngine, StartRun};

/// The longest message, in bytes of JSON.
const MAX_MESSAGE: usize = 1 << 20;

/// The length of a title that is made from a message, in characters.
const MADE_TITLE: usize = 60;

/// A message to be added to a chat.
pub struct MessageRequest {
    /// What it says: a text, or an array of content blocks.
    pub content: Value,
    /// Who writes it.
    pub role: MessageRole,
    /// Where it is added.
    pub place: InsertPosition,
    /// Whether the agent of the chat answers. Only messages of the role `user` are answered.
    pub answer: bool,
    /// The mode of the run.
    pub mode: Mode,
    /// The interface that it came through: `chat` or `ws`.
    pub surface: &'static str,
}

/// Where a message is added to a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertPosition {
    /// After the last message of the branch that is shown.
    Leaf,
    /// After this message.
    After(MessageId),
    /// At the start of the chat, beside its first message.
    Start,
}

/// A message, and the answer that is being written to it.
pub struct PostedMessage {
    /// The message.
    pub message: Message,
    /// The answer, whose content is empty until its run ends.
    pub answer: Option<Message>,
    /// The run that writes the answer.
    pub run: Option<Run>,
}

/// Stores a message, and starts the run that answers it if the chat has an agent.
pub async fn post_message(
    runs: &Arc<RunEngine>,
    identity: &Identity,
    chat: &Chat,
    request: MessageRequest,
) -> Result<PostedMessage, ServiceError> {
    let MessageRequest { content, role, place, answer, mode, surface } = request;
    let app = runs.context();
    check_content(&content)?;
    let answers = answer && role == MessageRole::User;
    let agent = match &chat.agent {
        Some(slug) if answers => Some(answering_agent(app, identity, slug, mode).await?),
        _ => None,
    };
    require_idle(app, identity, chat).await?;
    let parent_id = match place {
        InsertPosition::Leaf => chat.active_leaf,
        InsertPosition::After(parent) => Some(parent),
        InsertPosition::Start => None,
    };
    // The branch continues from the files at its parent message.
    match parent_id {
        parent if parent == chat.active_leaf => {}
        Some(parent) => show_branch(app, identity, chat, parent).await?,
        None => show_start(app, identity, chat).await?,
    }
    let title = chat.title.is_empty().then(|| title_from(&content)).flatten();
    let new = NewMessage { parent_id, role, content, run_id: None };
    let message = add(app, identity, chat, new).await?;
    if let Some(title) = title.filter(|_| role == MessageRole::User) {
        let change = ChatChange { title: Some(title), ..ChatChange::default() };
        app.store().chats().change(&identity.tenant, chat.id, change).await?;
    }
    let Some(agent) = agent else { return Ok(PostedMessage { message, answer: None, run: None }) };
    answer_message(runs, identity, chat, AnswerRequest { message, agent, mode, surface }).await
}

/// Answers a message of a person again: the answer is a branch beside the earlier ones.
pub async fn answer_again(
    runs: &Arc<RunEngine>,
    identity: &Identity,
    chat: &Chat,
    message: Option<MessageId>,
    mode: Mode,
) -> Result<PostedMessage, ServiceError> {
    let app = runs.context();
    let slug = chat.agent.as_deref().ok_or_else(|| ServiceError::bad_request("the chat has no agent"))?;
    let agent = answering_agent(app, identity, slug, mode).await?;
    require_idle(app, identity, chat).await?;
    let message = question_of(app, identity, chat, message).await?;
    // The files are those that the message was written with.
    show_branch(app, identity, chat, message.id).await?;
    answer_message(runs, identity, chat, AnswerRequest { message, agent, mode, surface: "chat" }).await
}

/// Returns the message of a person that is answered: the given one, or the last one of the branch that is shown. For an
/// answer it is the message before it.
async fn question_of(
    app: &Context,
    identity: &Identity,
    chat: &Chat,
    message: Option<MessageId>,
) -> Result<Message, ServiceError> {
    let nothing = || ServiceError::bad_request("the chat has no message that could be answered");
    let leaf = message.or(chat.active_leaf).ok_or_else(nothing)?;
    let branch = app.store().chats().branch(&identity.tenant, chat.id, leaf).await?;
    if branch.is_empty() {
        return Err(ServiceError::not_found("message", &leaf.to_string()));
    }
    branch.into_iter().rev().find(|message| message.role == MessageRole::User).ok_or_else(nothing)
}

/// Cancels the running answer of a chat; returns its run.
pub async fn stop(runs: &RunEngine, identity: &Identity, chat: &Chat) -> Result<Option<Run>, ServiceError> {
    let Some(run) = running_answer(runs.context(), &identity.tenant, chat).await? else { return Ok(None) };
    runs.cancel(&identity.tenant, run.id).await?;
    Ok(Some(run))
}

/// Returns the run that answers in a chat now, or that waits for people there.
async fn running_answer(app: &Context, tenant: &TenantId, chat: &Chat) -> Result<Option<Run>, StoreError> {
    app.store().runs().open_of_chat(tenant, chat.id).await
}

async fn require_idle(app: &Context, identity: &Identity, chat: &Chat) -> Result<(), ServiceError> {
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
    app: &Context,
    identity: &Identity,
    slug: &str,
    mode: Mode,
) -> Result<Arc<Agent>, ServiceError> {
    let agent = visible_agent(app, identity, slug).await?;
    require_runnable(&agent, mode).map_err(|error| ServiceError { of_call: false, ..error.into() })?;
    Ok(agent)
}

/// A message to answer.
struct AnswerRequest {
    message: Message,
    agent: Arc<Agent>,
    mode: Mode,
    surface: &'static str,
}

async fn answer_message(
    runs: &Arc<RunEngine>,
    identity: &Identity,
    chat: &Chat,
    request: AnswerRequest,
) -> Result<PostedMessage, ServiceError> {
    let AnswerRequest { message, agent, mode, surface } = request;
    let (app, tenant) = (runs.context(), &identity.tenant);
    let branch = app.store().chats().branch(tenant, chat.id, message.id).await?;
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
    match runs.start(start).await {
        Ok(run) => Ok(PostedMessage { message, answer: Some(answer), run: Some(run) }),
        Err(error) => {
            let text = format!("The answer did not start: {}", error.message);
            let content = Value::Array(vec![note(&text)]);
            app.store().chats().set_message_content(tenant, chat.id, answer.id, content).await?;
            Err(ServiceError { of_call: false, ..error.into() })
        }
    }
}

async fn add(
    app: &Context,
    identity: &Identity,
    chat: &Chat,
    new: NewMessage,
) -> Result<Message, ServiceError> {
    let missing = match new.parent_id {
        Some(parent) => ServiceError::not_found("message", &parent.to_string()),
        None => ServiceError::not_found("chat", &chat.id.to_string()),
    };
    app.store().chats().add_message(&identity.tenant, chat.id, new).await?.ok_or(missing)
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
