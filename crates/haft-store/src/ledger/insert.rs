//! Inserts many calls at once, with the cheapest method of each engine.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use haft_core::audit::AuditDecision;
use haft_core::id::CallId;
use haft_core::outcome::ErrorCode;
use sqlx::{AssertSqlSafe, SqlitePool};

use super::record::CallRow;
use crate::engine::Engine;
use crate::outbox::{NewDelivery, Outbox, insert_into_sqlite, insert_new};

/// Rows per statement: enough to spread its cost, few enough to keep its text short.
const ROWS_PER_STATEMENT: usize = 250;
const COLUMNS: usize = 16;

/// The calls whose result was dropped, because another node has claimed them since.
pub(crate) type LostCalls = Vec<CallId>;

/// Stores rows, and what webhooks get of them. The last state of a call wins, and a finished call stays finished. Returns
/// the calls whose claim is lost: nothing of them is stored.
pub(crate) async fn insert(
    engine: &Engine,
    outbox: &Outbox,
    node: &str,
    rows: &[CallRow],
) -> Result<LostCalls, sqlx::Error> {
    match &engine.bulk {
        Some(bulk) => insert_in_sqlite(engine, bulk, node, Batch { rows, outbox }).await,
        None => insert_in_postgres(engine, node, Batch { rows, outbox }, false).await,
    }
}

/// Stores rows in PostgreSQL without waiting for the disk, unless a promise rests on one of them.
pub(crate) async fn insert_relaxed(
    engine: &Engine,
    outbox: &Outbox,
    node: &str,
    rows: &[CallRow],
) -> Result<LostCalls, sqlx::Error> {
    insert_in_postgres(engine, node, Batch { rows, outbox }, true).await
}

/// Rows, and where webhooks get them from.
#[derive(Clone, Copy)]
struct Batch<'a> {
    rows: &'a [CallRow],
    outbox: &'a Outbox,
}

impl<'a> Batch<'a> {
    /// Separates the calls from the queue, which a claim decides about.
    fn split(&self) -> (Cow<'a, [CallRow]>, Vec<&'a CallRow>) {
        if self.rows.iter().all(|row| row.fence == 0) {
            return (Cow::Borrowed(self.rows), Vec::new());
        }
        let (claimed, others): (Vec<_>, Vec<_>) = self.rows.iter().partition(|row| row.fence != 0);
        (Cow::Owned(others.into_iter().cloned().collect()), claimed)
    }

    /// Returns what webhooks get of the rows that are stored.
    fn deliveries(&self, lost: &[CallId]) -> Vec<NewDelivery> {
        if lost.is_empty() {
            return deliveries_of(self.outbox, self.rows);
        }
        let stored: Vec<CallRow> = self.rows.iter().filter(|row| !lost.contains(&row.id)).cloned().collect();
        deliveries_of(self.outbox, &stored)
    }

    fn signal(&self, deliveries: &[NewDelivery]) {
        if !deliveries.is_empty() {
            self.outbox.signal();
        }
    }
}

/// The new state of a call that was claimed from the queue: its row exists.
const UPDATE_CLAIMED: &str = "UPDATE calls SET status = $1, final = $2, error_code = $3, rule = $4, decision = $5, \
                              record = $6, result_bytes = $7 WHERE tenant = $8 AND id = $9 AND fence = $10 AND (final = 0 OR $2 = 1)";

/// Stores the new state of a claimed call, whatever the driver; returns whether the claim still holds.
macro_rules! update_claimed {
    ($tx:expr, $row:expr) => {
        sqlx::query(UPDATE_CLAIMED)
            .bind($row.status.as_str())
            .bind(i64::from($row.status.is_final()))
            .bind($row.error_code.map(ErrorCode::as_str))
            .bind($row.rule.as_deref())
            .bind($row.decision.map(AuditDecision::as_str))
            .bind(&*$row.record)
            .bind($row.result_bytes)
            .bind($row.tenant.as_str())
            .bind($row.id.to_string())
            .bind($row.fence)
            .execute(&mut *$tx)
            .await?
            .rows_affected()
            > 0
    };
}

/// Shares the text of each record with the journal: the `Any` driver would copy it twice, which costs as much as
/// SQLite itself.
async fn insert_in_sqlite(
    engine: &Engine,
    bulk: &SqlitePool,
    node: &str,
    batch: Batch<'_>,
) -> Result<LostCalls, sqlx::Error> {
    let node: Arc<str> = node.into();
    let (rows, claimed) = batch.split();
    // Before the transaction, unless it depends on claims.
    let deliveries = claimed.is_empty().then(|| batch.deliveries(&[]));
    // Consecutive rows mostly have the same tenant, tool and status.
    let (mut tenants, mut tools, mut statuses) =
        (TextCache::default(), TextCache::default(), TextCache::default());
    let mut errors = TextCache::default();
    let mut statement = Statement::default();
    let mut tx = bulk.begin_with("BEGIN IMMEDIATE").await?;
    for rows in rows.chunks(ROWS_PER_STATEMENT) {
        let mut query = sqlx::query(AssertSqlSafe(statement.for_rows(engine, rows.len())));
        for row in rows {
            query = query
                .bind(Arc::<str>::from(&*row.id.0.hyphenated().encode_lower(&mut [0; 36])))
                .bind(tenants.text(row.tenant.as_str()))
                .bind(tools.text(row.tool_id))
                .bind(statuses.text(row.status.as_str()))
                .bind(i64::from(row.status.is_final()))
                .bind(Arc::clone(&node))
                .bind(Arc::clone(&row.caller))
                .bind(Arc::clone(&row.principal))
                .bind(Arc::clone(&row.surface))
                .bind(row.parent_id.map(|id| Arc::<str>::from(id.to_string())))
                .bind(row.error_code.map(|code| errors.text(code)))
                .bind(row.chat_id.as_deref().map(Arc::<str>::from))
                .bind(row.rule.clone())
                .bind(row.decision.map(|decision| Arc::<str>::from(decision.as_str())))
                .bind(row.result_bytes)
                .bind(Arc::clone(&row.record));
        }
        query.execute(&mut *tx).await?;
    }
    let mut lost = LostCalls::new();
    for row in claimed {
        if !update_claimed!(tx, row) {
            lost.push(row.id);
        }
    }
    let deliveries = deliveries.unwrap_or_else(|| batch.deliveries(&lost));
    insert_into_sqlite(&mut tx, &deliveries).await?;
    tx.commit().await?;
    batch.signal(&deliveries);
    Ok(lost)
}

