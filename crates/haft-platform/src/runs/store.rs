//! The store of a run on this node: what is stored is also shown, and the answer in its chat is written before the run
//! counts as ended.

use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::catalog::StoreError;
use haft_core::run::{Run, RunEnd, RunLease, RunStatus, RunStep, RunStore, RunStoreError, RunUsage};

use super::engine::RunningRun;
use crate::answers;
use crate::context::Context;

/// The store of one run.
pub(super) struct AnsweringStore {
    pub(super) app: Arc<Context>,
    pub(super) run: Arc<Run>,
    pub(super) running: Arc<RunningRun>,
}

impl RunStore for AnsweringStore {
    fn append_steps<'a>(
        &'a self,
        lease: &'a RunLease,
        steps: Vec<RunStep>,
        usage: &'a RunUsage,
    ) -> BoxFuture<'a, Result<(), RunStoreError>> {
        Box::pin(async move {
            let last = steps.last().map(|step| step.number);
            self.app.store().runs().append_steps(lease, steps, usage).await?;
            if let Some(last) = last {
                self.running.feed.stored(last);
            }
            Ok(())
        })
    }

    fn release_run<'a>(
        &'a self,
        lease: &'a RunLease,
        end: RunEnd,
        usage: &'a RunUsage,
    ) -> BoxFuture<'a, Result<(), RunStoreError>> {
        Box::pin(async move {
            let ending = match &end {
                RunEnd::Finished { status, error, .. } => Some((*status, error.as_ref())),
                RunEnd::Waiting(_) => Some((RunStatus::AwaitingApproval, None)),
                RunEnd::Released => None,
            };
            if let Some((status, error)) = ending {
                // If the node is killed after this, the next one writes the answer again.
                match answers::write_answer(&self.app, &self.run, Some(lease), (status, error)).await {
                    // The answer belongs to the node that runs it now.
                    Err(StoreError::ClaimLost) => return Err(RunStoreError::LeaseLost),
                    written => written?,
                }
            }
            self.app.store().runs().release_run(lease, end, usage).await
        })
    }
}
