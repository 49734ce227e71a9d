//! The accounts: listing, storing, using and revoking them. Their values are those of refresh tokens.

use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::account::{AccountId, AccountKind, AccountRecord, AccountState, grant_owner};
use haft_core::catalog::StoreError;
use haft_core::id::ActorId;
use haft_core::name::TenantId;
use haft_core::secret::{RefreshTokens as _, Secret, SecretError, login_owner};
use jiff::SignedDuration;
use sqlx::any::AnyRow;
use sqlx::{Any, Row as _, Transaction};

use crate::database::Database;
use crate::engine::failed_to;
use crate::vault::Vault;
use crate::{audit, rows};

const READ: &str = "read the accounts";
const STORE: &str = "store the account";
const REVOKE: &str = "revoke the account";
/// How precisely the last use is known.
const USE_RESOLUTION: SignedDuration = SignedDuration::from_mins(1);
const COLUMNS: &str =
    "tenant, actor_id, provider, kind, scope, state, version, created_at, modified_at, last_used_at";

/// The accounts of people at providers.
#[derive(Clone)]
pub struct StoredAccounts {
    pub(super) db: Arc<Database>,
    pub(super) vault: Vault,
}

impl StoredAccounts {
    pub(crate) fn new(db: &Arc<Database>, vault: &Vault) -> Self {
        Self { db: Arc::clone(db), vault: vault.clone() }
    }

