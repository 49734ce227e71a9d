//! Records whose access each change concerns, in the transaction of the change.

use std::collections::BTreeSet;

use haft_core::id::ActorId;
use sqlx::{Any, Transaction};

/// How many generations are kept: a node that is further behind reloads everybody.
pub(crate) const KEPT: i64 = 1_000;
/// What stands for everybody.
const EVERYBODY: &str = "";

/// Notes whose access the change with a generation concerns; nobody stands for everybody. Generations are committed in their
/// order, because each change locks the last one.
pub(super) async fn record(
    tx: &mut Transaction<'static, Any>,
    generation: i64,
    actors: &BTreeSet<ActorId>,
) -> Result<(), sqlx::Error> {
    let everybody = actors.is_empty().then(|| EVERYBODY.to_owned());
    for actor in actors.iter().map(ToString::to_string).chain(everybody) {
        let query = sqlx::query("INSERT INTO access_changes (generation, actor_id) VALUES ($1, $2)");
        query.bind(generation).bind(actor).execute(&mut **tx).await?;
    }
    let query = sqlx::query("DELETE FROM access_changes WHERE generation <= $1").bind(generation - KEPT);
    query.execute(&mut **tx).await.map(drop)
}
