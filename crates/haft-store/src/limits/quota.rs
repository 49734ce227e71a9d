//! Quotas of tenants: the number of stored items, and their total bytes.
//!
//! For new data, the oldest calls and ended runs are reduced (see [`ledger::usage`](crate::ledger)). All other data is
//! rejected above its limit. A limit is checked in the transaction of the change, which locks the row of the tenant, so
//! that two nodes cannot exceed it together. A tenant without the limit needs one lookup.

use haft_core::catalog::StoreError;
use haft_core::id::ChatId;
use haft_core::limit::LimitName;
use haft_core::name::TenantId;
use haft_core::resource::ResourceKind;
use haft_core::spec::ToolSpec;
use haft_core::tenant::{TenantLimits, TenantSettings};
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use crate::database::Database;
use crate::engine::failed_to;
use crate::limits::Limits;
use crate::rows;
use crate::stored_bytes::{
    CHAT_BYTES, DEFINITION_BYTES, DOCUMENT_BYTES, ENDED_RUN_BYTES, KEPT_BYTES, RUN_BYTES, WORKSPACE_BYTES,
};

const QUOTA: &str = "check the limits of the tenant";
const TOOLS: &str = "SELECT COUNT(*) FROM tools WHERE tenant = $1 AND gone_at IS NULL";
/// The items that a limit counts.
struct Counted {
    sql: &'static str,
    /// The plural noun.
    things: &'static str,
    /// The hint.
    fix: &'static str,
}

impl Counted {
    /// Returns the items that a limit of [`TenantLimits::stored`] counts.
    fn by(limit: LimitName) -> Option<Self> {
        let (sql, things, fix) = match limit {
            LimitName::Tools => (TOOLS, "tools", "delete a tool first"),
            LimitName::Runs => (
                "SELECT COUNT(*) FROM runs WHERE tenant = $1",
                "runs that answer in chats or have not ended",
                "delete a chat, or wait until a run has ended",
            ),
            LimitName::ParallelRuns => (
                "SELECT COUNT(*) FROM runs WHERE tenant = $1 AND final = 0 AND parent_run IS NULL",
                "runs that have not ended",
                "wait until one has ended, or cancel one",
            ),
            LimitName::Chats => {
                ("SELECT COUNT(*) FROM chats WHERE tenant = $1", "chats", "delete a chat first")
            }
            LimitName::Workspaces => (
                "SELECT COUNT(*) FROM workspaces WHERE tenant = $1 AND name NOT LIKE 'chat:%'",
                "workspaces",
                "delete a workspace first",
            ),
            LimitName::Documents => (
                "SELECT COUNT(*) FROM pipeline_documents WHERE tenant = $1",
                "documents",
                "delete documents first",
            ),
            _ => return None,
        };
        Some(Self { sql, things, fix })
    }
}

/// What a tenant has stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TenantUsage {
    /// The number of tools.
    pub tools: u64,
    /// The number of agents.
    pub agents: u64,
    /// The number of retrieval pipelines.
    pub pipelines: u64,
    /// The number of code artifacts.
    pub artifacts: u64,
    /// The size of all revisions of its definitions.
    pub definition_bytes: u64,
    /// The size of its recorded calls.
    pub call_bytes: u64,
    /// The size of its workspaces.
    pub workspace_bytes: u64,
    /// The size of the documents of its pipelines.
    pub document_bytes: u64,
    /// The size of the messages of its chats.
    pub chat_bytes: u64,
    /// The size of the conversations, steps and outputs of its runs.
    pub run_bytes: u64,
    /// The number of calls in the queue.
    pub queued_calls: u64,
}

impl TenantUsage {
    /// Returns all bytes that `max_stored_bytes` limits.
    pub fn stored_bytes(&self) -> u64 {
        let parts = [self.definition_bytes, self.call_bytes, self.workspace_bytes, self.document_bytes];
        parts.iter().sum::<u64>() + self.chat_bytes + self.run_bytes
    }
}

