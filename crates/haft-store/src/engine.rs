//! The two engines: everything that SQLite and PostgreSQL do differently is here.
//!
//! All other SQL of this crate is the same text for both.

use std::fs::File;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;
use haft_core::catalog::{StorageError, StorageFault, StoreError};
use haft_core::secret::Secret;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::pool::PoolConnectionMetadata;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{
    Any, AnyConnection, AnyPool, AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _,
    Row as _, SqlitePool, Transaction,
};

/// The channel on which PostgreSQL nodes tell each other of changes.
pub(crate) const CHANNEL: &str = "haft_catalog";

/// A number that no one else uses for an advisory lock: "haft".
const MIGRATION_LOCK: i64 = 0x6861_6674;
/// The next one: who holds it changes the catalog, the credentials or the tokens.
const CHANGE_LOCK: i64 = MIGRATION_LOCK + 1;

/// WAL lets readers go on beside the one writer; FULL makes a commit outlive a loss of power. The log may have 32 MB
/// before it is moved to the database: calls in bulk would otherwise move it with every commit.
const PRAGMAS: &str = "PRAGMA busy_timeout = 15000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                       PRAGMA wal_autocheckpoint = 8000; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY";

/// How long a PostgreSQL may take to answer when haft starts.
const CONNECT: Duration = Duration::from_secs(5);

/// Which engine keeps the tables.
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
    /// With SQLite, the way for what is stored in bulk, which takes texts without copying them.
    pub(crate) bulk: Option<SqlitePool>,
}

/// Turns a database fault to the error of the store.
pub(crate) fn fault(doing: &str) -> impl FnOnce(sqlx::Error) -> StoreError + '_ {
    move |source| match storage_fault(&source) {
        Some(fault) => StoreError::unavailable(doing, StorageError::new(fault, &source)),
        None => StoreError::unavailable(doing, source),
    }
}

/// Returns the storage fault that the code of a database error means.
fn storage_fault(error: &sqlx::Error) -> Option<StorageFault> {
    let code = error.as_database_error()?.code()?;
    // SQLSTATE codes of PostgreSQL have five characters. The low byte of a SQLite code is its primary code.
    match (code.as_ref(), code.len() < 5, code.parse::<u32>().unwrap_or_default() & 0xff) {
        ("53100", ..) | (_, true, 10 | 13) => Some(StorageFault::DiskFull),
        ("25006", ..) | (_, true, 8) => Some(StorageFault::ReadOnly),
        _ => None,
    }
}

/// Tells whether a statement hit a unique constraint.
pub(crate) fn is_conflict(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// Takes the database from the eyes of others, where a copy or a restored backup opened it to them. The files beside it
/// hold the same.
fn close_to_others(file: &Path, opened: &File) {
    let mode = opened.metadata().map_or(0o600, |metadata| metadata.permissions().mode());
    let is_open = mode & 0o077 > 0;
    if !is_open {
        return;
    }
    tracing::warn!(file = %file.display(), mode = format!("{:04o}", mode & 0o7777), "others could read the database");
    for ending in ["", "-wal", "-shm"] {
        let mut path = file.as_os_str().to_owned();
        path.push(ending);
        if let Err(error) = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(file = %Path::new(&path).display(), %error, "others can read the database");
        }
    }
}

