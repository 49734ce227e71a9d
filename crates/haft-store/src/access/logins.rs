//! Sessions of browsers and the links that open them; only hashes are stored.

use haft_core::actor::login_actor;
use haft_core::catalog::StoreError;
use haft_core::login::{LoginLinkRecord, SessionRecord};
use jiff::SignedDuration;
use sqlx::any::AnyRow;
use sqlx::{Any, Row as _, Transaction};

use crate::access::Access;
use crate::audit;
use crate::engine::failed_to;
use crate::notification::ChangeSet;
use crate::rows;

/// The maximum number of sessions of a token; a further one ends the oldest.
const MAX_SESSIONS: i64 = 100;
/// How long a token of a person or a command line is kept after it has expired, so that a person can see what it was.
const KEPT_TOKENS: SignedDuration = SignedDuration::from_hours(30 * 24);
/// How long somebody is kept from whom the rules of an issuer have taken everything, so that a later login finds the same
/// person.
const KEPT_FORMER_PEOPLE: SignedDuration = SignedDuration::from_hours(365 * 24);
/// The maximum number of unused links of a token; a further one replaces the oldest.
const MAX_LINKS: i64 = 100;

const OPEN: &str = "store the session";
const END: &str = "end the session";
const LINK: &str = "store the login link";

impl Access {
    /// Returns the sessions that have not expired.
    pub async fn sessions(&self) -> Result<Vec<SessionRecord>, StoreError> {
        let action = "load the sessions";
        let sql = "SELECT hash, token_hash, created_at, expires_at FROM sessions WHERE expires_at > $1";
        let query = sqlx::query(sql).bind(self.db.now().as_microsecond());
        let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(action))?;
        found.iter().map(session).collect::<Result<_, _>>().map_err(failed_to(action))
    }

    /// Returns the sessions that have not expired and were opened with one of some tokens or logins.
    pub async fn sessions_of(&self, openers: Vec<String>) -> Result<Vec<SessionRecord>, StoreError> {
        let action = "load the sessions";
        let mut sessions = Vec::new();
        for opener in openers {
            let sql = "SELECT hash, token_hash, created_at, expires_at FROM sessions \
                       WHERE token_hash = $1 AND expires_at > $2";
            let query = sqlx::query(sql).bind(opener).bind(self.db.now().as_microsecond());
            let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(action))?;
            let found =
                found.iter().map(session).collect::<Result<Vec<_>, _>>().map_err(failed_to(action))?;
            sessions.extend(found);
        }
        Ok(sessions)
    }

    /// Finds a session that has not expired; for one that another node has just opened.
    pub async fn find_session(&self, hash: &str) -> Result<Option<SessionRecord>, StoreError> {
        let action = "find the session";
        let sql = "SELECT hash, token_hash, created_at, expires_at FROM sessions \
                   WHERE hash = $1 AND expires_at > $2";
        let query = sqlx::query(sql).bind(hash).bind(self.db.now().as_microsecond());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(action))?;
        found.as_ref().map(session).transpose().map_err(failed_to(action))
    }

    /// Opens a session. `issuer_session` is the hash of what the issuer of the login calls it.
    pub async fn insert_session(
        &self,
        session: SessionRecord,
        issuer_session: Option<String>,
    ) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let mut change = this.db.begin_shared().await.map_err(failed_to(OPEN))?;
            let surplus = "DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE token_hash = $1 \
                           ORDER BY created_at DESC LIMIT 1000000 OFFSET $2)";
            sqlx::query(surplus)
                .bind(&session.token_hash)
                .bind(MAX_SESSIONS - 1)
                .execute(&mut *change.tx)
                .await
                .map_err(failed_to(OPEN))?;
            sqlx::query(
                "INSERT INTO sessions (hash, token_hash, created_at, expires_at, issuer_session) \
                 VALUES ($1, $2, $3, $4, $5)",
            )
            .bind(&session.hash)
            .bind(&session.token_hash)
            .bind(session.created_at.as_microsecond())
            .bind(session.expires_at.as_microsecond())
            .bind(&issuer_session)
            .execute(&mut *change.tx)
            .await
            .map_err(failed_to(OPEN))?;
            let changed = ChangeSet::access_of(login_actor(&session.token_hash));
            let _lock = change.commit(&changed, "").await.map_err(failed_to(OPEN))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Ends a session; returns whether it existed.
    pub async fn delete_session(&self, hash: String) -> Result<bool, StoreError> {
        let this = self.clone();
        let work = async move {
            let hash = &hash;
            let mut change = this.db.begin_shared().await.map_err(failed_to(END))?;
            let query = sqlx::query("DELETE FROM sessions WHERE hash = $1 RETURNING token_hash").bind(hash);
            let ended = query.fetch_optional(&mut *change.tx).await.map_err(failed_to(END))?;
            let Some(ended) = ended else { return Ok(false) };
            let changed = ChangeSet::access_of(login_actor(ended.try_get(0).map_err(failed_to(END))?));
            let _lock = change.commit(&changed, "").await.map_err(failed_to(END))?;
            this.signal_change();
            Ok(true)
        };
        self.db.complete(work).await
    }

    /// Stores a login link.
    pub async fn insert_login_link(&self, link: LoginLinkRecord) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let mut tx = this.db.engine.begin().await?;
            let surplus = "DELETE FROM login_links WHERE hash IN (SELECT hash FROM login_links WHERE token_hash = $1 \
                           ORDER BY expires_at DESC LIMIT 1000000 OFFSET $2)";
            sqlx::query(surplus).bind(&link.token_hash).bind(MAX_LINKS - 1).execute(&mut *tx).await?;
            insert_link(&mut tx, &link).await?;
            tx.commit().await
        };
        self.db.complete_query(LINK, work).await
    }

    /// Stores a login link in place of all others of its token or person.
    pub async fn replace_login_links(&self, link: LoginLinkRecord) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let mut tx = this.db.engine.begin().await?;
            let query = sqlx::query("DELETE FROM login_links WHERE token_hash = $1").bind(&link.token_hash);
            query.execute(&mut *tx).await?;
            insert_link(&mut tx, &link).await?;
            audit::store_current_record(&mut tx, "").await?;
            tx.commit().await
        };
        self.db.complete_query(LINK, work).await
    }

    /// Consumes a login link and returns the hash of its token. Only one of several concurrent requests succeeds.
    pub async fn take_login_link(&self, hash: &str) -> Result<Option<String>, StoreError> {
        let action = "use the login link";
        let sql = "DELETE FROM login_links WHERE hash = $1 RETURNING token_hash, expires_at";
        let query = sqlx::query(sql).bind(hash.to_owned());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(action))?;
        let Some(row) = found else { return Ok(None) };
        let expires_at = rows::timestamp(&row, "expires_at").map_err(failed_to(action))?;
        let token_hash = row.try_get("token_hash").map_err(failed_to(action))?;
        Ok(Some(token_hash).filter(|_| self.db.now() < expires_at))
    }
}

