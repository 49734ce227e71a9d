//! Removes old approvals.

use haft_core::catalog::StoreError;
use jiff::SignedDuration;

use crate::approvals::StoredApprovals;
use crate::database::delete_batch;
use crate::engine::failed_to;
use crate::time::min_id_at;

/// Old approvals that have been decided or have expired, before an id.
const ENDED_APPROVALS: &str = "SELECT id FROM approvals WHERE id < $1 AND status <> 'waiting'";
/// Old remembered approvals, before an id.
const OLD_GRANTS: &str = "SELECT id FROM approval_grants WHERE id < $1";

impl StoredApprovals {
    /// Removes old decided approvals and old remembered ones.
    pub(crate) async fn reap(&self) -> Result<(), StoreError> {
        let keep = self.db.retention;
        self.reap_by_age("approvals", ENDED_APPROVALS, keep.approval_days)
            .await
            .map_err(failed_to("remove old approvals"))?;
        self.reap_by_age("approval_grants", OLD_GRANTS, keep.grant_days)
            .await
            .map_err(failed_to("remove old remembered approvals"))
    }

    /// Removes rows with an id older than a number of days; 0 keeps them.
    async fn reap_by_age(&self, table: &str, select: &str, days: u32) -> Result<(), sqlx::Error> {
        if days == 0 {
            return Ok(());
        }
        let oldest = min_id_at(self.db.now() - SignedDuration::from_hours(24 * i64::from(days)));
        self.db.delete_batches(&delete_batch(table, select), &[&oldest.to_string()]).await
    }
}
