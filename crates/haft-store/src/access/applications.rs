//! Connected applications: clients that registered themselves or that an admin created, codes, and the refresh tokens of
//! grants. Of every secret only the hash is stored.

use haft_core::Timestamp;
use haft_core::application::{AllowedRequest, ClientRecord, GrantRecord, RefreshState};
use haft_core::catalog::StoreError;
use haft_core::id::TokenId;
use haft_core::name::TenantId;
use haft_core::token::TokenRecord;
use jiff::SignedDuration;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use crate::access::{Access, tokens};
use crate::engine::failed_to;
use crate::notification::ChangeSet;
use crate::{audit, rows};

const CLIENT_COLUMNS: &str = "id, tenant, name, redirect_uris, auth_method, secret_hash, refreshes, address, \
                              created_at, used_at";
const GRANT_COLUMNS: &str = "id, client_id, client_host, destination, refresh_hash, previous_hash, rotated_at, \
                             refresh_expires_at";

/// How long a used code is kept, so that a second use is noticed.
const KEPT_CODES: SignedDuration = SignedDuration::from_mins(10);
/// How long an application that registered itself is kept if nobody connects it.
const KEPT_UNUSED_CLIENTS: SignedDuration = SignedDuration::from_hours(3 * 24);
/// How long an application that registered itself is kept after its last connection has ended.
const KEPT_CLIENTS: SignedDuration = SignedDuration::from_hours(90 * 24);
/// The period of the limit per address.
const ADDRESS_PERIOD: SignedDuration = SignedDuration::from_hours(1);
/// How long a grant is kept after it has ended, so that a person can see what it was.
const KEPT_GRANTS: SignedDuration = SignedDuration::from_hours(7 * 24);

const STORE_CLIENT: &str = "store the application";
const FIND_CLIENT: &str = "find the application";
const STORE_CODE: &str = "store the authorization code";
const FIND_CODE: &str = "find the authorization code";
const STORE_GRANT: &str = "store the connected application";
const FIND_GRANT: &str = "find the connected application";
const ROTATE: &str = "rotate the refresh token";

/// How many applications may register themselves.
#[derive(Debug, Clone, Copy)]
pub struct ClientLimits {
    /// From one network address, within an hour.
    pub per_address: u32,
    /// From all addresses, of those that nobody has connected.
    pub unused: u32,
}

/// Whether an application was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientInsert {
    /// It was stored.
    Stored,
    /// Its address has registered as many as it may.
    TooManyOfAddress,
    /// There are as many as there may be.
    TooMany,
}

/// A stored code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCode {
    /// What was allowed.
    pub request: AllowedRequest,
    /// The grant that it was exchanged for.
    pub grant: Option<TokenId>,
    /// When it stops working.
    pub expires_at: Timestamp,
}

/// Whether a code was exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeExchange {
    /// The grant was stored, and the code is used up.
    Stored,
    /// The code has expired or was used already.
    CodeGone,
    /// The token with which the request was allowed no longer gives access.
    ApproverGone,
}

impl Access {
    /// Stores an application that registers itself, unless there are too many.
    pub async fn insert_registered_client(
        &self,
        client: ClientRecord,
        limits: ClientLimits,
    ) -> Result<ClientInsert, StoreError> {
        let this = self.clone();
        let work = async move {
            let since = (this.db.now() - ADDRESS_PERIOD).as_microsecond();
            let mut tx = this.db.engine.begin().await?;
            let sql = "SELECT COUNT(*) FROM oauth_clients WHERE address = $1 AND created_at > $2 AND tenant IS NULL";
            let query = sqlx::query(sql).bind(&client.address).bind(since);
            let of_address: i64 = query.fetch_one(&mut *tx).await?.try_get(0)?;
            if of_address >= i64::from(limits.per_address) {
                return Ok(ClientInsert::TooManyOfAddress);
            }
            let sql = "SELECT COUNT(*) FROM oauth_clients WHERE tenant IS NULL AND used_at IS NULL";
            let unused: i64 = sqlx::query(sql).fetch_one(&mut *tx).await?.try_get(0)?;
            if unused >= i64::from(limits.unused) {
                return Ok(ClientInsert::TooMany);
            }
            insert_client(&mut tx, &client).await?;
            tx.commit().await?;
            Ok(ClientInsert::Stored)
        };
        self.db.complete_query(STORE_CLIENT, work).await
    }

