//! Leaving runs: they end, wait for people, or are left to another node; and cancelling them.

use haft_core::catalog::StoreError;
use haft_core::id::{CallId, RunId};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::run::{Run, RunEnd, RunLease, RunStatus};
use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use super::row;
use super::steps::Written;
use crate::claims::holds;
use crate::engine::failed_to;
use crate::notification::ChangeSet;
use crate::outbox::insert_new;
use crate::rows;
use crate::runs::Runs;

const LEAVE: &str = "store the end of the run";
const CANCEL: &str = "cancel the run";

impl Runs {
    /// Gives up a run whose last write failed: it can be claimed again as soon as the database accepts writes, while the
    /// tasks of [`crate::Store::watch`] run.
    pub fn abandon(&self, lease: RunLease) {
        self.signals.record_failure(lease);
    }

    /// Cancels a run: one that is pending or waits ends at once, and the calls that it waits for are cancelled; one that
    /// runs gets a flag, see [`Runs::cancelled`]. Returns the status afterwards; `None` if there is no such run.
    pub async fn request_cancel(
        &self,
        tenant: &TenantId,
        id: RunId,
    ) -> Result<Option<RunStatus>, StoreError> {
        let tenant = tenant.clone();
        let this = self.clone();
        let work = async move {
            let tenant = &tenant;
            let permit = this.write_permit().await;
            let mut tx = this.db.engine.begin().await.map_err(failed_to(CANCEL))?;
            // Also locks the run.
            let sql = AssertSqlSafe(format!(
                "UPDATE runs SET cancel_requested = 1 - final WHERE tenant = $1 AND id = $2 RETURNING status, {}",
                row::OF_REPORT
            ));
            let found = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
            let Some(found) = found.fetch_optional(&mut *tx).await.map_err(failed_to(CANCEL))? else {
                return Ok(None);
            };
            let status: &str = found.try_get(0).map_err(failed_to(CANCEL))?;
            let status = RunStatus::parse(status).unwrap_or(RunStatus::Error);
            let mut calls = Vec::new();
            let status = match status {
                RunStatus::Pending | RunStatus::AwaitingApproval => {
                    calls = waits(&mut tx, &id.to_string()).await.map_err(failed_to(CANCEL))?;
                    let error = cancelled();
                    let ending = Ending { status: RunStatus::Cancelled, output: None, error: Some(&error) };
                    ending.store(&this, &mut tx, &id.to_string()).await?;
                    RunStatus::Cancelled
                }
                RunStatus::Running => RunStatus::Running,
                RunStatus::Success | RunStatus::Error | RunStatus::Cancelled => return Ok(Some(status)),
            };
            this.announce_runs(&mut tx).await.map_err(failed_to(CANCEL))?;
            tx.commit().await.map_err(failed_to(CANCEL))?;
            drop(permit);
            if status.is_final() {
                this.report_run_status(&found, id, status);
            }
            this.db.outbox.signal();
            this.signals.signal_change();
            this.cancel_waiting_calls(tenant, calls).await;
            Ok(Some(status))
        };
        self.db.complete(work).await
    }
}

/// How a run ends.
struct Ending<'a> {
    status: RunStatus,
    output: Option<&'a Value>,
    error: Option<&'a CallError>,
}

impl Ending<'_> {
    /// Writes the end of a run that this transaction has locked; returns the run as it is then.
    async fn store(
        &self,
        runs: &Runs,
        tx: &mut Transaction<'static, Any>,
        run: &str,
    ) -> Result<Run, StoreError> {
        // The messages of a chat contain the conversation of its answers, and most other runs are never continued.
        let sql = "UPDATE runs SET status = $1, final = 1, node = '', output = $2, error = $3, finished_at = $4, \
                   input = CASE WHEN keeps_input = 0 THEN 'null' ELSE input END, \
                   bytes = bytes + $5 - CASE WHEN keeps_input = 0 THEN OCTET_LENGTH(input) - 4 ELSE 0 END WHERE id = $6";
        let output = self.output.map(row::to_text).transpose()?;
        let output_bytes = output.as_ref().map_or(0, String::len);
        sqlx::query(sql)
            .bind(self.status.as_str())
            .bind(output)
            .bind(self.error.map(row::to_text).transpose()?)
            .bind(runs.db.now().as_microsecond())
            .bind(i64::try_from(output_bytes).unwrap_or(i64::MAX))
            .bind(run)
            .execute(&mut **tx)
            .await
            .map_err(failed_to(LEAVE))?;
        let delete = sqlx::query("DELETE FROM run_waits WHERE run_id = $1").bind(run);
        delete.execute(&mut **tx).await.map_err(failed_to(LEAVE))?;
        let sql = AssertSqlSafe(format!("{} WHERE id = $1", row::WITHOUT_INPUT));
        let found = sqlx::query(sql).bind(run).fetch_one(&mut **tx).await.map_err(failed_to(LEAVE))?;
        let run = row::run(&found).map_err(failed_to(LEAVE))?;
        insert_new(tx, &runs.db.outbox.of_run(&run)).await.map_err(failed_to(LEAVE))?;
        Ok(run)
    }
}

