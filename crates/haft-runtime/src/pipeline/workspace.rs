//! Calls in a workspace: they take turns, and the state after each is stored.

use std::sync::Arc;

use haft_core::invocation::Invocation;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::workspace::{EnteredWorkspace, WorkspaceAccess, WorkspaceEntry};

use super::call::Call;
use super::{CompletedCall, Pipeline};
use crate::clock;

impl Pipeline {
    /// Checks that there are workspaces, if the call names one.
    pub(super) fn check_workspace(&self, invocation: &Invocation) -> Result<(), CallError> {
        match (&invocation.workspace, &self.workspaces) {
            (Some(name), None) => {
                let message = format!("workspace `{name}` does not exist: this program has no workspaces");
                Err(CallError::new(ErrorCode::NotFound, message))
            }
            _ => Ok(()),
        }
    }

    /// Runs a call in a task of its own: if its client disconnects, it is cancelled, and what it changed is stored.
    pub(super) async fn run_in_workspace(
        self: &Arc<Self>,
        mut call: Call,
    ) -> Result<CompletedCall, CallError> {
        let cancel = call.cancel.take().unwrap_or_else(|| self.call_stops.token(call.principal()));
        let cancel = cancel.child_token();
        call.cancel = Some(cancel.clone());
        let guard = cancel.drop_guard();
        let pipeline = Arc::clone(self);
        let completed = tokio::spawn(async move { pipeline.run_to_record(call).await }).await;
        guard.disarm();
        completed.unwrap_or_else(|error| Err(CallError::internal(format!("the call's task failed: {error}"))))
    }

    /// Enters the workspace, executes the call, and stores the state after it, however the call ended.
    pub(super) async fn execute_in_workspace(&self, call: &mut Call) -> Outcome {
        let Some(entered) = self.enter_workspace(call).await? else { return self.execute(call).await };
        call.context_mut().workspace = Some(Arc::clone(entered.folder()));
        let outcome = self.execute(call).await;
        call.draft.steps.execute_ms = call.draft.step();
        call.workspace_use = Some(Box::new(entered.leave().await));
        call.draft.steps.snapshot_ms = call.draft.step();
        outcome
    }

    /// Waits for the call's turn. The time of the call begins afterwards.
    async fn enter_workspace(&self, call: &mut Call) -> Result<Option<Box<dyn EnteredWorkspace>>, CallError> {
        let Some((workspaces, entry)) = self.workspaces.as_ref().zip(call.workspace_entry()) else {
            return Ok(None);
        };
        let cancel = call.cancel.clone().unwrap_or_else(|| self.call_stops.token(call.principal()));
        let started = clock::now();
        let entered = tokio::select! {
            entered = workspaces.enter(entry) => entered?,
            () = cancel.cancelled() => return Err(self.cancelled(call.entry())),
        };
        call.context_mut().deadline += clock::since(started);
        call.draft.steps.prepare_ms = call.draft.step();
        Ok(Some(entered))
    }
}

impl Call {
    /// Returns how the call enters its workspace; `None` if it needs none, or shares that of the call above it.
    pub(super) fn workspace_entry(&self) -> Option<WorkspaceEntry> {
        let name = self.draft.invocation.workspace.clone()?;
        if self.context().workspace.is_some() || !self.plan.prepared.works_with_files() {
            return None;
        }
        let access =
            if self.plan.spec.execution.is_pure { WorkspaceAccess::Read } else { WorkspaceAccess::Change };
        Some(WorkspaceEntry {
            tenant: self.tenant().clone(),
            name,
            call: self.id(),
            message: self.draft.invocation.message_id.as_deref().and_then(|id| id.parse().ok()),
            caller: Arc::clone(&self.context().principal().name),
            access,
        })
    }
}
