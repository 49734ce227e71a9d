//! Logins at providers that a person completes with a code on any device. One node at a time asks the provider.

use haft_core::Timestamp;
use haft_core::catalog::StoreError;
use haft_core::id::ActorId;
use haft_core::name::TenantId;
use haft_core::secret::Secret;
use jiff::SignedDuration;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use crate::accounts::StoredAccounts;
use crate::audit;
use crate::engine::failed_to;
use crate::rows;

const BEGIN: &str = "store the login";
const POLL: &str = "find a login to ask for";
const END: &str = "store the end of the login";
/// How many of these logins a tenant and a person can have begun at once.
const MAX_OF_TENANT: i64 = 1000;
const MAX_OF_ACTOR: i64 = 20;
/// How long a request to a provider takes at most; then another node may ask.
const LEASE: SignedDuration = SignedDuration::from_secs(60);
/// How long the end of a login can be read.
const KEPT: SignedDuration = SignedDuration::from_mins(10);
const COLUMNS: &str = "id, tenant, actor_id, provider, requested_by, sealed, state, error, poll_seconds, next_poll_at, expires_at";

/// Whether a person has completed a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceConnectionState {
    /// The person has not decided.
    Pending,
    /// The account is connected.
    Connected,
    /// It failed, with the reason.
    Failed(String),
}

/// A login that a person completes with a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceConnection {
    /// The id.
    pub id: String,
    /// The tenant.
    pub tenant: TenantId,
    /// Whose account it becomes.
    pub actor: ActorId,
    /// The provider.
    pub provider: String,
    /// The name of who began.
    pub requested_by: String,
    /// Whether it has ended.
    pub state: DeviceConnectionState,
    /// How many seconds lie between two requests to the provider.
    pub poll_seconds: i64,
    /// When it expires.
    pub expires_at: Timestamp,
}

impl StoredAccounts {
    /// Stores a login with what completes it, which is encrypted; returns whether there were not too many.
    pub async fn begin_device_connection(
        &self,
        connection: DeviceConnection,
        data: Secret,
    ) -> Result<bool, StoreError> {
        let this = self.clone();
        let work = async move {
            let mut tx = this.db.engine.begin_change().await.map_err(failed_to(BEGIN))?;
            let sql = "SELECT COUNT(*), COALESCE(SUM(CASE WHEN actor_id = $2 THEN 1 ELSE 0 END), 0) \
                       FROM device_connections WHERE tenant = $1 AND state = 'pending'";
            let query = sqlx::query(sql).bind(connection.tenant.as_str()).bind(connection.actor.to_string());
            let row = query.fetch_one(&mut *tx).await.map_err(failed_to(BEGIN))?;
            let count = |column| row.try_get::<i64, _>(column).map_err(failed_to(BEGIN));
            if count(0)? >= MAX_OF_TENANT || count(1)? >= MAX_OF_ACTOR {
                return Ok(false);
            }
            let cipher = this.vault.cipher_in(&mut tx).await;
            let cipher = cipher.map_err(|error| StoreError::unavailable(BEGIN, error))?;
            let sealed = cipher.seal(connection.tenant.as_str(), &sealed_name(&connection.id), &data);
            let sealed = sealed.map_err(|error| StoreError::unavailable(BEGIN, error))?;
            let next = this.db.now() + SignedDuration::from_secs(connection.poll_seconds);
            let sql = AssertSqlSafe(format!(
                "INSERT INTO device_connections ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, 'pending', NULL, $7, $8, $9)"
            ));
            sqlx::query(sql)
                .bind(&connection.id)
                .bind(connection.tenant.as_str())
                .bind(connection.actor.to_string())
                .bind(&connection.provider)
                .bind(&connection.requested_by)
                .bind(sealed)
                .bind(connection.poll_seconds)
                .bind(next.as_microsecond())
                .bind(connection.expires_at.as_microsecond())
                .execute(&mut *tx)
                .await
                .map_err(failed_to(BEGIN))?;
            audit::store_current_record(&mut tx, &connection.provider).await.map_err(failed_to(BEGIN))?;
            tx.commit().await.map_err(failed_to(BEGIN))?;
            Ok(true)
        };
        self.db.complete(work).await
    }

