//! Access tokens: their hashes and permissions, never the tokens themselves.

use std::sync::Arc;

use haft_core::actor::owner_key;
use haft_core::catalog::StoreError;
use haft_core::id::{ActorId, TokenId};
use haft_core::limit::CallRate;
use haft_core::principal::AllowList;
use haft_core::spec::RateLimit;
use haft_core::token::{PreviousToken, Role, TokenRecord};
use haft_core::{Timestamp, duration};
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};
use tokio::sync::watch;

use crate::database::{ChangeSignal, Database};
use crate::engine::{failed_to, is_conflict};
use crate::notification::ChangeSet;
use crate::rows;

pub(super) const COLUMNS: &str = "id, name, hash, tenant, role, elevated, platform, tools, created_at, expires_at, \
                       last_used_at, previous_hash, previous_expires_at, rate_limit, parent, actor_id";

/// The token $1, and all that come from it.
const FAMILY: &str = "WITH RECURSIVE family (id) AS (SELECT id FROM tokens WHERE id = $1 \
                      UNION SELECT tokens.id FROM tokens JOIN family ON tokens.parent = family.id)";
const STORE: &str = "store the token";

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

/// What happens to the chats, runs and approvals of a token that gets an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnedByToken {
    /// They belong to the owner.
    MovesToOwner,
    /// They belong to the token.
    Stays,
}

/// Access tokens, sessions of browsers, login links and logins of command lines.
#[derive(Clone)]
pub struct Access {
    pub(super) db: Arc<Database>,
    /// Changes whenever the tokens may have changed.
    signal: Arc<ChangeSignal>,
}

impl Access {
    pub(crate) fn new(db: &Arc<Database>) -> Self {
        Self { db: Arc::clone(db), signal: Arc::default() }
    }
}

impl Access {
    /// Stores a token.
    pub async fn insert_token(&self, token: &TokenRecord) -> Result<(), StoreError> {
        let token = token.clone();
        let this = self.clone();
        let work = async move {
            let mut change = this.db.begin_shared().await.map_err(failed_to(STORE))?;
            insert(&mut change.tx, &token).await?;
            let _lock = change
                .commit(&ChangeSet::access_of(token.actor), &token.name)
                .await
                .map_err(failed_to(STORE))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Returns all tokens, oldest first.
    pub async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        let action = "load the tokens";
        let sql = AssertSqlSafe(format!("SELECT {COLUMNS} FROM tokens ORDER BY id"));
        let found = sqlx::query(sql).fetch_all(&self.db.engine.pool).await.map_err(failed_to(action))?;
        found.iter().map(token).collect::<Result<_, _>>().map_err(failed_to(action))
    }

    /// Finds a token by its id.
    pub async fn token(&self, id: TokenId) -> Result<Option<TokenRecord>, StoreError> {
        let action = "load the token";
        let sql = AssertSqlSafe(format!("SELECT {COLUMNS} FROM tokens WHERE id = $1"));
        let query = sqlx::query(sql).bind(id.to_string());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(action))?;
        found.as_ref().map(token).transpose().map_err(failed_to(action))
    }