impl Limits {
    /// Returns what a tenant has stored.
    pub async fn tenant_usage(&self, tenant: &TenantId) -> Result<TenantUsage, StoreError> {
        let queued = "SELECT COUNT(*) FROM calls WHERE tenant = $1 AND status = 'pending'";
        let [agents, pipelines, artifacts] =
            [ResourceKind::Agent, ResourceKind::Pipeline, ResourceKind::CodeArtifact].map(resources);
        let all = [
            TOOLS,
            DEFINITION_BYTES,
            queued,
            WORKSPACE_BYTES,
            DOCUMENT_BYTES,
            CHAT_BYTES,
            RUN_BYTES,
            ENDED_RUN_BYTES,
            &agents,
            &pipelines,
            &artifacts,
        ];
        let mut counts = [0; 11];
        for (count, sql) in counts.iter_mut().zip(all) {
            let sql = AssertSqlSafe(sql.to_owned());
            let row = sqlx::query(sql).bind(tenant.as_str()).fetch_one(&self.db.engine.pool).await;
            let number: i64 = row.and_then(|row| row.try_get(0)).map_err(failed_to(QUOTA))?;
            *count = u64::try_from(number).unwrap_or_default();
        }
        let [
            tools,
            definition_bytes,
            queued_calls,
            workspace_bytes,
            document_bytes,
            chat_bytes,
            run_bytes,
            ended_run_bytes,
            agents,
            pipelines,
            artifacts,
        ] = counts;
        let call_bytes = self.usage.bytes_of(tenant.as_str()).await.map_err(failed_to(QUOTA))?;
        Ok(TenantUsage {
            tools,
            agents,
            pipelines,
            artifacts,
            definition_bytes,
            call_bytes,
            workspace_bytes,
            document_bytes,
            chat_bytes,
            run_bytes: run_bytes + ended_run_bytes,
            queued_calls,
        })
    }

    /// Returns the number of items that a limit of [`TenantLimits::stored`] counts; 0 for other limits.
    pub async fn stored_count(&self, tenant: &TenantId, limit: LimitName) -> Result<u64, StoreError> {
        let Some(Counted { sql, .. }) = Counted::by(limit) else { return Ok(0) };
        let row = sqlx::query(sql).bind(tenant.as_str()).fetch_one(&self.db.engine.pool).await;
        let count: i64 = row.and_then(|row| row.try_get(0)).map_err(failed_to(QUOTA))?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// Rejects new bytes that would exceed `max_stored_bytes`, before they are written.
    pub async fn check_stored_bytes(&self, tenant: &TenantId, new: u64) -> Result<(), StoreError> {
        let mut tx = self.db.engine.begin_snapshot().await.map_err(failed_to(QUOTA))?;
        let limits = limits_of(&mut tx, tenant).await.map_err(failed_to(QUOTA))?;
        let Some(max) = limits.max_stored_bytes else { return Ok(()) };
        let stored = kept_bytes(&mut tx, tenant).await.map_err(failed_to(QUOTA))?;
        if stored.saturating_add(new) <= max { Ok(()) } else { Err(bytes_exceeded(tenant, stored, new, max)) }
    }

    /// Returns how many calls of all tenants wait in the queue, and how many for approval.
    pub async fn waiting_counts(&self) -> Result<(u64, u64), StoreError> {
        let action = "count waiting calls";
        let sql = "SELECT (SELECT COUNT(*) FROM calls WHERE status = 'pending'), \
                   (SELECT COUNT(*) FROM approvals WHERE status = 'waiting')";
        let row = sqlx::query(sql).fetch_one(&self.db.engine.pool).await.map_err(failed_to(action))?;
        let count = |column: usize| -> Result<u64, StoreError> {
            let number: i64 = row.try_get(column).map_err(failed_to(action))?;
            Ok(u64::try_from(number).unwrap_or_default())
        };
        Ok((count(0)?, count(1)?))
    }
}

impl Database {
    /// Reads the limits of a tenant. If the limit that `select` returns is set, other nodes wait until this transaction
    /// has ended before they check theirs.
    async fn locked_limit(
        &self,
        tx: &mut Transaction<'static, Any>,
        tenant: &TenantId,
        select: impl Fn(&TenantLimits) -> Option<u64>,
    ) -> Result<Option<u64>, sqlx::Error> {
        let limits = limits_of(tx, tenant).await?;
        if select(&limits).is_some() {
            let lock = self.engine.row_lock();
            let sql = AssertSqlSafe(format!("SELECT 1 FROM tenants WHERE id = $1 {lock}"));
            sqlx::query(sql).bind(tenant.as_str()).fetch_optional(&mut **tx).await?;
        }
        Ok(select(&limits))
    }

