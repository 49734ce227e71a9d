//! Which people and service accounts changed, so that a node reloads these and not everybody.

use std::collections::BTreeSet;

use haft_core::catalog::StoreError;
use haft_core::id::ActorId;
use sqlx::Row as _;

use crate::access::Access;
use crate::database::access_changes::KEPT;
use crate::database::read_generation;
use crate::engine::failed_to;

/// Above this number of changes, everybody is reloaded.
const MAX_CHANGES: i64 = 1_000;

/// What changed since a node has loaded tenants, people, tokens and sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessChanges {
    /// Something that concerns more than a few people.
    Everything,
    /// These people and service accounts, with their tokens and sessions.
    Actors(BTreeSet<ActorId>),
}

impl Access {
    /// Returns what changed after a generation, and the generation that a node has reached with it. Without one, everything
    /// is to be loaded.
    pub async fn changes_since(&self, known: Option<i64>) -> Result<(i64, AccessChanges), StoreError> {
        let work = async {
            let now = read_generation(&self.db.engine.pool).await?;
            let Some(known) = known.filter(|known| (now - KEPT..=now).contains(known)) else {
                return Ok((now, AccessChanges::Everything));
            };
            let sql = "SELECT generation, actor_id FROM access_changes WHERE generation > $1 \
                       ORDER BY generation LIMIT $2";
            let query = sqlx::query(sql).bind(known).bind(MAX_CHANGES);
            let found = query.fetch_all(&self.db.engine.pool).await?;
            let mut reached = now;
            let mut actors = BTreeSet::new();
            for row in &found {
                reached = reached.max(row.try_get("generation")?);
                match row.try_get::<&str, _>("actor_id")?.parse() {
                    Ok(actor) => actors.insert(actor),
                    Err(_) => return Ok((now, AccessChanges::Everything)),
                };
            }
            let is_complete = i64::try_from(found.len()).is_ok_and(|count| count < MAX_CHANGES);
            Ok(if is_complete {
                (reached, AccessChanges::Actors(actors))
            } else {
                (now, AccessChanges::Everything)
            })
        };
        work.await.map_err(failed_to("load the changes of people and tokens"))
    }
}