fn cancelled() -> CallError {
    CallError::new(ErrorCode::Cancelled, "the run was cancelled")
}

impl Runs {
    pub(super) async fn release(
        &self,
        lease: &RunLease,
        end: RunEnd,
        usage: &str,
    ) -> Result<Written, StoreError> {
        let permit = self.write_permit().await;
        let run = lease.run.to_string();
        let mut tx = self.db.engine.begin().await.map_err(failed_to(LEAVE))?;
        // Locks the run, if this node still has it.
        let sql = AssertSqlSafe(format!(
            "UPDATE runs SET usage = $1, status = $2, node = '' WHERE id = $3 AND status = 'running' AND {} \
             RETURNING cancel_requested, {}",
            holds(4),
            row::OF_REPORT
        ));
        let status = match &end {
            RunEnd::Finished { status, .. } if status.is_final() => *status,
            RunEnd::Finished { .. } => RunStatus::Error,
            RunEnd::Waiting(_) => RunStatus::AwaitingApproval,
            RunEnd::Released => RunStatus::Pending,
        };
        let claim = self.claim_of(lease);
        let held = claim.bind(sqlx::query(sql).bind(usage).bind(status.as_str()).bind(&run));
        let Some(held) = held.fetch_optional(&mut *tx).await.map_err(failed_to(LEAVE))? else {
            return Ok(Written::LeaseLost);
        };
        let is_cancelled = rows::boolean(&held, "cancel_requested").map_err(failed_to(LEAVE))?;
        let (mut abandoned, mut left_as) = (Vec::new(), status);
        match &end {
            RunEnd::Finished { output, error, .. } => {
                let ending = Ending { status, output: output.as_ref(), error: error.as_ref() };
                ending.store(self, &mut tx, &run).await?;
            }
            // Nobody would look at the flag any more.
            RunEnd::Waiting(_) | RunEnd::Released if is_cancelled => {
                let error = cancelled();
                let ending = Ending { status: RunStatus::Cancelled, output: None, error: Some(&error) };
                ending.store(self, &mut tx, &run).await?;
                left_as = RunStatus::Cancelled;
                if let RunEnd::Waiting(calls) = &end {
                    abandoned.clone_from(calls);
                }
            }
            RunEnd::Waiting(calls) => add_waits(&mut tx, &run, calls).await.map_err(failed_to(LEAVE))?,
            RunEnd::Released => {}
        }
        self.announce_runs(&mut tx).await.map_err(failed_to(LEAVE))?;
        tx.commit().await.map_err(failed_to(LEAVE))?;
        drop(permit);
        self.report_run_status(&held, lease.run, left_as);
        self.db.outbox.signal();
        // The calls may have ended before the run was left.
        if let RunEnd::Waiting(calls) = &end {
            self.signals.ended.add(calls.iter().copied());
        }
        self.signals.signal_change();
        if !abandoned.is_empty() {
            let tenant = rows::parse_column(&held, "tenant").map_err(failed_to(LEAVE))?;
            self.cancel_waiting_calls(&tenant, abandoned).await;
        }
        Ok(Written::Stored)
    }

    /// Cancels calls that no run waits for any more, so that they cannot be approved.
    pub(crate) async fn cancel_waiting_calls(&self, tenant: &TenantId, calls: Vec<CallId>) {
        for call in calls {
            if let Err(error) = self.calls.cancel_call(tenant, call).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(%call, error, "cannot cancel a call of a cancelled run");
            }
        }
    }

    /// Reports the new status of a run, after it is stored.
    fn report_run_status(&self, row: &AnyRow, id: RunId, status: RunStatus) {
        match row::new_status(row, id, status) {
            Ok(change) => self.db.report_object(change),
            Err(error) => tracing::error!(run = %id, %error, "a run cannot be read"),
        }
    }

    async fn announce_runs(&self, tx: &mut Transaction<'static, Any>) -> Result<(), sqlx::Error> {
        self.db.engine.notify(tx, &self.db.node, &ChangeSet::runs()).await
    }
}

async fn add_waits(
    tx: &mut Transaction<'static, Any>,
    run: &str,
    calls: &[CallId],
) -> Result<(), sqlx::Error> {
    for call in calls {
        let sql = "INSERT INTO run_waits (run_id, call_id) VALUES ($1, $2) ON CONFLICT (run_id, call_id) DO NOTHING";
        sqlx::query(sql).bind(run).bind(call.to_string()).execute(&mut **tx).await?;
    }
    Ok(())
}

async fn waits(tx: &mut Transaction<'static, Any>, run: &str) -> Result<Vec<CallId>, sqlx::Error> {
    let sql = "SELECT call_id FROM run_waits WHERE run_id = $1 ORDER BY call_id";
    let found = sqlx::query(sql).bind(run).fetch_all(&mut **tx).await?;
    found.iter().map(|row| rows::parse_column(row, "call_id")).collect()
}
