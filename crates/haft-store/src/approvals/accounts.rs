//! Calls that wait until their person has connected an account, and whose person may lose their access.

use haft_core::account::AccountId;
use haft_core::approval::{Approval, ApprovalStatus, NextWait};
use haft_core::audit::AuditDecision;
use haft_core::call::{CallRecord, CallStatus};
use haft_core::catalog::StoreError;
use haft_core::id::ActorId;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use sqlx::{AssertSqlSafe, Row as _};

use super::decisions::subject;
use crate::approvals::StoredApprovals;
use crate::claims::{Claim, holds};
use crate::engine::failed_to;
use crate::ledger::approvals::{parse, to_text, update};
use crate::ledger::queue::store_state;
use crate::ledger::record::CallRow;
use crate::rows;

const READ: &str = "read the calls that wait for an account";
const RESUME: &str = "resume the calls that wait for an account";
const WAIT: &str = "let a call wait again";

impl StoredApprovals {
    /// Puts the calls that wait for an account into the queue; returns their number.
    pub async fn account_connected(&self, account: AccountId) -> Result<usize, StoreError> {
        let tenant = account.tenant.clone();
        self.end_waits(tenant, move |approval| approval.waits_for_account(&account), None).await
    }

    /// Ends the calls that wait for accounts at a provider that was deleted; returns their number.
    pub async fn provider_deleted(&self, tenant: TenantId, provider: &str) -> Result<usize, StoreError> {
        let key = haft_core::approval::ApprovalCause::Account(provider.to_owned());
        let message =
            format!("the provider `{provider}` was deleted while the call waited for an account there");
        let error = CallError::new(ErrorCode::CredentialRequired, message);
        let waits =
            move |approval: &Approval| approval.status == ApprovalStatus::Waiting && approval.cause == key;
        self.end_waits(tenant, waits, Some((ApprovalStatus::Expired, error))).await
    }

    /// Ends the calls of somebody that wait for approval or for an account, when their access ends: they must not run when
    /// it is given back. Returns their number.
    pub async fn requester_lost(&self, tenant: TenantId, actor: ActorId) -> Result<usize, StoreError> {
        let message = "the access of the person who asked for the call ended while the call waited";
        let error = CallError::new(ErrorCode::Cancelled, message);
        let is_own = move |approval: &Approval| {
            let requester = approval.requested_by.actor.as_ref();
            requester.is_some_and(|requester| requester.id == actor)
        };
        self.end_waits(tenant, is_own, Some((ApprovalStatus::Cancelled, error))).await
    }

    /// Ends waits: the calls run, or fail with an error.
    async fn end_waits(
        &self,
        tenant: TenantId,
        is_over: impl Fn(&Approval) -> bool + Send + 'static,
        error: Option<(ApprovalStatus, CallError)>,
    ) -> Result<usize, StoreError> {
        let this = self.clone();
        let work = async move {
            let mut tx = this.db.engine.begin_change().await.map_err(failed_to(RESUME))?;
            // As many as may wait at most.
            let sql = "SELECT record FROM approvals WHERE tenant = $1 AND status = 'waiting'";
            let found = sqlx::query(sql).bind(tenant.as_str()).fetch_all(&mut *tx).await;
            let mut ended = Vec::new();
            for row in found.map_err(failed_to(READ))? {
                let mut approval = parse(row.try_get(0).map_err(failed_to(READ))?)?;
                if !is_over(&approval) {
                    continue;
                }
                let Some(mut call) = this.call_in(&mut tx, &approval).await? else { continue };
                let now = this.db.now();
                match &error {
                    None => {
                        approval.status = ApprovalStatus::Approved;
                        call.status = CallStatus::Pending;
                    }
                    Some((status, error)) => {
                        approval.status = *status;
                        approval.reason = Some(error.message.clone());
                        call.finish(Err(error.clone()), now, 0.0);
                    }
                }
                approval.decided_at = Some(now);
                store_state(&mut tx, &call).await?;
                update(&mut tx, &approval).await?;
                let announced = this.calls.state.approvals.announce(&mut tx, &approval, &call).await;
                announced.map_err(failed_to(RESUME))?;
                ended.push((approval, call));
            }
            tx.commit().await.map_err(failed_to(RESUME))?;
            this.calls.state.queue_changed.notify_one();
            for (approval, call) in &ended {
                this.calls.state.approvals.report(approval, call);
            }
            Ok(ended.len())
        };
        self.db.complete(work).await
    }

    /// Takes a claimed call out of the queue again: it waits for another account or for an approval.
    pub(super) async fn store_next_wait(
        &self,
        mut call: CallRecord,
        next: NextWait,
    ) -> Result<bool, StoreError> {
        call.status = CallStatus::AwaitingApproval;
        let row = CallRow::new(&call)?;
        let mut tx = self.db.engine.begin_change().await.map_err(failed_to(WAIT))?;
        let sql = AssertSqlSafe(format!(
            "UPDATE calls SET status = $1, node = '', record = $2, rule = $3, decision = $4 \
             WHERE tenant = $5 AND id = $6 AND final = 0 AND {} RETURNING cancel_requested",
            holds(7)
        ));
        let claim = Claim::new(&self.db.node, row.fence);
        let query = sqlx::query(sql)
            .bind(row.status.as_str())
            .bind(&*row.record)
            .bind(row.rule.as_deref())
            .bind(row.decision.map(AuditDecision::as_str))
            .bind(row.tenant.as_str())
            .bind(row.id.to_string());
        let held = claim.bind(query).fetch_optional(&mut *tx).await.map_err(failed_to(WAIT))?;
        let Some(held) = held else { return Err(StoreError::ClaimLost) };
        // Nobody looks at the flag of a call that waits. Without a commit, this node still has the call.
        if rows::boolean(&held, "cancel_requested").map_err(failed_to(WAIT))? {
            return Ok(false);
        }
        let sql = "SELECT record FROM approvals WHERE tenant = $1 AND id = $2";
        let found = sqlx::query(sql).bind(row.tenant.as_str()).bind(next.approval.to_string());
        let found = found.fetch_optional(&mut *tx).await.map_err(failed_to(READ))?;
        let Some(found) = found else { return Err(StoreError::not_found("approval", next.approval)) };
        let mut approval = parse(found.try_get(0).map_err(failed_to(READ))?)?;
        approval.status = ApprovalStatus::Waiting;
        approval.decided_at = None;
        approval.cause = next.cause;
        approval.revision = next.revision;
        approval.definition_hash = next.definition_hash;
        approval.expires_at = next.expires_at.unwrap_or(approval.expires_at);
        let sql = "UPDATE approvals SET status = $1, record = $2, subject = $3, expires_at = $4, collected = 0 WHERE id = $5";
        sqlx::query(sql)
            .bind(approval.status.as_str())
            .bind(to_text(&approval)?)
            .bind(subject(&approval))
            .bind(approval.expires_at.as_microsecond())
            .bind(approval.id.to_string())
            .execute(&mut *tx)
            .await
            .map_err(failed_to(WAIT))?;
        let announced = self.calls.state.approvals.announce(&mut tx, &approval, &call).await;
        announced.map_err(failed_to(WAIT))?;
        tx.commit().await.map_err(failed_to(WAIT))?;
        self.calls.state.approvals.report(&approval, &call);
        Ok(true)
    }
}
