//! Access tokens: their hashes and permissions, never the tokens themselves.

use haft_core::catalog::StoreError;
use haft_core::id::TokenId;
use haft_core::limit::CallRate;
use haft_core::principal::AllowList;
use haft_core::spec::RateLimit;
use haft_core::token::{PreviousToken, Role, TokenRecord};
use haft_core::{Timestamp, duration};
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};
use tokio::sync::watch;

use crate::engine::{failed_to, is_conflict};
use crate::rows;
use crate::session::advance_generation;
use crate::store::{Inner, Store};
use crate::watch::notification::ChangeSet;

const COLUMNS: &str = "id, name, hash, tenant, role, elevated, platform, tools, created_at, expires_at, \
                       last_used_at, previous_hash, previous_expires_at, rate_limit";

/// The new value of a token.
#[derive(Debug, Clone)]
pub struct TokenRotation {
    /// The token.
    pub id: TokenId,
    /// The SHA-256 of the new value, in hexadecimal.
    pub hash: String,
    /// The old value, if it still works for a while.
    pub previous: Option<PreviousToken>,
    /// When the token expires.
    pub expires_at: Option<Timestamp>,
}

impl Store {
    /// Stores a token.
    pub async fn insert_token(&self, token: &TokenRecord) -> Result<(), StoreError> {
        let token = token.clone();
        self.run(|inner| async move { inner.insert_token(&token).await }).await
    }

    /// Returns all tokens, oldest first.
    pub async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        let action = "load the tokens";
        let sql = AssertSqlSafe(format!("SELECT {COLUMNS} FROM tokens ORDER BY id"));
        let found = sqlx::query(sql).fetch_all(&self.inner.engine.pool).await.map_err(failed_to(action))?;
        found.iter().map(token).collect::<Result<_, _>>().map_err(failed_to(action))
    }

    /// Replaces the value of a token.
    pub async fn rotate_token(&self, rotation: TokenRotation) -> Result<(), StoreError> {
        self.run(|inner| async move { inner.rotate_token(&rotation).await }).await
    }

    /// Sets or removes the rate limit of a token.
    pub async fn set_token_rate(&self, id: TokenId, rate: Option<CallRate>) -> Result<(), StoreError> {
        self.run(move |inner| async move { inner.set_token_rate(id, rate).await }).await
    }

    /// Writes when tokens were last used. This is no change of the tokens: nobody is notified.
    pub async fn touch_tokens(&self, uses: Vec<(TokenId, Timestamp)>) -> Result<(), StoreError> {
        let work = |inner: std::sync::Arc<Inner>| async move { inner.touch_tokens(&uses).await };
        self.run(|inner| async move { work(inner).await.map_err(failed_to("store the use of tokens")) }).await
    }

    /// Deletes a token.
    pub async fn delete_token(&self, id: TokenId) -> Result<(), StoreError> {
        self.run(move |inner| async move { inner.delete_token(id).await }).await
    }

    /// Returns a number that changes whenever tokens may have changed. Changes by other processes and nodes are detected
    /// only while the tasks of [`Store::watch`] run.
    pub fn token_changes(&self) -> watch::Receiver<u64> {
        self.inner.tokens.subscribe()
    }
}

impl Inner {
    /// Signals that tokens may have changed.
    pub(crate) fn signal_token_change(&self) {
        self.tokens.send_modify(|number| *number = number.wrapping_add(1));
    }

    async fn insert_token(&self, token: &TokenRecord) -> Result<(), StoreError> {
        let action = "store the token";
        let mut state = self.state.lock().await;
        let mut tx = self.engine.begin_change().await.map_err(failed_to(action))?;
        let found = sqlx::query("SELECT 1 FROM tenants WHERE id = $1 AND deleted_at IS NULL")
            .bind(token.tenant.as_str())
            .fetch_optional(&mut *tx)
            .await
            .map_err(failed_to(action))?;
        if found.is_none() {
            return Err(StoreError::not_found("tenant", &token.tenant));
        }
        let done = sqlx::query(AssertSqlSafe(format!(
            "INSERT INTO tokens ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
        )))
        .bind(token.id.to_string())
        .bind(&token.name)
        .bind(&token.hash)
        .bind(token.tenant.as_str())
        .bind(token.role.as_str())
        .bind(i64::from(token.elevated))
        .bind(i64::from(token.platform))
        .bind(token.tools.rules().map(|rules| serde_json::Value::from(rules).to_string()))
        .bind(token.created_at.as_microsecond())
        .bind(token.expires_at.map(Timestamp::as_microsecond))
        .bind(token.last_used_at.map(Timestamp::as_microsecond))
        .bind(token.previous.as_ref().map(|previous| previous.hash.clone()))
        .bind(token.previous.as_ref().map(|previous| previous.expires_at.as_microsecond()))
        .bind(rate_text(token.rate_limit))
        .execute(&mut *tx)
        .await;
        match done {
            Ok(_) => {}
            Err(error) if is_conflict(&error) => {
                return Err(StoreError::Conflict("the token already exists".into()));
            }
            Err(error) => return Err(failed_to(action)(error)),
        }
        state.advance(self.commit_tokens(tx, &token.name).await.map_err(failed_to(action))?);
        self.signal_token_change();
        Ok(())
    }