    /// Stores an application that an admin creates.
    pub async fn insert_client(&self, client: ClientRecord) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let mut tx = this.db.engine.begin().await?;
            insert_client(&mut tx, &client).await?;
            audit::store_current_record(&mut tx, &client.name).await?;
            tx.commit().await
        };
        self.db.complete_query(STORE_CLIENT, work).await
    }

    /// Finds an application by its `client_id`.
    pub async fn find_client(&self, id: &str) -> Result<Option<ClientRecord>, StoreError> {
        let sql = AssertSqlSafe(format!("SELECT {CLIENT_COLUMNS} FROM oauth_clients WHERE id = $1"));
        let query = sqlx::query(sql).bind(id);
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(FIND_CLIENT))?;
        found.as_ref().map(client).transpose().map_err(failed_to(FIND_CLIENT))
    }

    /// Returns the applications that admins of a tenant have created, oldest first.
    pub async fn clients(&self, tenant: &TenantId) -> Result<Vec<ClientRecord>, StoreError> {
        let sql = AssertSqlSafe(format!(
            "SELECT {CLIENT_COLUMNS} FROM oauth_clients WHERE tenant = $1 ORDER BY created_at, id"
        ));
        let query = sqlx::query(sql).bind(tenant.as_str());
        let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(FIND_CLIENT))?;
        found.iter().map(client).collect::<Result<_, _>>().map_err(failed_to(FIND_CLIENT))
    }

    /// Deletes an application that an admin of a tenant has created, with everything that people have allowed it.
    pub async fn delete_client(&self, id: &str, tenant: &TenantId) -> Result<(), StoreError> {
        let (this, id, tenant) = (self.clone(), id.to_owned(), tenant.clone());
        let work = async move {
            let action = "delete the application";
            let mut change = this.db.begin_shared().await.map_err(failed_to(action))?;
            let query = sqlx::query("DELETE FROM oauth_clients WHERE id = $1 AND tenant = $2");
            let done = query.bind(&id).bind(tenant.as_str()).execute(&mut *change.tx).await;
            if done.map_err(failed_to(action))?.rows_affected() == 0 {
                return Err(StoreError::not_found("application", &id));
            }
            let sql = "DELETE FROM tokens WHERE id IN (SELECT id FROM oauth_grants WHERE client_id = $1)";
            sqlx::query(sql).bind(&id).execute(&mut *change.tx).await.map_err(failed_to(action))?;
            let _lock = change.commit(&ChangeSet::tokens(), &id).await.map_err(failed_to(action))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Stores what a person has allowed; returns whether the person has fewer codes than the limit.
    pub async fn insert_code(
        &self,
        hash: String,
        code: StoredCode,
        max_codes: u32,
    ) -> Result<bool, StoreError> {
        let this = self.clone();
        let work = async move {
            let mut tx = this.db.engine.begin().await?;
            let sql = "SELECT COUNT(*) FROM oauth_codes WHERE approver = $1 AND expires_at > $2";
            let query = sqlx::query(sql).bind(&code.request.approver).bind(this.db.now().as_microsecond());
            let count: i64 = query.fetch_one(&mut *tx).await?.try_get(0)?;
            if count >= i64::from(max_codes) {
                return Ok(false);
            }
            let request =
                serde_json::to_string(&code.request).map_err(|error| sqlx::Error::Encode(error.into()))?;
            sqlx::query(
                "INSERT INTO oauth_codes (hash, approver, request, expires_at) VALUES ($1, $2, $3, $4)",
            )
            .bind(&hash)
            .bind(&code.request.approver)
            .bind(request)
            .bind(code.expires_at.as_microsecond())
            .execute(&mut *tx)
            .await?;
            audit::store_current_record(&mut tx, &code.request.client_name).await?;
            tx.commit().await?;
            Ok(true)
        };
        self.db.complete_query(STORE_CODE, work).await
    }

    /// Finds a code, also one that has expired or was used.
    pub async fn find_code(&self, hash: &str) -> Result<Option<StoredCode>, StoreError> {
        let sql = "SELECT request, grant_id, expires_at FROM oauth_codes WHERE hash = $1";
        let query = sqlx::query(sql).bind(hash);
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(FIND_CODE))?;
        let code = |row: &AnyRow| {
            Ok(StoredCode {
                request: rows::json_column(row, "request")?,
                grant: rows::optional_parse_column(row, "grant_id")?,
                expires_at: rows::timestamp(row, "expires_at")?,
            })
        };
        found.as_ref().map(code).transpose().map_err(failed_to(FIND_CODE))
    }

    /// Stores a grant and uses its code up. Both happen or neither, and of several requests only one gets a grant.
    /// `approver` is what stands for the token with which it was allowed.
    pub async fn exchange_code(
        &self,
        hash: &str,
        approver: &str,
        token: TokenRecord,
        grant: GrantRecord,
    ) -> Result<CodeExchange, StoreError> {
        let (this, hash, approver) = (self.clone(), hash.to_owned(), approver.to_owned());
        let work = async move {
            let now = this.db.now();
            let mut change = this.db.begin_shared().await.map_err(failed_to(STORE_GRANT))?;
            let sql = "UPDATE oauth_codes SET grant_id = $1 WHERE hash = $2 AND grant_id IS NULL AND expires_at > $3";
            let query = sqlx::query(sql).bind(grant.id.to_string()).bind(&hash).bind(now.as_microsecond());
            let done = query.execute(&mut *change.tx).await.map_err(failed_to(STORE_GRANT))?;
            if done.rows_affected() == 0 {
                return Ok(CodeExchange::CodeGone);
            }
            if let Some(parent) = token.parent
                && !tokens::is_valid(&mut change.tx, (parent, approver.as_str()), now)
                    .await
                    .map_err(failed_to(STORE_GRANT))?
            {
                return Ok(CodeExchange::ApproverGone);
            }
            tokens::insert(&mut change.tx, &token).await?;
            insert_grant(&mut change.tx, &grant).await.map_err(failed_to(STORE_GRANT))?;
            let used = sqlx::query("UPDATE oauth_clients SET used_at = $1 WHERE id = $2")
                .bind(now.as_microsecond())
                .bind(&grant.client_id);
            used.execute(&mut *change.tx).await.map_err(failed_to(STORE_GRANT))?;
            let _lock = change
                .commit(&ChangeSet::access_of(token.actor), &token.name)
                .await
                .map_err(failed_to(STORE_GRANT))?;
            this.signal_change();
            Ok(CodeExchange::Stored)
        };
        self.db.complete(work).await
    }

    /// Finds a grant.
    pub async fn find_grant(&self, id: TokenId) -> Result<Option<GrantRecord>, StoreError> {
        let sql = AssertSqlSafe(format!("SELECT {GRANT_COLUMNS} FROM oauth_grants WHERE id = $1"));
        let query = sqlx::query(sql).bind(id.to_string());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(FIND_GRANT))?;
        found.as_ref().map(grant).transpose().map_err(failed_to(FIND_GRANT))
    }

    /// Returns all grants.
    pub async fn grants(&self) -> Result<Vec<GrantRecord>, StoreError> {
        let sql = AssertSqlSafe(format!("SELECT {GRANT_COLUMNS} FROM oauth_grants ORDER BY id"));
        let found = sqlx::query(sql).fetch_all(&self.db.engine.pool).await.map_err(failed_to(FIND_GRANT))?;
        found.iter().map(grant).collect::<Result<_, _>>().map_err(failed_to(FIND_GRANT))
    }

    /// Replaces a refresh token that is in use by another one; returns whether it was in use. Of several requests only one
    /// replaces it.
    pub async fn rotate_refresh_token(
        &self,
        id: TokenId,
        (old, new): (&str, &str),
        expires_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let this = self.clone();
        let (old, new) = (old.to_owned(), new.to_owned());
        let work = async move {
            let now = this.db.now().as_microsecond();
            let sql = "UPDATE oauth_grants SET refresh_hash = $1, previous_hash = $2, rotated_at = $3, \
                       refresh_expires_at = $4 WHERE id = $5 AND refresh_hash = $6 AND refresh_expires_at > $7";
            let query = sqlx::query(sql)
                .bind(&new)
                .bind(&old)
                .bind(now)
                .bind(expires_at.as_microsecond())
                .bind(id.to_string())
                .bind(&old)
                .bind(now);
            Ok(query.execute(&this.db.engine.pool).await?.rows_affected() > 0)
        };
        self.db.complete_query(ROTATE, work).await
    }

    /// Removes old codes and assertions, applications that nobody uses, and grants that have ended.
    pub(crate) async fn reap_applications(&self) -> Result<(), sqlx::Error> {
        let now = self.db.now();
        let pool = &self.db.engine.pool;
        let codes = sqlx::query("DELETE FROM oauth_codes WHERE expires_at <= $1");
        codes.bind((now - KEPT_CODES).as_microsecond()).execute(pool).await?;
        let assertions = sqlx::query("DELETE FROM used_assertions WHERE expires_at <= $1");
        assertions.bind(now.as_microsecond()).execute(pool).await?;
        let ended = (now - KEPT_GRANTS).as_microsecond();
        for sql in [
            "DELETE FROM tokens WHERE id IN (SELECT id FROM oauth_grants WHERE refresh_expires_at <= $1)",
            "DELETE FROM tokens WHERE expires_at <= $1 AND id IN (SELECT id FROM oauth_grants)",
        ] {
            sqlx::query(sql).bind(ended).execute(pool).await?;
        }
        let clients = "DELETE FROM oauth_clients WHERE tenant IS NULL \
                       AND ((used_at IS NULL AND created_at <= $1) OR used_at <= $2) \
                       AND NOT EXISTS (SELECT 1 FROM oauth_grants WHERE oauth_grants.client_id = oauth_clients.id)";
        let query = sqlx::query(clients)
            .bind((now - KEPT_UNUSED_CLIENTS).as_microsecond())
            .bind((now - KEPT_CLIENTS).as_microsecond());
        query.execute(pool).await.map(drop)
    }
}

