//! Rotated refresh tokens: encrypted like credentials, used by one process at a time.
//!
//! A process claims the row for the time of a token request, so that no database connection is held during it. The claim
//! of a dead process is free at once; that of a request that was abandoned expires.

use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::name::TenantId;
use haft_core::secret::{GrantId, RefreshLock, RefreshTokens, Secret, SecretError};
use jiff::SignedDuration;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};
use tokio::time::Instant;

use crate::claims::{Claim, holds};
use crate::engine::is_busy;
use crate::vault::Vault;

/// How long a lease lasts; a token request takes less.
const LEASE: SignedDuration = SignedDuration::from_secs(30);
/// How long to wait for a lease.
const LEASE_TIMEOUT: Duration = Duration::from_secs(40);
/// How long to wait for changes of other nodes before a new token is given up.
const STORE_TIMEOUT: Duration = Duration::from_mins(5);
/// How often to check whether a lease is free.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long an unused token is kept.
const RETENTION: SignedDuration = SignedDuration::from_hours(24 * 400);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl RefreshTokens for Vault {
    fn read<'a>(&'a self, grant: &'a GrantId) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move { self.stored_token(grant).await.map_err(secret_error(grant)) })
    }

    fn begin<'a>(&'a self, grant: &'a GrantId) -> BoxFuture<'a, Result<RefreshLock, SecretError>> {
        Box::pin(async move { self.acquire_token(grant).await.map_err(secret_error(grant)) })
    }

    fn end<'a>(
        &'a self,
        grant: &'a GrantId,
        lease: i64,
        token: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<(), SecretError>> {
        Box::pin(async move { self.release_token(grant, lease, token).await.map_err(secret_error(grant)) })
    }
}

fn secret_error(grant: &GrantId) -> impl FnOnce(BoxError) -> SecretError + '_ {
    |source| SecretError { name: grant.credential.clone(), source }
}

/// Returns the name that a token is encrypted with; no credential has such a name.
pub(super) fn sealed_name(grant_key: &str) -> String {
    format!("refresh:{grant_key}")
}

impl Vault {
    async fn acquire_token(&self, grant: &GrantId) -> Result<RefreshLock, BoxError> {
        let start = Instant::now();
        let mut dead = None;
        let number = loop {
            if let Some(fence) = self.claim_token(grant, dead.as_deref()).await? {
                break fence;
            }
            if start.elapsed() > LEASE_TIMEOUT {
                return Err("timed out waiting for another process that uses the refresh token".into());
            }
            dead = self.dead_user(grant).await?;
            if dead.is_none() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        Ok(RefreshLock { token: self.stored_token(grant).await?, number })
    }

    /// Claims a token that is free or held by a dead node; returns the fence.
    async fn claim_token(&self, grant: &GrantId, dead: Option<&str>) -> Result<Option<i64>, sqlx::Error> {
        let now = self.db.now();
        // A row that is stored again does not begin with the fences of the deleted one.
        let sql = "INSERT INTO refresh_tokens (tenant, grant_key, credential, sealed, turn, node, fence, modified_at) \
                   VALUES ($1, $2, $3, NULL, $4, $5, $6, $6) ON CONFLICT (tenant, grant_key) DO UPDATE SET \
                   turn = excluded.turn, node = excluded.node, fence = refresh_tokens.fence + 1 \
                   WHERE refresh_tokens.turn <= $6 OR (refresh_tokens.node <> '' AND refresh_tokens.node = $7) \
                   RETURNING fence";
        let claimed = sqlx::query(sql)
            .bind(grant.tenant.as_str())
            .bind(&grant.key)
            .bind(&grant.credential)
            .bind((now + LEASE).as_microsecond())
            .bind(&self.db.node)
            .bind(now.as_microsecond())
            .bind(dead.unwrap_or_default())
            .fetch_optional(&self.db.engine.pool)
            .await?;
        claimed.map(|row| row.try_get(0)).transpose()
    }

    /// Returns the node that uses a token, if it shows no sign of life.
    async fn dead_user(&self, grant: &GrantId) -> Result<Option<String>, BoxError> {
        let sql =
            "SELECT node FROM refresh_tokens WHERE tenant = $1 AND grant_key = $2 AND node NOT IN ('', $3)";
        let found = sqlx::query(sql).bind(grant.tenant.as_str()).bind(&grant.key).bind(&self.db.node);
        let Some(row) = found.fetch_optional(&self.db.engine.pool).await? else { return Ok(None) };
        let node: String = row.try_get(0)?;
        Ok(self.db.is_dead(&node).await?.then_some(node))
    }

    async fn stored_token(&self, grant: &GrantId) -> Result<Option<Secret>, BoxError> {
        let Some(sealed) = self.sealed_token(grant).await? else { return Ok(None) };
        if let Ok(token) = self.unseal(grant, &sealed).await {
            return Ok(Some(token));
        }
        // The key may have been rotated between reading the table and the key.
        let Some(sealed) = self.sealed_token(grant).await? else { return Ok(None) };
        let opened = self.unseal(grant, &sealed).await.inspect_err(|error| {
            tracing::error!(credential = grant.credential, %error, "cannot decrypt a stored refresh token");
        });
        // The configured token is used instead.
        Ok(opened.ok())
    }

    async fn sealed_token(&self, grant: &GrantId) -> Result<Option<String>, sqlx::Error> {
        let row = sqlx::query("SELECT sealed FROM refresh_tokens WHERE tenant = $1 AND grant_key = $2")
            .bind(grant.tenant.as_str())
            .bind(&grant.key)
            .fetch_optional(&self.db.engine.pool)
            .await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?.flatten())
    }

