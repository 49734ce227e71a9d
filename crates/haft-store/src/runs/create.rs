//! Storing new runs.

use haft_core::catalog::StoreError;
use haft_core::live::ObjectAction;
use haft_core::run::{Run, RunLease, RunStatus};

use super::row;
use crate::engine::{failed_to, is_conflict};
use crate::store::{Inner, Store};

const CREATE: &str = "store the run";

impl Store {
    /// Stores a run that a node may claim. A second open answer in one chat is a conflict.
    pub async fn create_run(&self, run: Run) -> Result<(), StoreError> {
        self.run(|inner| async move {
            inner.insert_run(run, RunStatus::Pending).await?;
            inner.runs.signal_ready();
            Ok(())
        })
        .await
    }

    /// Stores a run and claims it in one step. A second open answer in one chat is a conflict.
    pub async fn create_claimed_run(&self, run: Run) -> Result<(Run, RunLease), StoreError> {
        self.run(|inner| async move {
            let run = inner.insert_run(run, RunStatus::Running).await?;
            let lease = RunLease { run: run.id, fence: 1 };
            Ok((run, lease))
        })
        .await
    }
}

impl Inner {
    async fn insert_run(&self, mut run: Run, status: RunStatus) -> Result<Run, StoreError> {
        let is_claimed = status == RunStatus::Running;
        run.status = status;
        run.started_at = is_claimed.then(|| self.now());
        let (record, input) = row::split(&mut run)?;
        let is_answer = run.chat_id.is_some() && run.parent_run.is_none() && run.parent_call.is_none();
        let _turn = self.run_turn().await;
        let sql = "INSERT INTO runs (id, tenant, agent_id, principal, chat_id, is_answer, parent_run, status, final, node, \
                   fence, cancel_requested, record, input, usage, created_at, started_at) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $10, 0, $11, $12, $13, $14, $15)";
        let inserted = sqlx::query(sql)
            .bind(run.id.to_string())
            .bind(run.principal.tenant.as_str())
            .bind(run.agent_id.to_string())
            .bind(run.principal.id().to_string())
            .bind(run.chat_id.map(|id| id.to_string()))
            .bind(i64::from(is_answer))
            .bind(run.parent_run.map(|id| id.to_string()))
            .bind(status.as_str())
            .bind(if is_claimed { self.node.as_str() } else { "" })
            .bind(i64::from(is_claimed))
            .bind(record)
            .bind(input)
            .bind(row::to_text(&run.usage)?)
            .bind(run.created_at.as_microsecond())
            .bind(run.started_at.map(haft_core::Timestamp::as_microsecond))
            .execute(&self.engine.pool)
            .await;
        match inserted {
            Ok(_) => {
                self.report_object(row::change(&run, ObjectAction::Created));
                Ok(run)
            }
            Err(error) if is_conflict(&error) && is_answer => {
                Err(StoreError::Conflict("an answer is running in this chat; stop it first".to_owned()))
            }
            Err(error) => Err(failed_to(CREATE)(error)),
        }
    }
}