impl Access {
    /// Removes expired sessions, links, logins of command lines and at issuers, former people, and tokens of people and command lines that expired long
    /// ago.
    pub(crate) async fn reap_logins(&self) -> Result<(), sqlx::Error> {
        let oldest = (self.db.now() - KEPT_TOKENS).as_microsecond();
        // A token is kept as long as it has children: they can only be revoked together through it.
        let tokens = "DELETE FROM tokens WHERE (parent IS NOT NULL OR actor_id IS NOT NULL) AND expires_at <= $1 \
                      AND NOT EXISTS (SELECT 1 FROM tokens child WHERE child.parent = tokens.id)";
        sqlx::query(tokens).bind(oldest).execute(&self.db.engine.pool).await?;
        let oldest = (self.db.now() - KEPT_FORMER_PEOPLE).as_microsecond();
        let people = "DELETE FROM actors WHERE created_at <= $1 \
                      AND NOT EXISTS (SELECT 1 FROM memberships WHERE memberships.actor_id = actors.id) \
                      AND NOT EXISTS (SELECT 1 FROM identities WHERE identities.actor_id = actors.id \
                      AND identities.last_login_at > $2)";
        sqlx::query(people).bind(oldest).bind(oldest).execute(&self.db.engine.pool).await?;
        let now = self.db.now().as_microsecond();
        for sql in [
            "DELETE FROM sessions WHERE expires_at <= $1",
            "DELETE FROM login_links WHERE expires_at <= $1",
            "DELETE FROM device_logins WHERE expires_at <= $1",
            "DELETE FROM sign_on_logins WHERE expires_at <= $1",
        ] {
            sqlx::query(sql).bind(now).execute(&self.db.engine.pool).await?;
        }
        Ok(())
    }
}

async fn insert_link(tx: &mut Transaction<'static, Any>, link: &LoginLinkRecord) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO login_links (hash, token_hash, expires_at) VALUES ($1, $2, $3)")
        .bind(&link.hash)
        .bind(&link.token_hash)
        .bind(link.expires_at.as_microsecond())
        .execute(&mut **tx)
        .await
        .map(drop)
}

fn session(row: &AnyRow) -> Result<SessionRecord, sqlx::Error> {
    Ok(SessionRecord {
        hash: row.try_get("hash")?,
        token_hash: row.try_get("token_hash")?,
        created_at: rows::timestamp(row, "created_at")?,
        expires_at: rows::timestamp(row, "expires_at")?,
    })
}
