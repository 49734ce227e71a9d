//! The conversation of a branch, as a model reads it.

use haft_agent::model::ModelMessage;
use haft_agent::run::conversation;
use haft_core::catalog::StoreError;
use haft_core::chat::{Message, MessageRole};
use haft_core::name::TenantId;

use crate::answers::{all_steps, content_parts};
use crate::context::Context;

/// Returns the conversation of a branch, root first. An answer of an agent is what its run added, tool results included,
/// and shortened as the run shortened it.
pub(super) async fn conversation_of(
    app: &Context,
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
