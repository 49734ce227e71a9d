//! Logins that a person has begun at another server: any node can complete them, once.

use haft_core::Timestamp;
use haft_core::catalog::StoreError;
use haft_core::hash;
use haft_core::id::ActorId;
use haft_core::name::TenantId;
use haft_core::secret::Secret;
use sqlx::Row as _;

use crate::accounts::StoredAccounts;
use crate::audit;
use crate::engine::failed_to;
use crate::rows;

const BEGIN: &str = "store the login";
const END: &str = "find the login";
/// How many logins a tenant can have begun at once.
const MAX_OF_TENANT: i64 = 1000;
/// How many logins one person can have begun at once, and how many shared ones there can be.
const MAX_OF_ACTOR: i64 = 50;

/// A login that a person has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingLogin {
    /// The tenant.
    pub tenant: TenantId,
    /// Whose account it becomes; `None` for the shared login of an MCP server.
    pub actor: Option<ActorId>,
    /// The provider.
    pub provider: String,
    /// The name of who began.
    pub requested_by: String,
    /// What completes it; stored encrypted.
    pub data: Secret,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// Whether a login was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingLoginStart {
    /// It was stored.
    Stored,
    /// As many as may have been begun.
    TooMany,
}

impl StoredAccounts {
    /// Stores a login until its callback comes, by the secret that identifies it.
    pub async fn begin_login(
        &self,
        state: &Secret,
        login: PendingLogin,
    ) -> Result<PendingLoginStart, StoreError> {
        let (this, key) = (self.clone(), hash::of_bytes(state.expose().as_bytes()));
        let work = async move {
            let mut tx = this.db.engine.begin_change().await.map_err(failed_to(BEGIN))?;
            let now = this.db.now().as_microsecond();
            let actor = login.actor.map(|actor| actor.to_string()).unwrap_or_default();
            let sql = "SELECT COUNT(*), COALESCE(SUM(CASE WHEN COALESCE(actor_id, '') = $3 THEN 1 ELSE 0 END), 0) \
                       FROM pending_logins WHERE tenant = $1 AND expires_at > $2";
            let query = sqlx::query(sql).bind(login.tenant.as_str()).bind(now).bind(&actor);
            let row = query.fetch_one(&mut *tx).await.map_err(failed_to(BEGIN))?;
            let count = |column| row.try_get::<i64, _>(column).map_err(failed_to(BEGIN));
            if count(0)? >= MAX_OF_TENANT || count(1)? >= MAX_OF_ACTOR {
                return Ok(PendingLoginStart::TooMany);
            }
            let cipher = this.vault.cipher_in(&mut tx).await;
            let cipher = cipher.map_err(|error| StoreError::unavailable(BEGIN, error))?;
            let sealed = cipher.seal(login.tenant.as_str(), &sealed_name(&key), &login.data);
            let sealed = sealed.map_err(|error| StoreError::unavailable(BEGIN, error))?;
            let sql = "INSERT INTO pending_logins (hash, tenant, actor_id, provider, requested_by, sealed, expires_at) \
                       VALUES ($1, $2, $3, $4, $5, $6, $7)";
            sqlx::query(sql)
                .bind(&key)
                .bind(login.tenant.as_str())
                .bind(login.actor.map(|actor| actor.to_string()))
                .bind(&login.provider)
                .bind(&login.requested_by)
                .bind(sealed)
                .bind(login.expires_at.as_microsecond())
                .execute(&mut *tx)
                .await
                .map_err(failed_to(BEGIN))?;
            audit::store_current_record(&mut tx, &login.provider).await.map_err(failed_to(BEGIN))?;
            tx.commit().await.map_err(failed_to(BEGIN))?;
            Ok(PendingLoginStart::Stored)
        };
        self.db.complete(work).await
    }

    /// Returns a login that has not expired, by the secret that identifies it.
    pub async fn pending_login(&self, state: &Secret) -> Result<Option<PendingLogin>, StoreError> {
        let key = hash::of_bytes(state.expose().as_bytes());
        let sql = "SELECT tenant, actor_id, provider, requested_by, sealed, expires_at FROM pending_logins \
                   WHERE hash = $1 AND expires_at > $2";
        let query = sqlx::query(sql).bind(&key).bind(self.db.now().as_microsecond());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(END))?;
        let Some(row) = found else { return Ok(None) };
        let tenant: TenantId = rows::parse_column(&row, "tenant").map_err(failed_to(END))?;
        let sealed: &str = row.try_get("sealed").map_err(failed_to(END))?;
        let candidates = self.vault.candidates().await;
        let candidates = candidates.map_err(|reason| StoreError::unavailable(END, reason))?;
        let name = sealed_name(&key);
        // After a rotation of the key, the person begins again.
        let opened = candidates.iter().find_map(|cipher| cipher.open(tenant.as_str(), &name, sealed).ok());
        let Some(data) = opened else { return Ok(None) };
        Ok(Some(PendingLogin {
            tenant,
            actor: rows::optional_parse_column(&row, "actor_id").map_err(failed_to(END))?,
            provider: row.try_get("provider").map_err(failed_to(END))?,
            requested_by: row.try_get("requested_by").map_err(failed_to(END))?,
            data,
            expires_at: rows::timestamp(&row, "expires_at").map_err(failed_to(END))?,
        }))
    }

    /// Uses a login up; returns whether this was the first time.
    pub async fn take_login(&self, state: &Secret) -> Result<bool, StoreError> {
        let key = hash::of_bytes(state.expose().as_bytes());
        let sql = "DELETE FROM pending_logins WHERE hash = $1 AND expires_at > $2";
        let query = sqlx::query(sql).bind(key).bind(self.db.now().as_microsecond());
        let done = query.execute(&self.db.engine.pool).await.map_err(failed_to(END))?;
        Ok(done.rows_affected() > 0)
    }

    /// Removes logins that have expired.
    pub(crate) async fn reap(&self) -> Result<(), sqlx::Error> {
        let sql = "DELETE FROM pending_logins WHERE expires_at <= $1";
        let query = sqlx::query(sql).bind(self.db.now().as_microsecond());
        query.execute(&self.db.engine.pool).await?;
        self.reap_device_connections().await
    }
}

/// Returns the name that the data of a login is encrypted with; no credential has such a name.
fn sealed_name(key: &str) -> String {
    format!("login {key}")
}
