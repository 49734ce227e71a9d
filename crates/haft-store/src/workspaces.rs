//! Workspaces and their states. The files are elsewhere: a manifest names the place of its root folder.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use haft_core::Timestamp;
use haft_core::catalog::StoreError;
use haft_core::id::{ManifestId, MessageId};
use haft_core::limit::LimitName;
use haft_core::name::TenantId;
use haft_core::workspace::{ManifestInfo, ManifestSource, WorkspaceName};
use jiff::SignedDuration;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use crate::claims::{Claim, WORKSPACES, holds};
use crate::database::Database;
use crate::database::delete_batch;
use crate::engine::{Kind, failed_to};
use crate::rows;
use crate::time::{self, min_id_at};

/// How many workspaces one query reads.
const WORKSPACES_PER_QUERY: u32 = 500;
/// Workspaces that have changed since a time.
pub(crate) const CHANGED_WORKSPACES: &str = "SELECT tenant, name, modified_at FROM workspaces \
    WHERE modified_at >= $1 ORDER BY modified_at LIMIT $2";
/// The oldest state of a workspace among a number of the newest.
pub(crate) const OLDEST_KEPT_STATE: &str = "SELECT id FROM workspace_manifests WHERE tenant = $1 AND workspace = $2 \
    ORDER BY id DESC LIMIT 1 OFFSET $3";
/// States of workspaces that are neither the active state nor the state of a message: those are kept with their workspace
/// and their chat.
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

const READ: &str = "read the workspace";
const CHANGE: &str = "change the workspace";
const CLAIM: &str = "wait for the workspace";

const MANIFEST: &str = "SELECT id, parent_id, root, files, bytes, source, source_ref, created_by, created_at \
                        FROM workspace_manifests";

/// The roots of states after an id.
pub(crate) const ROOTS: &str = "SELECT id, root FROM workspace_manifests WHERE id > $1 ORDER BY id LIMIT $2";
/// How many roots are read at once.
const ROOTS_PER_QUERY: u32 = 1000;

/// A stored state, with the place of its files.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredManifest {
    /// What is shown of it.
    pub info: ManifestInfo,
    /// Where its root folder is stored; opaque here.
    pub root: String,
}

/// A workspace in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkspaceInfo {
    /// Its name.
    pub name: WorkspaceName,
    /// Its active state.
    pub active: Option<ManifestId>,
    /// The number of files in that state.
    pub files: u64,
    /// The size of all files together.
    pub bytes: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its active state last changed.
    pub modified_at: Timestamp,
}

/// A new state of a workspace.
#[derive(Debug, Clone)]
pub struct NewManifest {
    /// Where its root folder is stored.
    pub root: String,
    /// The number of files.
    pub files: u64,
    /// The size of all files together.
    pub bytes: u64,
    /// The number of stored bytes that no earlier state has.
    pub added: u64,
    /// Its cause.
    pub source: ManifestSource,
    /// The call, message or manifest that it comes from.
    pub source_ref: Option<String>,
    /// Who made it.
    pub created_by: String,
    /// The message of a chat whose state it is.
    pub message: Option<MessageId>,
}

/// The workspaces and their states.
#[derive(Clone)]
pub struct Workspaces {
    db: Arc<Database>,
    /// Workspaces that changed before this time have no surplus states.
    reaped_to: Arc<AtomicI64>,
}

impl Workspaces {
    pub(crate) fn new(db: &Arc<Database>) -> Self {
        Self { db: Arc::clone(db), reaped_to: Arc::default() }
    }
}

impl Workspaces {
    /// Returns whether other nodes may use the same workspaces, so that the right to change one is in the database.
    pub fn is_shared(&self) -> bool {
        self.db.engine.kind == Kind::Postgres
    }

