//! Decisions that a person makes at an MCP client.

use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::approval::{Approval, ApprovalStatus};
use haft_core::id::ApprovalId;
use haft_core::outcome::CallError;
use haft_core::principal::Principal;
use haft_mcp::server::{ApprovalDesk, ElicitedDecision};
use haft_store::ApprovalDecision;

use crate::approvals::{approve_as, check_approver};
use crate::audit;
use crate::context::Context;
use crate::error::call_error;
use crate::identity::Identity;

/// The approvals of an installation.
pub struct McpApprovals(pub Arc<Context>);

impl ApprovalDesk for McpApprovals {
    fn decidable<'a>(&'a self, principal: &'a Principal, id: ApprovalId) -> BoxFuture<'a, Option<Approval>> {
        Box::pin(async move {
            let app = &self.0;
            let approval = app.store().approvals().get(&principal.tenant, id).await.ok().flatten()?;
            let waits = approval.status == ApprovalStatus::Waiting;
            (waits && check_approver(app, &approval, principal).is_ok()).then_some(approval)
        })
    }

    fn decide<'a>(
        &'a self,
        principal: &'a Principal,
        approval: &'a Approval,
        decision: ElicitedDecision,
    ) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move {
            let app = &self.0;
            let identity = Identity::from_principal(Arc::new(principal.clone()));
            let (target, approval) = (approval.id.to_string(), approval.clone());
            let (worker, decider) = (Arc::clone(app), identity.clone());
            let action = match &decision {
                ElicitedDecision::Approve { .. } => "approval.approve",
                ElicitedDecision::Deny { .. } => "approval.deny",
            };
            let work = async move {
                match decision {
                    ElicitedDecision::Approve { remember } => {
                        approve_as(&worker, &decider, &approval, remember).await
                    }
                    ElicitedDecision::Deny { reason } => {
                        let decision = ApprovalDecision::Deny { reason };
                        worker.store().approvals().decide(approval.id, &decider, decision).await?;
                        Ok(())
                    }
                }
            };
            Box::pin(audit::run_change(app, &identity, (action, &target), work)).await.map_err(call_error)
        })
    }

    fn collect(&self, approval: ApprovalId) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Err(error) = self.0.store().approvals().collect(approval).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "a decision stays to be picked up");
            }
        })
    }
}
