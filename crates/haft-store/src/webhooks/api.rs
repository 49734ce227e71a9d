//! Storing, listing, changing and deleting webhooks.

use std::sync::Arc;

use haft_core::catalog::StoreError;
use haft_core::id::WebhookId;
use haft_core::name::TenantId;
use haft_core::secret::Secret;
use haft_core::webhook::{Webhook, WebhookScope, WebhookTarget};
use jiff::SignedDuration;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use crate::database::Database;
use crate::database::{BATCH, delete_batch};
use crate::engine::failed_to;
use crate::notification::ChangeSet;
use crate::rows;
use crate::vault::Vault;
use crate::vault::webhook_secret_name;

/// The number of webhooks that a tenant may have.
const MAX_WEBHOOKS: i64 = 100;
/// How long the webhook of one call is kept: longer than a call waits.
const CALL_WEBHOOK_DAYS: i64 = 30;
/// How long deliveries are kept that are not pending.
const DELIVERY_DAYS: i64 = 7;

const STORE: &str = "store the webhook";
const READ: &str = "read the webhooks";
const COLUMNS: &str = "id, tenant, scope, target, enabled, created_at, modified_at";

/// A webhook to store, with its secret.
#[derive(Debug, Clone)]
pub struct NewWebhook {
    /// The webhook.
    pub webhook: Webhook,
    /// The signing secret.
    pub secret: Secret,
}

/// A change of a webhook.
#[derive(Debug, Clone, Default)]
pub struct WebhookChange {
    /// The new target.
    pub target: Option<WebhookTarget>,
    /// Whether events are delivered.
    pub enabled: Option<bool>,
    /// The new signing secret.
    pub secret: Option<Secret>,
}

/// Ended deliveries before a time.
pub(crate) const OLD_DELIVERIES: &str =
    "SELECT id FROM webhook_deliveries WHERE status <> 'pending' AND created_at < $1";
/// Deliveries before a time whose webhook is gone.
pub(crate) const ORPHANED_DELIVERIES: &str = "SELECT id FROM webhook_deliveries WHERE created_at < $1 AND NOT EXISTS \
    (SELECT 1 FROM webhooks WHERE webhooks.id = webhook_deliveries.webhook_id)";

/// The webhooks and their deliveries.
#[derive(Clone)]
pub struct Webhooks {
    pub(super) db: Arc<Database>,
    pub(super) vault: Vault,
}

impl Webhooks {
    pub(crate) fn new(db: &Arc<Database>, vault: &Vault) -> Self {
        Self { db: Arc::clone(db), vault: vault.clone() }
    }
}