    /// Checks that a tenant may store one more item that a limit of [`TenantLimits::stored`] counts.
    pub(crate) async fn check_room(
        &self,
        tx: &mut Transaction<'static, Any>,
        tenant: &TenantId,
        limit: LimitName,
    ) -> Result<(), StoreError> {
        let Some(counted) = Counted::by(limit) else { return Ok(()) };
        let of_limit = |limits: &TenantLimits| {
            limits.stored().into_iter().find(|(name, _)| *name == limit).and_then(|(_, max)| max)
        };
        let max = self.locked_limit(tx, tenant, of_limit).await.map_err(failed_to(QUOTA))?;
        let Some(max) = max else { return Ok(()) };
        let mut stored = count(tx, counted.sql, tenant).await.map_err(failed_to(QUOTA))?;
        if limit == LimitName::Runs && stored >= max {
            let surplus = stored.saturating_sub(max).saturating_add(1);
            stored -= remove_oldest_runs(tx, tenant, surplus).await.map_err(failed_to(QUOTA))?.min(stored);
        }
        if stored < max { Ok(()) } else { Err(counted.exceeded(tenant, limit, stored, max)) }
    }

    /// Checks that a chat may have some more messages.
    pub(crate) async fn check_message_room(
        &self,
        tx: &mut Transaction<'static, Any>,
        tenant: &TenantId,
        chat: ChatId,
        new: u64,
    ) -> Result<(), StoreError> {
        let of_limit = |limits: &TenantLimits| limits.max_messages_per_chat;
        let max = self.locked_limit(tx, tenant, of_limit).await.map_err(failed_to(QUOTA))?;
        let Some(max) = max else { return Ok(()) };
        let row = sqlx::query("SELECT COUNT(*) FROM messages WHERE chat_id = $1").bind(chat.to_string());
        let stored: i64 =
            row.fetch_one(&mut **tx).await.and_then(|row| row.try_get(0)).map_err(failed_to(QUOTA))?;
        let stored = u64::try_from(stored).unwrap_or_default();
        if stored.saturating_add(new) <= max {
            return Ok(());
        }
        Err(StoreError::LimitReached {
            limit: LimitName::ChatMessages,
            value: max,
            message: format!(
                "the chat has {stored} messages; the limit of the tenant `{tenant}` is {max} \
                 (`limits.max_messages_per_chat`), and a question needs room for its answer; start another chat"
            ),
        })
    }