async fn insert_client(
    tx: &mut sqlx::Transaction<'static, sqlx::Any>,
    client: &ClientRecord,
) -> Result<(), sqlx::Error> {
    sqlx::query(AssertSqlSafe(format!(
        "INSERT INTO oauth_clients ({CLIENT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
    )))
    .bind(&client.id)
    .bind(client.tenant.as_ref().map(|tenant| tenant.as_str().to_owned()))
    .bind(&client.name)
    .bind(serde_json::Value::from(client.redirect_uris.as_slice()).to_string())
    .bind(&client.auth_method)
    .bind(client.secret_hash.clone())
    .bind(i64::from(client.refreshes))
    .bind(&client.address)
    .bind(client.created_at.as_microsecond())
    .bind(client.used_at.map(Timestamp::as_microsecond))
    .execute(&mut **tx)
    .await
    .map(drop)
}

pub(super) async fn insert_grant(
    tx: &mut sqlx::Transaction<'static, sqlx::Any>,
    grant: &GrantRecord,
) -> Result<(), sqlx::Error> {
    let refresh = grant.refresh.as_ref();
    sqlx::query(AssertSqlSafe(format!(
        "INSERT INTO oauth_grants ({GRANT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
    )))
    .bind(grant.id.to_string())
    .bind(&grant.client_id)
    .bind(grant.client_host.clone())
    .bind(&grant.destination)
    .bind(refresh.map(|refresh| refresh.hash.clone()))
    .bind(refresh.and_then(|refresh| refresh.previous_hash.clone()))
    .bind(refresh.and_then(|refresh| refresh.rotated_at).map(Timestamp::as_microsecond))
    .bind(refresh.map(|refresh| refresh.expires_at.as_microsecond()))
    .execute(&mut **tx)
    .await
    .map(drop)
}