    /// Creates a workspace unless it exists.
    pub async fn create(&self, tenant: &TenantId, name: &WorkspaceName) -> Result<(), StoreError> {
        let now = self.db.now().as_microsecond();
        let mut tx = self.db.engine.begin().await.map_err(failed_to(CHANGE))?;
        if let WorkspaceName::Named(_) = name {
            let sql = "SELECT 1 FROM workspaces WHERE tenant = $1 AND name = $2";
            let found = sqlx::query(sql).bind(tenant.as_str()).bind(name.to_string());
            if found.fetch_optional(&mut *tx).await.map_err(failed_to(CHANGE))?.is_some() {
                return Ok(());
            }
            self.db.check_room(&mut tx, tenant, LimitName::Workspaces).await?;
        }
        // A workspace with the name of a deleted one does not begin with the fences of that.
        let sql = "INSERT INTO workspaces (tenant, name, fence, created_at, modified_at) VALUES ($1, $2, $3, $3, $3) \
                   ON CONFLICT (tenant, name) DO NOTHING";
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(name.to_string()).bind(now);
        query.execute(&mut *tx).await.map_err(failed_to(CHANGE))?;
        tx.commit().await.map_err(failed_to(CHANGE))
    }

    /// Returns the active state of a workspace: `None` if the workspace does not exist, `Some(None)` if it is new.
    pub async fn active_manifest(
        &self,
        tenant: &TenantId,
        name: &WorkspaceName,
    ) -> Result<Option<Option<StoredManifest>>, StoreError> {
        let sql = "SELECT active_manifest FROM workspaces WHERE tenant = $1 AND name = $2";
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(name.to_string());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        let Some(row) = found else { return Ok(None) };
        let active: Option<String> = row.try_get(0).map_err(failed_to(READ))?;
        match active.and_then(|id| id.parse().ok()) {
            None => Ok(Some(None)),
            Some(id) => self.manifest(tenant, name, id).await.map(Some),
        }
    }

    /// Returns a state of a workspace.
    pub async fn manifest(
        &self,
        tenant: &TenantId,
        name: &WorkspaceName,
        id: ManifestId,
    ) -> Result<Option<StoredManifest>, StoreError> {
        let sql = AssertSqlSafe(format!("{MANIFEST} WHERE tenant = $1 AND workspace = $2 AND id = $3"));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(name.to_string()).bind(id.to_string());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        found.as_ref().map(manifest).transpose().map_err(failed_to(READ))
    }

