//! Leases of the nodes that share a PostgreSQL database: a node beats, and one whose beat stands still has lost its
//! lease.
//!
//! Every node watches the others with its own clock, and only while it can read the database itself: a restart of the
//! database, however long, costs no node its lease. With SQLite, the lock on the journal shows that a process is alive.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_core::catalog::StoreError;
use sqlx::Row as _;

use crate::engine::{Kind, failed_to};
use crate::store::Inner;

/// A node beats so many times within a lease.
const BEATS_PER_LEASE: u32 = 5;

/// What this node has seen of the others.
pub(crate) struct Leases {
    /// A node whose beat stands still for this long has lost its lease.
    lease: Duration,
    seen: Mutex<HashMap<String, Beat>>,
}

/// The last beat of a node, and when this node first saw it.
struct Beat {
    number: i64,
    since: Instant,
}

impl Leases {
    pub(crate) fn new(lease: Duration) -> Self {
        Self { lease, seen: Mutex::default() }
    }

    /// Returns how often a node beats and looks at the others.
    pub(crate) fn beat_interval(&self) -> Duration {
        self.lease / BEATS_PER_LEASE
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Beat>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the beats of all nodes; returns those that have lost their lease.
    fn observe(&self, beats: &HashMap<String, i64>, now: Instant) -> Vec<String> {
        let mut seen = self.lock();
        seen.retain(|node, _| beats.contains_key(node));
        let mut lost = Vec::new();
        for (node, number) in beats {
            let beat = seen.entry(node.clone()).or_insert(Beat { number: *number, since: now });
            if beat.number != *number {
                *beat = Beat { number: *number, since: now };
            } else if now.saturating_duration_since(beat.since) >= self.lease {
                lost.push(node.clone());
            }
        }
        lost
    }
}

impl Inner {
    /// Announces this node to the others.
    pub(crate) async fn begin_lease(&self) -> Result<(), StoreError> {
        if self.engine.kind == Kind::Postgres {
            self.beat().await.map_err(failed_to("announce this node"))?;
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

    /// Beats, looks at the other nodes, and recovers what those without a lease left behind.
    pub(crate) async fn keep_lease(&self) {
        let result = async {
            self.beat().await?;
            let beats = self.beats().await?;
            for node in self.leases.observe(&beats, Instant::now()) {
                tracing::warn!(node, "a node has lost its lease; recovering its calls");
                sqlx::query("DELETE FROM nodes WHERE id = $1").bind(&node).execute(&self.engine.pool).await?;
            }
            Ok::<_, sqlx::Error>(())
        };
        if let Err(error) = result.await {
            // While the database is away, no beat arrives from anyone.
            self.leases.lock().clear();
            tracing::warn!(%error, "cannot renew the lease of this node");
        }
    }

    /// Returns whether a node is not on the list.
    pub(crate) async fn has_lost_lease(&self, node: &str) -> Result<bool, sqlx::Error> {
        let found =
            sqlx::query("SELECT 1 FROM nodes WHERE id = $1").bind(node).fetch_optional(&self.engine.pool);
        Ok(found.await?.is_none())
    }

    async fn beat(&self) -> Result<(), sqlx::Error> {
        let sql = "INSERT INTO nodes (id, beat) VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET beat = nodes.beat + 1";
        sqlx::query(sql).bind(&self.node).execute(&self.engine.pool).await?;
        Ok(())
    }

    async fn beats(&self) -> Result<HashMap<String, i64>, sqlx::Error> {
        let rows = sqlx::query("SELECT id, beat FROM nodes WHERE id <> $1").bind(&self.node);
        let rows = rows.fetch_all(&self.engine.pool).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_beat_that_stands_still_loses_the_lease() {
        let leases = Leases::new(Duration::from_secs(10));
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let beats = |a, b| HashMap::from([("a".to_owned(), a), ("b".to_owned(), b)]);
        // However old a beat is when it is first seen, the node has a whole lease from then on.
        assert!(leases.observe(&beats(7, 1), at(0)).is_empty());
        assert!(leases.observe(&beats(7, 2), at(6)).is_empty());
        assert_eq!(leases.observe(&beats(7, 3), at(10)), ["a"]);
        assert!(leases.observe(&beats(8, 4), at(11)).is_empty());
        assert!(leases.observe(&HashMap::new(), at(12)).is_empty());
        assert!(leases.observe(&beats(8, 4), at(30)).is_empty(), "a node that comes back starts anew");
    }
}
