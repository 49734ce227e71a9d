//! Claiming runs: new ones, those of dead nodes, and those whose calls have ended.

use haft_core::catalog::StoreError;
use haft_core::id::{CallId, RunId};
use haft_core::live::ObjectAction;
use haft_core::run::{Run, RunLease, RunStatus, RunStep};
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use super::row;
use crate::claims::{Claim, RUNS, holds};
use crate::engine::{Kind, failed_to};
use crate::ledger::ended::WaitCheck;
use crate::rows;
use crate::runs::Runs;

const CLAIM: &str = "claim runs";

/// A run that this node may write, with its steps so far.
pub type ClaimedRun = (Run, Vec<RunStep>, RunLease);

/// Runs that are not started, or were cut off.
pub(crate) const PENDING: &str = "SELECT id FROM runs WHERE final = 0 AND status = 'pending'";
/// Runs that wait for calls that have all ended, or are gone. Few calls are unfinished.
pub(crate) const READY: &str = "SELECT id FROM runs WHERE final = 0 AND status = 'awaiting_approval' AND NOT EXISTS \
    (SELECT 1 FROM run_waits w JOIN calls c ON c.tenant = runs.tenant AND c.id = w.call_id \
    WHERE w.run_id = runs.id AND c.final = 0)";

/// Returns the query for runs that waited for some calls and can continue.
pub(crate) fn ready_after(calls: &[CallId]) -> String {
    // Ids are hexadecimal digits.
    let ids: Vec<String> = calls.iter().map(|id| format!("'{id}'")).collect();
    format!("{READY} AND id IN (SELECT run_id FROM run_waits WHERE call_id IN ({}))", ids.join(", "))
}

impl Runs {
    /// Claims one run, if nobody runs it and it does not wait.
    pub async fn claim(&self, id: RunId) -> Result<Option<ClaimedRun>, StoreError> {
        let this = self.clone();
        let work = async move {
            let _permit = this.write_permit().await;
            let mut tx = this.db.engine.begin().await?;
            let mut ids = Vec::new();
            for select in [PENDING, READY] {
                let sql = AssertSqlSafe(format!("{select} AND id = $1 {}", this.db.engine.skip_locked()));
                let found = sqlx::query(sql).bind(id.to_string()).fetch_optional(&mut *tx).await?;
                ids.extend(found.map(|row| row.try_get::<String, _>(0)).transpose()?);
            }
            Ok(this.claim_all(tx, ids).await?.pop())
        };
        self.db.complete_query(CLAIM, work).await
    }

    /// Claims runs, those of all tenants in turn and the oldest first: pending ones, those that a dead node was running, and those whose calls have ended.
    pub async fn claim_next(&self, max: usize) -> Result<Vec<ClaimedRun>, StoreError> {
        let this = self.clone();
        let work = async move {
            let mut selects = vec![PENDING.to_owned()];
            match this.signals.ended.next_check() {
                WaitCheck::All => selects.push(READY.to_owned()),
                WaitCheck::Calls(calls) if calls.is_empty() => {}
                WaitCheck::Calls(calls) => selects.push(ready_after(&calls)),
            }
            // Most queries find nothing; checked first, because that needs no transaction.
            let mut found = false;
            for select in &selects {
                let sql = AssertSqlSafe(format!("{select} LIMIT 1"));
                found |= sqlx::query(sql).fetch_optional(&this.db.engine.pool).await?.is_some();
            }
            if !found || max == 0 {
                return Ok(Vec::new());
            }
            let _permit = this.write_permit().await;
            let mut tx = this.db.engine.begin().await?;
            let mut ids: Vec<String> = Vec::new();
            for select in selects {
                let sql = this.in_turn(&select, max.saturating_sub(ids.len()));
                for row in sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut *tx).await? {
                    ids.push(row.try_get(0)?);
                }
            }
            this.claim_all(tx, ids).await
        };
        self.db.complete_query(CLAIM, work).await
    }

    /// Returns the runs of this node that somebody wants to stop.
    pub async fn cancelled(&self) -> Result<Vec<RunId>, StoreError> {
        let sql = "SELECT id FROM runs WHERE final = 0 AND status = 'running' AND cancel_requested = 1 AND node = $1";
        let found = sqlx::query(sql).bind(&self.db.node).fetch_all(&self.db.engine.pool).await;
        let found = found.map_err(failed_to(CLAIM))?;
        found
            .iter()
            .map(|row| rows::parse_column(row, "id"))
            .collect::<Result<_, _>>()
            .map_err(failed_to(CLAIM))
    }
}