    async fn rotate_token(&self, rotation: &TokenRotation) -> Result<(), StoreError> {
        let action = "rotate the token";
        let mut state = self.state.lock().await;
        let mut tx = self.engine.begin_change().await.map_err(failed_to(action))?;
        let done = sqlx::query(
            "UPDATE tokens SET hash = $1, previous_hash = $2, previous_expires_at = $3, expires_at = $4 WHERE id = $5",
        )
        .bind(&rotation.hash)
        .bind(rotation.previous.as_ref().map(|previous| previous.hash.clone()))
        .bind(rotation.previous.as_ref().map(|previous| previous.expires_at.as_microsecond()))
        .bind(rotation.expires_at.map(Timestamp::as_microsecond))
        .bind(rotation.id.to_string())
        .execute(&mut *tx)
        .await
        .map_err(failed_to(action))?;
        if done.rows_affected() == 0 {
            return Err(StoreError::not_found("token", rotation.id));
        }
        let id = rotation.id.to_string();
        state.advance(self.commit_tokens(tx, &id).await.map_err(failed_to(action))?);
        self.signal_token_change();
        Ok(())
    }

    async fn set_token_rate(&self, id: TokenId, rate: Option<CallRate>) -> Result<(), StoreError> {
        let action = "change the token";
        let mut state = self.state.lock().await;
        let mut tx = self.engine.begin_change().await.map_err(failed_to(action))?;
        let done = sqlx::query("UPDATE tokens SET rate_limit = $1 WHERE id = $2")
            .bind(rate_text(rate))
            .bind(id.to_string())
            .execute(&mut *tx)
            .await
            .map_err(failed_to(action))?;
        if done.rows_affected() == 0 {
            return Err(StoreError::not_found("token", id));
        }
        state.advance(self.commit_tokens(tx, &id.to_string()).await.map_err(failed_to(action))?);
        self.signal_token_change();
        Ok(())
    }

    async fn touch_tokens(&self, uses: &[(TokenId, Timestamp)]) -> Result<(), sqlx::Error> {
        let mut tx = self.engine.begin().await?;
        for (id, at) in uses {
            // Another node may have seen a later use.
            sqlx::query(
                "UPDATE tokens SET last_used_at = $1 WHERE id = $2 AND (last_used_at IS NULL OR last_used_at < $3)",
            )
            .bind(at.as_microsecond())
            .bind(id.to_string())
            .bind(at.as_microsecond())
            .execute(&mut *tx)
            .await?;
        }
        tx.commit().await
    }

    async fn delete_token(&self, id: TokenId) -> Result<(), StoreError> {
        let action = "delete the token";
        let mut state = self.state.lock().await;
        let mut tx = self.engine.begin_change().await.map_err(failed_to(action))?;
        let of_token = "token_hash IN (SELECT hash FROM tokens WHERE id = $1)";
        for table in ["sessions", "login_links"] {
            let sql = AssertSqlSafe(format!("DELETE FROM {table} WHERE {of_token}"));
            sqlx::query(sql).bind(id.to_string()).execute(&mut *tx).await.map_err(failed_to(action))?;
        }
        let done = sqlx::query("DELETE FROM tokens WHERE id = $1")
            .bind(id.to_string())
            .execute(&mut *tx)
            .await
            .map_err(failed_to(action))?;
        if done.rows_affected() == 0 {
            return Err(StoreError::not_found("token", id));
        }
        state.advance(self.commit_tokens(tx, &id.to_string()).await.map_err(failed_to(action))?);
        self.signal_token_change();
        Ok(())
    }

    /// Commits and notifies the other nodes and processes.
    async fn commit_tokens(
        &self,
        mut tx: Transaction<'static, Any>,
        subject: &str,
    ) -> Result<i64, sqlx::Error> {
        self.engine.notify(&mut tx, &self.node, &ChangeSet::tokens()).await?;
        let generation = advance_generation(&mut tx, subject).await?;
        tx.commit().await?;
        Ok(generation)
    }
}

fn rate_text(rate: Option<CallRate>) -> Option<String> {
    rate.map(|rate| {
        serde_json::json!({"calls": rate.calls, "per": duration::format(rate.period)}).to_string()
    })
}

fn rate_limit(row: &AnyRow) -> Result<Option<CallRate>, sqlx::Error> {
    if row.try_get::<Option<&str>, _>("rate_limit")?.is_none() {
        return Ok(None);
    }
    let limit: RateLimit = rows::json_column(row, "rate_limit")?;
    let period = limit.period().map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(Some(CallRate { calls: limit.calls, period }))
}

fn token(row: &AnyRow) -> Result<TokenRecord, sqlx::Error> {
    let role: &str = row.try_get("role")?;
    let tools = match row.try_get::<Option<&str>, _>("tools")? {
        Some(_) => rows::json_column::<AllowList>(row, "tools")?,
        None => AllowList::default(),
    };
    let previous = match row.try_get::<Option<String>, _>("previous_hash")? {
        Some(hash) => rows::optional_timestamp(row, "previous_expires_at")?
            .map(|expires_at| PreviousToken { hash, expires_at }),
        None => None,
    };
    Ok(TokenRecord {
        id: rows::parse_column(row, "id")?,
        name: row.try_get("name")?,
        hash: row.try_get("hash")?,
        tenant: rows::parse_column(row, "tenant")?,
        // An unknown role of a newer version gets the fewest permissions.
        role: Role::parse(role).unwrap_or(Role::Viewer),
        elevated: rows::boolean(row, "elevated")?,
        platform: rows::boolean(row, "platform")?,
        tools,
        rate_limit: rate_limit(row)?,
        created_at: rows::timestamp(row, "created_at")?,
        expires_at: rows::optional_timestamp(row, "expires_at")?,
        last_used_at: rows::optional_timestamp(row, "last_used_at")?,
        previous,
    })
}