    /// Lists the accounts that somebody has in a tenant, by provider.
    pub async fn of_actor(
        &self,
        tenant: &TenantId,
        actor: ActorId,
    ) -> Result<Vec<AccountRecord>, StoreError> {
        let sql =
            format!("SELECT {COLUMNS} FROM accounts WHERE tenant = $1 AND actor_id = $2 ORDER BY provider");
        let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(tenant.as_str()).bind(actor.to_string());
        let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        found.iter().map(account).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Returns an account.
    pub async fn get(&self, id: &AccountId) -> Result<Option<AccountRecord>, StoreError> {
        let sql =
            format!("SELECT {COLUMNS} FROM accounts WHERE tenant = $1 AND actor_id = $2 AND provider = $3");
        let query = bind(sqlx::query(sqlx::AssertSqlSafe(sql)), id);
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        found.as_ref().map(account).transpose().map_err(failed_to(READ))
    }

    /// Returns an account that is about to be used, and notes its use.
    pub async fn used(&self, id: &AccountId) -> Result<Option<AccountRecord>, StoreError> {
        let Some(account) = self.get(id).await? else { return Ok(None) };
        let now = self.db.now();
        if account.last_used_at.is_none_or(|at| at + USE_RESOLUTION <= now) {
            let sql = "UPDATE accounts SET last_used_at = $4 \
                       WHERE tenant = $1 AND actor_id = $2 AND provider = $3";
            let query = bind(sqlx::query(sql), id).bind(now.as_microsecond());
            query.execute(&self.db.engine.pool).await.map_err(failed_to(STORE))?;
        }
        Ok(Some(account))
    }

    /// Returns the API key of an account.
    pub async fn key(&self, id: &AccountId) -> Result<Option<Secret>, SecretError> {
        self.vault.read(&id.grant()).await
    }

    /// Stores an API key; [`StoredAccounts::connected`] makes it an account.
    pub async fn put_key(&self, id: &AccountId, key: &Secret) -> Result<(), SecretError> {
        let grant = id.grant();
        let lock = self.vault.begin(&grant).await?;
        self.vault.end(&grant, lock.number, Some(key)).await
    }

    /// Makes an account of a value that is stored.
    pub async fn connected(
        &self,
        id: &AccountId,
        kind: AccountKind,
        scope: Option<String>,
    ) -> Result<(), StoreError> {
        let (this, id) = (self.clone(), id.clone());
        let work = async move {
            let now = this.db.now().as_microsecond();
            let mut tx = this.db.engine.begin_change().await?;
            let sql = "INSERT INTO accounts (tenant, actor_id, provider, kind, scope, state, version, created_at, modified_at) \
                       VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $7) \
                       ON CONFLICT (tenant, actor_id, provider) DO UPDATE SET kind = excluded.kind, \
                       scope = excluded.scope, state = excluded.state, modified_at = excluded.modified_at, \
                       version = CASE WHEN excluded.version > accounts.version THEN excluded.version \
                       ELSE accounts.version + 1 END";
            let query = bind(sqlx::query(sql), &id)
                .bind(kind.as_str())
                .bind(scope)
                .bind(AccountState::Connected.as_str())
                .bind(now);
            query.execute(&mut *tx).await?;
            audit::store_current_record(&mut tx, &id.provider).await?;
            tx.commit().await
        };
        self.db.complete_query(STORE, work).await
    }

    /// Notes that the provider no longer accepts an account; returns whether that is new.
    pub async fn expire(&self, id: &AccountId) -> Result<bool, StoreError> {
        let sql = "UPDATE accounts SET state = $4 \
                   WHERE tenant = $1 AND actor_id = $2 AND provider = $3 AND state <> $4";
        let query = bind(sqlx::query(sql), id).bind(AccountState::Expired.as_str());
        let done = query.execute(&self.db.engine.pool).await.map_err(failed_to(STORE))?;
        Ok(done.rows_affected() > 0)
    }

    /// Deletes an account and its value; returns whether there was one.
    pub async fn revoke(&self, id: &AccountId) -> Result<bool, StoreError> {
        let (this, id) = (self.clone(), id.clone());
        let work = async move {
            let mut tx = this.db.engine.begin_change().await?;
            let sql = "DELETE FROM accounts WHERE tenant = $1 AND actor_id = $2 AND provider = $3";
            let deleted = bind(sqlx::query(sql), &id).execute(&mut *tx).await?.rows_affected();
            let sql = "DELETE FROM refresh_tokens WHERE tenant = $1 AND grant_key = $2";
            let query = sqlx::query(sql).bind(id.tenant.as_str()).bind(id.grant().key);
            query.execute(&mut *tx).await?;
            audit::store_current_record(&mut tx, &id.provider).await?;
            tx.commit().await?;
            Ok(deleted > 0)
        };
        self.db.complete_query(REVOKE, work).await
    }
}

/// Deletes what somebody has connected in a tenant.
pub(crate) async fn forget_actor(
    tx: &mut Transaction<'static, Any>,
    actor: ActorId,
    tenant: &TenantId,
) -> Result<(), sqlx::Error> {
    for (sql, owner) in [
        ("DELETE FROM accounts WHERE tenant = $1 AND actor_id = $2", actor.to_string()),
        ("DELETE FROM device_connections WHERE tenant = $1 AND actor_id = $2", actor.to_string()),
        ("DELETE FROM refresh_tokens WHERE tenant = $1 AND credential = $2", grant_owner(actor)),
    ] {
        sqlx::query(sql).bind(tenant.as_str()).bind(owner).execute(&mut **tx).await?;
    }
    Ok(())
}

/// Deletes the logins of a person at issuers.
pub(crate) async fn forget_logins(
    tx: &mut Transaction<'static, Any>,
    actor: ActorId,
) -> Result<(), sqlx::Error> {
    // A person logs in once, whatever the tenant.
    let query = sqlx::query("DELETE FROM refresh_tokens WHERE tenant = $1 AND credential = $2");
    let query = query.bind(TenantId::default_tenant().to_string()).bind(login_owner(actor));
    query.execute(&mut **tx).await.map(drop)
}

/// Deletes all accounts at a provider, with their values.
pub(crate) async fn forget_provider(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    provider: &str,
) -> Result<(), sqlx::Error> {
    let sql = "DELETE FROM refresh_tokens WHERE tenant = $1 AND grant_key IN (\
               SELECT 'account:' || actor_id || ':' || provider FROM accounts WHERE tenant = $1 AND provider = $2)";
    sqlx::query(sql).bind(tenant.as_str()).bind(provider).execute(&mut **tx).await?;
    for sql in [
        "DELETE FROM device_connections WHERE tenant = $1 AND provider = $2",
        "DELETE FROM accounts WHERE tenant = $1 AND provider = $2",
    ] {
        sqlx::query(sql).bind(tenant.as_str()).bind(provider).execute(&mut **tx).await?;
    }
    Ok(())
}

type AnyQuery<'q> = sqlx::query::Query<'q, Any, sqlx::any::AnyArguments>;

fn bind<'q>(query: AnyQuery<'q>, id: &AccountId) -> AnyQuery<'q> {
    query.bind(id.tenant.to_string()).bind(id.actor.to_string()).bind(id.provider.clone())
}

fn account(row: &AnyRow) -> Result<AccountRecord, sqlx::Error> {
    let kind: &str = row.try_get("kind")?;
    let state: &str = row.try_get("state")?;
    let last_used_at: Option<Timestamp> = rows::optional_timestamp(row, "last_used_at")?;
    Ok(AccountRecord {
        id: AccountId {
            tenant: rows::parse_column(row, "tenant")?,
            actor: rows::parse_column(row, "actor_id")?,
            provider: row.try_get("provider")?,
        },
        kind: AccountKind::parse(kind).unwrap_or(AccountKind::Oauth),
        scope: row.try_get("scope")?,
        // A state of a newer version gives no access.
        state: AccountState::parse(state).unwrap_or(AccountState::Expired),
        version: row.try_get("version")?,
        created_at: rows::timestamp(row, "created_at")?,
        modified_at: rows::timestamp(row, "modified_at")?,
        last_used_at,
    })
}