    /// Lists the states of a workspace, newest first.
    pub async fn manifests(
        &self,
        tenant: &TenantId,
        name: &WorkspaceName,
        before: Option<ManifestId>,
        limit: u32,
    ) -> Result<Vec<StoredManifest>, StoreError> {
        let sql = AssertSqlSafe(format!(
            "{MANIFEST} WHERE tenant = $1 AND workspace = $2 AND id < $3 ORDER BY id DESC LIMIT $4"
        ));
        let found = sqlx::query(sql)
            .bind(tenant.as_str())
            .bind(name.to_string())
            .bind(before.map_or_else(|| "g".to_owned(), |id| id.to_string()))
            .bind(i64::from(limit))
            .fetch_all(&self.db.engine.pool)
            .await
            .map_err(failed_to(READ))?;
        found.iter().map(manifest).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Lists the workspaces of a tenant by name, without those of chats.
    pub async fn list(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<WorkspaceInfo>, StoreError> {
        let sql = "SELECT w.name AS name, w.active_manifest AS active_manifest, w.created_at AS created_at, \
                   w.modified_at AS modified_at, COALESCE(m.files, 0) AS files, COALESCE(m.bytes, 0) AS bytes \
                   FROM workspaces w LEFT JOIN workspace_manifests m ON m.id = w.active_manifest \
                   WHERE w.tenant = $1 AND w.name > $2 AND w.name NOT LIKE 'chat:%' ORDER BY w.name LIMIT $3";
        let found = sqlx::query(sql)
            .bind(tenant.as_str())
            .bind(after.unwrap_or_default())
            .bind(i64::from(limit))
            .fetch_all(&self.db.engine.pool)
            .await
            .map_err(failed_to(READ))?;
        found.iter().map(workspace).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Returns the places of all states of all workspaces, for the collection of what nothing refers to.
    pub async fn manifest_roots(&self) -> Result<Vec<String>, StoreError> {
        let (mut roots, mut last) = (BTreeSet::new(), String::new());
        loop {
            let query = sqlx::query(ROOTS).bind(&last).bind(i64::from(ROOTS_PER_QUERY));
            let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(READ))?;
            for row in &found {
                last = row.try_get("id").map_err(failed_to(READ))?;
                // Many states are those of an earlier one.
                roots.insert(row.try_get("root").map_err(failed_to(READ))?);
            }
            if found.len() < ROOTS_PER_QUERY as usize {
                return Ok(roots.into_iter().collect());
            }
        }
    }

    /// Stores a new state and makes it the active one. [`StoreError::ClaimLost`] if another node has claimed the workspace
    /// since, or it was deleted, and [`StoreError::LimitReached`] if the tenant would store too much: then nothing is stored.
    pub async fn add_manifest(
        &self,
        tenant: &TenantId,
        name: &WorkspaceName,
        claim: Option<&Claim>,
        new: NewManifest,
    ) -> Result<ManifestInfo, StoreError> {
        let (tenant, name, claim) = (tenant.clone(), name.clone(), claim.cloned());
        let this = self.clone();
        let work = async move {
            let mut tx = this.db.engine.begin().await.map_err(failed_to(CHANGE))?;
            let quota = this.db.byte_quota(&mut tx, &tenant).await?;
            let added = this.insert_manifest(&mut tx, &tenant, (&name, claim.as_ref()), new).await;
            let added = added.map_err(failed_to(CHANGE))?.ok_or(StoreError::ClaimLost)?;
            quota.check(&mut tx, &tenant).await?;
            tx.commit().await.map_err(failed_to(CHANGE))?;
            Ok(added)
        };
        self.db.complete(work).await
    }

    /// Claims a workspace, unless a living node holds it.
    pub async fn claim(&self, tenant: &TenantId, name: &WorkspaceName) -> Result<Option<Claim>, StoreError> {
        let inner = &self.db;
        let sql = "SELECT node, fence FROM workspaces WHERE tenant = $1 AND name = $2";
        let found = sqlx::query(sql).bind(tenant.as_str()).bind(name.to_string());
        let found = found.fetch_optional(&inner.engine.pool).await.map_err(failed_to(CLAIM))?;
        let Some(row) = found else { return Err(StoreError::not_found("workspace", name)) };
        let holder: String = row.try_get(0).map_err(failed_to(CLAIM))?;
        let fence: i64 = row.try_get(1).map_err(failed_to(CLAIM))?;
        if !holder.is_empty() && holder != inner.node && !inner.is_dead(&holder).await? {
            return Ok(None);
        }
        // Within a node, calls take turns before they get here: its own claim is left from a call that was abandoned.
        let sql = WORKSPACES.claim("", "tenant = $2 AND name = $3 AND fence = $4");
        let taken = sqlx::query(sql)
            .bind(&inner.node)
            .bind(tenant.as_str())
            .bind(name.to_string())
            .bind(fence)
            .fetch_optional(&inner.engine.pool)
            .await
            .map_err(failed_to(CLAIM))?;
        taken.map(|row| inner.claimed(&row)).transpose().map_err(failed_to(CLAIM))
    }

    /// Gives up the claim of a workspace, unless it is lost.
    pub async fn release(
        &self,
        tenant: &TenantId,
        name: &WorkspaceName,
        claim: &Claim,
    ) -> Result<(), StoreError> {
        let sql = AssertSqlSafe(format!(
            "UPDATE workspaces SET node = '' WHERE tenant = $1 AND name = $2 AND {}",
            holds(3)
        ));
        let query = claim.bind(sqlx::query(sql).bind(tenant.as_str()).bind(name.to_string()));
        query.execute(&self.db.engine.pool).await.map_err(failed_to(CLAIM))?;
        Ok(())
    }

    /// Deletes a workspace and its states; returns whether there was one.
    pub async fn delete(&self, tenant: &TenantId, name: &WorkspaceName) -> Result<bool, StoreError> {
        let (tenant, name) = (tenant.clone(), name.clone());
        let this = self.clone();
        let work = async move {
            let tenant = &tenant;
            let name = &name;
            let mut tx = this.db.engine.begin().await?;
            let mut deleted = 0;
            for sql in [
                "DELETE FROM workspace_manifests WHERE tenant = $1 AND workspace = $2",
                "DELETE FROM workspaces WHERE tenant = $1 AND name = $2",
            ] {
                let query = sqlx::query(sql).bind(tenant.as_str()).bind(name.to_string());
                deleted = query.execute(&mut *tx).await?.rows_affected();
            }
            crate::audit::store_current_record(&mut tx, &name.to_string()).await?;
            tx.commit().await?;
            Ok(deleted > 0)
        };
        self.db.complete_query("delete the workspace", work).await
    }
}

impl Workspaces {
    async fn insert_manifest(
        &self,
        tx: &mut Transaction<'static, Any>,
        tenant: &TenantId,
        (name, claim): (&WorkspaceName, Option<&Claim>),
        new: NewManifest,
    ) -> Result<Option<ManifestInfo>, sqlx::Error> {
        let (id, now) = (ManifestId(time::new_id(&*self.db.clock)), self.db.now());
        let sql = "SELECT active_manifest, node, fence FROM workspaces WHERE tenant = $1 AND name = $2";
        let found = sqlx::query(sql).bind(tenant.as_str()).bind(name.to_string());
        let Some(row) = found.fetch_optional(&mut **tx).await? else { return Ok(None) };
        // Without a claim, nobody may claim it meanwhile.
        let current = Claim::new(row.try_get("node")?, row.try_get("fence")?);
        let parent: Option<String> = row.try_get("active_manifest")?;
        let sql = AssertSqlSafe(format!(
            "UPDATE workspaces SET active_manifest = $1, modified_at = $2 WHERE tenant = $3 AND name = $4 AND {}",
            holds(5)
        ));
        let query = sqlx::query(sql)
            .bind(id.to_string())
            .bind(now.as_microsecond())
            .bind(tenant.as_str())
            .bind(name.to_string());
        let updated = claim.unwrap_or(&current).bind(query).execute(&mut **tx).await?;
        if updated.rows_affected() == 0 {
            return Ok(None);
        }
        let sql = "INSERT INTO workspace_manifests (id, tenant, workspace, parent_id, root, files, bytes, source, \
                   source_ref, created_by, created_at, added) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
        sqlx::query(sql)
            .bind(id.to_string())
            .bind(tenant.as_str())
            .bind(name.to_string())
            .bind(parent.as_deref())
            .bind(&new.root)
            .bind(i64::try_from(new.files).unwrap_or(i64::MAX))
            .bind(i64::try_from(new.bytes).unwrap_or(i64::MAX))
            .bind(new.source.as_str())
            .bind(new.source_ref.as_deref())
            .bind(&new.created_by)
            .bind(now.as_microsecond())
            .bind(i64::try_from(new.added).unwrap_or(i64::MAX))
            .execute(&mut **tx)
            .await?;
        if let (Some(message), WorkspaceName::Chat(chat)) = (new.message, name) {
            let sql = "UPDATE messages SET manifest_id = $1 WHERE tenant = $2 AND chat_id = $3 AND id = $4";
            let query = sqlx::query(sql).bind(id.to_string()).bind(tenant.as_str());
            query.bind(chat.to_string()).bind(message.to_string()).execute(&mut **tx).await?;
        }
        Ok(Some(ManifestInfo {
            id,
            parent_id: parent.and_then(|id| id.parse().ok()),
            files: new.files,
            bytes: new.bytes,
            source: new.source,
            source_ref: new.source_ref,
            created_by: new.created_by,
            created_at: now,
        }))
    }
}

impl Workspaces {
    /// Removes unused states older than their retention. Many of the old ones may be in use: a batch counts those, too.
    pub(crate) async fn reap_old_states(&self) -> Result<(), sqlx::Error> {
        let days = self.db.retention.workspace_days;
        if days == 0 {
            return Ok(());
        }
        let end = min_id_at(self.db.now() - SignedDuration::from_hours(24 * i64::from(days))).to_string();
        let mut last = String::new();
        loop {
            let next =
                sqlx::query(NEXT_STATES).bind(&last).bind(&end).fetch_one(&self.db.engine.pool).await?;
            let Some(next) = next.try_get::<Option<String>, _>(0)? else { return Ok(()) };
            let delete = sqlx::query(AssertSqlSafe(delete_old_states())).bind(&last).bind(&next);
            delete.execute(&self.db.engine.pool).await?;
            last = next;
        }
    }

    /// Removes unused states of the workspaces that changed since the last pass, beyond the number that is kept.
    pub(crate) async fn reap_surplus_states(&self) -> Result<(), sqlx::Error> {
        let Some(skip) = self.db.retention.workspace_states.checked_sub(1) else { return Ok(()) };
        let mut since = self.reaped_to.load(Ordering::Relaxed);
        loop {
            let changed = sqlx::query(CHANGED_WORKSPACES).bind(since).bind(i64::from(WORKSPACES_PER_QUERY));
            let changed = changed.fetch_all(&self.db.engine.pool).await?;
            let before = since;
            for row in &changed {
                let (tenant, name): (&str, &str) = (row.try_get("tenant")?, row.try_get("name")?);
                let oldest = sqlx::query(OLDEST_KEPT_STATE).bind(tenant).bind(name).bind(i64::from(skip));
                if let Some(oldest) = oldest.fetch_optional(&self.db.engine.pool).await? {
                    let sql = delete_batch("workspace_manifests", &surplus_states());
                    self.db.delete_batches(&sql, &[oldest.try_get(0)?, tenant, name]).await?;
                }
                since = row.try_get("modified_at")?;
            }
            self.reaped_to.store(since, Ordering::Relaxed);
            if changed.len() < WORKSPACES_PER_QUERY as usize {
                return Ok(());
            }
            // A page of workspaces that changed in the same microsecond.
            since = since.max(before.saturating_add(1));
        }
    }
}

fn count(row: &AnyRow, column: &'static str) -> Result<u64, sqlx::Error> {
    Ok(u64::try_from(row.try_get::<i64, _>(column)?).unwrap_or_default())
}

fn workspace(row: &AnyRow) -> Result<WorkspaceInfo, sqlx::Error> {
    let active: Option<String> = row.try_get("active_manifest")?;
    Ok(WorkspaceInfo {
        name: rows::parse_column(row, "name")?,
        active: active.and_then(|id| id.parse().ok()),
        files: count(row, "files")?,
        bytes: count(row, "bytes")?,
        created_at: rows::timestamp(row, "created_at")?,
        modified_at: rows::timestamp(row, "modified_at")?,
    })
}

fn manifest(row: &AnyRow) -> Result<StoredManifest, sqlx::Error> {
    let parent: Option<String> = row.try_get("parent_id")?;
    let source: String = row.try_get("source")?;
    let source = ManifestSource::parse(&source)
        .ok_or_else(|| sqlx::Error::Decode(format!("unknown source `{source}`").into()))?;
    Ok(StoredManifest {
        info: ManifestInfo {
            id: rows::parse_column(row, "id")?,
            parent_id: parent.and_then(|id| id.parse().ok()),
            files: count(row, "files")?,
            bytes: count(row, "bytes")?,
            source,
            source_ref: row.try_get("source_ref")?,
            created_by: row.try_get("created_by")?,
            created_at: rows::timestamp(row, "created_at")?,
        },
        root: row.try_get("root")?,
    })
}
