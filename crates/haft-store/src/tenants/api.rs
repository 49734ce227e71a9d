//! Creating, changing, listing and deleting tenants.

use std::sync::Arc;

use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::tenant::{FileRoot, Tenant, TenantLimits, TenantSettings};
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use crate::access::Access;
use crate::catalog::Catalog;
use crate::database::Database;
use crate::engine::failed_to;
use crate::ledger::Calls;
use crate::notification::ChangeSet;
use crate::rows;
use crate::vault::Vault;
use crate::watch::RemoteChanges;
use crate::webhooks::Webhooks;

const FIND: &str = "find the tenant";
const STORE: &str = "store the tenant";
const SELECT: &str = "SELECT id, name, enabled, settings, created_at, modified_at FROM tenants";
/// The name of the default tenant until somebody changes it.
const DEFAULT_NAME: &str = "Default";

/// A change of a tenant; what is `None` stays.
#[derive(Debug, Clone, Default)]
pub struct TenantChange {
    /// The name.
    pub name: Option<String>,
    /// Whether its tokens work.
    pub enabled: Option<bool>,
    /// The folders of its file tools.
    pub file_roots: Option<Vec<FileRoot>>,
    /// The environment variables that its tools may read.
    pub environment: Option<Vec<String>>,
    /// All limits.
    pub limits: Option<TenantLimits>,
}

/// The tenants.
#[derive(Clone)]
pub struct Tenants {
    pub(super) db: Arc<Database>,
    pub(super) calls: Calls,
    pub(super) catalog: Catalog,
    pub(super) access: Access,
    pub(super) vault: Vault,
    pub(super) webhooks: Webhooks,
}

impl Tenants {
    pub(crate) fn new(parts: &RemoteChanges) -> Self {
        let RemoteChanges { db, access, calls, catalog, vault, webhooks, .. } = parts.clone();
        Self { db, calls, catalog, access, vault, webhooks }
    }
}

impl Tenants {
    /// Returns all tenants, by id.
    pub async fn all(&self) -> Result<Vec<Tenant>, StoreError> {
        let action = "load the tenants";
        let sql = format!("{SELECT} WHERE deleted_at IS NULL ORDER BY id");
        let query = sqlx::query(AssertSqlSafe(sql));
        let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(action))?;
        found.iter().map(tenant).collect::<Result<_, _>>().map_err(failed_to(action))
    }

    /// Creates a tenant. Definition files that wait in its folder become its tools.
    pub async fn create(&self, id: TenantId, name: String) -> Result<Tenant, StoreError> {
        let this = self.clone();
        self.db.complete(async move { this.insert(id, name).await }).await
    }

    /// Changes a tenant.
    pub async fn update(&self, id: TenantId, change: TenantChange) -> Result<Tenant, StoreError> {
        let this = self.clone();
        self.db.complete(async move { this.change(id, change).await }).await
    }

    /// Deletes a tenant and everything that it owns, except its audit records.
    pub async fn delete(&self, id: TenantId) -> Result<(), StoreError> {
        let this = self.clone();
        self.db.complete(async move { this.remove(id).await }).await
    }
}