impl Engine {
    /// Opens SQLite in a file.
    pub(crate) async fn sqlite(file: &Path) -> Result<Self, StoreError> {
        let doing = format!("open the database `{}`", file.display());
        let path = file.to_str().ok_or_else(|| {
            StoreError::unavailable(doing.clone(), "the path of the home folder is not valid UTF-8")
        })?;
        // Made here, as SQLite would let everybody read it; the files beside it get the same mode.
        let made = File::options().create(true).append(true).mode(0o600).open(file);
        let made = made.map_err(|error| StoreError::unavailable(doing.clone(), error))?;
        close_to_others(file, &made);
        let url = format!("sqlite://{}?mode=rwc", encode_path(path));
        // A connection whose transaction could not be ended, as on a full disk, is not used again.
        let options = AnyPoolOptions::new().max_connections(4).before_acquire(unused).after_connect(
            move |connection, _| {
                Box::pin(async move {
                    connection.execute(sqlx::raw_sql(PRAGMAS)).await?;
                    Ok(())
                })
            },
        );
        match Self::connect(Kind::Sqlite, &url, options).await {
            Ok(engine) => Ok(Self { bulk: Some(bulk(&url).map_err(fault(&doing))?), ..engine }),
            Err(error) => {
                let fault_found = storage_fault(&error).or_else(|| StorageFault::find(&error));
                let reason = fault_found.map_or(String::new(), |fault| format!(" ({fault})"));
                Err(fault(&format!("{doing}{reason}"))(error))
            }
        }
    }

    /// Connects to PostgreSQL.
    pub(crate) async fn postgres(url: &Secret) -> Result<Self, StoreError> {
        let options = AnyPoolOptions::new().max_connections(10).acquire_timeout(Duration::from_secs(15));
        Self::connect(Kind::Postgres, url.expose(), options)
            .await
            .map_err(|e| StoreError::unavailable("connect to the PostgreSQL of `database_url`", e))
    }

    async fn connect(kind: Kind, url: &str, options: AnyPoolOptions) -> Result<Self, sqlx::Error> {
        sqlx::any::install_default_drivers();
        let address: AnyConnectOptions = url.parse()?;
        let address = address.disable_statement_logging();
        // A pool tries again until its time is over, and then only says that; one connection says why.
        let connecting = AnyConnection::connect_with(&address);
        match kind {
            Kind::Sqlite => {
                let mut connection = connecting.await?;
                connection.execute(sqlx::raw_sql(PRAGMAS)).await?;
                connection.close().await?;
            }
            Kind::Postgres => {
                let connected = tokio::time::timeout(CONNECT, connecting).await;
                let late = |_| {
                    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer within 5 s"))
                };
                connected.map_err(late)??.close().await?;
            }
        }
        let pool = options.connect_with(address).await?;
        Ok(Self { kind, pool, bulk: None })
    }