    async fn unseal(&self, grant: &GrantId, sealed: &str) -> Result<Secret, String> {
        let (tenant, name) = (grant.tenant.as_str(), sealed_name(&grant.key));
        let candidates = self.candidates().await?;
        let opened = candidates.iter().find_map(|cipher| cipher.open(tenant, &name, sealed).ok());
        opened.ok_or_else(|| self.wrong_key())
    }

    async fn release_token(
        &self,
        grant: &GrantId,
        lease: i64,
        token: Option<&Secret>,
    ) -> Result<(), BoxError> {
        let claim = Claim::new(&self.db.node, lease);
        let Some(token) = token else {
            let sql = AssertSqlSafe(format!(
                "DELETE FROM refresh_tokens WHERE tenant = $1 AND grant_key = $2 AND {}",
                holds(3)
            ));
            let query = sqlx::query(sql).bind(grant.tenant.as_str()).bind(&grant.key);
            claim.bind(query).execute(&self.db.engine.pool).await?;
            return Ok(());
        };
        let start = Instant::now();
        let mut tx = loop {
            match self.db.engine.begin_change().await {
                // The old token no longer works: without the new one, a new login would be needed.
                Err(error) if is_busy(&error) && start.elapsed() < STORE_TIMEOUT => {}
                begun => break begun?,
            }
        };
        let cipher = self.cipher_in(&mut tx).await?;
        let sealed = cipher.seal(grant.tenant.as_str(), &sealed_name(&grant.key), token)?;
        // After the claim is lost, the token of its new holder is newer.
        let sql = AssertSqlSafe(format!(
            "UPDATE refresh_tokens SET sealed = $1, turn = 0, node = '', modified_at = $2 \
             WHERE tenant = $3 AND grant_key = $4 AND {}",
            holds(5)
        ));
        let query = sqlx::query(sql)
            .bind(sealed)
            .bind(self.db.now().as_microsecond())
            .bind(grant.tenant.as_str())
            .bind(&grant.key);
        claim.bind(query).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Removes tokens that have not been used for a long time.
    pub(crate) async fn reap_refresh_tokens(&self) -> Result<(), sqlx::Error> {
        // Somebody may log in while being deleted.
        let orphans = "DELETE FROM refresh_tokens WHERE credential LIKE 'login:%' AND NOT EXISTS \
                       (SELECT 1 FROM actors WHERE 'login:' || actors.id = refresh_tokens.credential)";
        sqlx::query(orphans).execute(&self.db.engine.pool).await?;
        // Accounts of people stay until they are revoked.
        let sql = "DELETE FROM refresh_tokens WHERE modified_at <= $1 AND grant_key NOT LIKE 'account:%'";
        sqlx::query(sql)
            .bind((self.db.now() - RETENTION).as_microsecond())
            .execute(&self.db.engine.pool)
            .await?;
        Ok(())
    }
}

/// Deletes the tokens of a credential that is replaced or deleted.
pub(crate) async fn forget(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    name: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM refresh_tokens WHERE tenant = $1 AND credential = $2")
        .bind(tenant.as_str())
        .bind(name)
        .execute(&mut **tx)
        .await?;
    Ok(())
}
