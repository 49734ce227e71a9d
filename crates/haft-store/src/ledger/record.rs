//! A call as a row, and the statements that store and find rows.

use std::borrow::Borrow;
use std::collections::HashMap;

use haft_core::call::{CallRecord, CallStatus};
use haft_core::catalog::StoreError;
use haft_core::id::{CallId, ToolId};
use haft_core::name::TenantId;
use sqlx::{Any, AssertSqlSafe, Transaction};

use crate::engine::Engine;

/// How many rows one statement stores: enough to spread its cost, few enough to keep its text short.
const ROWS: usize = 250;
const COLUMNS: usize = 7;
/// What the JSON of a call with few arguments takes.
const USUAL_BYTES: usize = 768;

/// A call, ready to be stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: CallId,
    pub(crate) tenant: TenantId,
    pub(crate) tool_id: ToolId,
    pub(crate) status: CallStatus,
    /// The call itself, as JSON.
    pub(crate) record: String,
}

impl Row {
    pub(crate) fn new(call: &CallRecord) -> Result<Self, StoreError> {
        let doing = || format!("record the call `{}`", call.id);
        let mut record = Vec::with_capacity(USUAL_BYTES);
        serde_json::to_writer(&mut record, call).map_err(|error| StoreError::unavailable(doing(), error))?;
        let record = String::from_utf8(record).map_err(|error| StoreError::unavailable(doing(), error))?;
        Ok(Self {
            id: call.id,
            tenant: call.tenant.clone(),
            tool_id: call.tool_id,
            status: call.status,
            record,
        })
    }

    pub(crate) fn call(&self) -> Result<CallRecord, StoreError> {
        parse(&self.record)
    }
}

/// Reads the JSON of a call.
pub(crate) fn parse(record: &str) -> Result<CallRecord, StoreError> {
    serde_json::from_str(record).map_err(|error| StoreError::unavailable("read a recorded call", error))
}

/// Stores rows; of several states of one call the last counts, and a call that is over stays so.
pub(crate) async fn insert<R: Borrow<Row>>(
    engine: &Engine,
    node: &str,
    rows: &[R],
) -> Result<(), sqlx::Error> {
    let mut tx = engine.begin().await?;
    insert_in(engine, &mut tx, node, rows).await?;
    tx.commit().await
}

async fn insert_in<R: Borrow<Row>>(
    engine: &Engine,
    tx: &mut Transaction<'static, Any>,
    node: &str,
    rows: &[R],
) -> Result<(), sqlx::Error> {
    // Spelled once for all chunks of a size, which are nearly all.
    let mut sql = (0, String::new());
    for rows in rows.chunks(ROWS) {
        // PostgreSQL refuses a statement that stores the same row twice.
        let mut last: HashMap<CallId, usize> = HashMap::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            last.insert(row.borrow().id, at);
        }
        let newest: Vec<&Row> = rows
            .iter()
            .map(Borrow::borrow)
            .enumerate()
            .filter(|(at, row): &(usize, &Row)| last.get(&row.id) == Some(at))
            .map(|(_, row)| row)
            .collect();
        if sql.0 != newest.len() {
            sql = (newest.len(), statement(&engine.placeholders(newest.len(), COLUMNS)));
        }
        let mut query = sqlx::query(AssertSqlSafe(sql.1.as_str()));
        for row in newest {
            query = query
                .bind(row.id.to_string())
                .bind(row.tenant.as_str())
                .bind(row.tool_id.to_string())
                .bind(row.status.as_str())
                .bind(i64::from(row.status.is_final()))
                .bind(node)
                .bind(&row.record);
        }
        query.execute(&mut **tx).await?;
    }
    Ok(())
}

/// Ends calls that nobody runs any more; one that came to its end meanwhile stays as it is.
pub(crate) async fn end(engine: &Engine, rows: &[Row]) -> Result<(), sqlx::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut tx = engine.begin().await?;
    for row in rows {
        sqlx::query(
            "UPDATE calls SET status = $1, final = 1, record = $2 WHERE tenant = $3 AND id = $4 AND final = 0",
        )
        .bind(row.status.as_str())
        .bind(&row.record)
        .bind(row.tenant.as_str())
        .bind(row.id.to_string())
        .execute(&mut *tx)
        .await?;
    }
    tx.commit().await
}

fn statement(places: &str) -> String {
    format!(
        "INSERT INTO calls (id, tenant, tool_id, status, final, node, record) VALUES {places} \
         ON CONFLICT (tenant, id) DO UPDATE SET status = excluded.status, final = excluded.final, \
         node = excluded.node, record = excluded.record WHERE calls.final = 0 OR excluded.final = 1"
    )
}

/// Finds the rows of a condition.
pub(crate) fn select(condition: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!("SELECT record FROM calls {condition}"))
}
