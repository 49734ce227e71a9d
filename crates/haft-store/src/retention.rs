//! Removes what grows with use beyond its retention: events of calls, approvals, states of workspaces, revisions,
//! versions, chats. Each statement removes a bounded number of rows, so that no writer waits long.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use haft_core::agent::AgentDefinition;
use haft_core::artifact::ArtifactDefinition;
use haft_core::catalog::StoreError;
use haft_core::id::ChatId;
use haft_core::name::TenantId;
use haft_core::resource::ResourceKind;
use haft_core::retrieval::PipelineDefinition;
use jiff::SignedDuration;
use sqlx::{AssertSqlSafe, Row as _};

use crate::engine::failed_to;
use crate::resources::StoredKind;
use crate::rows;
use crate::store::Inner;
use crate::time::min_id_at;

/// How many rows one statement removes.
pub(crate) const BATCH: u64 = 500;
/// How many chats are read at once; each is removed with all that belongs to it.
const CHATS_PER_QUERY: u32 = 50;
/// How many ids of calls are looked up at once.
const CALLS_PER_QUERY: u32 = 500;

const CHATS: &str = "remove old chats";

/// Old approvals that have been decided or have expired, before an id.
pub(crate) const ENDED_APPROVALS: &str = "SELECT id FROM approvals WHERE id < $1 AND status <> 'waiting'";
/// Old remembered approvals, before an id.
pub(crate) const OLD_GRANTS: &str = "SELECT id FROM approval_grants WHERE id < $1";
/// Chats that nobody has changed since a time.
pub(crate) const OLD_CHATS: &str =
    "SELECT tenant, id FROM chats WHERE modified_at < $1 ORDER BY modified_at LIMIT $2";
/// Workspaces that have changed since a time.
pub(crate) const CHANGED_WORKSPACES: &str = "SELECT tenant, name, modified_at FROM workspaces \
    WHERE modified_at >= $1 ORDER BY modified_at LIMIT $2";
/// The oldest state of a workspace among a number of the newest.
pub(crate) const OLDEST_KEPT_STATE: &str = "SELECT id FROM workspace_manifests WHERE tenant = $1 AND workspace = $2 \
    ORDER BY id DESC LIMIT 1 OFFSET $3";
/// The next ids of calls that have events.
pub(crate) const CALLS_WITH_EVENTS: &str =
    "SELECT DISTINCT call_id FROM call_events WHERE call_id > $1 ORDER BY call_id LIMIT $2";

/// States of workspaces that are neither active nor that of a message: those are needed as long as their workspace, and
/// as long as their chat.
const UNUSED_STATE: &str = "NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.tenant = m.tenant AND w.name = m.workspace \
    AND w.active_manifest = m.id) AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.manifest_id = m.id)";

/// The end of the next batch of states of all workspaces, after an id and before another.
pub(crate) const NEXT_STATES: &str = "SELECT MAX(id) FROM (SELECT id FROM workspace_manifests \
    WHERE id > $1 AND id < $2 ORDER BY id LIMIT 500) AS batch";

/// Returns the statement that removes unused states after an id, up to another.
pub(crate) fn delete_old_states() -> String {
    format!(
        "DELETE FROM workspace_manifests WHERE id IN \
         (SELECT m.id FROM workspace_manifests m WHERE m.id > $1 AND m.id <= $2 AND {UNUSED_STATE})"
    )
}

/// Returns the query for unused states of one workspace before an id.
pub(crate) fn surplus_states() -> String {
    format!(
        "SELECT m.id FROM workspace_manifests m WHERE m.tenant = $2 AND m.workspace = $3 AND m.id < $1 AND {UNUSED_STATE}"
    )
}

/// Returns the statement that removes a batch of the rows that a query selects by id.
pub(crate) fn delete_batch(table: &str, select: &str) -> String {
    format!("DELETE FROM {table} WHERE id IN ({select} LIMIT {BATCH})")
}

/// Resources of a kind with more revisions than are kept: id, newest number, published number.
pub(crate) const GROWN_RESOURCES: &str = "SELECT id, revision AS newest, COALESCE(published_revision, 0) AS kept \
    FROM resources WHERE revision > $1 AND id > $2 AND kind = $3 ORDER BY id LIMIT $4";
