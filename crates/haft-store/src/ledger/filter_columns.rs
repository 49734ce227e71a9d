//! Fills the columns that lists of calls are filtered by, for calls that were recorded before these columns existed.

use haft_core::outcome::ErrorCode;
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, Row as _, Transaction};

use super::record::{self, CallRow};

/// How many calls are read at once; a record may have several megabytes.
const BATCH: i64 = 100;

/// An update of one call with the columns of its row; the two parameters that follow are its tenant and id.
type Update = fn(CallRow) -> Query<'static, Any, AnyArguments>;

/// Fills the caller, the error code and the chat.
pub(crate) async fn fill_filter_columns(tx: &mut Transaction<'static, Any>) -> Result<(), sqlx::Error> {
    fill(tx, |call| {
        sqlx::query(
            "UPDATE calls SET caller = $1, error_code = $2, chat_id = $3 WHERE tenant = $4 AND id = $5",
        )
        .bind(call.caller.to_string())
        .bind(call.error_code.map(ErrorCode::as_str))
        .bind(call.chat_id)
    })
    .await
}

/// Fills the interface and the parent.
pub(crate) async fn fill_surface_columns(tx: &mut Transaction<'static, Any>) -> Result<(), sqlx::Error> {
    fill(tx, |call| {
        sqlx::query("UPDATE calls SET surface = $1, parent_id = $2 WHERE tenant = $3 AND id = $4")
            .bind(call.surface.to_string())
            .bind(call.parent_id.map(|id| id.to_string()))
    })
    .await
}

/// Updates every call from its record. A record that cannot be parsed is left as it is.
async fn fill(tx: &mut Transaction<'static, Any>, update: Update) -> Result<(), sqlx::Error> {
    let (mut tenant, mut id) = (String::new(), String::new());
    let mut filled = 0_usize;
    loop {
        let rows = sqlx::query(
            "SELECT tenant, id, record FROM calls WHERE tenant > $1 OR (tenant = $1 AND id > $2) \
             ORDER BY tenant, id LIMIT $3",
        )
        .bind(&tenant)
        .bind(&id)
        .bind(BATCH)
        .fetch_all(&mut **tx)
        .await?;
        if rows.is_empty() {
            if filled > 0 {
                tracing::info!(calls = filled, "filled the filter columns of recorded calls");
            }
            return Ok(());
        }
        filled += rows.len();
        for row in &rows {
            (tenant, id) = (row.try_get(0)?, row.try_get(1)?);
            let parsed = record::parse(row.try_get(2)?).and_then(|call| CallRow::new(&call));
            let Ok(call) = parsed else { continue };
            update(call).bind(tenant.clone()).bind(id.clone()).execute(&mut **tx).await?;
        }
    }
}
