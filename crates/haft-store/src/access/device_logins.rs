//! Logins of command lines, which a person approves in a browser. Only hashes of their codes are stored, so any node can
//! answer for any of them.

use std::time::Duration;

use haft_core::Timestamp;
use haft_core::catalog::StoreError;
use haft_core::login::{DeviceLoginRecord, DeviceLoginState};
use haft_core::token::TokenRecord;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::access::{Access, tokens};
use crate::engine::failed_to;
use crate::notification::ChangeSet;
use crate::{audit, rows};

const START: &str = "store the device login";
const FIND: &str = "find the device login";
const DECIDE: &str = "decide the device login";
const POLL: &str = "poll the device login";
const ISSUE: &str = "store the token of the device login";

/// How many logins there may be that have neither expired nor been fetched.
#[derive(Debug, Clone, Copy)]
pub struct DeviceLoginLimits {
    /// Of one network address.
    pub per_address: u32,
    /// Of all addresses.
    pub total: u32,
}

/// Whether a login was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceLoginStart {
    /// It was stored.
    Stored,
    /// Its address has started as many as it may.
    TooManyOfAddress,
    /// There are as many as there may be.
    TooMany,
}

/// What a person decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceLoginDecision {
    /// The command line gets a token.
    Approve {
        /// The hash of the person's own token.
        token_hash: String,
    },
    /// It gets none.
    Deny,
}

/// What the command line gets when it asks for its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceLoginPoll {
    /// No login has this code, or its token was issued.
    Unknown,
    /// The login has expired.
    Expired,
    /// Nobody has decided.
    Pending,
    /// Nobody has decided, and the last request was too recent.
    TooFast,
    /// A person has denied it.
    Denied,
    /// A person has approved it.
    Approved {
        /// The hash of the token of that person.
        token_hash: String,
        /// The name of the computer.
        device: String,
    },
}

/// Whether the token of a login was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceTokenInsert {
    /// It was stored, and the login is used up.
    Stored,
    /// No approved login has this code: it has expired, or its token was stored already.
    LoginGone,
    /// The token with which the login was approved no longer gives access.
    ApproverGone,
}

impl Access {
    /// Stores a login that waits for a decision, unless there are too many.
    pub async fn insert_device_login(
        &self,
        login: DeviceLoginRecord,
        limits: DeviceLoginLimits,
    ) -> Result<DeviceLoginStart, StoreError> {
        let this = self.clone();
        let work = async move {
            let now = this.db.now().as_microsecond();
            let mut tx = this.db.engine.begin().await?;
            let of_address = "SELECT COUNT(*) FROM device_logins WHERE expires_at > $1 AND address = $2";
            let query = sqlx::query(of_address).bind(now).bind(&login.address);
            let of_address: i64 = query.fetch_one(&mut *tx).await?.try_get(0)?;
            if of_address >= i64::from(limits.per_address) {
                return Ok(DeviceLoginStart::TooManyOfAddress);
            }
            let query = sqlx::query("SELECT COUNT(*) FROM device_logins WHERE expires_at > $1").bind(now);
            let total: i64 = query.fetch_one(&mut *tx).await?.try_get(0)?;
            if total >= i64::from(limits.total) {
                return Ok(DeviceLoginStart::TooMany);
            }
            sqlx::query(
                "INSERT INTO device_logins (hash, user_code_hash, device, address, state, created_at, expires_at) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
            )
            .bind(&login.hash)
            .bind(&login.user_code_hash)
            .bind(&login.device)
            .bind(&login.address)
            .bind(login.state.as_str())
            .bind(login.created_at.as_microsecond())
            .bind(login.expires_at.as_microsecond())
            .execute(&mut *tx)
            .await?;
            tx.commit().await?;
            Ok(DeviceLoginStart::Stored)
        };
        self.db.complete_query(START, work).await
    }