impl Webhooks {
    /// Stores a webhook.
    pub async fn insert(&self, new: NewWebhook) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let NewWebhook { webhook, secret } = new;
            let target = target_text(&webhook.target)?;
            let is_shared = webhook.scope == WebhookScope::Tenant;
            let mut change = this.db.begin_shared().await.map_err(failed_to(STORE))?;
            if is_shared {
                let sql = "SELECT COUNT(*) FROM webhooks WHERE tenant = $1 AND scope = 'tenant'";
                let count = sqlx::query(sql).bind(webhook.tenant.as_str()).fetch_one(&mut *change.tx).await;
                let count: i64 = count.and_then(|row| row.try_get(0)).map_err(failed_to(STORE))?;
                if count >= MAX_WEBHOOKS {
                    let message = format!("the limit of {MAX_WEBHOOKS} webhooks of a tenant is reached");
                    return Err(StoreError::Conflict(message));
                }
            }
            let cipher = this
                .vault
                .cipher_in(&mut change.tx)
                .await
                .map_err(|error| StoreError::unavailable(STORE, error))?;
            let sealed = cipher
                .seal(webhook.tenant.as_str(), &webhook_secret_name(&webhook.id.to_string()), &secret)
                .map_err(|error| StoreError::unavailable(STORE, error))?;
            sqlx::query(
                "INSERT INTO webhooks (id, tenant, scope, target, enabled, sealed, created_at, modified_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            )
            .bind(webhook.id.to_string())
            .bind(webhook.tenant.as_str())
            .bind(webhook.scope.as_str())
            .bind(target)
            .bind(i64::from(webhook.enabled))
            .bind(sealed)
            .bind(webhook.created_at.as_microsecond())
            .bind(webhook.modified_at.as_microsecond())
            .execute(&mut *change.tx)
            .await
            .map_err(failed_to(STORE))?;
            if !is_shared {
                // The webhook of one call needs no notification and no audit record.
                return change.tx.commit().await.map_err(failed_to(STORE));
            }
            let _lock = change
                .commit(&ChangeSet::webhooks(), &webhook.id.to_string())
                .await
                .map_err(failed_to(STORE))?;
            this.load().await
        };
        self.db.complete(work).await
    }

    /// Returns the webhooks of a tenant, oldest first, without those of single calls.
    pub async fn list(&self, tenant: &TenantId) -> Result<Vec<Webhook>, StoreError> {
        let sql = AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM webhooks WHERE tenant = $1 AND scope = 'tenant' ORDER BY id"
        ));
        let found = sqlx::query(sql).bind(tenant.as_str()).fetch_all(&self.db.engine.pool).await;
        read_all(&found.map_err(failed_to(READ))?)
    }

    /// Returns one webhook.
    pub async fn get(&self, tenant: &TenantId, id: WebhookId) -> Result<Option<Webhook>, StoreError> {
        let sql = AssertSqlSafe(format!("SELECT {COLUMNS} FROM webhooks WHERE tenant = $1 AND id = $2"));
        let found = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
        let found = found.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        found.as_ref().map(webhook).transpose().map_err(failed_to(READ))
    }

    /// Changes a webhook.
    pub async fn change(
        &self,
        tenant: &TenantId,
        id: WebhookId,
        change: WebhookChange,
    ) -> Result<Webhook, StoreError> {
        let tenant = tenant.clone();
        let this = self.clone();
        let work = async move {
            let tenant = &tenant;
            let mut shared = this.db.begin_shared().await.map_err(failed_to(STORE))?;
            let sql = AssertSqlSafe(format!(
                "SELECT {COLUMNS}, sealed FROM webhooks WHERE tenant = $1 AND id = $2 AND scope = 'tenant'"
            ));
            let found = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
            let found = found.fetch_optional(&mut *shared.tx).await.map_err(failed_to(STORE))?;
            let Some(row) = found else { return Err(StoreError::not_found("webhook", id)) };
            let mut changed = webhook(&row).map_err(failed_to(STORE))?;
            let mut sealed: String = row.try_get("sealed").map_err(failed_to(STORE))?;
            if let Some(secret) = &change.secret {
                let cipher = this
                    .vault
                    .cipher_in(&mut shared.tx)
                    .await
                    .map_err(|error| StoreError::unavailable(STORE, error))?;
                sealed = cipher
                    .seal(tenant.as_str(), &webhook_secret_name(&id.to_string()), secret)
                    .map_err(|error| StoreError::unavailable(STORE, error))?;
            }
            changed.target = change.target.unwrap_or(changed.target);
            changed.enabled = change.enabled.unwrap_or(changed.enabled);
            changed.modified_at = this.db.now();
            sqlx::query(
                "UPDATE webhooks SET target = $1, enabled = $2, sealed = $3, modified_at = $4 WHERE id = $5",
            )
            .bind(target_text(&changed.target)?)
            .bind(i64::from(changed.enabled))
            .bind(sealed)
            .bind(changed.modified_at.as_microsecond())
            .bind(id.to_string())
            .execute(&mut *shared.tx)
            .await
            .map_err(failed_to(STORE))?;
            let _lock =
                shared.commit(&ChangeSet::webhooks(), &id.to_string()).await.map_err(failed_to(STORE))?;
            this.load().await?;
            Ok(changed)
        };
        self.db.complete(work).await
    }

    /// Deletes a webhook and its deliveries.
    pub async fn delete(&self, tenant: &TenantId, id: WebhookId) -> Result<(), StoreError> {
        let tenant = tenant.clone();
        let this = self.clone();
        let work = async move {
            let tenant = &tenant;
            let action = "delete the webhook";
            let mut change = this.db.begin_shared().await.map_err(failed_to(action))?;
            let done = sqlx::query("DELETE FROM webhooks WHERE tenant = $1 AND id = $2")
                .bind(tenant.as_str())
                .bind(id.to_string())
                .execute(&mut *change.tx)
                .await
                .map_err(failed_to(action))?;
            if done.rows_affected() == 0 {
                return Err(StoreError::not_found("webhook", id));
            }
            let deliveries =
                sqlx::query("DELETE FROM webhook_deliveries WHERE webhook_id = $1").bind(id.to_string());
            deliveries.execute(&mut *change.tx).await.map_err(failed_to(action))?;
            let _lock =
                change.commit(&ChangeSet::webhooks(), &id.to_string()).await.map_err(failed_to(action))?;
            this.load().await
        };
        self.db.complete(work).await
    }
}