impl Tenants {
    /// Creates the default tenant of a new installation.
    pub(crate) async fn ensure_default(&self) -> Result<(), StoreError> {
        let id = TenantId::default_tenant();
        let exists = sqlx::query("SELECT 1 FROM tenants WHERE id = $1").bind(id.as_str());
        if exists.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(FIND))?.is_some() {
            return Ok(());
        }
        let tenant = Tenant::new(id, DEFAULT_NAME.to_owned(), self.db.now());
        let mut tx = self.db.engine.begin_change().await.map_err(failed_to(STORE))?;
        insert(&mut tx, &tenant, "DO NOTHING").await.map_err(failed_to(STORE))?;
        tx.commit().await.map_err(failed_to(STORE))
    }

    async fn insert(&self, id: TenantId, name: String) -> Result<Tenant, StoreError> {
        let tenant = Tenant::new(id, name, self.db.now());
        check(&tenant)?;
        let id = tenant.id.clone();
        // Data of a deleted tenant with the same id that arrived after its deletion.
        if self.is_deleted(&id).await.map_err(failed_to(FIND))? {
            self.purge(&id).await?;
        }
        let mut change = self.db.begin_shared().await.map_err(failed_to(STORE))?;
        if find(&mut change.tx, &id).await.map_err(failed_to(FIND))?.is_some() {
            return Err(StoreError::Conflict(format!("tenant `{id}` already exists; choose another id")));
        }
        let revive = "DO UPDATE SET name = excluded.name, enabled = 1, settings = excluded.settings, \
                      created_at = excluded.created_at, modified_at = excluded.modified_at, deleted_at = NULL";
        insert(&mut change.tx, &tenant, revive).await.map_err(failed_to(STORE))?;
        let _lock = change.commit(&ChangeSet::tokens(), id.as_str()).await.map_err(failed_to(STORE))?;
        self.access.signal_change();
        Ok(tenant)
    }

    async fn change(&self, id: TenantId, change: TenantChange) -> Result<Tenant, StoreError> {
        let mut shared = self.db.begin_shared().await.map_err(failed_to(STORE))?;
        let found = find(&mut shared.tx, &id).await.map_err(failed_to(FIND))?;
        let old = found.ok_or_else(|| StoreError::not_found("tenant", &id))?;
        if id.is_default() && change.enabled == Some(false) {
            return Err(permanent("disabled"));
        }
        let settings = TenantSettings {
            file_roots: change.file_roots.unwrap_or_else(|| old.settings.file_roots.clone()),
            environment: change.environment.unwrap_or_else(|| old.settings.environment.clone()),
            limits: change.limits.unwrap_or(old.settings.limits),
        };
        let tenant = Tenant {
            name: change.name.unwrap_or_else(|| old.name.clone()),
            enabled: change.enabled.unwrap_or(old.enabled),
            settings,
            ..old.clone()
        };
        check(&tenant)?;
        if tenant == old {
            return Ok(old);
        }
        let tenant = Tenant { modified_at: self.db.now(), ..tenant };
        let replace = "DO UPDATE SET name = excluded.name, enabled = excluded.enabled, \
                       settings = excluded.settings, modified_at = excluded.modified_at";
        insert(&mut shared.tx, &tenant, replace).await.map_err(failed_to(STORE))?;
        drop(shared.commit(&ChangeSet::tokens(), id.as_str()).await.map_err(failed_to(STORE))?);
        self.access.signal_change();
        if tenant.settings.limits.max_stored_bytes != old.settings.limits.max_stored_bytes
            && let Err(error) = self.calls.state.usage.enforce().await
        {
            tracing::warn!(%error, "cannot enforce the size limit of the tenant");
        }
        Ok(tenant)
    }

    async fn remove(&self, id: TenantId) -> Result<(), StoreError> {
        if id.is_default() {
            return Err(permanent("deleted"));
        }
        let action = "delete the tenant";
        let mut change = self.db.begin_shared().await.map_err(failed_to(action))?;
        // From here on no token of the tenant works, even if the removal of its data is interrupted.
        let done = sqlx::query(
            "UPDATE tenants SET deleted_at = $1, enabled = 0 WHERE id = $2 AND deleted_at IS NULL",
        )
        .bind(self.db.now().as_microsecond())
        .bind(id.as_str())
        .execute(&mut *change.tx)
        .await
        .map_err(failed_to(action))?;
        if done.rows_affected() == 0 {
            return Err(StoreError::not_found("tenant", &id));
        }
        drop(change.commit(&ChangeSet::tokens(), id.as_str()).await.map_err(failed_to(action))?);
        self.access.signal_change();
        self.purge(&id).await
    }

    pub(super) async fn is_deleted(&self, id: &TenantId) -> Result<bool, sqlx::Error> {
        let sql = "SELECT 1 FROM tenants WHERE id = $1 AND deleted_at IS NOT NULL";
        Ok(sqlx::query(sql).bind(id.as_str()).fetch_optional(&self.db.engine.pool).await?.is_some())
    }
}

fn check(tenant: &Tenant) -> Result<(), StoreError> {
    let problems = tenant.problems();
    if problems.is_empty() { Ok(()) } else { Err(StoreError::Invalid(problems)) }
}

fn permanent(change: &str) -> StoreError {
    StoreError::ReadOnly(format!("the tenant `default` cannot be {change}"))
}

async fn find(tx: &mut Transaction<'static, Any>, id: &TenantId) -> Result<Option<Tenant>, sqlx::Error> {
    let sql = format!("{SELECT} WHERE id = $1 AND deleted_at IS NULL");
    let found = sqlx::query(AssertSqlSafe(sql)).bind(id.as_str()).fetch_optional(&mut **tx).await?;
    found.as_ref().map(tenant).transpose()
}

async fn insert(
    tx: &mut Transaction<'static, Any>,
    tenant: &Tenant,
    on_conflict: &str,
) -> Result<(), sqlx::Error> {
    let sql = format!(
        "INSERT INTO tenants (id, name, enabled, settings, created_at, modified_at) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) {on_conflict}"
    );
    let settings =
        serde_json::to_string(&tenant.settings).map_err(|error| sqlx::Error::Encode(error.into()))?;
    sqlx::query(AssertSqlSafe(sql))
        .bind(tenant.id.as_str())
        .bind(&tenant.name)
        .bind(i64::from(tenant.enabled))
        .bind(settings)
        .bind(tenant.created_at.as_microsecond())
        .bind(tenant.modified_at.as_microsecond())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

fn tenant(row: &AnyRow) -> Result<Tenant, sqlx::Error> {
    Ok(Tenant {
        id: rows::parse_column(row, "id")?,
        name: row.try_get("name")?,
        enabled: rows::boolean(row, "enabled")?,
        settings: rows::json_column(row, "settings")?,
        created_at: rows::timestamp(row, "created_at")?,
        modified_at: rows::timestamp(row, "modified_at")?,
    })
}
