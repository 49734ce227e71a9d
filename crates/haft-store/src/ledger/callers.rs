//! Who called a tool recently.

use haft_core::Timestamp;
use haft_core::catalog::StoreError;
use haft_core::id::{CallId, ToolId};
use haft_core::name::TenantId;
use sqlx::{AssertSqlSafe, Row as _};

use crate::engine::failed_to;
use crate::ledger::Calls;
use crate::rows;
use crate::time;

/// How many of the latest calls of a tool are counted.
pub const COUNTED_CALLS: u32 = 5000;
/// The largest number of callers.
const MAX_CALLERS: u32 = 50;

/// A recent caller of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCaller {
    /// The id of the token, or a name.
    pub principal: String,
    /// The name of the token at the time of the call.
    pub name: String,
    /// The number of its recent calls.
    pub calls: u64,
    /// When it called last.
    pub last_called_at: Timestamp,
}

impl Calls {
    /// Returns who made the latest [`COUNTED_CALLS`] calls of a tool in a tenant, most calls first.
    pub async fn tool_callers(&self, tenant: &TenantId, tool: ToolId) -> Result<Vec<ToolCaller>, StoreError> {
        let action = "read the callers of the tool";
        if let Err(error) = self.drain_journal().await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the latest calls are missing in the usage of a tool");
        }
        // The limit comes before the tenant, so that the cost does not depend on the calls of other tenants.
        let sql = format!(
            "SELECT principal, MAX(caller) AS name, COUNT(*) AS calls, MAX(id) AS last FROM \
             (SELECT tenant, principal, caller, id FROM calls WHERE tool_id = $1 ORDER BY id DESC \
             LIMIT {COUNTED_CALLS}) recent WHERE tenant = $2 GROUP BY principal \
             ORDER BY calls DESC, principal LIMIT {MAX_CALLERS}"
        );
        let found = sqlx::query(AssertSqlSafe(sql))
            .bind(tool.to_string())
            .bind(tenant.as_str())
            .fetch_all(&self.db.engine.pool)
            .await
            .map_err(failed_to(action))?;
        let caller = |row| {
            let last: CallId = rows::parse_column(row, "last")?;
            Ok(ToolCaller {
                principal: row.try_get("principal")?,
                name: row.try_get("name")?,
                calls: u64::try_from(row.try_get::<i64, _>("calls")?).unwrap_or_default(),
                last_called_at: time::of_id(last.0),
            })
        };
        found.iter().map(caller).collect::<Result<_, _>>().map_err(failed_to(action))
    }
}

impl Calls {}