    /// Replaces the value of a token.
    pub async fn rotate_token(&self, rotation: TokenRotation) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let action = "rotate the token";
            let mut change = this.db.begin_shared().await.map_err(failed_to(action))?;
            let done = sqlx::query(
                "UPDATE tokens SET hash = $1, previous_hash = $2, previous_expires_at = $3, expires_at = $4 WHERE id = $5",
            )
            .bind(&rotation.hash)
            .bind(rotation.previous.as_ref().map(|previous| previous.hash.clone()))
            .bind(rotation.previous.as_ref().map(|previous| previous.expires_at.as_microsecond()))
            .bind(rotation.expires_at.map(Timestamp::as_microsecond))
            .bind(rotation.id.to_string())
            .execute(&mut *change.tx)
            .await
            .map_err(failed_to(action))?;
            if done.rows_affected() == 0 {
                return Err(StoreError::not_found("token", rotation.id));
            }
            let id = rotation.id.to_string();
            if rotation.previous.is_none() {
                let sql =
                    format!("{FAMILY} DELETE FROM tokens WHERE id IN (SELECT id FROM family) AND id <> $2");
                let query = sqlx::query(AssertSqlSafe(sql)).bind(&id).bind(&id);
                query.execute(&mut *change.tx).await.map_err(failed_to(action))?;
            }
            let changed = ChangeSet::access_of(owner(&mut change.tx, &id).await.map_err(failed_to(action))?);
            let _lock = change.commit(&changed, &id).await.map_err(failed_to(action))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Sets or removes the rate limit of a token.
    pub async fn set_token_rate(&self, id: TokenId, rate: Option<CallRate>) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let action = "change the token";
            let mut change = this.db.begin_shared().await.map_err(failed_to(action))?;
            let done = sqlx::query("UPDATE tokens SET rate_limit = $1 WHERE id = $2")
                .bind(rate_text(rate))
                .bind(id.to_string())
                .execute(&mut *change.tx)
                .await
                .map_err(failed_to(action))?;
            if done.rows_affected() == 0 {
                return Err(StoreError::not_found("token", id));
            }
            let id = id.to_string();
            let changed = ChangeSet::access_of(owner(&mut change.tx, &id).await.map_err(failed_to(action))?);
            let _lock = change.commit(&changed, &id).await.map_err(failed_to(action))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Gives a token without an owner, and those that come from it, to somebody.
    pub async fn set_token_owner(
        &self,
        id: TokenId,
        owner: ActorId,
        owned: OwnedByToken,
    ) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let action = "change the owner of the token";
            let mut change = this.db.begin_shared().await.map_err(failed_to(action))?;
            let sql = format!(
                "{FAMILY} UPDATE tokens SET actor_id = $2 WHERE id IN (SELECT id FROM family) AND actor_id IS NULL"
            );
            let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()).bind(owner.to_string());
            if query.execute(&mut *change.tx).await.map_err(failed_to(action))?.rows_affected() == 0 {
                return Err(StoreError::Conflict("the token has an owner, or was revoked".into()));
            }
            let columns = [
                ("chats", "owner"),
                ("runs", "principal"),
                ("approvals", "principal"),
                ("approval_grants", "principal"),
            ];
            for (table, column) in columns.into_iter().filter(|_| owned == OwnedByToken::MovesToOwner) {
                let sql = format!(
                    "UPDATE {table} SET {column} = $1 WHERE {column} = $2 \
                     AND tenant = (SELECT tenant FROM tokens WHERE id = $3)"
                );
                let query = sqlx::query(AssertSqlSafe(sql)).bind(owner_key(owner).to_string());
                let query = query.bind(id.to_string()).bind(id.to_string());
                query.execute(&mut *change.tx).await.map_err(failed_to(action))?;
            }
            let _lock =
                change.commit(&ChangeSet::tokens(), &id.to_string()).await.map_err(failed_to(action))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Stores the last use of tokens. Other nodes are not notified.
    pub async fn record_token_use(&self, uses: Vec<(TokenId, Timestamp)>) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            for (id, at) in uses {
                // One statement each: a transaction would lock several tokens, and could deadlock with a deletion.
                // Another node may have stored a later use.
                sqlx::query(
                    "UPDATE tokens SET last_used_at = $1 WHERE id = $2 AND (last_used_at IS NULL OR last_used_at < $3)",
                )
                .bind(at.as_microsecond())
                .bind(id.to_string())
                .bind(at.as_microsecond())
                .execute(&this.db.engine.pool)
                .await?;
            }
            Ok(())
        };
        self.db.complete_query("store the use of tokens", work).await
    }

    /// Deletes a token, and all that come from it.
    pub async fn delete_token(&self, id: TokenId) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let action = "delete the token";
            let mut change = this.db.begin_shared().await.map_err(failed_to(action))?;
            let owner = owner(&mut change.tx, &id.to_string()).await.map_err(failed_to(action))?;
            let of_family = "SELECT hash FROM tokens WHERE id IN (SELECT id FROM family)";
            for table in ["sessions", "login_links"] {
                let sql =
                    AssertSqlSafe(format!("{FAMILY} DELETE FROM {table} WHERE token_hash IN ({of_family})"));
                sqlx::query(sql)
                    .bind(id.to_string())
                    .execute(&mut *change.tx)
                    .await
                    .map_err(failed_to(action))?;
            }
            let sql = format!("{FAMILY} DELETE FROM tokens WHERE id IN (SELECT id FROM family)");
            let done = sqlx::query(AssertSqlSafe(sql))
                .bind(id.to_string())
                .execute(&mut *change.tx)
                .await
                .map_err(failed_to(action))?;
            if done.rows_affected() == 0 {
                return Err(StoreError::not_found("token", id));
            }
            let changed = ChangeSet::access_of(owner);
            let _lock = change.commit(&changed, &id.to_string()).await.map_err(failed_to(action))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Returns a number that changes whenever tokens may have changed. Changes by other processes and nodes are detected
    /// only while the tasks of [`crate::Store::watch`] run.
    pub fn token_changes(&self) -> watch::Receiver<u64> {
        self.signal.subscribe()
    }
}

