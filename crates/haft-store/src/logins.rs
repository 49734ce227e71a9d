//! Sessions of browsers and the links that open them; only hashes are stored.

use haft_core::catalog::StoreError;
use haft_core::login::{LoginLinkRecord, SessionRecord};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::engine::failed_to;
use crate::rows;
use crate::session::advance_generation;
use crate::store::{Inner, Store};
use crate::watch::notification::ChangeSet;

/// The maximum number of sessions of a token; a further one ends the oldest.
const MAX_SESSIONS: i64 = 100;
/// The maximum number of unused links of a token; a further one replaces the oldest.
const MAX_LINKS: i64 = 100;

const OPEN: &str = "store the session";
const END: &str = "end the session";
const LINK: &str = "store the login link";

impl Store {
    /// Returns the sessions that have not expired.
    pub async fn sessions(&self) -> Result<Vec<SessionRecord>, StoreError> {
        let action = "load the sessions";
        let sql = "SELECT hash, token_hash, created_at, expires_at FROM sessions WHERE expires_at > $1";
        let query = sqlx::query(sql).bind(self.inner.now().as_microsecond());
        let found = query.fetch_all(&self.inner.engine.pool).await.map_err(failed_to(action))?;
        found.iter().map(session).collect::<Result<_, _>>().map_err(failed_to(action))
    }

    /// Finds a session that has not expired; for one that another node has just opened.
    pub async fn find_session(&self, hash: &str) -> Result<Option<SessionRecord>, StoreError> {
        let action = "find the session";
        let sql = "SELECT hash, token_hash, created_at, expires_at FROM sessions \
                   WHERE hash = $1 AND expires_at > $2";
        let query = sqlx::query(sql).bind(hash).bind(self.inner.now().as_microsecond());
        let found = query.fetch_optional(&self.inner.engine.pool).await.map_err(failed_to(action))?;
        found.as_ref().map(session).transpose().map_err(failed_to(action))
    }

    /// Opens a session.
    pub async fn insert_session(&self, session: SessionRecord) -> Result<(), StoreError> {
        self.run(|inner| async move { inner.insert_session(&session).await }).await
    }

    /// Ends a session; returns whether it existed.
    pub async fn delete_session(&self, hash: String) -> Result<bool, StoreError> {
        self.run(|inner| async move { inner.delete_session(&hash).await }).await
    }

    /// Stores a login link.
    pub async fn insert_login_link(&self, link: LoginLinkRecord) -> Result<(), StoreError> {
        self.run(|inner| async move { inner.insert_login_link(&link).await.map_err(failed_to(LINK)) }).await
    }

    /// Uses a login link up and returns the hash of its token. Of several requests only one gets it.
    pub async fn take_login_link(&self, hash: &str) -> Result<Option<String>, StoreError> {
        let action = "use the login link";
        let sql = "DELETE FROM login_links WHERE hash = $1 RETURNING token_hash, expires_at";
        let query = sqlx::query(sql).bind(hash.to_owned());
        let found = query.fetch_optional(&self.inner.engine.pool).await.map_err(failed_to(action))?;
        let Some(row) = found else { return Ok(None) };
        let expires_at = rows::timestamp(&row, "expires_at").map_err(failed_to(action))?;
        let token_hash = row.try_get("token_hash").map_err(failed_to(action))?;
        Ok(Some(token_hash).filter(|_| self.inner.now() < expires_at))
    }
}

impl Inner {
    async fn insert_session(&self, session: &SessionRecord) -> Result<(), StoreError> {
        let mut state = self.state.lock().await;
        let mut tx = self.engine.begin_change().await.map_err(failed_to(OPEN))?;
        let surplus = "DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE token_hash = $1 \
                       ORDER BY created_at DESC LIMIT 1000000 OFFSET $2)";
        sqlx::query(surplus)
            .bind(&session.token_hash)
            .bind(MAX_SESSIONS - 1)
            .execute(&mut *tx)
            .await
            .map_err(failed_to(OPEN))?;
        sqlx::query(
            "INSERT INTO sessions (hash, token_hash, created_at, expires_at) VALUES ($1, $2, $3, $4)",
        )
        .bind(&session.hash)
        .bind(&session.token_hash)
        .bind(session.created_at.as_microsecond())
        .bind(session.expires_at.as_microsecond())
        .execute(&mut *tx)
        .await
        .map_err(failed_to(OPEN))?;
        let changed = ChangeSet::tokens();
        self.engine.notify(&mut tx, &self.node, &changed).await.map_err(failed_to(OPEN))?;
        let generation = advance_generation(&mut tx, "").await.map_err(failed_to(OPEN))?;
        tx.commit().await.map_err(failed_to(OPEN))?;
        state.advance(generation);
        self.signal_token_change();
        Ok(())
    }

    async fn delete_session(&self, hash: &str) -> Result<bool, StoreError> {
        let mut state = self.state.lock().await;
        let mut tx = self.engine.begin_change().await.map_err(failed_to(END))?;
        let query = sqlx::query("DELETE FROM sessions WHERE hash = $1").bind(hash);
        if query.execute(&mut *tx).await.map_err(failed_to(END))?.rows_affected() == 0 {
            return Ok(false);
        }
        let changed = ChangeSet::tokens();
        self.engine.notify(&mut tx, &self.node, &changed).await.map_err(failed_to(END))?;
        let generation = advance_generation(&mut tx, "").await.map_err(failed_to(END))?;
        tx.commit().await.map_err(failed_to(END))?;
        state.advance(generation);
        self.signal_token_change();
        Ok(true)
    }

    async fn insert_login_link(&self, link: &LoginLinkRecord) -> Result<(), sqlx::Error> {
        let mut tx = self.engine.begin().await?;
        let surplus = "DELETE FROM login_links WHERE hash IN (SELECT hash FROM login_links WHERE token_hash = $1 \
                       ORDER BY expires_at DESC LIMIT 1000000 OFFSET $2)";
        sqlx::query(surplus).bind(&link.token_hash).bind(MAX_LINKS - 1).execute(&mut *tx).await?;
        sqlx::query("INSERT INTO login_links (hash, token_hash, expires_at) VALUES ($1, $2, $3)")
            .bind(&link.hash)
            .bind(&link.token_hash)
            .bind(link.expires_at.as_microsecond())
            .execute(&mut *tx)
            .await?;
        tx.commit().await
    }

    /// Removes expired sessions and links.
    pub(crate) async fn reap_logins(&self) -> Result<(), sqlx::Error> {
        let now = self.now().as_microsecond();
        for sql in
            ["DELETE FROM sessions WHERE expires_at <= $1", "DELETE FROM login_links WHERE expires_at <= $1"]
        {
            sqlx::query(sql).bind(now).execute(&self.engine.pool).await?;
        }
        Ok(())
    }
}

fn session(row: &AnyRow) -> Result<SessionRecord, sqlx::Error> {
    Ok(SessionRecord {
        hash: row.try_get("hash")?,
        token_hash: row.try_get("token_hash")?,
        created_at: rows::timestamp(row, "created_at")?,
        expires_at: rows::timestamp(row, "expires_at")?,
    })
}
