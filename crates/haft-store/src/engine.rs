//! The database engines: everything that differs between SQLite and PostgreSQL.
//!
//! All other SQL of this crate is the same for both.

use std::fs::File;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;
use haft_core::catalog::{StorageFailure, StoreError};
use haft_core::secret::Secret;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::pool::PoolConnectionMetadata;
use sqlx::sqlite::{SqliteConnectOptions, SqliteError, SqlitePoolOptions};
use sqlx::{
    Any, AnyConnection, AnyPool, AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _,
    SqlitePool, Transaction,
};

use crate::notification::ChangeSet;

/// The channel of change notifications between PostgreSQL nodes.
pub(crate) const CHANNEL: &str = "haft_catalog";

/// The advisory lock of migrations: "haft" in ASCII.
const MIGRATION_LOCK: i64 = 0x6861_6674;
/// The advisory lock of changes to the catalog, the credentials and the tokens.
pub(crate) const CHANGE_LOCK: i64 = MIGRATION_LOCK + 1;

/// WAL allows readers beside the writer; FULL makes a commit survive a power failure. The log is checkpointed at 32 MB:
/// bulk inserts of calls would otherwise checkpoint with every commit.
const PRAGMAS: &str = "PRAGMA busy_timeout = 15000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                       PRAGMA wal_autocheckpoint = 8000; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY";

/// How long a change waits for another one. SQLite waits as long: `busy_timeout`.
pub(crate) const CHANGE_TIMEOUT: Duration = Duration::from_secs(15);

/// How long PostgreSQL may take to accept the first connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The database engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

/// A pool of connections to one of the engines.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    pub(crate) kind: Kind,
    pub(crate) pool: AnyPool,
    /// With SQLite, a connection for bulk inserts, which does not copy texts.
    pub(crate) bulk: Option<SqlitePool>,
    /// With PostgreSQL, how long a change waits for those of other nodes.
    pub(crate) change_timeout: Duration,
}

/// Returns a conversion of database errors to errors of the store; `action` completes "cannot …".
pub(crate) fn failed_to(action: &str) -> impl FnOnce(sqlx::Error) -> StoreError + '_ {
    move |source| {
        if is_busy(&source) {
            tracing::warn!(action, error = %source, "another change holds the lock for long");
            return StoreError::Busy;
        }
        StoreError::Unavailable {
            action: action.to_owned(),
            failure: storage_failure(&source),
            source: Box::new(source),
        }
    }
}

/// Returns whether a statement timed out waiting for a lock.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else { return false };
    let code = error.code().unwrap_or_default();
    match error.try_downcast_ref::<SqliteError>() {
        // The low byte of an extended result code is the primary one: SQLITE_BUSY.
        Some(_) => code.parse::<u32>().is_ok_and(|code| code & 0xff == 5),
        None => code == "55P03",
    }
}

/// Returns the kind of failure that a database error reports by its code.
pub(crate) fn storage_failure(error: &sqlx::Error) -> StorageFailure {
    let Some(error) = error.as_database_error() else { return StorageFailure::of(error) };
    let code = error.code().unwrap_or_default();
    if error.try_downcast_ref::<SqliteError>().is_some() {
        let code = code.parse::<u32>().unwrap_or_default();
        // SQLITE_IOERR_SHMSIZE: the file that connections share cannot be extended.
        if code == 4874 {
            return StorageFailure::DiskFull;
        }
        // The low byte of an extended result code is the primary one.
        return match code & 0xff {
            8 => StorageFailure::ReadOnly,
            10 => StorageFailure::DiskError,
            13 => StorageFailure::DiskFull,
            _ => StorageFailure::Other,
        };
    }
    match &*code {
        "25006" => StorageFailure::ReadOnly,
        "53100" => StorageFailure::DiskFull,
        "58030" => StorageFailure::DiskError,
        _ => StorageFailure::Other,
    }
}

/// Tells whether a statement violated a unique constraint.
pub(crate) fn is_conflict(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// Makes the database files private, in case a copy or a restored backup is readable by others.
fn make_private(file: &Path, opened: &File) {
    let mode = opened.metadata().map_or(0o600, |metadata| metadata.permissions().mode());
    let others = mode & 0o077;
    if others == 0 {
        return;
    }
    tracing::warn!(file = %file.display(), mode = format!("{:04o}", mode & 0o7777), "the database was readable by others; making it private");
    for ending in ["", "-wal", "-shm"] {
        let mut path = file.as_os_str().to_owned();
        path.push(ending);
        if let Err(error) = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(file = %Path::new(&path).display(), %error, "cannot make the database private");
        }
    }
}