impl Runs {
    /// Returns the query that locks some of the selected runs: the oldest of each tenant first, so that a tenant with many
    /// does not hold up the others. It looks at more than it takes, because another node may have locked the first ones.
    fn in_turn(&self, select: &str, max: usize) -> String {
        let candidates = max.saturating_mul(4);
        // PostgreSQL does not lock the rows of a window function.
        let lock = match self.db.engine.kind {
            Kind::Sqlite => "",
            Kind::Postgres => "FOR UPDATE OF runs SKIP LOCKED",
        };
        format!(
            "SELECT runs.id FROM runs JOIN (SELECT id, ROW_NUMBER() OVER (PARTITION BY tenant ORDER BY id) AS place \
             FROM runs WHERE id IN ({select}) ORDER BY place, id LIMIT {candidates}) turn ON turn.id = runs.id \
             WHERE runs.final = 0 AND runs.status <> 'running' ORDER BY turn.place, runs.id LIMIT {max} {lock}"
        )
    }

    /// Claims runs that this transaction has locked.
    async fn claim_all(
        &self,
        mut tx: Transaction<'static, Any>,
        ids: Vec<String>,
    ) -> Result<Vec<ClaimedRun>, sqlx::Error> {
        let mut claimed = Vec::with_capacity(ids.len());
        for id in ids {
            let sql = RUNS.claim(
                ", status = 'running', started_at = COALESCE(started_at, $2)",
                "id = $3 AND final = 0 AND status <> 'running'",
            );
            let claim = sqlx::query(sql).bind(&self.db.node).bind(self.db.now().as_microsecond()).bind(&id);
            if claim.fetch_optional(&mut *tx).await?.is_none() {
                continue;
            }
            sqlx::query("DELETE FROM run_waits WHERE run_id = $1").bind(&id).execute(&mut *tx).await?;
            claimed.extend(self.read_claimed(&mut tx, &id).await?);
        }
        tx.commit().await?;
        for (run, ..) in &claimed {
            self.db.report_object(row::change(run, ObjectAction::Updated));
        }
        Ok(claimed)
    }

    /// Reads a claimed run with its steps. One that cannot be read ends, so that no node claims it again and again.
    async fn read_claimed(
        &self,
        tx: &mut Transaction<'static, Any>,
        id: &str,
    ) -> Result<Option<ClaimedRun>, sqlx::Error> {
        let sql = AssertSqlSafe(format!("{} WHERE id = $1", row::WITH_INPUT));
        let found = sqlx::query(sql).bind(id).fetch_one(&mut **tx).await?;
        let sql = "SELECT step FROM run_steps WHERE run_id = $1 ORDER BY number";
        let steps = sqlx::query(sql).bind(id).fetch_all(&mut **tx).await?;
        let read = row::run_with_input(&found)
            .and_then(|run| Ok((run, steps.iter().map(row::step).collect::<Result<Vec<_>, _>>()?)));
        match read {
            Ok((run, steps)) => {
                let lease = RunLease { run: run.id, fence: found.try_get("fence")? };
                Ok(Some((run, steps, lease)))
            }
            Err(error) => {
                tracing::error!(run = id, %error, "a run cannot be read");
                let sql = "UPDATE runs SET status = $1, final = 1, node = '', finished_at = $2 WHERE id = $3";
                let end =
                    sqlx::query(sql).bind(RunStatus::Error.as_str()).bind(self.db.now().as_microsecond());
                end.bind(id).execute(&mut **tx).await?;
                Ok(None)
            }
        }
    }

    /// Makes the runs claimable that dead nodes were running, and those of this node whose last write failed.
    pub(crate) async fn recover(&self) -> Result<(), StoreError> {
        self.free_failed_runs().await.map_err(failed_to(CLAIM))?;
        if self.db.free_claims(&RUNS, ", status = 'pending'", CLAIM).await? > 0 {
            self.signals.signal_ready();
        }
        Ok(())
    }

    /// Returns the claim of this node on a run.
    pub(crate) fn claim_of(&self, lease: &RunLease) -> Claim {
        Claim::new(&self.db.node, lease.fence)
    }

    async fn free_failed_runs(&self) -> Result<(), sqlx::Error> {
        let mut failed = self.signals.take_failures();
        while let Some(lease) = failed.pop() {
            let sql = AssertSqlSafe(format!(
                "UPDATE runs SET status = 'pending', node = '', fence = fence + 1 \
                 WHERE id = $1 AND status = 'running' AND {}",
                holds(2)
            ));
            let claim = self.claim_of(&lease);
            let free = claim.bind(sqlx::query(sql).bind(lease.run.to_string()));
            match free.execute(&self.db.engine.pool).await {
                Ok(_) => self.signals.signal_ready(),
                Err(error) => {
                    failed.push(lease);
                    for lease in failed {
                        self.signals.record_failure(lease);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}
