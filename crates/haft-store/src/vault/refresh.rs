//! Rotated refresh tokens: encrypted like credentials, used by one process at a time.
//!
//! A lease is an expiry time in the row: no database connection is held during a token request, and the lease of a dead
//! process expires.

use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::name::TenantId;
use haft_core::secret::{GrantId, RefreshLock, RefreshTokens, Secret, SecretError};
use jiff::SignedDuration;
use sqlx::{Any, Row as _, Transaction};
use tokio::time::Instant;

use crate::store::{Inner, Store};

/// How long a lease lasts; a token request takes less.
const LEASE: SignedDuration = SignedDuration::from_secs(30);
/// How long to wait for a lease.
const LEASE_TIMEOUT: Duration = Duration::from_secs(40);
/// How often to check whether a lease is free.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long an unused token is kept.
const RETENTION: SignedDuration = SignedDuration::from_hours(24 * 400);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl RefreshTokens for Store {
    fn read<'a>(&'a self, grant: &'a GrantId) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move { self.inner.stored_token(grant).await.map_err(secret_error(grant)) })
    }

    fn begin<'a>(&'a self, grant: &'a GrantId) -> BoxFuture<'a, Result<RefreshLock, SecretError>> {
        Box::pin(async move { self.inner.acquire_lease(grant).await.map_err(secret_error(grant)) })
    }

    fn end<'a>(
        &'a self,
        grant: &'a GrantId,
        lease: i64,
        token: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<(), SecretError>> {
        Box::pin(
            async move { self.inner.release_lease(grant, lease, token).await.map_err(secret_error(grant)) },
        )
    }
}

fn secret_error(grant: &GrantId) -> impl FnOnce(BoxError) -> SecretError + '_ {
    |source| SecretError { name: grant.credential.clone(), source }
}

/// Returns the name that a token is encrypted with; no credential has such a name.
pub(super) fn sealed_name(grant_key: &str) -> String {
    format!("refresh:{grant_key}")
}

impl Inner {
    async fn acquire_lease(&self, grant: &GrantId) -> Result<RefreshLock, BoxError> {
        let start = Instant::now();
        let number = loop {
            let now = self.now();
            let until = (now + LEASE).as_microsecond();
            let done = sqlx::query(
                "INSERT INTO refresh_tokens (tenant, grant_key, credential, sealed, turn, modified_at) \
                 VALUES ($1, $2, $3, NULL, $4, $5) ON CONFLICT (tenant, grant_key) \
                 DO UPDATE SET turn = excluded.turn WHERE refresh_tokens.turn <= $6",
            )
            .bind(grant.tenant.as_str())
            .bind(&grant.key)
            .bind(&grant.credential)
            .bind(until)
            .bind(now.as_microsecond())
            .bind(now.as_microsecond())
            .execute(&self.engine.pool)
            .await?;
            if done.rows_affected() > 0 {
                break until;
            }
            if start.elapsed() > LEASE_TIMEOUT {
                return Err("timed out waiting for another process that uses the refresh token".into());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        };
        Ok(RefreshLock { token: self.stored_token(grant).await?, number })
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
            .fetch_optional(&self.engine.pool)
            .await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?.flatten())
    }

    async fn unseal(&self, grant: &GrantId, sealed: &str) -> Result<Secret, String> {
        let (tenant, name) = (grant.tenant.as_str(), sealed_name(&grant.key));
        let candidates = self.candidates().await?;
        let opened = candidates.iter().find_map(|cipher| cipher.open(tenant, &name, sealed).ok());
        opened.ok_or_else(|| self.wrong_key())
    }

    async fn release_lease(
        &self,
        grant: &GrantId,
        lease: i64,
        token: Option<&Secret>,
    ) -> Result<(), BoxError> {
        let Some(token) = token else {
            sqlx::query("DELETE FROM refresh_tokens WHERE tenant = $1 AND grant_key = $2 AND turn = $3")
                .bind(grant.tenant.as_str())
                .bind(&grant.key)
                .bind(lease)
                .execute(&self.engine.pool)
                .await?;
            return Ok(());
        };
        let mut tx = self.engine.begin_change().await?;
        let cipher = self.cipher_in(&mut tx).await?;
        let sealed = cipher.seal(grant.tenant.as_str(), &sealed_name(&grant.key), token)?;
        // After the lease has expired, the token of its new holder is newer.
        sqlx::query(
            "UPDATE refresh_tokens SET sealed = $1, turn = 0, modified_at = $2 \
             WHERE tenant = $3 AND grant_key = $4 AND turn = $5",
        )
        .bind(sealed)
        .bind(self.now().as_microsecond())
        .bind(grant.tenant.as_str())
        .bind(&grant.key)
        .bind(lease)
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(())
    }

    /// Removes tokens that have not been used for a long time.
    pub(crate) async fn reap_refresh_tokens(&self) -> Result<(), sqlx::Error> {
        sqlx::query("DELETE FROM refresh_tokens WHERE modified_at <= $1")
            .bind((self.now() - RETENTION).as_microsecond())
            .execute(&self.engine.pool)
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
