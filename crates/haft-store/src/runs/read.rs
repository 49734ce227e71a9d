//! Reading runs and their steps.

use std::fmt::Write as _;
use std::sync::Arc;

use haft_core::catalog::StoreError;
use haft_core::id::{AgentId, ChatId, RunId};
use haft_core::name::TenantId;
use haft_core::run::{Run, RunStatus, RunStep};
use sqlx::AssertSqlSafe;

use super::row;
use crate::database::Database;
use crate::engine::failed_to;
use crate::ledger::Calls;
use crate::runs::signals::RunSignals;

const READ: &str = "read the run";

/// Which runs are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunQuery {
    /// The tenant.
    pub tenant: TenantId,
    /// The agent.
    pub agent: Option<AgentId>,
    /// The status.
    pub status: Option<RunStatus>,
    /// The chat that they answer in.
    pub chat_id: Option<ChatId>,
    /// The id of the principal that asked for them.
    pub principal: Option<String>,
    /// The run of the agent above.
    pub parent_run: Option<RunId>,
    /// Only runs before this one.
    pub before: Option<RunId>,
    /// The largest number of runs.
    pub limit: u32,
}

impl RunQuery {
    /// Returns a query for the newest runs of a tenant.
    pub fn new(tenant: TenantId) -> Self {
        Self {
            tenant,
            agent: None,
            status: None,
            chat_id: None,
            principal: None,
            parent_run: None,
            before: None,
            limit: 100,
        }
    }

    /// Returns the condition and its values.
    fn condition(&self) -> (String, Vec<String>) {
        let mut condition = "tenant = $1".to_owned();
        let mut values = vec![self.tenant.to_string()];
        for (column, value) in [
            ("agent_id =", self.agent.map(|id| id.to_string())),
            ("status =", self.status.map(|status| status.as_str().to_owned())),
            ("chat_id =", self.chat_id.map(|id| id.to_string())),
            ("principal =", self.principal.clone()),
            ("parent_run =", self.parent_run.map(|id| id.to_string())),
            ("id <", self.before.map(|id| id.to_string())),
        ] {
            if let Some(value) = value {
                values.push(value);
                let _ = write!(condition, " AND {column} ${}", values.len());
            }
        }
        // Few runs are open, and only those are indexed by status.
        if self.status.is_some_and(|status| !status.is_final()) {
            condition.push_str(" AND final = 0");
        }
        (condition, values)
    }
}

/// The runs of agents and their steps.
#[derive(Clone)]
pub struct Runs {
    pub(super) db: Arc<Database>,
    pub(super) calls: Calls,
    /// Signals about runs between the tasks of this process.
    pub(super) signals: Arc<RunSignals>,
}

impl Runs {
    pub(crate) fn new(db: &Arc<Database>, calls: &Calls) -> Self {
        let signals = Arc::new(RunSignals::new(&calls.state.ended));
        Self { db: Arc::clone(db), calls: calls.clone(), signals }
    }
}

impl Runs {
    /// Returns a run.
    pub async fn get(&self, tenant: &TenantId, id: RunId) -> Result<Option<Run>, StoreError> {
        let sql = AssertSqlSafe(format!("{} WHERE tenant = $1 AND id = $2", row::WITH_INPUT));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        found.as_ref().map(row::run_with_input).transpose().map_err(failed_to(READ))
    }

    /// Returns the open run that answers in a chat, without its conversation (`input`).
    pub async fn open_of_chat(&self, tenant: &TenantId, chat: ChatId) -> Result<Option<Run>, StoreError> {
        let sql = AssertSqlSafe(format!(
            "{} WHERE tenant = $1 AND chat_id = $2 AND final = 0 AND is_answer = 1",
            row::WITHOUT_INPUT
        ));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(chat.to_string());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        found.as_ref().map(row::run).transpose().map_err(failed_to(READ))
    }

    /// Returns the steps of a run after a number, in order.
    pub async fn steps(
        &self,
        tenant: &TenantId,
        id: RunId,
        after: u32,
        limit: u32,
    ) -> Result<Vec<RunStep>, StoreError> {
        let sql = "SELECT s.step AS step FROM run_steps s JOIN runs r ON r.id = s.run_id \
                   WHERE r.tenant = $1 AND s.run_id = $2 AND s.number > $3 ORDER BY s.number LIMIT $4";
        let found = sqlx::query(sql)
            .bind(tenant.as_str())
            .bind(id.to_string())
            .bind(i64::from(after))
            .bind(i64::from(limit))
            .fetch_all(&self.db.engine.pool)
            .await
            .map_err(failed_to(READ))?;
        found.iter().map(row::step).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Lists runs, newest first, without their conversations (`input`), which can be large.
    pub async fn list(&self, query: &RunQuery) -> Result<Vec<Run>, StoreError> {
        let (condition, values) = query.condition();
        let sql = format!("{} WHERE {condition} ORDER BY id DESC LIMIT {}", row::WITHOUT_INPUT, query.limit);
        let mut select = sqlx::query(AssertSqlSafe(sql));
        for value in &values {
            select = select.bind(value);
        }
        let found = select.fetch_all(&self.db.engine.pool).await.map_err(failed_to("list the runs"))?;
        found.iter().map(row::run).collect::<Result<_, _>>().map_err(failed_to("list the runs"))
    }
}
