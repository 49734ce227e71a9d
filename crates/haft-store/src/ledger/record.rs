//! A call as a row, and the statements that store and find rows.

use std::sync::Arc;

use haft_core::call::{CallRecord, CallStatus};
use haft_core::catalog::StoreError;
use haft_core::id::{CallId, ToolId};
use haft_core::name::TenantId;
use sqlx::AssertSqlSafe;

use crate::engine::Engine;

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
    pub(crate) record: Arc<str>,
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
            record: record.into(),
        })
    }

    pub(crate) fn call(&self) -> Result<CallRecord, StoreError> {
        parse(&self.record)
    }

    /// Returns a row that is like no other of its kind, with its number in place of a record.
    #[cfg(test)]
    pub(crate) fn example(number: u8) -> Self {
        Self {
            id: CallId(uuid::Uuid::from_bytes([number; 16])),
            tenant: TenantId::default_tenant(),
            tool_id: ToolId(uuid::Uuid::nil()),
            status: CallStatus::Success,
            record: number.to_string().into(),
        }
    }
}

/// Reads the JSON of a call.
pub(crate) fn parse(record: &str) -> Result<CallRecord, StoreError> {
    serde_json::from_str(record).map_err(|error| StoreError::unavailable("read a recorded call", error))
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
        .bind(&*row.record)
        .bind(row.tenant.as_str())
        .bind(row.id.to_string())
        .execute(&mut *tx)
        .await?;
    }
    tx.commit().await
}

/// Finds the rows of a condition.
pub(crate) fn select(condition: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!("SELECT record FROM calls {condition}"))
}