    /// Begins a transaction that will write: SQLite takes its write lock at once, so that a later
    /// statement never finds it taken.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Any>, sqlx::Error> {
        match self.kind {
            Kind::Sqlite => self.pool.begin_with("BEGIN IMMEDIATE").await,
            Kind::Postgres => self.pool.begin().await,
        }
    }

    /// Begins a change of what all nodes share: one at a time, so that what was looked at still holds when the
    /// change is written.
    pub(crate) async fn begin_change(&self) -> Result<Transaction<'static, Any>, sqlx::Error> {
        let mut tx = self.begin().await?;
        self.lock_for(&mut tx, CHANGE_LOCK).await?;
        Ok(tx)
    }

    /// Spells the places of so many rows of values. SQLite finds numbered ones by a search, which for many
    /// values takes longer than the insert.
    pub(crate) fn placeholders(&self, rows: usize, columns: usize) -> String {
        let mut number = 0;
        let mut place = || {
            number += 1;
            match self.kind {
                Kind::Sqlite => "?".to_owned(),
                Kind::Postgres => format!("${number}"),
            }
        };
        let mut row = || (0..columns).map(|_| place()).collect::<Vec<_>>().join(", ");
        (0..rows).map(|_| format!("({})", row())).collect::<Vec<_>>().join(", ")
    }

    /// Makes concurrent migrations of the same database wait for each other.
    pub(crate) async fn lock_schema(&self, tx: &mut Transaction<'static, Any>) -> Result<(), sqlx::Error> {
        self.lock_for(tx, MIGRATION_LOCK).await
    }

    /// Makes transactions of all nodes that take the same lock wait for each other.
    async fn lock_for(&self, tx: &mut Transaction<'static, Any>, lock: i64) -> Result<(), sqlx::Error> {
        match self.kind {
            // `BEGIN IMMEDIATE` has done it.
            Kind::Sqlite => Ok(()),
            Kind::Postgres => {
                sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(lock).execute(&mut **tx).await?;
                Ok(())
            }
        }
    }

    /// Tells other nodes, when the transaction commits, what changed.
    pub(crate) async fn notify(
        &self,
        tx: &mut Transaction<'static, Any>,
        payload: &str,
    ) -> Result<(), sqlx::Error> {
        match self.kind {
            // Other processes on the same home see the generation move.
            Kind::Sqlite => Ok(()),
            Kind::Postgres => {
                sqlx::query("SELECT pg_notify($1, $2)")
                    .bind(CHANNEL)
                    .bind(payload)
                    .execute(&mut **tx)
                    .await?;
                Ok(())
            }
        }
    }

    /// Holds, with PostgreSQL, a lock that says for as long as the connection lives: this node lives.
    pub(crate) async fn hold(
        &self,
        node: &str,
    ) -> Result<Option<sqlx::pool::PoolConnection<Any>>, sqlx::Error> {
        match self.kind {
            // The journal of the process holds a file lock.
            Kind::Sqlite => Ok(None),
            Kind::Postgres => {
                let mut connection = self.pool.acquire().await?;
                sqlx::query("SELECT pg_advisory_lock($1)")
                    .bind(lock_key(node))
                    .execute(&mut *connection)
                    .await?;
                Ok(Some(connection))
            }
        }
    }

    /// Tells whether the lock of a node is free.
    pub(crate) async fn is_dead(&self, node: &str) -> Result<bool, sqlx::Error> {
        match self.kind {
            Kind::Sqlite => Ok(true),
            Kind::Postgres => {
                let mut tx = self.pool.begin().await?;
                let row = sqlx::query("SELECT pg_try_advisory_xact_lock($1)")
                    .bind(lock_key(node))
                    .fetch_one(&mut *tx)
                    .await?;
                row.try_get(0)
            }
        }
    }

    /// Shrinks the write-ahead log of SQLite before the last connection closes.
    pub(crate) async fn close(&self) {
        if let Some(bulk) = &self.bulk {
            bulk.close().await;
            let _ = self.pool.execute(sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)")).await;
        }
        self.pool.close().await;
    }
}

/// Returns a pool of one connection, made when it is first needed.
fn bulk(url: &str) -> Result<SqlitePool, sqlx::Error> {
    let address: SqliteConnectOptions = url.parse()?;
    let options = SqlitePoolOptions::new()
        .max_connections(1)
        .before_acquire(|connection, _| {
            let unused = !connection.is_in_transaction();
            Box::pin(async move { Ok(unused) })
        })
        .after_connect(|connection, _| {
            Box::pin(async move {
                connection.execute(sqlx::raw_sql(PRAGMAS)).await?;
                Ok(())
            })
        });
    Ok(options.connect_lazy_with(address.disable_statement_logging()))
}

/// Tells whether a pooled connection has no transaction left open.
fn unused(
    connection: &mut AnyConnection,
    _: PoolConnectionMetadata,
) -> BoxFuture<'_, Result<bool, sqlx::Error>> {
    let unused = !connection.is_in_transaction();
    Box::pin(async move { Ok(unused) })
}

/// Returns the number that stands for a node among advisory locks.
fn lock_key(node: &str) -> i64 {
    // The end of the id is random; its start is the time.
    node.parse::<uuid::Uuid>().map_or(0, |id| i64::from_le_bytes(id.as_u64_pair().1.to_le_bytes()))
}

/// Runs several statements that take no values.
pub(crate) async fn run_script(tx: &mut Transaction<'static, Any>, sql: &str) -> Result<(), sqlx::Error> {
    tx.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await?;
    Ok(())
}

/// Spells a path so that nothing in it reads as a part of the URL.
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
