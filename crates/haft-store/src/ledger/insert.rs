//! Stores many rows at once, in the way that is cheapest with each engine.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use haft_core::id::CallId;
use sqlx::{AssertSqlSafe, SqlitePool};

use super::record::Row;
use crate::engine::Engine;

/// How many rows one statement stores: enough to spread its cost, few enough to keep its text short.
const ROWS: usize = 250;
const COLUMNS: usize = 7;

/// Stores rows; of several states of one call the last counts, and a call that is over stays so.
pub(crate) async fn insert(engine: &Engine, node: &str, rows: &[Row]) -> Result<(), sqlx::Error> {
    match &engine.bulk {
        Some(bulk) => insert_in_sqlite(engine, bulk, node, rows).await,
        None => insert_in_any(engine, node, rows).await,
    }
}

/// Shares every text with the journal: `Any` would copy each of them twice, which costs as much as SQLite itself.
async fn insert_in_sqlite(
    engine: &Engine,
    bulk: &SqlitePool,
    node: &str,
    rows: &[Row],
) -> Result<(), sqlx::Error> {
    let node: Arc<str> = node.into();
    // Rows that follow each other are mostly of one tenant and one tool, and came to the same end.
    let (mut tenants, mut tools, mut statuses) = (Latest::default(), Latest::default(), Latest::default());
    let mut statement = Statement::default();
    let mut tx = bulk.begin_with("BEGIN IMMEDIATE").await?;
    for rows in rows.chunks(ROWS) {
        let mut query = sqlx::query(AssertSqlSafe(statement.of(engine, rows.len())));
        for row in rows {
            query = query
                .bind(Arc::<str>::from(&*row.id.0.hyphenated().encode_lower(&mut [0; 36])))
                .bind(tenants.text(row.tenant.as_str()))
                .bind(tools.text(row.tool_id))
                .bind(statuses.text(row.status.as_str()))
                .bind(i64::from(row.status.is_final()))
                .bind(Arc::clone(&node))
                .bind(Arc::clone(&row.record));
        }
        query.execute(&mut *tx).await?;
    }
    tx.commit().await
}

async fn insert_in_any(engine: &Engine, node: &str, rows: &[Row]) -> Result<(), sqlx::Error> {
    let mut statement = Statement::default();
    let mut tx = engine.begin().await?;
    for rows in rows.chunks(ROWS) {
        let rows = newest(rows);
        let mut query = sqlx::query(AssertSqlSafe(statement.of(engine, rows.len())));
        for row in rows {
            query = query
                .bind(row.id.to_string())
                .bind(row.tenant.as_str())
                .bind(row.tool_id.to_string())
                .bind(row.status.as_str())
                .bind(i64::from(row.status.is_final()))
                .bind(node)
                .bind(&*row.record);
        }
        query.execute(&mut *tx).await?;
    }
    tx.commit().await
}

/// Leaves the last state of each call: PostgreSQL refuses a statement that stores the same row twice.
fn newest(rows: &[Row]) -> Vec<&Row> {
    let mut last: HashMap<CallId, usize> = HashMap::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        last.insert(row.id, at);
    }
    let newest = |(at, row): &(usize, &Row)| last.get(&row.id) == Some(at);
    rows.iter().enumerate().filter(newest).map(|(_, row)| row).collect()
}

/// The last text that was spelled, for as long as it is wanted again.
struct Latest<T>(Option<(T, Arc<str>)>);

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Copy + PartialEq + Display> Latest<T> {
    fn text(&mut self, value: T) -> Arc<str> {
        match &self.0 {
            Some((latest, text)) if *latest == value => Arc::clone(text),
            _ => Arc::clone(&self.0.insert((value, value.to_string().into())).1),
        }
    }
}

/// The statement for a number of rows, spelled once for all chunks of a size, which are nearly all.
#[derive(Default)]
struct Statement {
    rows: usize,
    sql: String,
}

impl Statement {
    fn of(&mut self, engine: &Engine, rows: usize) -> &str {
        if self.rows != rows {
            let places = engine.placeholders(rows, COLUMNS);
            self.rows = rows;
            self.sql = format!(
                "INSERT INTO calls (id, tenant, tool_id, status, final, node, record) VALUES {places} \
                 ON CONFLICT (tenant, id) DO UPDATE SET status = excluded.status, final = excluded.final, \
                 node = excluded.node, record = excluded.record WHERE calls.final = 0 OR excluded.final = 1"
            );
        }
        &self.sql
    }
}
