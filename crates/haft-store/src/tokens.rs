//! Access tokens: their hashes and permissions, never the tokens themselves.

use haft_core::Timestamp;
use haft_core::catalog::StoreError;
use haft_core::id::TokenId;
use haft_core::token::{Role, TokenRecord};
use sqlx::any::AnyRow;
use sqlx::{Any, Row as _, Transaction};
use tokio::sync::watch;

use crate::engine::{failed_to, is_conflict};
use crate::rows;
use crate::session::advance_generation;
use crate::store::{Inner, Store};
use crate::watch::notification::ChangeSet;

impl Store {
    /// Stores a token.
    pub async fn insert_token(&self, token: &TokenRecord) -> Result<(), StoreError> {
        let token = token.clone();
        self.run(|inner| async move { inner.insert_token(&token).await }).await
    }

    /// Returns all tokens, oldest first.
    pub async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        let action = "load the tokens";
        let sql =
            "SELECT id, name, hash, tenant, role, elevated, created_at, expires_at FROM tokens ORDER BY id";
        let found = sqlx::query(sql).fetch_all(&self.inner.engine.pool).await.map_err(failed_to(action))?;
        found.iter().map(token).collect::<Result<_, _>>().map_err(failed_to(action))
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
        let done = sqlx::query(
            "INSERT INTO tokens (id, name, hash, tenant, role, elevated, created_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(token.id.to_string())
        .bind(&token.name)
        .bind(&token.hash)
        .bind(token.tenant.as_str())
        .bind(token.role.as_str())
        .bind(i64::from(token.elevated))
        .bind(token.created_at.as_microsecond())
        .bind(token.expires_at.map(Timestamp::as_microsecond))
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

    async fn delete_token(&self, id: TokenId) -> Result<(), StoreError> {
        let action = "delete the token";
        let mut state = self.state.lock().await;
        let mut tx = self.engine.begin_change().await.map_err(failed_to(action))?;
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

fn token(row: &AnyRow) -> Result<TokenRecord, sqlx::Error> {
    let role: &str = row.try_get("role")?;
    Ok(TokenRecord {
        id: rows::parse_column(row, "id")?,
        name: row.try_get("name")?,
        hash: row.try_get("hash")?,
        tenant: rows::parse_column(row, "tenant")?,
        // An unknown role of a newer version gets the fewest permissions.
        role: Role::parse(role).unwrap_or(Role::Viewer),
        elevated: rows::boolean(row, "elevated")?,
        created_at: rows::timestamp(row, "created_at")?,
        expires_at: rows::optional_timestamp(row, "expires_at")?,
    })
}