/// The statement that removes the revisions of a resource up to a number, except one.
pub(crate) const DELETE_REVISIONS: &str =
    "DELETE FROM resource_revisions WHERE resource_id = $1 AND number <= $2 AND number <> $3";

impl Inner {
    /// Removes what is beyond its retention.
    pub(crate) async fn reap_growth(self: &Arc<Self>) -> Result<(), StoreError> {
        let keep = self.retention;
        self.reap_events().await.map_err(failed_to("remove old events"))?;
        self.reap_by_age("approvals", ENDED_APPROVALS, keep.approval_days)
            .await
            .map_err(failed_to("remove old approvals"))?;
        self.reap_by_age("approval_grants", OLD_GRANTS, keep.grant_days)
            .await
            .map_err(failed_to("remove old remembered approvals"))?;
        self.reap_old_states().await.map_err(failed_to("remove old states of workspaces"))?;
        self.reap_surplus_states().await.map_err(failed_to("remove old states of workspaces"))?;
        self.reap_revisions::<AgentDefinition>().await?;
        self.reap_revisions::<PipelineDefinition>().await?;
        self.reap_revisions::<ArtifactDefinition>().await?;
        self.reap_chats().await
    }

    /// Removes rows with an id older than a number of days; 0 keeps them.
    async fn reap_by_age(&self, table: &str, select: &str, days: u32) -> Result<(), sqlx::Error> {
        if days == 0 {
            return Ok(());
        }
        let oldest = min_id_at(self.now() - SignedDuration::from_hours(24 * i64::from(days)));
        self.delete_batches(&delete_batch(table, select), &[&oldest.to_string()]).await
    }

    /// Runs a statement that removes a batch of rows until it finds fewer.
    pub(crate) async fn delete_batches(&self, sql: &str, values: &[&str]) -> Result<(), sqlx::Error> {
        loop {
            let mut delete = sqlx::query(AssertSqlSafe(sql));
            for value in values {
                delete = delete.bind(*value);
            }
            if delete.execute(&self.engine.pool).await?.rows_affected() < BATCH {
                return Ok(());
            }
        }
    }

