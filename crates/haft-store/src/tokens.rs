//! Access tokens: their hashes and what they may do, never the tokens themselves.

use haft_core::Timestamp;
use haft_core::catalog::StoreError;
use haft_core::id::TokenId;
use haft_core::token::{Role, TokenRecord};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::engine::{fault, is_conflict};
use crate::rows;
use crate::store::Store;

impl Store {
    /// Stores a token.
    pub async fn insert_token(&self, token: &TokenRecord) -> Result<(), StoreError> {
        sqlx::query(
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
        .execute(&self.inner.engine.pool)
        .await
        .map(drop)
        .map_err(|error| {
            if is_conflict(&error) {
                return StoreError::Conflict("this token is stored already".into());
            }
            fault("store the token")(error)
        })
    }

    /// Returns every token, oldest first.
    pub async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        let doing = "load the tokens";
        let sql =
            "SELECT id, name, hash, tenant, role, elevated, created_at, expires_at FROM tokens ORDER BY id";
        let found = sqlx::query(sql).fetch_all(&self.inner.engine.pool).await.map_err(fault(doing))?;
        found.iter().map(token).collect::<Result<_, _>>().map_err(fault(doing))
    }

    /// Deletes a token.
    pub async fn delete_token(&self, id: TokenId) -> Result<(), StoreError> {
        let done = sqlx::query("DELETE FROM tokens WHERE id = $1")
            .bind(id.to_string())
            .execute(&self.inner.engine.pool)
            .await
            .map_err(fault("delete the token"))?;
        if done.rows_affected() == 0 {
            return Err(StoreError::not_found("token", id));
        }
        Ok(())
    }
}

fn token(row: &AnyRow) -> Result<TokenRecord, sqlx::Error> {
    let role: &str = row.try_get("role")?;
    Ok(TokenRecord {
        id: rows::parsed(row, "id")?,
        name: row.try_get("name")?,
        hash: row.try_get("hash")?,
        tenant: rows::parsed(row, "tenant")?,
        // A role that a newer haft wrote gives the least.
        role: Role::parse(role).unwrap_or(Role::Viewer),
        elevated: rows::switch(row, "elevated")?,
        created_at: rows::moment(row, "created_at")?,
        expires_at: rows::maybe_moment(row, "expires_at")?,
    })
}
