//! The approval that a call waits for: its row, and the notification of changes.

use std::sync::Arc;

use haft_core::approval::{Approval, ApprovalStatus};
use haft_core::call::CallRecord;
use haft_core::catalog::StoreError;
use haft_core::id::CallId;
use sqlx::{Any, Row as _, Transaction};
use tokio::sync::watch;

use super::ended::EndedCalls;
use crate::database::{ChangeSignal, Database};
use crate::engine::failed_to;
use crate::notification::ChangeSet;
use crate::outbox::insert_new;

const READ: &str = "read approvals";
const DECIDE: &str = "store the decision";

/// Changes of the approvals that calls wait for.
#[derive(Clone)]
pub(crate) struct CallApprovals {
    db: Arc<Database>,
    ended: Arc<EndedCalls>,
    /// Changes whenever approvals may have changed.
    signal: Arc<ChangeSignal>,
}

impl CallApprovals {
    pub(crate) fn new(db: &Arc<Database>, ended: &Arc<EndedCalls>) -> Self {
        Self { db: Arc::clone(db), ended: Arc::clone(ended), signal: Arc::default() }
    }

    /// Returns a number that changes whenever approvals may have changed.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.signal.subscribe()
    }

    /// Signals that approvals may have changed.
    pub(crate) fn signal_change(&self) {
        self.signal.send();
    }

    /// Marks the approval of a cancelled call, if it waits for one.
    pub(super) async fn close(
        &self,
        tx: &mut Transaction<'static, Any>,
        call: CallId,
    ) -> Result<Option<Approval>, StoreError> {
        let sql = "SELECT record FROM approvals WHERE call_id = $1 AND status = 'waiting'";
        let found = sqlx::query(sql).bind(call.to_string()).fetch_optional(&mut **tx).await;
        let Some(found) = found.map_err(failed_to(DECIDE))? else { return Ok(None) };
        let mut approval = parse(found.try_get(0).map_err(failed_to(DECIDE))?)?;
        approval.status = ApprovalStatus::Cancelled;
        update(tx, &approval).await?;
        Ok(Some(approval))
    }

    /// Adds the webhook deliveries for the new state of an approval and its call, and notifies other nodes.
    pub(crate) async fn announce(
        &self,
        tx: &mut Transaction<'static, Any>,
        approval: &Approval,
        call: &CallRecord,
    ) -> Result<(), sqlx::Error> {
        insert_new(tx, &self.db.outbox.of_approval(approval, self.db.now())).await?;
        insert_new(tx, &self.db.outbox.of_call(call)).await?;
        self.db.engine.notify(tx, &self.db.node, &ChangeSet::approvals([approval.id])).await
    }

    /// Reports the new state of an approval and its call, after it is stored.
    pub(crate) fn report(&self, approval: &Approval, call: &CallRecord) {
        self.signal_change();
        self.ended.add([call.id()]);
        self.db.outbox.signal();
        if self.db.sink.has_followers() {
            self.db.sink.approval_changed(approval);
            self.db.sink.call_changed(call);
        }
    }
}

/// Stores the new state of an approval.
pub(crate) async fn update(
    tx: &mut Transaction<'static, Any>,
    approval: &Approval,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE approvals SET status = $1, record = $2 WHERE id = $3")
        .bind(approval.status.as_str())
        .bind(to_text(approval)?)
        .bind(approval.id.to_string())
        .execute(&mut **tx)
        .await
        .map_err(failed_to(DECIDE))?;
    Ok(())
}

/// Reads an approval.
pub(crate) fn parse(text: &str) -> Result<Approval, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::unavailable(READ, error))
}

/// Writes an approval.
pub(crate) fn to_text(approval: &Approval) -> Result<String, StoreError> {
    serde_json::to_string(approval).map_err(|error| StoreError::unavailable(DECIDE, error))
}