    /// Finds a login that has not expired by the code that a person enters.
    pub async fn find_device_login(
        &self,
        user_code_hash: &str,
    ) -> Result<Option<DeviceLoginRecord>, StoreError> {
        let sql = "SELECT hash, user_code_hash, device, address, state, created_at, expires_at \
                   FROM device_logins WHERE user_code_hash = $1 AND expires_at > $2";
        let query = sqlx::query(sql).bind(user_code_hash).bind(self.db.now().as_microsecond());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(FIND))?;
        found.as_ref().map(device_login).transpose().map_err(failed_to(FIND))
    }

    /// Decides a login that nobody has decided; returns whether there is one with this code.
    pub async fn decide_device_login(
        &self,
        user_code_hash: &str,
        decision: DeviceLoginDecision,
    ) -> Result<bool, StoreError> {
        let (this, user_code_hash) = (self.clone(), user_code_hash.to_owned());
        let (state, token_hash) = match decision {
            DeviceLoginDecision::Approve { token_hash } => (DeviceLoginState::Approved, Some(token_hash)),
            DeviceLoginDecision::Deny => (DeviceLoginState::Denied, None),
        };
        let work = async move {
            let mut tx = this.db.engine.begin().await?;
            let sql = "UPDATE device_logins SET state = $1, token_hash = $2 \
                       WHERE user_code_hash = $3 AND state = $4 AND expires_at > $5";
            let query = sqlx::query(sql)
                .bind(state.as_str())
                .bind(token_hash)
                .bind(&user_code_hash)
                .bind(DeviceLoginState::Pending.as_str())
                .bind(this.db.now().as_microsecond());
            if query.execute(&mut *tx).await?.rows_affected() == 0 {
                return Ok(false);
            }
            audit::store_current_record(&mut tx, "").await?;
            tx.commit().await?;
            Ok(true)
        };
        self.db.complete_query(DECIDE, work).await
    }

    /// Returns what has become of a login, by its device code. `interval` is the shortest time between two requests.
    /// [`Access::insert_device_token`] uses an approved one up.
    pub async fn poll_device_login(
        &self,
        hash: &str,
        interval: Duration,
    ) -> Result<DeviceLoginPoll, StoreError> {
        let sql =
            "SELECT state, polled_at, expires_at, token_hash, device FROM device_logins WHERE hash = $1";
        let query = sqlx::query(sql).bind(hash);
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(POLL))?;
        let polled = found.as_ref().map(polled_login).transpose().map_err(failed_to(POLL))?;
        let Some(PolledLogin { state, polled_at, expires_at, token_hash, device }) = polled else {
            return Ok(DeviceLoginPoll::Unknown);
        };
        let now = self.db.now();
        if expires_at <= now {
            return Ok(DeviceLoginPoll::Expired);
        }
        match state {
            Some(DeviceLoginState::Approved) => {
                Ok(token_hash.map_or(DeviceLoginPoll::Denied, |token_hash| DeviceLoginPoll::Approved {
                    token_hash,
                    device,
                }))
            }
            Some(DeviceLoginState::Pending) if polled_at.is_some_and(|at| now < at + interval) => {
                Ok(DeviceLoginPoll::TooFast)
            }
            Some(DeviceLoginState::Pending) => {
                let sql = "UPDATE device_logins SET polled_at = $1 WHERE hash = $2";
                let query = sqlx::query(sql).bind(now.as_microsecond()).bind(hash);
                query.execute(&self.db.engine.pool).await.map_err(failed_to(POLL))?;
                Ok(DeviceLoginPoll::Pending)
            }
            // A state of a newer version gives no access.
            Some(DeviceLoginState::Denied) | None => Ok(DeviceLoginPoll::Denied),
        }
    }

    /// Deletes a login, by the hash of its device code.
    pub async fn delete_device_login(&self, hash: &str) -> Result<(), StoreError> {
        let query = sqlx::query("DELETE FROM device_logins WHERE hash = $1").bind(hash.to_owned());
        query.execute(&self.db.engine.pool).await.map(drop).map_err(failed_to(ISSUE))
    }

    /// Stores the token of an approved login and uses the login up. Both happen or neither, and of several requests only
    /// one gets a token. `approver` is the hash of the value with which the login was approved. A token with a parent is
    /// stored only if that value still gives access, whatever this node has in memory.
    pub async fn insert_device_token(
        &self,
        login_hash: &str,
        approver: &str,
        token: &TokenRecord,
    ) -> Result<DeviceTokenInsert, StoreError> {
        let (this, token) = (self.clone(), token.clone());
        let (login_hash, approver) = (login_hash.to_owned(), approver.to_owned());
        let work = async move {
            let now = this.db.now();
            let mut change = this.db.begin_shared().await.map_err(failed_to(ISSUE))?;
            let sql = "DELETE FROM device_logins \
                       WHERE hash = $1 AND state = $2 AND token_hash = $3 AND expires_at > $4";
            let query = sqlx::query(sql)
                .bind(&login_hash)
                .bind(DeviceLoginState::Approved.as_str())
                .bind(&approver)
                .bind(now.as_microsecond());
            let done = query.execute(&mut *change.tx).await.map_err(failed_to(ISSUE))?;
            if done.rows_affected() == 0 {
                return Ok(DeviceTokenInsert::LoginGone);
            }
            if let Some(parent) = token.parent
                && !tokens::is_valid(&mut change.tx, (parent, approver.as_str()), now)
                    .await
                    .map_err(failed_to(ISSUE))?
            {
                return Ok(DeviceTokenInsert::ApproverGone);
            }
            tokens::insert(&mut change.tx, &token).await?;
            let _lock = change
                .commit(&ChangeSet::access_of(token.actor), &token.name)
                .await
                .map_err(failed_to(ISSUE))?;
            this.signal_change();
            Ok(DeviceTokenInsert::Stored)
        };
        self.db.complete(work).await
    }
}

/// What a request of the command line needs of a login.
struct PolledLogin {
    /// `None` if this version does not know it.
    state: Option<DeviceLoginState>,
    polled_at: Option<Timestamp>,
    expires_at: Timestamp,
    /// The hash of the token with which it was approved.
    token_hash: Option<String>,
    device: String,
}

fn polled_login(row: &AnyRow) -> Result<PolledLogin, sqlx::Error> {
    Ok(PolledLogin {
        state: DeviceLoginState::parse(row.try_get("state")?),
        polled_at: rows::optional_timestamp(row, "polled_at")?,
        expires_at: rows::timestamp(row, "expires_at")?,
        token_hash: row.try_get("token_hash")?,
        device: row.try_get("device")?,
    })
}

fn device_login(row: &AnyRow) -> Result<DeviceLoginRecord, sqlx::Error> {
    Ok(DeviceLoginRecord {
        hash: row.try_get("hash")?,
        user_code_hash: row.try_get("user_code_hash")?,
        device: row.try_get("device")?,
        address: row.try_get("address")?,
        // A state of a newer version gives no access.
        state: DeviceLoginState::parse(row.try_get("state")?).unwrap_or(DeviceLoginState::Denied),
        created_at: rows::timestamp(row, "created_at")?,
        expires_at: rows::timestamp(row, "expires_at")?,
    })
}
