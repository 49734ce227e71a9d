//! Calls that tools make.

use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::executor::CallContext;
use haft_core::invocation::{Invoker, Lineage, NestedCall};
use haft_core::outcome::{CallError, Outcome};

use super::{CallOptions, Pipeline, Request};
use crate::clock;

impl Invoker for Pipeline {
    fn invoke(self: Arc<Self>, parent: &CallContext, call: NestedCall) -> BoxFuture<'_, Outcome> {
        let NestedCall { tool, args, surface, request_id } = call;
        let request = Request {
            mode: parent.mode,
            timeout: Some(parent.deadline.saturating_duration_since(clock::now())),
            events: parent.events.clone(),
            lineage: Lineage::below(parent),
            workspace: parent.workspace.clone(),
            options: Some(Box::new(CallOptions {
                request_id,
                session: parent.session.clone(),
                workspace: parent.workspace_name.clone(),
                ..CallOptions::default()
            })),
            ..Request::new(Arc::clone(parent.principal()), surface, args)
        };
        Box::pin(async move {
            let completed = self.call(tool.into(), request).await?;
            if let Some(whole) = completed.whole {
                return Ok(Arc::unwrap_or_clone(whole));
            }
            completed
                .record
                .outcome()
                .unwrap_or_else(|| Err(CallError::internal("the nested call has not ended")))
        })
    }
}