fn client(row: &AnyRow) -> Result<ClientRecord, sqlx::Error> {
    Ok(ClientRecord {
        id: row.try_get("id")?,
        tenant: rows::optional_parse_column(row, "tenant")?,
        name: row.try_get("name")?,
        redirect_uris: rows::json_column(row, "redirect_uris")?,
        auth_method: row.try_get("auth_method")?,
        secret_hash: row.try_get("secret_hash")?,
        refreshes: rows::boolean(row, "refreshes")?,
        address: row.try_get("address")?,
        created_at: rows::timestamp(row, "created_at")?,
        used_at: rows::optional_timestamp(row, "used_at")?,
    })
}

fn grant(row: &AnyRow) -> Result<GrantRecord, sqlx::Error> {
    let refresh = match row.try_get::<Option<String>, _>("refresh_hash")? {
        None => None,
        Some(hash) => Some(RefreshState {
            hash,
            previous_hash: row.try_get("previous_hash")?,
            rotated_at: rows::optional_timestamp(row, "rotated_at")?,
            expires_at: rows::timestamp(row, "refresh_expires_at")?,
        }),
    };
    Ok(GrantRecord {
        id: rows::parse_column(row, "id")?,
        client_id: row.try_get("client_id")?,
        client_host: row.try_get("client_host")?,
        destination: row.try_get("destination")?,
        refresh,
    })
}
