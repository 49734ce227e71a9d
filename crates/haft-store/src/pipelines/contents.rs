//! The contents of uploaded documents, in parts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::catalog::StoreError;
use haft_core::id::DocumentId;
use sqlx::{Any, Row as _, Transaction};

use crate::engine::failed_to;
use crate::pipelines::Documents;

const READ: &str = "read the document";

/// The size of a part.
const PART: usize = 1 << 20;

impl Documents {
    /// Returns the content of an uploaded document; `None` if it has none.
    pub async fn content(&self, id: DocumentId) -> Result<Option<Vec<u8>>, StoreError> {
        let mut content: Option<Vec<u8>> = None;
        let mut part = 0_i64;
        // One part at a time: a large document is not in memory twice.
        loop {
            let sql = "SELECT data FROM pipeline_contents WHERE document_id = $1 AND part = $2";
            let query = sqlx::query(sql).bind(id.to_string()).bind(part);
            let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(READ))?;
            let Some(row) = found else { return Ok(content) };
            let data: &str = row.try_get(0).map_err(failed_to(READ))?;
            let bytes = STANDARD.decode(data).map_err(|error| StoreError::unavailable(READ, error))?;
            content.get_or_insert_default().extend(bytes);
            part += 1;
        }
    }
}

/// Replaces the content of a document.
pub(super) async fn replace(
    tx: &mut Transaction<'static, Any>,
    id: DocumentId,
    content: &[u8],
) -> Result<(), sqlx::Error> {
    let query = sqlx::query("DELETE FROM pipeline_contents WHERE document_id = $1").bind(id.to_string());
    query.execute(&mut **tx).await?;
    for (part, bytes) in content.chunks(PART).enumerate() {
        let sql = "INSERT INTO pipeline_contents (document_id, part, data) VALUES ($1, $2, $3)";
        sqlx::query(sql)
            .bind(id.to_string())
            .bind(i64::try_from(part).unwrap_or(i64::MAX))
            .bind(STANDARD.encode(bytes))
            .execute(&mut **tx)
            .await?;
    }
    Ok(())
}