    /// Returns a login of a person, also one that has ended a moment ago.
    pub async fn device_connection(
        &self,
        tenant: &TenantId,
        actor: ActorId,
        id: &str,
    ) -> Result<Option<DeviceConnection>, StoreError> {
        let sql = AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM device_connections WHERE id = $1 AND tenant = $2 AND actor_id = $3"
        ));
        let query = sqlx::query(sql).bind(id).bind(tenant.as_str()).bind(actor.to_string());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(POLL))?;
        found.as_ref().map(connection).transpose().map_err(failed_to(POLL))
    }

    /// Claims a login whose provider is to be asked now, with what completes it; no other node gets it meanwhile. Without
    /// the data, the key of the stored credentials was replaced since.
    pub async fn claim_device_connection(
        &self,
    ) -> Result<Option<(DeviceConnection, Option<Secret>)>, StoreError> {
        let now = self.db.now();
        let sql = AssertSqlSafe(format!(
            "UPDATE device_connections SET next_poll_at = $1 WHERE next_poll_at <= $2 AND state = 'pending' \
             AND id = (SELECT id FROM device_connections WHERE state = 'pending' AND next_poll_at <= $2 \
             ORDER BY next_poll_at LIMIT 1) RETURNING {COLUMNS}"
        ));
        let query = sqlx::query(sql).bind((now + LEASE).as_microsecond()).bind(now.as_microsecond());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(POLL))?;
        let Some(row) = found else { return Ok(None) };
        let connection = connection(&row).map_err(failed_to(POLL))?;
        let sealed: &str = row.try_get("sealed").map_err(failed_to(POLL))?;
        let candidates = self.vault.candidates().await;
        let candidates = candidates.map_err(|reason| StoreError::unavailable(POLL, reason))?;
        let (tenant, name) = (connection.tenant.as_str(), sealed_name(&connection.id));
        let data = candidates.iter().find_map(|cipher| cipher.open(tenant, &name, sealed).ok());
        Ok(Some((connection, data)))
    }

    /// Returns when the next provider is to be asked.
    pub async fn next_device_poll(&self) -> Result<Option<Timestamp>, StoreError> {
        let sql = "SELECT next_poll_at FROM device_connections WHERE state = 'pending' \
                   ORDER BY next_poll_at LIMIT 1";
        let found = sqlx::query(sql).fetch_optional(&self.db.engine.pool).await.map_err(failed_to(POLL))?;
        found.map(|row| rows::timestamp(&row, "next_poll_at")).transpose().map_err(failed_to(POLL))
    }

    /// Asks again after a number of seconds.
    pub async fn postpone_device_poll(&self, id: &str, seconds: i64) -> Result<(), StoreError> {
        let next = self.db.now() + SignedDuration::from_secs(seconds);
        let sql = "UPDATE device_connections SET poll_seconds = $1, next_poll_at = $2 \
                   WHERE id = $3 AND state = 'pending'";
        let query = sqlx::query(sql).bind(seconds).bind(next.as_microsecond()).bind(id);
        query.execute(&self.db.engine.pool).await.map(drop).map_err(failed_to(END))
    }

    /// Ends a login, with the reason if it failed; returns whether it was still going on.
    pub async fn end_device_connection(&self, id: &str, error: Option<&str>) -> Result<bool, StoreError> {
        let state = if error.is_some() { "failed" } else { "connected" };
        let sql = "UPDATE device_connections SET state = $1, error = $2, sealed = '' \
                   WHERE id = $3 AND state = 'pending'";
        let query = sqlx::query(sql).bind(state).bind(error).bind(id);
        let done = query.execute(&self.db.engine.pool).await.map_err(failed_to(END))?;
        Ok(done.rows_affected() > 0)
    }

    /// Removes logins that ended a while ago.
    pub(super) async fn reap_device_connections(&self) -> Result<(), sqlx::Error> {
        let query = sqlx::query("DELETE FROM device_connections WHERE expires_at <= $1");
        let oldest = (self.db.now() - KEPT).as_microsecond();
        query.bind(oldest).execute(&self.db.engine.pool).await.map(drop)
    }
}

fn connection(row: &AnyRow) -> Result<DeviceConnection, sqlx::Error> {
    let state: &str = row.try_get("state")?;
    Ok(DeviceConnection {
        id: row.try_get("id")?,
        tenant: rows::parse_column(row, "tenant")?,
        actor: rows::parse_column(row, "actor_id")?,
        provider: row.try_get("provider")?,
        requested_by: row.try_get("requested_by")?,
        state: match state {
            "pending" => DeviceConnectionState::Pending,
            "connected" => DeviceConnectionState::Connected,
            _ => {
                DeviceConnectionState::Failed(row.try_get::<Option<String>, _>("error")?.unwrap_or_default())
            }
        },
        poll_seconds: row.try_get("poll_seconds")?,
        expires_at: rows::timestamp(row, "expires_at")?,
    })
}

/// Returns the name that the data of a login is encrypted with; no credential has such a name.
fn sealed_name(id: &str) -> String {
    format!("device login {id}")
}
