//! Refresh tokens that a server rotated: sealed like credentials, used by one process at a time.
//!
//! A turn is a moment in the row until which it lasts: no connection is held while a token server is asked, and who
//! dies within its turn stops nobody for long.

use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::name::TenantId;
use haft_core::secret::{GrantId, RefreshLock, RefreshTokens, Secret, SecretError};
use jiff::SignedDuration;
use sqlx::{Any, Row as _, Transaction};
use tokio::time::Instant;

use super::key::Missing;
use crate::store::{Inner, Store};

/// How long a turn lasts at most; asking a token server ends before.
const TURN: SignedDuration = SignedDuration::from_secs(30);
/// How long a turn is waited for.
const PATIENCE: Duration = Duration::from_secs(40);
/// How often is looked whether a turn is over.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a token is kept that nobody uses.
const KEEP: SignedDuration = SignedDuration::from_hours(24 * 400);

type Fault = Box<dyn std::error::Error + Send + Sync>;

impl RefreshTokens for Store {
    fn read<'a>(&'a self, grant: &'a GrantId) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move { self.inner.kept_token(grant).await.map_err(named(grant)) })
    }

    fn begin<'a>(&'a self, grant: &'a GrantId) -> BoxFuture<'a, Result<RefreshLock, SecretError>> {
        Box::pin(async move { self.inner.begin_turn(grant).await.map_err(named(grant)) })
    }

    fn end<'a>(
        &'a self,
        grant: &'a GrantId,
        turn: i64,
        token: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<(), SecretError>> {
        Box::pin(async move { self.inner.end_turn(grant, turn, token).await.map_err(named(grant)) })
    }
}

fn named(grant: &GrantId) -> impl FnOnce(Fault) -> SecretError + '_ {
    |source| SecretError { name: grant.credential.clone(), source }
}

/// What a sealed token is bound to; no credential has such a name.
fn bound(grant: &GrantId) -> String {
    format!("refresh:{}", grant.key)
}

impl Inner {
    async fn begin_turn(&self, grant: &GrantId) -> Result<RefreshLock, Fault> {
        let start = Instant::now();
        let number = loop {
            let now = self.now();
            let until = (now + TURN).as_microsecond();
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
            if start.elapsed() > PATIENCE {
                return Err("another process has been using the refresh token for too long".into());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        };
        Ok(RefreshLock { token: self.kept_token(grant).await?, number })
    }

    async fn kept_token(&self, grant: &GrantId) -> Result<Option<Secret>, Fault> {
        let row = sqlx::query("SELECT sealed FROM refresh_tokens WHERE tenant = $1 AND grant_key = $2")
            .bind(grant.tenant.as_str())
            .bind(&grant.key)
            .fetch_optional(&self.engine.pool)
            .await?;
        let sealed: Option<String> = row.map(|row| row.try_get(0)).transpose()?.flatten();
        Ok(match sealed {
            Some(sealed) => self.unseal(grant, &sealed).await,
            None => None,
        })
    }

    /// Opens a kept token. One that does not open is as good as none: the configured one is tried.
    async fn unseal(&self, grant: &GrantId, sealed: &str) -> Option<Secret> {
        let opened = self.cipher(Missing::Fail).await.and_then(|cipher| {
            let opened = cipher.open(grant.tenant.as_str(), &bound(grant), sealed);
            opened.map_err(|_| self.wrong_key())
        });
        opened
            .inspect_err(|why| {
                tracing::error!(credential = grant.credential, %why, "a kept refresh token cannot be opened");
            })
            .ok()
    }

    async fn end_turn(&self, grant: &GrantId, turn: i64, token: Option<&Secret>) -> Result<(), Fault> {
        let Some(token) = token else {
            sqlx::query("DELETE FROM refresh_tokens WHERE tenant = $1 AND grant_key = $2 AND turn = $3")
                .bind(grant.tenant.as_str())
                .bind(&grant.key)
                .bind(turn)
                .execute(&self.engine.pool)
                .await?;
            return Ok(());
        };
        let cipher = self.cipher(self.missing_key()).await?;
        let sealed = cipher.seal(grant.tenant.as_str(), &bound(grant), token)?;
        // Whoever lost its turn knows nothing newer than who has it now.
        sqlx::query(
            "UPDATE refresh_tokens SET sealed = $1, turn = 0, modified_at = $2 \
             WHERE tenant = $3 AND grant_key = $4 AND turn = $5",
        )
        .bind(sealed)
        .bind(self.now().as_microsecond())
        .bind(grant.tenant.as_str())
        .bind(&grant.key)
        .bind(turn)
        .execute(&self.engine.pool)
        .await?;
        Ok(())
    }

    /// Removes what nobody has used for very long.
    pub(crate) async fn reap_refresh_tokens(&self) -> Result<(), sqlx::Error> {
        sqlx::query("DELETE FROM refresh_tokens WHERE modified_at <= $1")
            .bind((self.now() - KEEP).as_microsecond())
            .execute(&self.engine.pool)
            .await?;
        Ok(())
    }
}

/// Forgets what came of a credential that is replaced or deleted.
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