    /// Begins a change that may store more bytes; [`ByteQuota::check`] ends it.
    pub(crate) async fn byte_quota(
        &self,
        tx: &mut Transaction<'static, Any>,
        tenant: &TenantId,
    ) -> Result<ByteQuota, StoreError> {
        let of_limit = |limits: &TenantLimits| limits.max_stored_bytes;
        let max = self.locked_limit(tx, tenant, of_limit).await.map_err(failed_to(QUOTA))?;
        let Some(max) = max else { return Ok(ByteQuota(None)) };
        let before = kept_bytes(tx, tenant).await.map_err(failed_to(QUOTA))?;
        Ok(ByteQuota(Some((max, before))))
    }
}

/// The byte limit of a tenant, if it has one, and its stored bytes before a change.
pub(crate) struct ByteQuota(Option<(u64, u64)>);

impl ByteQuota {
    /// Rejects a change that exceeds the limit. A change that does not add bytes is never rejected.
    pub(crate) async fn check(
        self,
        tx: &mut Transaction<'static, Any>,
        tenant: &TenantId,
    ) -> Result<(), StoreError> {
        let Some((max, before)) = self.0 else { return Ok(()) };
        let after = kept_bytes(tx, tenant).await.map_err(failed_to(QUOTA))?;
        if after <= max || after <= before {
            return Ok(());
        }
        Err(bytes_exceeded(tenant, before, after - before, max))
    }
}

impl Counted {
    fn exceeded(&self, tenant: &TenantId, limit: LimitName, stored: u64, max: u64) -> StoreError {
        let Self { things, fix, .. } = self;
        let setting = limit.as_str().trim_start_matches("tenant.");
        let message = format!(
            "the tenant `{tenant}` has {stored} {things}; its limit is {max} (`limits.{setting}`); {fix}"
        );
        StoreError::LimitReached { limit, value: max, message }
    }
}

fn bytes_exceeded(tenant: &TenantId, stored: u64, new: u64, max: u64) -> StoreError {
    StoreError::LimitReached {
        limit: LimitName::StoredBytes,
        value: max,
        message: format!(
            "the tenant `{tenant}` stores {stored} bytes and this change adds {new}; its limit is {max} \
             (`limits.max_stored_bytes`); delete files, workspaces, documents, chats or definitions first"
        ),
    }
}

/// Returns the bytes of all data except calls and ended runs, which are reduced instead.
async fn kept_bytes(tx: &mut Transaction<'static, Any>, tenant: &TenantId) -> Result<u64, sqlx::Error> {
    let mut bytes = 0_u64;
    for sql in KEPT_BYTES {
        bytes = bytes.saturating_add(count(tx, sql, tenant).await?);
    }
    Ok(bytes)
}

/// Removes the oldest runs of a tenant that have ended and answer in no chat; returns their number.
async fn remove_oldest_runs(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    surplus: u64,
) -> Result<u64, sqlx::Error> {
    let sql = "DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE tenant = $1 AND final = 1 \
               AND (chat_id IS NULL OR NOT EXISTS (SELECT 1 FROM chats WHERE chats.id = runs.chat_id)) \
               ORDER BY id LIMIT $2)";
    let surplus = i64::try_from(surplus).unwrap_or(i64::MAX);
    let delete = sqlx::query(sql).bind(tenant.as_str()).bind(surplus);
    Ok(delete.execute(&mut **tx).await?.rows_affected())
}

/// Checks that a tenant may store one more tool.
pub(crate) async fn check_tool_room(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    spec: &ToolSpec,
) -> Result<(), StoreError> {
    let limits = limits_of(tx, tenant).await.map_err(failed_to(QUOTA))?;
    if let Some(max) = limits.max_tools {
        let tools = count(tx, TOOLS, tenant).await.map_err(failed_to(QUOTA))?;
        if let Some(counted) = Counted::by(LimitName::Tools).filter(|_| tools >= max) {
            return Err(counted.exceeded(tenant, LimitName::Tools, tools, max));
        }
    }
    check_bytes(tx, tenant, limits, spec).await
}

/// Checks that a tenant may store one more revision of a tool.
pub(crate) async fn check_revision_room(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    spec: &ToolSpec,
) -> Result<(), StoreError> {
    let limits = limits_of(tx, tenant).await.map_err(failed_to(QUOTA))?;
    check_bytes(tx, tenant, limits, spec).await
}

async fn check_bytes(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    limits: TenantLimits,
    spec: &ToolSpec,
) -> Result<(), StoreError> {
    let Some(max) = limits.max_stored_bytes else { return Ok(()) };
    let stored = kept_bytes(tx, tenant).await.map_err(failed_to(QUOTA))?;
    let new = serde_json::to_string(spec).map_or(0, |text| text.len() as u64);
    if stored.saturating_add(new) <= max { Ok(()) } else { Err(bytes_exceeded(tenant, stored, new, max)) }
}

/// Checks that a tenant may have one more resource of a kind. Deleted ones do not count.
pub(crate) async fn check_resource_room(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    kind: ResourceKind,
) -> Result<(), StoreError> {
    let limits = limits_of(tx, tenant).await.map_err(failed_to(QUOTA))?;
    let max = limits.max_of_kind(kind);
    let stored = count(tx, &resources(kind), tenant).await.map_err(failed_to(QUOTA))?;
    if stored < max {
        return Ok(());
    }
    let (kinds, name) = (kind.plural(), kind.limit().as_str().replace("tenant.", "limits."));
    Err(StoreError::LimitReached {
        limit: kind.limit(),
        value: max,
        message: format!(
            "the tenant `{tenant}` has {stored} {kinds}; its limit is {max} (`{name}`); delete {} first",
            kind.with_article()
        ),
    })
}

/// Returns the query for the number of resources of a kind of the tenant `$1`.
fn resources(kind: ResourceKind) -> String {
    format!(
        "SELECT COUNT(*) FROM resources WHERE tenant = $1 AND kind = '{}' AND gone_at IS NULL",
        kind.as_str()
    )
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

async fn count(tx: &mut Transaction<'static, Any>, sql: &str, tenant: &TenantId) -> Result<u64, sqlx::Error> {
    let row = sqlx::query(AssertSqlSafe(sql.to_owned())).bind(tenant.as_str()).fetch_one(&mut **tx).await?;
    Ok(u64::try_from(row.try_get::<i64, _>(0)?).unwrap_or_default())
}
