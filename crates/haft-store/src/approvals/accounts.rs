//! Calls that wait until their person has connected an account.

use haft_core::account::AccountId;
use haft_core::approval::{Approval, ApprovalStatus};
use haft_core::call::CallStatus;
use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use sqlx::Row as _;

use crate::approvals::StoredApprovals;
use crate::engine::failed_to;
use crate::ledger::approvals::{parse, update};
use crate::ledger::queue::store_state;

const READ: &str = "read the calls that wait for an account";
const RESUME: &str = "resume the calls that wait for an account";

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
        self.end_waits(tenant, waits, Some(error)).await
    }

    /// Ends waits: the calls run, or fail with an error.
    async fn end_waits(
        &self,
        tenant: TenantId,
        is_over: impl Fn(&Approval) -> bool + Send + 'static,
        error: Option<CallError>,
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
                    Some(error) => {
                        approval.status = ApprovalStatus::Expired;
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
}