impl Engine {
    /// Opens SQLite in a file.
    pub(crate) async fn sqlite(file: &Path) -> Result<Self, StoreError> {
        let action = format!("open the database `{}`", file.display());
        let path = file
            .to_str()
            .ok_or_else(|| StoreError::unavailable(action.clone(), "the path is not valid UTF-8"))?;
        // Created here, because SQLite would make it readable by everyone; its other files get the same mode.
        let made = File::options().create(true).append(true).mode(0o600).open(file);
        let made = made.map_err(|error| StoreError::unavailable(action.clone(), error))?;
        make_private(file, &made);
        let url = format!("sqlite://{}?mode=rwc", encode_path(path));
        // A connection with an open transaction, as after a full disk, is not used again.
        let options = AnyPoolOptions::new().max_connections(4).before_acquire(is_idle).after_connect(
            move |connection, _| {
                Box::pin(async move {
                    connection.execute(sqlx::raw_sql(PRAGMAS)).await?;
                    Ok(())
                })
            },
        );
        match Self::connect(Kind::Sqlite, &url, options).await {
            Ok(engine) => Ok(Self { bulk: Some(bulk(&url).map_err(failed_to(&action))?), ..engine }),
            Err(error) => Err(failed_to(&action)(error)),
        }
    }

    /// Connects to PostgreSQL.
    pub(crate) async fn postgres(url: &Secret) -> Result<Self, StoreError> {
        let options = AnyPoolOptions::new().max_connections(10).acquire_timeout(Duration::from_secs(15));
        Self::connect(Kind::Postgres, url.expose(), options)
            .await
            .map_err(|e| StoreError::unavailable("connect to PostgreSQL (`database_url`)", e))
    }

    async fn connect(kind: Kind, url: &str, options: AnyPoolOptions) -> Result<Self, sqlx::Error> {
        sqlx::any::install_default_drivers();
        let address: AnyConnectOptions = url.parse()?;
        let address = if logs_statements() { address } else { address.disable_statement_logging() };
        // A pool retries until its timeout and reports only that; a single connection reports the cause.
        let connecting = AnyConnection::connect_with(&address);
        match kind {
            Kind::Sqlite => {
                let mut connection = connecting.await?;
                connection.execute(sqlx::raw_sql(PRAGMAS)).await?;
                connection.close().await?;
            }
            Kind::Postgres => {
                let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
                let timed_out = |_| {
                    sqlx::Error::Io(std::io::Error::new(
                        std::io::ErrorKind::TimedOut,
                        "no response within 5 s",
                    ))
                };
                connected.map_err(timed_out)??.close().await?;
            }
        }
        let pool = options.connect_with(address).await?;
        Ok(Self { kind, pool, bulk: None, change_timeout: CHANGE_TIMEOUT })
    }

    /// Opens a connection to PostgreSQL outside of the pool, for what must not wait until another one is free.
    pub(crate) async fn connect_alone(url: &Secret) -> Result<AnyConnection, sqlx::Error> {
        let address: AnyConnectOptions = url.expose().parse()?;
        AnyConnection::connect_with(&address.disable_statement_logging()).await
    }

