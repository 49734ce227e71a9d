//! Leases of the nodes that share a PostgreSQL database: a node sends heartbeats, and one without has lost its lease.
//!
//! Every node watches the others with its own clock, and only while it can read the database itself: a restart of the
//! database, however long, costs no node its lease. The heartbeat shares neither its task nor its connection with anything
//! else, so however long a change takes and however many wait for a connection, a healthy node keeps its lease. With
//! SQLite, the lock on the journal shows that a process is alive; nothing has to be written for it.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_core::catalog::StoreError;
use haft_core::secret::Secret;
use sqlx::{Any, AnyConnection, Connection as _, Executor, Row as _};
use tokio_util::sync::CancellationToken;

use crate::database::Database;
use crate::engine::{Engine, Kind, failed_to};
use crate::files::layout;

/// A node sends so many heartbeats within a lease.
const HEARTBEATS_PER_LEASE: u32 = 5;
/// The shortest time after which a heartbeat without an answer is sent again over a new connection.
const MIN_TIMEOUT: Duration = Duration::from_secs(1);

const HEARTBEAT: &str = "INSERT INTO nodes (id, heartbeat) VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET heartbeat = nodes.heartbeat + 1";

/// What this node has seen of the others.
pub(crate) struct Leases {
    /// A node without a heartbeat for this long has lost its lease.
    lease: Duration,
    seen: Mutex<HashMap<String, Heartbeat>>,
}

/// The last heartbeat of a node, and when this node first saw it.
struct Heartbeat {
    number: i64,
    since: Instant,
}

impl Leases {
    pub(crate) fn new(lease: Duration) -> Self {
        Self { lease, seen: Mutex::default() }
    }

    /// Returns how often a node sends a heartbeat and looks at the others.
    pub(crate) fn interval(&self) -> Duration {
        self.lease / HEARTBEATS_PER_LEASE
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Heartbeat>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the heartbeats of all nodes; returns those that have lost their lease.
    fn observe(&self, heartbeats: &HashMap<String, i64>, now: Instant) -> Vec<String> {
        let mut seen = self.lock();
        seen.retain(|node, _| heartbeats.contains_key(node));
        let mut lost = Vec::new();
        for (node, number) in heartbeats {
            let heartbeat = seen.entry(node.clone()).or_insert(Heartbeat { number: *number, since: now });
            if heartbeat.number != *number {
                *heartbeat = Heartbeat { number: *number, since: now };
            } else if now.saturating_duration_since(heartbeat.since) >= self.lease {
                lost.push(node.clone());
            }
        }
        lost
    }
}

impl Database {
    /// Announces this node to the others.
    pub(crate) async fn begin_lease(&self) -> Result<(), StoreError> {
        if self.engine.kind == Kind::Postgres {
            send(&self.engine.pool, &self.node).await.map_err(failed_to("announce this node"))?;
        }
        Ok(())
    }

    /// Takes this node off the list: what it left running is recovered at once.
    pub(crate) async fn end_lease(&self) {
        if self.engine.kind == Kind::Postgres {
            let gone = sqlx::query("DELETE FROM nodes WHERE id = $1").bind(&self.node);
            if let Err(error) = gone.execute(&self.engine.pool).await {
                tracing::warn!(%error, "cannot take this node off the list");
            }
        }
    }

    /// Looks at the other nodes, and takes those without a heartbeat off the list.
    pub(crate) async fn watch_nodes(&self) {
        let result = async {
            let heartbeats = self.heartbeats().await?;
            for node in self.leases.observe(&heartbeats, Instant::now()) {
                tracing::warn!(node, "a node has lost its lease; recovering its calls");
                sqlx::query("DELETE FROM nodes WHERE id = $1").bind(&node).execute(&self.engine.pool).await?;
            }
            Ok::<_, sqlx::Error>(())
        };
        if let Err(error) = result.await {
            // While the database is away, no heartbeat arrives from anyone.
            self.leases.lock().clear();
            tracing::warn!(%error, "cannot read the heartbeats of the other nodes");
        }
    }

    /// Returns whether a node is not on the list.
    pub(crate) async fn has_lost_lease(&self, node: &str) -> Result<bool, sqlx::Error> {
        let found =
            sqlx::query("SELECT 1 FROM nodes WHERE id = $1").bind(node).fetch_optional(&self.engine.pool);
        Ok(found.await?.is_none())
    }

    /// Returns whether a node is dead: its lease has expired, or its file is unlocked.
    pub(crate) async fn is_dead(&self, node: &str) -> Result<bool, StoreError> {
        let Some(files) = &self.files else {
            return self.has_lost_lease(node).await.map_err(failed_to("recover from a dead node"));
        };
        let path = layout::node_file(&files.at(layout::JOURNAL_FOLDER), node);
        Ok(match File::open(path) {
            Ok(file) => !matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
            Err(_) => true,
        })
    }

    async fn heartbeats(&self) -> Result<HashMap<String, i64>, sqlx::Error> {
        let rows = sqlx::query("SELECT id, heartbeat FROM nodes WHERE id <> $1").bind(&self.node);
        let rows = rows.fetch_all(&self.engine.pool).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }
}

/// Keeps the lease of this node until it is stopped. Nothing else is in this task, and the connection is its own.
pub(crate) async fn keep_lease(database: Arc<Database>, stop: CancellationToken) {
    let Some(url) = &database.url else { return };
    let timeout = (database.leases.lease / 2).max(MIN_TIMEOUT);
    let mut connection = None;
    loop {
        match tokio::time::timeout(timeout, send_heartbeat(&mut connection, url, &database.node)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                connection = None;
                tracing::warn!(%error, "cannot renew the lease of this node");
            }
            Err(_) => {
                connection = None;
                tracing::warn!("cannot renew the lease of this node: the database does not respond");
            }
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(database.leases.interval()) => {}
        }
    }
    if let Some(connection) = connection {
        // The process ends anyway, or the server notices the closed socket.
        let _ = connection.close().await;
    }
}

async fn send_heartbeat(
    connection: &mut Option<AnyConnection>,
    url: &Secret,
    node: &str,
) -> Result<(), sqlx::Error> {
    let open = match connection {
        Some(open) => open,
        None => connection.insert(Engine::connect_alone(url).await?),
    };
    send(open, node).await
}

async fn send(executor: impl Executor<'_, Database = Any>, node: &str) -> Result<(), sqlx::Error> {
    sqlx::query(HEARTBEAT).bind(node).execute(executor).await?;
    Ok(())
}

#[cfg(test)]
#[path = "nodes_tests.rs"]
mod tests;
