//! The providers that admins have defined.

use haft_core::account::AccountProvider;
use haft_core::catalog::StoreError;
use haft_core::id::ActorId;
use haft_core::name::TenantId;
use sqlx::Row as _;

use super::api::forget_provider;
use crate::accounts::StoredAccounts;
use crate::audit;
use crate::engine::failed_to;
use crate::rows;

const READ: &str = "read the providers of accounts";
const STORE: &str = "store the provider of accounts";

impl StoredAccounts {
    /// Lists the providers of a tenant by name.
    pub async fn providers(&self, tenant: &TenantId) -> Result<Vec<AccountProvider>, StoreError> {
        let sql = "SELECT definition FROM account_providers WHERE tenant = $1 ORDER BY name";
        let query = sqlx::query(sql).bind(tenant.as_str());
        let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        let read = |row| rows::json_column(row, "definition");
        found.iter().map(read).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Returns a provider.
    pub async fn provider(
        &self,
        tenant: &TenantId,
        name: &str,
    ) -> Result<Option<AccountProvider>, StoreError> {
        let sql = "SELECT definition FROM account_providers WHERE tenant = $1 AND name = $2";
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(name);
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        found.map(|row| rows::json_column(&row, "definition")).transpose().map_err(failed_to(READ))
    }

    /// Stores a provider, or replaces it. Accounts stay if they still hold what the provider needs.
    pub async fn put_provider(
        &self,
        tenant: &TenantId,
        provider: &AccountProvider,
    ) -> Result<(), StoreError> {
        let (this, tenant, provider) = (self.clone(), tenant.clone(), provider.clone());
        let work = async move {
            let definition =
                serde_json::to_string(&provider).map_err(|error| sqlx::Error::Encode(error.into()))?;
            let mut tx = this.db.engine.begin_change().await?;
            let sql = "SELECT definition FROM account_providers WHERE tenant = $1 AND name = $2";
            let query = sqlx::query(sql).bind(tenant.as_str()).bind(&provider.name);
            let before = query.fetch_optional(&mut *tx).await?;
            let before: Option<AccountProvider> =
                before.map(|row| rows::json_column(&row, "definition")).transpose()?;
            // Tokens of another client or another server are worth nothing.
            if before.is_some_and(|before| {
                before.oauth != provider.oauth || before.token_exchange != provider.token_exchange
            }) {
                forget_provider(&mut tx, &tenant, &provider.name).await?;
            }
            let sql = "INSERT INTO account_providers (tenant, name, definition, created_at, modified_at) \
                       VALUES ($1, $2, $3, $4, $4) ON CONFLICT (tenant, name) DO UPDATE SET \
                       definition = excluded.definition, modified_at = excluded.modified_at";
            let query = sqlx::query(sql)
                .bind(tenant.as_str())
                .bind(&provider.name)
                .bind(definition)
                .bind(this.db.now().as_microsecond());
            query.execute(&mut *tx).await?;
            audit::store_current_record(&mut tx, &provider.name).await?;
            tx.commit().await
        };
        self.db.complete_query(STORE, work).await
    }

    /// Deletes a provider and all accounts there; returns whether there was one.
    pub async fn delete_provider(&self, tenant: &TenantId, name: &str) -> Result<bool, StoreError> {
        let (this, tenant, name) = (self.clone(), tenant.clone(), name.to_owned());
        let work = async move {
            let mut tx = this.db.engine.begin_change().await?;
            let sql = "DELETE FROM account_providers WHERE tenant = $1 AND name = $2";
            let query = sqlx::query(sql).bind(tenant.as_str()).bind(&name);
            if query.execute(&mut *tx).await?.rows_affected() == 0 {
                return Ok(false);
            }
            forget_provider(&mut tx, &tenant, &name).await?;
            audit::store_current_record(&mut tx, &name).await?;
            tx.commit().await?;
            Ok(true)
        };
        self.db.complete_query("delete the provider of accounts", work).await
    }

    /// Returns who has an account at a provider, at most `limit` of them.
    pub async fn holders(
        &self,
        tenant: &TenantId,
        provider: &str,
        limit: i64,
    ) -> Result<Vec<ActorId>, StoreError> {
        let sql = "SELECT actor_id FROM accounts WHERE tenant = $1 AND provider = $2 \
                   ORDER BY created_at, actor_id LIMIT $3";
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(provider).bind(limit);
        let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        let read = |row| rows::parse_column(row, "actor_id");
        found.iter().map(read).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Returns the number of people who have an account at a provider.
    pub async fn count_at(&self, tenant: &TenantId, provider: &str) -> Result<i64, StoreError> {
        let sql = "SELECT COUNT(*) FROM accounts WHERE tenant = $1 AND provider = $2";
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(provider);
        let counted = query.fetch_one(&self.db.engine.pool).await;
        counted.and_then(|row| row.try_get(0)).map_err(failed_to(READ))
    }
}
