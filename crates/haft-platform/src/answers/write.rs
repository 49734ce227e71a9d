//! Writing the answer of a run into its chat.

use haft_core::catalog::StoreError;
use haft_core::chat::{Chat, Message};
use haft_core::id::RunId;
use haft_core::name::TenantId;
use haft_core::outcome::CallError;
use haft_core::run::{Run, RunLease, RunStatus};
use serde_json::Value;

use super::blocks::{blocks, note};
use super::steps::all_steps;
use crate::context::Context;

/// Writes the answer of a run into its chat: with the lease of its node when the run ends or waits, or without a lease
/// after it has ended.
pub async fn write_answer(
    app: &Context,
    run: &Run,
    lease: Option<&RunLease>,
    (status, error): (RunStatus, Option<&CallError>),
) -> Result<(), StoreError> {
    // The answer of a nested run is part of the answer of the outer run.
    let (Some(chat), Some(message), None) = (run.chat_id, run.message_id, run.parent_call) else {
        return Ok(());
    };
    let tenant = &run.principal.tenant;
    let steps = all_steps(app, tenant, run.id).await?;
    let content = blocks(&steps, status, error);
    // If the message is missing, the chat has been deleted.
    app.store().chats().write_answer(tenant, (chat, message), (run.id, lease), content).await.map(drop)
}

/// Writes the answer of a run that has ended without writing it.
pub async fn complete_answer(app: &Context, tenant: &TenantId, run: RunId) {
    let completed = async {
        match app.store().runs().get(tenant, run).await? {
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

/// Writes the missing answers of ended runs, whose node was killed before it wrote them.
pub async fn repair_answers(
    app: &Context,
    tenant: &TenantId,
    chat: &Chat,
    messages: &mut [Message],
) -> Result<(), StoreError> {
    for message in messages {
        let is_empty = message.content.as_array().is_some_and(Vec::is_empty);
        let Some(id) = message.run_id.filter(|_| is_empty) else { continue };
        let (content, has_run) = match app.store().runs().get(tenant, id).await? {
            Some(run) if run.status.is_final() => {
                (blocks(&all_steps(app, tenant, id).await?, run.status, run.error.as_ref()), true)
            }
            Some(_) => continue,
            // A run is created right after its message.
            None if app.now().duration_since(message.created_at).as_secs() < 60 => continue,
            None => (Value::Array(vec![note("The answer did not start.")]), false),
        };
        if content.as_array().is_some_and(|blocks| !blocks.is_empty()) {
            let store = app.store();
            if has_run {
                store
                    .chats()
                    .write_answer(tenant, (chat.id, message.id), (id, None), content.clone())
                    .await?;
            } else {
                store.chats().set_message_content(tenant, chat.id, message.id, content.clone()).await?;
            }
            message.content = content;
        }
    }
    Ok(())
}