impl Webhooks {
    /// Reads the webhooks of all tenants.
    pub(crate) async fn load(&self) -> Result<(), StoreError> {
        let sql = AssertSqlSafe(format!("SELECT {COLUMNS} FROM webhooks WHERE scope = 'tenant' ORDER BY id"));
        let found = sqlx::query(sql).fetch_all(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        self.db.outbox.replace(read_all(&found)?);
        Ok(())
    }

    /// Removes old deliveries, deliveries without a webhook, and the webhooks of calls that ended long ago.
    pub(crate) async fn reap(&self) -> Result<(), sqlx::Error> {
        let before = |days: i64| (self.db.now() - SignedDuration::from_hours(24 * days)).as_microsecond();
        self.delete_deliveries(OLD_DELIVERIES, before(DELIVERY_DAYS)).await?;
        sqlx::query("DELETE FROM webhooks WHERE scope = 'call' AND created_at < $1")
            .bind(before(CALL_WEBHOOK_DAYS))
            .execute(&self.db.engine.pool)
            .await?;
        self.delete_deliveries(ORPHANED_DELIVERIES, before(1)).await
    }

    async fn delete_deliveries(&self, select: &str, before: i64) -> Result<(), sqlx::Error> {
        let sql = delete_batch("webhook_deliveries", select);
        loop {
            let delete = sqlx::query(AssertSqlSafe(sql.clone())).bind(before);
            if delete.execute(&self.db.engine.pool).await?.rows_affected() < BATCH {
                return Ok(());
            }
        }
    }
}

fn target_text(target: &WebhookTarget) -> Result<String, StoreError> {
    serde_json::to_string(target).map_err(|error| StoreError::unavailable(STORE, error))
}

fn read_all(found: &[AnyRow]) -> Result<Vec<Webhook>, StoreError> {
    found.iter().map(webhook).collect::<Result<_, _>>().map_err(failed_to(READ))
}

/// Reads a webhook.
pub(super) fn webhook(row: &AnyRow) -> Result<Webhook, sqlx::Error> {
    let target = serde_json::from_str(row.try_get("target")?);
    Ok(Webhook {
        id: rows::parse_column(row, "id")?,
        tenant: rows::parse_column(row, "tenant")?,
        scope: match row.try_get::<&str, _>("scope")? {
            "call" => WebhookScope::Call,
            _ => WebhookScope::Tenant,
        },
        target: target.map_err(|error| sqlx::Error::Decode(error.into()))?,
        enabled: row.try_get::<i64, _>("enabled")? != 0,
        created_at: rows::timestamp(row, "created_at")?,
        modified_at: rows::timestamp(row, "modified_at")?,
    })
}