impl Access {
    /// Signals that tokens may have changed.
    pub(crate) fn signal_change(&self) {
        self.signal.send();
    }
}

/// Returns to whom a token belongs. Those that come from it belong to the same owner.
async fn owner(tx: &mut Transaction<'static, Any>, id: &str) -> Result<Option<ActorId>, sqlx::Error> {
    let query = sqlx::query("SELECT actor_id FROM tokens WHERE id = $1").bind(id);
    let found = query.fetch_optional(&mut **tx).await?;
    found.map_or(Ok(None), |row| rows::optional_parse_column(&row, "actor_id"))
}

/// Inserts the row of a token.
pub(super) async fn insert(
    tx: &mut Transaction<'static, Any>,
    token: &TokenRecord,
) -> Result<(), StoreError> {
    let found = sqlx::query("SELECT 1 FROM tenants WHERE id = $1 AND deleted_at IS NULL")
        .bind(token.tenant.as_str())
        .fetch_optional(&mut **tx)
        .await
        .map_err(failed_to(STORE))?;
    if found.is_none() {
        return Err(StoreError::not_found("tenant", &token.tenant));
    }
    if let Some(actor) = token.actor {
        let query = sqlx::query("SELECT 1 FROM memberships WHERE actor_id = $1 AND tenant = $2");
        let query = query.bind(actor.to_string()).bind(token.tenant.as_str());
        if query.fetch_optional(&mut **tx).await.map_err(failed_to(STORE))?.is_none() {
            return Err(StoreError::not_found("member", actor));
        }
    }
    let done = sqlx::query(AssertSqlSafe(format!(
        "INSERT INTO tokens ({COLUMNS}) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
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
    .bind(token.parent.map(|parent| parent.to_string()))
    .bind(token.actor.map(|actor| actor.to_string()))
    .execute(&mut **tx)
    .await;
    match done {
        Ok(_) => Ok(()),
        Err(error) if is_conflict(&error) => Err(StoreError::Conflict("the token already exists".into())),
        Err(error) => Err(failed_to(STORE)(error)),
    }
}

/// Returns whether a value of a token gives access at a time: the current value, or the one before the last rotation.
pub(super) async fn is_valid(
    tx: &mut Transaction<'static, Any>,
    (id, hash): (TokenId, &str),
    now: Timestamp,
) -> Result<bool, sqlx::Error> {
    let now = now.as_microsecond();
    let sql = "SELECT 1 FROM tokens JOIN tenants ON tenants.id = tokens.tenant \
               WHERE tokens.id = $1 AND tenants.enabled = 1 AND tenants.deleted_at IS NULL \
               AND (tokens.expires_at IS NULL OR tokens.expires_at > $2) \
               AND (tokens.hash = $3 OR (tokens.previous_hash = $4 AND tokens.previous_expires_at > $5))";
    let query = sqlx::query(sql).bind(id.to_string()).bind(now).bind(hash).bind(hash).bind(now);
    Ok(query.fetch_optional(&mut **tx).await?.is_some())
}

pub(super) fn rate_text(rate: Option<CallRate>) -> Option<String> {
    rate.map(|rate| {
        serde_json::json!({"calls": rate.calls, "per": duration::format(rate.period)}).to_string()
    })
}

pub(super) fn rate_limit(row: &AnyRow) -> Result<Option<CallRate>, sqlx::Error> {
    if row.try_get::<Option<&str>, _>("rate_limit")?.is_none() {
        return Ok(None);
    }
    let limit: RateLimit = rows::json_column(row, "rate_limit")?;
    let period = limit.period().map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(Some(CallRate { calls: limit.calls, period }))
}

pub(super) fn token(row: &AnyRow) -> Result<TokenRecord, sqlx::Error> {
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
        // An unknown role of a newer version is read as the least privileged one.
        role: Role::parse(role).unwrap_or(Role::Viewer),
        elevated: rows::boolean(row, "elevated")?,
        platform: rows::boolean(row, "platform")?,
        tools,
        rate_limit: rate_limit(row)?,
        created_at: rows::timestamp(row, "created_at")?,
        expires_at: rows::optional_timestamp(row, "expires_at")?,
        last_used_at: rows::optional_timestamp(row, "last_used_at")?,
        previous,
        parent: rows::optional_parse_column(row, "parent")?,
        actor: rows::optional_parse_column(row, "actor_id")?,
    })
}
