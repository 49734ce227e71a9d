//! The conversation of a branch, as a model reads it.

use haft_agent::model::ModelMessage;
use haft_agent::run::conversation;
use haft_core::catalog::StoreError;
use haft_core::chat::{Message, MessageRole};
use haft_core::id::RunId;
use haft_core::name::TenantId;
use haft_core::run::RunStep;

use super::content::content_parts;
use crate::installation::Installation;

/// How many steps are read at once.
const PAGE: u32 = 500;

/// Returns the conversation of a branch, root first. An answer of an agent is what its run added, tool results included,
/// and shortened as the run shortened it.
pub(super) async fn conversation_of(
    app: &Installation,
    tenant: &TenantId,
    branch: &[Message],
) -> Result<Vec<ModelMessage>, StoreError> {
    let mut messages = Vec::new();
    for message in branch {
        match (message.role, message.run_id) {
            (MessageRole::Assistant, Some(run)) => {
                let steps = all_steps(app, tenant, run).await?;
                if steps.is_empty() {
                    // Its run was deleted: the text is what is left.
                    push(&mut messages, message);
                } else {
                    messages = conversation(messages, &steps);
                }
            }
            _ => push(&mut messages, message),
        }
    }
    Ok(messages)
}

fn push(messages: &mut Vec<ModelMessage>, message: &Message) {
    let role = match message.role {
        // There is no call that it could be the result of.
        MessageRole::Tool => MessageRole::System,
        role => role,
    };
    let content = content_parts(&message.content);
    if !content.is_empty() {
        messages.push(ModelMessage { role, content });
    }
}

/// Returns all steps of a run.
pub(super) async fn all_steps(
    app: &Installation,
    tenant: &TenantId,
    run: RunId,
) -> Result<Vec<RunStep>, StoreError> {
    let mut steps: Vec<RunStep> = Vec::new();
    loop {
        let after = steps.last().map_or(0, |step| step.number);
        let page = app.store().run_steps(tenant, run, after, PAGE).await?;
        let is_last = u32::try_from(page.len()).is_ok_and(|count| count < PAGE);
        steps.extend(page);
        if is_last {
            return Ok(steps);
        }
    }
}