async fn insert_in_postgres(
    engine: &Engine,
    node: &str,
    batch: Batch<'_>,
    relaxed: bool,
) -> Result<LostCalls, sqlx::Error> {
    let (rows, claimed) = batch.split();
    // Before the transaction, unless it depends on claims.
    let deliveries = claimed.is_empty().then(|| batch.deliveries(&[]));
    let mut statement = Statement::default();
    let mut tx = engine.begin().await?;
    for rows in rows.chunks(ROWS_PER_STATEMENT) {
        let rows = newest(rows);
        let mut query = sqlx::query(AssertSqlSafe(statement.for_rows(engine, rows.len())));
        for row in rows {
            query = query
                .bind(row.id.to_string())
                .bind(row.tenant.as_str())
                .bind(row.tool_id.to_string())
                .bind(row.status.as_str())
                .bind(i64::from(row.status.is_final()))
                .bind(node)
                .bind(&*row.caller)
                .bind(&*row.principal)
                .bind(&*row.surface)
                .bind(row.parent_id.map(|id| id.to_string()))
                .bind(row.error_code.map(ErrorCode::as_str))
                .bind(row.chat_id.as_deref())
                .bind(row.rule.as_deref())
                .bind(row.decision.map(AuditDecision::as_str))
                .bind(row.result_bytes)
                .bind(&*row.record);
        }
        query.execute(&mut *tx).await?;
    }
    let mut lost = LostCalls::new();
    for row in claimed {
        if !update_claimed!(tx, row) {
            lost.push(row.id);
        }
    }
    let deliveries = deliveries.unwrap_or_else(|| batch.deliveries(&lost));
    if relaxed && deliveries.is_empty() && !batch.rows.iter().any(|row| row.is_promise) {
        // The log reaches the disk within a second.
        sqlx::query("SET LOCAL synchronous_commit = off").execute(&mut *tx).await?;
    }
    insert_new(&mut tx, &deliveries).await?;
    tx.commit().await?;
    batch.signal(&deliveries);
    Ok(lost)
}

/// Returns the last state of each call: PostgreSQL rejects a statement that stores the same row twice.
fn newest(rows: &[CallRow]) -> Vec<&CallRow> {
    let mut last: HashMap<CallId, usize> = HashMap::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        last.insert(row.id, at);
    }
    let newest = |(at, row): &(usize, &CallRow)| last.get(&row.id) == Some(at);
    rows.iter().enumerate().filter(newest).map(|(_, row)| row).collect()
}

/// The text of the last value, reused while the value repeats.
struct TextCache<T>(Option<(T, Arc<str>)>);

impl<T> Default for TextCache<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Copy + PartialEq + Display> TextCache<T> {
    fn text(&mut self, value: T) -> Arc<str> {
        match &self.0 {
            Some((latest, text)) if *latest == value => Arc::clone(text),
            _ => Arc::clone(&self.0.insert((value, value.to_string().into())).1),
        }
    }
}

/// The statement for a number of rows, built once for all chunks of the same size.
#[derive(Default)]
struct Statement {
    rows: usize,
    sql: String,
}

impl Statement {
    fn for_rows(&mut self, engine: &Engine, rows: usize) -> &str {
        if self.rows != rows {
            let placeholders = engine.placeholders(rows, COLUMNS);
            self.rows = rows;
            self.sql = format!(
                "INSERT INTO calls (id, tenant, tool_id, status, final, node, caller, principal, surface, parent_id, \
                 error_code, chat_id, rule, decision, result_bytes, record) \
                 VALUES {placeholders} ON CONFLICT (tenant, id) DO UPDATE SET status = excluded.status, \
                 final = excluded.final, node = excluded.node, error_code = excluded.error_code, \
                 rule = excluded.rule, decision = excluded.decision, result_bytes = excluded.result_bytes, \
                 record = excluded.record WHERE calls.fence = 0 AND (calls.final = 0 OR excluded.final = 1)"
            );
        }
        &self.sql
    }
}

/// Returns the deliveries of the calls in a batch that have ended.
fn deliveries_of(outbox: &Outbox, rows: &[CallRow]) -> Vec<NewDelivery> {
    let mut deliveries = Vec::new();
    for row in rows.iter().filter(|row| row.status.is_final()) {
        if row.webhook.is_none() && !outbox.serves(&row.tenant) {
            continue;
        }
        match row.call() {
            Ok(call) => deliveries.extend(outbox.of_call(&call)),
            Err(error) => {
                tracing::error!(call = %row.id, error = &error as &dyn std::error::Error, "cannot create the webhook deliveries of a call");
            }
        }
    }
    deliveries
}
