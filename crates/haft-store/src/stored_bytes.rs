//! The bytes that a tenant stores besides its calls.

use sqlx::Row as _;

use crate::engine::Engine;

/// The bytes of all kept revisions of tools.
pub(crate) const DEFINITION_BYTES: &str = "SELECT CAST(COALESCE(SUM(OCTET_LENGTH(r.spec)), 0) AS BIGINT) \
    FROM revisions r JOIN tools t ON t.id = r.tool_id WHERE t.tenant = $1 AND t.gone_at IS NULL";

/// The bytes of workspaces: the bytes that their states added, or the size of the active state if that is larger.
pub(crate) const WORKSPACE_BYTES: &str = "SELECT CAST(COALESCE(SUM(CASE WHEN added > active THEN added ELSE active END), 0) AS BIGINT) \
    FROM (SELECT COALESCE(m.bytes, 0) AS active, (SELECT COALESCE(SUM(s.added), 0) FROM workspace_manifests s \
    WHERE s.tenant = w.tenant AND s.workspace = w.name) AS added \
    FROM workspaces w LEFT JOIN workspace_manifests m ON m.id = w.active_manifest WHERE w.tenant = $1) AS sizes";
pub(crate) const DOCUMENT_BYTES: &str =
    "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM pipeline_documents WHERE tenant = $1";
/// The bytes of the messages of chats.
pub(crate) const CHAT_BYTES: &str =
    "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM chats WHERE tenant = $1";
/// The bytes of runs that answer in chats or have not ended.
pub(crate) const RUN_BYTES: &str = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM runs \
    WHERE tenant = $1 AND (final = 0 OR chat_id IS NOT NULL)";
/// The bytes of all other runs. The oldest of them are removed when space is needed, as calls are.
pub(crate) const ENDED_RUN_BYTES: &str = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM runs \
    WHERE tenant = $1 AND final = 1 AND chat_id IS NULL";
/// The data that is never removed to free space for other data.
pub(crate) const KEPT_BYTES: [&str; 5] =
    [DEFINITION_BYTES, WORKSPACE_BYTES, DOCUMENT_BYTES, CHAT_BYTES, RUN_BYTES];

/// How many ended runs are removed at once: each may have thousands of steps.
const RUNS_PER_STATEMENT: u32 = 100;
/// The oldest ended runs of a tenant.
const OLDEST_ENDED_RUNS: &str =
    "SELECT id, bytes FROM runs WHERE tenant = $1 AND final = 1 AND chat_id IS NULL ORDER BY id LIMIT $2";

/// Removes the oldest ended runs of a tenant that answer in no chat, until enough bytes are free; returns how many.
pub(crate) async fn remove_ended_runs(engine: &Engine, tenant: &str, bytes: u64) -> Result<u64, sqlx::Error> {
    let mut freed = 0_u64;
    while freed < bytes {
        let oldest = sqlx::query(OLDEST_ENDED_RUNS).bind(tenant).bind(i64::from(RUNS_PER_STATEMENT));
        let oldest = oldest.fetch_all(&engine.pool).await?;
        let mut last = None;
        for row in &oldest {
            if freed >= bytes {
                break;
            }
            freed = freed.saturating_add(u64::try_from(row.try_get::<i64, _>(1)?).unwrap_or_default());
            last = Some(row.try_get::<String, _>(0)?);
        }
        let sql = "DELETE FROM runs WHERE tenant = $1 AND final = 1 AND chat_id IS NULL AND id <= $2";
        sqlx::query(sql).bind(tenant).bind(last).execute(&engine.pool).await?;
        if oldest.len() < RUNS_PER_STATEMENT as usize {
            break;
        }
    }
    if freed > 0 {
        tracing::info!(
            tenant,
            freed,
            "removed the oldest runs: the tenant exceeds `limits.max_stored_bytes`"
        );
    }
    Ok(freed)
}