    /// Removes the events of calls that are gone.
    async fn reap_events(&self) -> Result<(), sqlx::Error> {
        let mut last = String::new();
        loop {
            let found = sqlx::query(CALLS_WITH_EVENTS).bind(&last).bind(i64::from(CALLS_PER_QUERY));
            let found = found.fetch_all(&self.engine.pool).await?;
            let ids: Vec<String> = found.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
            let Some(end) = ids.last() else { return Ok(()) };
            last.clone_from(end);
            let is_last = ids.len() < CALLS_PER_QUERY as usize;
            for id in self.missing_calls(ids).await? {
                let delete = sqlx::query("DELETE FROM call_events WHERE call_id = $1").bind(id);
                delete.execute(&self.engine.pool).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Returns those of some ids that no call has. The key of calls begins with the tenant, so each tenant is asked.
    async fn missing_calls(&self, ids: Vec<String>) -> Result<HashSet<String>, sqlx::Error> {
        let mut missing: HashSet<String> = ids.into_iter().collect();
        // After the ids were read: a call of a new tenant is stored before its events.
        let mut tenant = String::new();
        while let Some(next) = self.tenant_after(&tenant).await?
            && !missing.is_empty()
        {
            let numbers: Vec<String> = (2..missing.len() + 2).map(|number| format!("${number}")).collect();
            let sql = format!("SELECT id FROM calls WHERE tenant = $1 AND id IN ({})", numbers.join(", "));
            let mut select = sqlx::query(AssertSqlSafe(sql)).bind(&next);
            for id in &missing {
                select = select.bind(id.clone());
            }
            for row in select.fetch_all(&self.engine.pool).await? {
                missing.remove(row.try_get::<&str, _>(0)?);
            }
            tenant = next;
        }
        Ok(missing)
    }

    /// Removes unused states older than their retention. Many of the old ones may be in use: a batch counts those, too.
    async fn reap_old_states(&self) -> Result<(), sqlx::Error> {
        let days = self.retention.workspace_days;
        if days == 0 {
            return Ok(());
        }
        let end = min_id_at(self.now() - SignedDuration::from_hours(24 * i64::from(days))).to_string();
        let mut last = String::new();
        loop {
            let next = sqlx::query(NEXT_STATES).bind(&last).bind(&end).fetch_one(&self.engine.pool).await?;
            let Some(next) = next.try_get::<Option<String>, _>(0)? else { return Ok(()) };
            let delete = sqlx::query(AssertSqlSafe(delete_old_states())).bind(&last).bind(&next);
            delete.execute(&self.engine.pool).await?;
            last = next;
        }
    }

    /// Removes unused states of the workspaces that changed since the last pass, beyond the number that is kept.
    async fn reap_surplus_states(&self) -> Result<(), sqlx::Error> {
        let Some(skip) = self.retention.workspace_states.checked_sub(1) else { return Ok(()) };
        let mut since = self.workspaces_reaped_to.load(Ordering::Relaxed);
        loop {
            let changed = sqlx::query(CHANGED_WORKSPACES).bind(since).bind(i64::from(CALLS_PER_QUERY));
            let changed = changed.fetch_all(&self.engine.pool).await?;
            let before = since;
            for row in &changed {
                let (tenant, name): (&str, &str) = (row.try_get("tenant")?, row.try_get("name")?);
                let oldest = sqlx::query(OLDEST_KEPT_STATE).bind(tenant).bind(name).bind(i64::from(skip));
                if let Some(oldest) = oldest.fetch_optional(&self.engine.pool).await? {
                    let sql = delete_batch("workspace_manifests", &surplus_states());
                    self.delete_batches(&sql, &[oldest.try_get(0)?, tenant, name]).await?;
                }
                since = row.try_get("modified_at")?;
            }
            self.workspaces_reaped_to.store(since, Ordering::Relaxed);
            if changed.len() < CALLS_PER_QUERY as usize {
                return Ok(());
            }
            // A page of workspaces that changed in the same microsecond.
            since = since.max(before.saturating_add(1));
        }
    }

    /// Removes revisions of a kind beyond the number that is kept. The newest and the published one stay.
    async fn reap_revisions<S: StoredKind>(&self) -> Result<(), StoreError> {
        let action = format!("remove old revisions of {}", S::KIND.plural());
        self.reap_revisions_of(S::KIND, S::kept_revisions(&self.retention)).await.map_err(failed_to(&action))
    }

    async fn reap_revisions_of(&self, kind: ResourceKind, keep: u32) -> Result<(), sqlx::Error> {
        if keep == 0 {
            return Ok(());
        }
        let mut last = String::new();
        loop {
            let grown = sqlx::query(GROWN_RESOURCES).bind(i64::from(keep)).bind(&last).bind(kind.as_str());
            let grown = grown.bind(i64::from(CALLS_PER_QUERY)).fetch_all(&self.engine.pool).await?;
            for row in &grown {
                last = row.try_get("id")?;
                let newest: i64 = row.try_get("newest")?;
                let delete = sqlx::query(DELETE_REVISIONS).bind(&last).bind(newest - i64::from(keep));
                delete.bind(row.try_get::<i64, _>("kept")?).execute(&self.engine.pool).await?;
            }
            if grown.len() < CALLS_PER_QUERY as usize {
                return Ok(());
            }
        }
    }

    /// Removes chats that nobody has changed for long, with all that belongs to them.
    async fn reap_chats(self: &Arc<Self>) -> Result<(), StoreError> {
        let days = self.retention.chat_days;
        if days == 0 {
            return Ok(());
        }
        let oldest = (self.now() - SignedDuration::from_hours(24 * i64::from(days))).as_microsecond();
        loop {
            let found = sqlx::query(OLD_CHATS).bind(oldest).bind(i64::from(CHATS_PER_QUERY));
            let found = found.fetch_all(&self.engine.pool).await.map_err(failed_to(CHATS))?;
            for row in &found {
                let tenant: TenantId = rows::parse_column(row, "tenant").map_err(failed_to(CHATS))?;
                let id: ChatId = rows::parse_column(row, "id").map_err(failed_to(CHATS))?;
                let (_, calls) = self.delete_chat(&tenant, id).await.map_err(failed_to(CHATS))?;
                self.cancel_waiting_calls(&tenant, calls).await;
            }
            if found.len() < CHATS_PER_QUERY as usize {
                return Ok(());
            }
        }
    }
}
