//! What a tenant stores: the number of its tools, and the bytes of its definitions and calls.

use haft_core::catalog::StoreError;
use haft_core::limit::LimitName;
use haft_core::name::TenantId;
use haft_core::spec::ToolSpec;
use haft_core::tenant::{TenantLimits, TenantSettings};
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use crate::engine::failed_to;
use crate::rows;
use crate::session::Session;
use crate::store::Store;

const QUOTA: &str = "check the limits of the tenant";
const TOOLS: &str = "SELECT COUNT(*) FROM tools WHERE tenant = $1 AND gone_at IS NULL";
/// All revisions count, because all of them are kept.
pub(crate) const DEFINITION_BYTES: &str = "SELECT CAST(COALESCE(SUM(OCTET_LENGTH(r.spec)), 0) AS BIGINT) \
    FROM revisions r JOIN tools t ON t.id = r.tool_id WHERE t.tenant = $1";

/// What a tenant has stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TenantUsage {
    /// The number of tools.
    pub tools: u64,
    /// The size of all revisions of its definitions.
    pub definition_bytes: u64,
    /// The size of its recorded calls.
    pub call_bytes: u64,
    /// The number of calls in the queue.
    pub queued_calls: u64,
}

impl Store {
    /// Returns what a tenant has stored.
    pub async fn tenant_usage(&self, tenant: &TenantId) -> Result<TenantUsage, StoreError> {
        let queued = "SELECT COUNT(*) FROM calls WHERE tenant = $1 AND status = 'pending'";
        let mut counts = [0; 3];
        for (count, sql) in counts.iter_mut().zip([TOOLS, DEFINITION_BYTES, queued]) {
            let row = sqlx::query(sql).bind(tenant.as_str()).fetch_one(&self.inner.engine.pool).await;
            let number: i64 = row.and_then(|row| row.try_get(0)).map_err(failed_to(QUOTA))?;
            *count = u64::try_from(number).unwrap_or_default();
        }
        let [tools, definition_bytes, queued_calls] = counts;
        let call_bytes = self.inner.usage.bytes_of(tenant.as_str()).await.map_err(failed_to(QUOTA))?;
        Ok(TenantUsage { tools, definition_bytes, call_bytes, queued_calls })
    }

    /// Returns how many calls of all tenants wait in the queue, and how many for approval.
    pub async fn waiting_counts(&self) -> Result<(u64, u64), StoreError> {
        let action = "count waiting calls";
        let sql = "SELECT (SELECT COUNT(*) FROM calls WHERE status = 'pending'), \
                   (SELECT COUNT(*) FROM approvals WHERE status = 'waiting')";
        let row = sqlx::query(sql).fetch_one(&self.inner.engine.pool).await.map_err(failed_to(action))?;
        let count = |column: usize| -> Result<u64, StoreError> {
            let number: i64 = row.try_get(column).map_err(failed_to(action))?;
            Ok(u64::try_from(number).unwrap_or_default())
        };
        Ok((count(0)?, count(1)?))
    }
}

impl Session<'_> {
    /// Checks that a tenant may store one more tool.
    pub(crate) async fn check_tool_room(
        &mut self,
        tenant: &TenantId,
        spec: &ToolSpec,
    ) -> Result<(), StoreError> {
        let limits = limits_of(&mut self.tx, tenant).await.map_err(failed_to(QUOTA))?;
        if let Some(max) = limits.max_tools {
            let tools = count(&mut self.tx, TOOLS, tenant).await.map_err(failed_to(QUOTA))?;
            if tools >= max {
                return Err(StoreError::LimitReached {
                    limit: LimitName::Tools,
                    value: max,
                    message: format!(
                        "the tenant `{tenant}` has {tools} tools; its limit is {max} (`limits.max_tools`); delete a tool first"
                    ),
                });
            }
        }
        self.check_bytes(tenant, limits, spec).await
    }

    /// Checks that a tenant may store one more revision.
    pub(crate) async fn check_revision_room(
        &mut self,
        tenant: &TenantId,
        spec: &ToolSpec,
    ) -> Result<(), StoreError> {
        let limits = limits_of(&mut self.tx, tenant).await.map_err(failed_to(QUOTA))?;
        self.check_bytes(tenant, limits, spec).await
    }

    async fn check_bytes(
        &mut self,
        tenant: &TenantId,
        limits: TenantLimits,
        spec: &ToolSpec,
    ) -> Result<(), StoreError> {
        let Some(max) = limits.max_stored_bytes else { return Ok(()) };
        let stored = count(&mut self.tx, DEFINITION_BYTES, tenant).await.map_err(failed_to(QUOTA))?;
        let new = serde_json::to_string(spec).map_or(0, |text| text.len() as u64);
        // Calls make room: their oldest arguments and results are removed.
        if stored.saturating_add(new) <= max {
            return Ok(());
        }
        Err(StoreError::LimitReached {
            limit: LimitName::StoredBytes,
            value: max,
            message: format!(
                "the definitions of the tenant `{tenant}` take {stored} bytes and this one {new}; the limit is {max} \
                 (`limits.max_stored_bytes`); delete tools first"
            ),
        })
    }
}

async fn limits_of(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
) -> Result<TenantLimits, sqlx::Error> {
    let sql = "SELECT settings FROM tenants WHERE id = $1";
    let found = sqlx::query(sql).bind(tenant.as_str()).fetch_optional(&mut **tx).await?;
    match found {
        Some(row) => Ok(rows::json_column::<TenantSettings>(&row, "settings")?.limits),
        None => Ok(TenantLimits::default()),
    }
}

async fn count(
    tx: &mut Transaction<'static, Any>,
    sql: &'static str,
    tenant: &TenantId,
) -> Result<u64, sqlx::Error> {
    let row = sqlx::query(AssertSqlSafe(sql)).bind(tenant.as_str()).fetch_one(&mut **tx).await?;
    Ok(u64::try_from(row.try_get::<i64, _>(0)?).unwrap_or_default())
}