    /// Begins a write transaction. SQLite acquires its write lock at once, so that later statements cannot fail on it.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Any>, sqlx::Error> {
        match self.kind {
            Kind::Sqlite => self.pool.begin_with("BEGIN IMMEDIATE").await,
            Kind::Postgres => self.pool.begin().await,
        }
    }

    /// Begins a transaction that reads one state of the database, whatever others change meanwhile.
    pub(crate) async fn begin_snapshot(&self) -> Result<Transaction<'static, Any>, sqlx::Error> {
        match self.kind {
            Kind::Sqlite => self.pool.begin().await,
            Kind::Postgres => {
                self.pool.begin_with("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY").await
            }
        }
    }

    /// Begins a change of shared data. Only one node changes it at a time, so that what the change has read stays valid.
    /// It waits for others only so long: each waiting change keeps a connection from everything else.
    pub(crate) async fn begin_change(&self) -> Result<Transaction<'static, Any>, sqlx::Error> {
        let mut tx = self.begin().await?;
        if self.kind == Kind::Postgres {
            let timeout = format!("{}ms", self.change_timeout.as_millis());
            let limit = sqlx::query("SELECT set_config('lock_timeout', $1, true)").bind(timeout);
            limit.execute(&mut *tx).await?;
        }
        self.advisory_lock(&mut tx, CHANGE_LOCK).await?;
        Ok(tx)
    }

    /// Returns the placeholders of a number of rows. SQLite looks numbered ones up by a search, which takes longer than
    /// the insert if there are many.
    pub(crate) fn placeholders(&self, rows: usize, columns: usize) -> String {
        let mut number = 0;
        let mut placeholder = || {
            number += 1;
            match self.kind {
                Kind::Sqlite => "?".to_owned(),
                Kind::Postgres => format!("${number}"),
            }
        };
        let mut row = || (0..columns).map(|_| placeholder()).collect::<Vec<_>>().join(", ");
        (0..rows).map(|_| format!("({})", row())).collect::<Vec<_>>().join(", ")
    }

    /// Returns the end of a query that takes rows which no other node is taking. SQLite has one writer at a time.
    pub(crate) fn skip_locked(&self) -> &'static str {
        match self.kind {
            Kind::Sqlite => "",
            Kind::Postgres => "FOR UPDATE SKIP LOCKED",
        }
    }

    /// Returns the end of a query that locks the rows it reads until the end of the transaction.
    pub(crate) fn row_lock(&self) -> &'static str {
        match self.kind {
            Kind::Sqlite => "",
            Kind::Postgres => "FOR UPDATE",
        }
    }

    /// Acquires the migration lock.
    pub(crate) async fn lock_schema(&self, tx: &mut Transaction<'static, Any>) -> Result<(), sqlx::Error> {
        self.advisory_lock(tx, MIGRATION_LOCK).await
    }

    /// Acquires a lock between nodes until the end of the transaction.
    async fn advisory_lock(&self, tx: &mut Transaction<'static, Any>, lock: i64) -> Result<(), sqlx::Error> {
        match self.kind {
            // `BEGIN IMMEDIATE` has acquired the write lock.
            Kind::Sqlite => Ok(()),
            Kind::Postgres => {
                sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(lock).execute(&mut **tx).await?;
                Ok(())
            }
        }
    }

    /// Notifies other nodes of changes when the transaction commits.
    pub(crate) async fn notify(
        &self,
        tx: &mut Transaction<'static, Any>,
        node: &str,
        changes: &ChangeSet,
    ) -> Result<(), sqlx::Error> {
        // Other processes on the same home check the generation.
        if self.kind == Kind::Postgres {
            for payload in changes.payloads(node) {
                let notify = sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(payload);
                notify.execute(&mut **tx).await?;
            }
        }
        Ok(())
    }

    /// Closes all connections; SQLite truncates its write-ahead log before.
    pub(crate) async fn close(&self) {
        if let Some(bulk) = &self.bulk {
            bulk.close().await;
            let _ = self.pool.execute(sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)")).await;
        }
        self.pool.close().await;
    }
}

/// Returns a pool of one connection, which is opened on first use.
fn bulk(url: &str) -> Result<SqlitePool, sqlx::Error> {
    let address: SqliteConnectOptions = url.parse()?;
    let options = SqlitePoolOptions::new()
        .max_connections(1)
        .before_acquire(|connection, _| {
            let idle = !connection.is_in_transaction();
            Box::pin(async move { Ok(idle) })
        })
        .after_connect(|connection, _| {
            Box::pin(async move {
                connection.execute(sqlx::raw_sql(PRAGMAS)).await?;
                Ok(())
            })
        });
    let address = if logs_statements() { address } else { address.disable_statement_logging() };
    Ok(options.connect_lazy_with(address))
}

/// Returns whether statements are logged, without their values. It costs time, so it has to be requested by name.
fn logs_statements() -> bool {
    tracing::enabled!(target: "haft_store::statements", tracing::Level::TRACE)
}

/// Tells whether a pooled connection has no open transaction.
fn is_idle(
    connection: &mut AnyConnection,
    _: PoolConnectionMetadata,
) -> BoxFuture<'_, Result<bool, sqlx::Error>> {
    let idle = !connection.is_in_transaction();
    Box::pin(async move { Ok(idle) })
}

/// Runs several statements without parameters.
pub(crate) async fn run_script(tx: &mut Transaction<'static, Any>, sql: &str) -> Result<(), sqlx::Error> {
    tx.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await?;
    Ok(())
}

/// Percent-encodes a path for use in a URL.
fn encode_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push_str(&haft_core::hash::hex(&[byte]));
        }
    }
    out
}
