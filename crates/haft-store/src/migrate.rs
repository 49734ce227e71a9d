//! Brings a database to the newest schema, one numbered script after the other.

use haft_core::catalog::StoreError;
use sqlx::{Any, Row as _, Transaction};

use crate::engine::{self, Engine, fault};

/// Every script, in order. A script that was released is never edited; a change is a new script.
const SCRIPTS: [&str; 5] = [
    include_str!("../migrations/0001_first.sql"),
    include_str!("../migrations/0002_refresh_tokens.sql"),
    include_str!("../migrations/0003_audit.sql"),
    include_str!("../migrations/0004_mcp.sql"),
    include_str!("../migrations/0005_gone.sql"),
];

const DOING: &str = "bring the database to the newest schema";

/// Runs the scripts that the database has not seen.
pub(crate) async fn run(engine: &Engine) -> Result<(), StoreError> {
    let mut tx = engine.begin().await.map_err(fault(DOING))?;
    let found = prepare(engine, &mut tx).await.map_err(fault(DOING))?;
    let known = SCRIPTS.len();
    if found > known {
        return Err(StoreError::unavailable(
            DOING,
            format!("the database has schema {found} and this haft knows {known}; use a newer haft"),
        ));
    }
    for (index, script) in SCRIPTS.iter().enumerate().skip(found) {
        let step = format!("{DOING}, step {}", index + 1);
        engine::run_script(&mut tx, script).await.map_err(fault(&step))?;
        sqlx::query("INSERT INTO haft_schema (version) VALUES ($1)")
            .bind(i64::try_from(index + 1).unwrap_or(i64::MAX))
            .execute(&mut *tx)
            .await
            .map_err(fault(&step))?;
    }
    tx.commit().await.map_err(fault(DOING))
}

async fn prepare(engine: &Engine, tx: &mut Transaction<'static, Any>) -> Result<usize, sqlx::Error> {
    engine.lock_schema(tx).await?;
    engine::run_script(tx, "CREATE TABLE IF NOT EXISTS haft_schema (version BIGINT PRIMARY KEY)").await?;
    let row = sqlx::query("SELECT COUNT(*) FROM haft_schema").fetch_one(&mut **tx).await?;
    Ok(usize::try_from(row.try_get::<i64, _>(0)?).unwrap_or(usize::MAX))
}
