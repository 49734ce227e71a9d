//! Storing new runs.

use haft_core::catalog::StoreError;
use haft_core::limit::LimitName;
use haft_core::live::ObjectAction;
use haft_core::run::{Run, RunLease, RunStatus};

use super::row;
use crate::engine::{failed_to, is_conflict};
use crate::runs::Runs;

const CREATE: &str = "store the run";
/// The surface of responses.
const OPENAI: &str = "openai";

impl Runs {
    /// Stores a run that a node may claim. A second open answer in one chat is a conflict.
    pub async fn create(&self, run: Run) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            this.insert_run(run, RunStatus::Pending).await?;
            this.signals.signal_ready();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Stores a run and claims it in one step. A second open answer in one chat is a conflict.
    pub async fn create_claimed(&self, run: Run) -> Result<(Run, RunLease), StoreError> {
        let this = self.clone();
        let work = async move {
            let run = this.insert_run(run, RunStatus::Running).await?;
            let lease = RunLease { run: run.id, fence: 1 };
            Ok((run, lease))
        };
        self.db.complete(work).await
    }
}

impl Runs {
    async fn insert_run(&self, mut run: Run, status: RunStatus) -> Result<Run, StoreError> {
        let is_claimed = status == RunStatus::Running;
        run.status = status;
        run.started_at = is_claimed.then(|| self.db.now());
        let (record, input) = row::split(&mut run)?;
        let is_answer = run.chat_id.is_some() && run.parent_run.is_none() && run.parent_call.is_none();
        // Only a response of `/v1` can be continued after its run has ended.
        let keeps_input = run.surface == OPENAI && run.chat_id.is_none() && run.parent_call.is_none();
        let _permit = self.write_permit().await;
        let mut tx = self.db.engine.begin().await.map_err(failed_to(CREATE))?;
        let tenant = run.principal.tenant.clone();
        if run.parent_run.is_none() {
            self.db.check_room(&mut tx, &tenant, LimitName::ParallelRuns).await?;
        }
        self.db.check_room(&mut tx, &tenant, LimitName::Runs).await?;
        let quota = self.db.byte_quota(&mut tx, &tenant).await?;
        let sql = "INSERT INTO runs (id, tenant, agent_id, principal, chat_id, is_answer, parent_run, status, final, node, \
                   fence, cancel_requested, record, input, usage, created_at, started_at, keeps_input, bytes) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $10, 0, $11, $12, $13, $14, $15, $16, $17)";
        let inserted = sqlx::query(sql)
            .bind(run.id.to_string())
            .bind(run.principal.tenant.as_str())
            .bind(run.agent_id.to_string())
            .bind(run.principal.id().to_string())
            .bind(run.chat_id.map(|id| id.to_string()))
            .bind(i64::from(is_answer))
            .bind(run.parent_run.map(|id| id.to_string()))
            .bind(status.as_str())
            .bind(if is_claimed { self.db.node.as_str() } else { "" })
            .bind(i64::from(is_claimed))
            .bind(record)
            .bind(&input)
            .bind(row::to_text(&run.usage)?)
            .bind(run.created_at.as_microsecond())
            .bind(run.started_at.map(haft_core::Timestamp::as_microsecond))
            .bind(i64::from(keeps_input))
            .bind(i64::try_from(input.len()).unwrap_or(i64::MAX))
            .execute(&mut *tx)
            .await;
        match inserted {
            Ok(_) => {
                quota.check(&mut tx, &tenant).await?;
                tx.commit().await.map_err(failed_to(CREATE))?;
                self.db.report_object(row::change(&run, ObjectAction::Created));
                Ok(run)
            }
            Err(error) if is_conflict(&error) && is_answer => {
                Err(StoreError::Conflict("an answer is running in this chat; stop it first".to_owned()))
            }
            Err(error) => Err(failed_to(CREATE)(error)),
        }
    }
}
