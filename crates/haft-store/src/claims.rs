//! The one claim of everything that a node works on: queued calls, runs of agents, documents, deliveries to webhooks,
//! workspaces, refresh tokens.
//!
//! A row that can be claimed has two columns: `node` is the process that holds it, empty if nobody does, and `fence` grows
//! with each claim. A claim is valid while its node has a lease ([`crate::database`]); afterwards, its rows are free
//! again, with a higher fence. Each write under a claim checks the fence, so the write of a node that lost its claim fails
//! with [`StoreError::ClaimLost`], and the node drops its result.

use std::sync::Arc;

use haft_core::catalog::StoreError;
use sqlx::any::{AnyArguments, AnyQueryResult, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe, Row as _};

use crate::database::Database;
use crate::engine::failed_to;

/// Queued calls. The fence alone is compared: nobody else claims a call that was interrupted, so the late result of the
/// node that ran it replaces that verdict.
pub(crate) const CALLS: Claimable = Claimable { table: "calls", held: "final = 0 AND status = 'running'" };
/// Runs of agents.
pub(crate) const RUNS: Claimable = Claimable { table: "runs", held: "final = 0 AND status = 'running'" };
/// Documents to ingest.
pub(crate) const DOCUMENTS: Claimable = Claimable { table: "pipeline_documents", held: "state = 'running'" };
/// Deliveries to webhooks.
pub(crate) const DELIVERIES: Claimable =
    Claimable { table: "webhook_deliveries", held: "status = 'pending'" };
/// Workspaces.
pub(crate) const WORKSPACES: Claimable = Claimable { table: "workspaces", held: "node <> ''" };

/// A table whose rows can be claimed.
pub(crate) struct Claimable {
    table: &'static str,
    /// Which rows a node holds.
    held: &'static str,
}

impl Claimable {
    /// Returns the statement that claims a row, with the new fence as its result. `$1` is the node.
    pub(crate) fn claim(&self, also_set: &str, condition: &str) -> AssertSqlSafe<String> {
        let table = self.table;
        AssertSqlSafe(format!(
            "UPDATE {table} SET node = $1, fence = fence + 1{also_set} WHERE {condition} RETURNING fence"
        ))
    }
}

/// The right of a node to write a row until another node claims it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    node: Arc<str>,
    fence: i64,
}

/// Returns the condition that a claim still holds; [`Claim::bind`] binds its two parameters, of which this is the first.
pub(crate) fn holds(first: usize) -> String {
    format!("node = ${first} AND fence = ${}", first + 1)
}

impl Claim {
    pub(crate) fn new(node: &str, fence: i64) -> Self {
        Self { node: node.into(), fence }
    }

    /// Binds the parameters of [`holds`].
    pub(crate) fn bind<'q>(&'q self, query: Query<'q, Any, AnyArguments>) -> Query<'q, Any, AnyArguments> {
        query.bind(&*self.node).bind(self.fence)
    }
}

/// Returns whether a write under a claim was done.
pub(crate) fn written(done: &AnyQueryResult) -> Result<(), StoreError> {
    if done.rows_affected() == 0 { Err(StoreError::ClaimLost) } else { Ok(()) }
}

impl Database {
    /// Returns the claim of this node on a row, from the result of [`Claimable::claim`].
    pub(crate) fn claimed(&self, row: &AnyRow) -> Result<Claim, sqlx::Error> {
        Ok(Claim::new(&self.node, row.try_get("fence")?))
    }

    /// Returns the nodes that hold rows and show no sign of life.
    pub(crate) async fn dead_holders(&self, of: &Claimable, action: &str) -> Result<Vec<String>, StoreError> {
        let Claimable { table, held } = of;
        let sql = format!("SELECT DISTINCT node FROM {table} WHERE {held} AND node <> '' AND node <> $1");
        let found = sqlx::query(AssertSqlSafe(sql)).bind(&self.node).fetch_all(&self.engine.pool).await;
        let mut dead = Vec::new();
        for row in found.map_err(failed_to(action))? {
            let node: String = row.try_get(0).map_err(failed_to(action))?;
            if self.is_dead(&node).await? {
                dead.push(node);
            }
        }
        Ok(dead)
    }

    /// Frees what dead nodes hold; returns how many rows. The fence is raised at once: a node may only seem dead.
    pub(crate) async fn free_claims(
        &self,
        of: &Claimable,
        also_set: &str,
        action: &str,
    ) -> Result<u64, StoreError> {
        let Claimable { table, held } = of;
        let mut freed = 0;
        for node in self.dead_holders(of, action).await? {
            let sql = format!(
                "UPDATE {table} SET node = '', fence = fence + 1{also_set} WHERE {held} AND node = $1"
            );
            let done = sqlx::query(AssertSqlSafe(sql)).bind(&node).execute(&self.engine.pool).await;
            let count = done.map_err(failed_to(action))?.rows_affected();
            if count > 0 {
                tracing::info!(node, table, count, "freed what a dead node held");
            }
            freed += count;
        }
        Ok(freed)
    }
}
