//! Documents of pipelines: add, list, delete, queue again.

use std::collections::BTreeMap;

use haft_core::Timestamp;
use haft_core::catalog::StoreError;
use haft_core::hash;
use haft_core::id::{DocumentId, PipelineId};
use haft_core::limit::LimitName;
use haft_core::live::{DocumentEvent, ObjectAction};
use haft_core::name::TenantId;
use haft_core::retrieval::{
    DocumentInfo, DocumentSource, DocumentState, IngestProgress, IngestStatus, Pipeline,
};
use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use super::contents;
use crate::audit;
use crate::database::reports::many_documents;
use crate::engine::failed_to;
use crate::pipelines::Documents;
use crate::rows;
use crate::time;

const READ: &str = "read the documents of the pipeline";
const CHANGE: &str = "change the documents of the pipeline";

/// The most documents of one pipeline.
const MAX_DOCUMENTS: i64 = 100_000;

pub(super) const DOCUMENT: &str = "SELECT id, name, source, media_type, format, metadata, content_hash, bytes, state, error, \
    chunks, progress_done, progress_total, created_at, modified_at, ingested_at FROM pipeline_documents";

/// A document to add. One with the same name in the pipeline is replaced.
#[derive(Debug, Clone)]
pub struct NewDocument {
    /// Its name.
    pub name: String,
    /// Where it comes from.
    pub source: DocumentSource,
    /// The declared media type.
    pub media_type: Option<String>,
    /// Values that queries can filter by.
    pub metadata: BTreeMap<String, Value>,
    /// Its content; `None` if it is fetched.
    pub content: Option<Vec<u8>>,
    /// Why it cannot be read, if that is known already.
    pub error: Option<String>,
}

impl Documents {
    /// Adds a document, or replaces the one of the same name, and queues it. One whose content, metadata and type are the
    /// same and that was read before is left as it is.
    pub async fn add(&self, pipeline: &Pipeline, new: NewDocument) -> Result<DocumentInfo, StoreError> {
        let (tenant, pipeline) = (pipeline.tenant.clone(), pipeline.id);
        let this = self.clone();
        let work = async move {
            let tenant = &tenant;
            let mut tx = this.db.engine.begin().await.map_err(failed_to(CHANGE))?;
            let sql = AssertSqlSafe(format!("{DOCUMENT} WHERE pipeline_id = $1 AND name = $2"));
            let query = sqlx::query(sql).bind(pipeline.to_string()).bind(&new.name);
            let found = query.fetch_optional(&mut *tx).await.map_err(failed_to(CHANGE))?;
            let earlier = found.as_ref().map(document).transpose().map_err(failed_to(CHANGE))?;
            let content_hash = new.content.as_deref().map(hash::of_bytes);
            if let Some(earlier) = &earlier
                && is_same(earlier, &new, content_hash.as_deref())
            {
                return Ok(earlier.clone());
            }
            if earlier.is_none() {
                check_room(&mut tx, pipeline).await?;
                this.db.check_room(&mut tx, tenant, LimitName::Documents).await?;
            }
            let quota = this.db.byte_quota(&mut tx, tenant).await?;
            let change = if earlier.is_some() { ObjectAction::Updated } else { ObjectAction::Created };
            let id = earlier.map_or_else(|| DocumentId(time::new_id(&*this.db.clock)), |earlier| earlier.id);
            let ids = (tenant, pipeline, id);
            let written = this.write_document(&mut tx, ids, &new, content_hash.as_deref()).await;
            written.map_err(failed_to(CHANGE))?;
            quota.check(&mut tx, tenant).await?;
            let write = async {
                if let Some(content) = &new.content {
                    contents::replace(&mut tx, id, content).await?;
                }
                audit::store_current_record(&mut tx, &new.name).await?;
                tx.commit().await
            };
            write.await.map_err(failed_to(CHANGE))?;
            let stored = this.read_document(pipeline, id).await.map_err(failed_to(READ))?;
            let stored = stored.ok_or_else(|| StoreError::not_found("document", id))?;
            let state = Some(stored.state);
            let event = DocumentEvent { change, id: Some(id), state, ..many_documents(pipeline) };
            this.db.report_document(tenant, event);
            Ok(stored)
        };
        self.db.complete(work).await
    }

    /// Returns a document.
    pub async fn get(&self, pipeline: &Pipeline, id: DocumentId) -> Result<Option<DocumentInfo>, StoreError> {
        self.read_document(pipeline.id, id).await.map_err(failed_to(READ))
    }

    /// Lists the documents of a pipeline by name, after a name, optionally those in some states.
    pub async fn list(
        &self,
        pipeline: &Pipeline,
        states: &[DocumentState],
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<DocumentInfo>, StoreError> {
        let names: Vec<String> = states.iter().map(|state| format!("'{}'", state.as_str())).collect();
        let filter =
            if names.is_empty() { String::new() } else { format!(" AND state IN ({})", names.join(", ")) };
        let sql = AssertSqlSafe(format!(
            "{DOCUMENT} WHERE pipeline_id = $1 AND name > $2{filter} ORDER BY name LIMIT $3"
        ));
        let query = sqlx::query(sql)
            .bind(pipeline.id.to_string())
            .bind(after.unwrap_or_default())
            .bind(i64::from(limit));
        let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        found.iter().map(document).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Returns how many documents of a pipeline are in which state.
    pub async fn ingest_status(&self, pipeline: &Pipeline) -> Result<IngestStatus, StoreError> {
        let sql =
            "SELECT state, COUNT(*) AS count FROM pipeline_documents WHERE pipeline_id = $1 GROUP BY state";
        let query = sqlx::query(sql).bind(pipeline.id.to_string());
        let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        let mut status = IngestStatus::default();
        for row in &found {
            let state: &str = row.try_get("state").map_err(failed_to(READ))?;
            let count = row.try_get::<i64, _>("count").map_err(failed_to(READ))?.unsigned_abs();
            match DocumentState::parse(state) {
                Some(DocumentState::Queued) => status.queued = count,
                Some(DocumentState::Running) => status.running = count,
                Some(DocumentState::Done) => status.done = count,
                Some(DocumentState::Failed) => status.failed = count,
                None => {}
            }
        }
        Ok(status)
    }

    /// Deletes a document with its chunks; returns whether there was one.
    pub async fn delete(&self, pipeline: &Pipeline, id: DocumentId) -> Result<bool, StoreError> {
        let (tenant, pipeline) = (pipeline.tenant.clone(), pipeline.id);
        let this = self.clone();
        let work = async move {
            let deleted = this.remove_document(pipeline, id).await;
            let deleted = deleted.map_err(failed_to("delete the document"))?;
            if deleted {
                let change = ObjectAction::Deleted;
                let event = DocumentEvent { change, id: Some(id), ..many_documents(pipeline) };
                this.db.report_document(&tenant, event);
            }
            Ok(deleted)
        };
        self.db.complete(work).await
    }

    /// Queues all documents of a pipeline, to be fetched and read again; returns their number.
    pub async fn reingest(&self, pipeline: &Pipeline) -> Result<u64, StoreError> {
        let (tenant, id) = (pipeline.tenant.clone(), pipeline.id);
        let this = self.clone();
        let work = async move {
            let queued = async {
                let mut tx = this.db.engine.begin().await?;
                let count = queue_all(&mut tx, id, this.db.now()).await?;
                audit::store_current_record(&mut tx, &id.to_string()).await?;
                tx.commit().await?;
                Ok(count)
            };
            let count = queued.await.map_err(failed_to(CHANGE))?;
            this.db.report_document(&tenant, many_documents(id));
            Ok(count)
        };
        self.db.complete(work).await
    }
}

impl Documents {
    async fn read_document(
        &self,
        pipeline: PipelineId,
        id: DocumentId,
    ) -> Result<Option<DocumentInfo>, sqlx::Error> {
        let sql = AssertSqlSafe(format!("{DOCUMENT} WHERE pipeline_id = $1 AND id = $2"));
        let query = sqlx::query(sql).bind(pipeline.to_string()).bind(id.to_string());
        query.fetch_optional(&self.db.engine.pool).await?.as_ref().map(document).transpose()
    }

    async fn write_document(
        &self,
        tx: &mut Transaction<'static, Any>,
        (tenant, pipeline, id): (&TenantId, PipelineId, DocumentId),
        new: &NewDocument,
        content_hash: Option<&str>,
    ) -> Result<(), sqlx::Error> {
        let json =
            |value: serde_json::Result<String>| value.map_err(|error| sqlx::Error::Encode(error.into()));
        let bytes = new.content.as_ref().map_or(0, Vec::len);
        // Chunks of an earlier content stay until the new one is read.
        let sql = "INSERT INTO pipeline_documents (id, tenant, pipeline_id, name, source, media_type, metadata, \
                   content_hash, bytes, state, chunks, node, fence, generation, created_at, modified_at, error) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $11, 0, '', 1, 0, $10, $10, $12) \
                   ON CONFLICT (id) DO UPDATE SET source = excluded.source, media_type = excluded.media_type, \
                   metadata = excluded.metadata, content_hash = excluded.content_hash, bytes = excluded.bytes, \
                   state = excluded.state, error = excluded.error, node = '', progress_done = NULL, \
                   progress_total = NULL, ingested_hash = NULL, fence = pipeline_documents.fence + 1, modified_at = excluded.modified_at";
        sqlx::query(sql)
            .bind(id.to_string())
            .bind(tenant.as_str())
            .bind(pipeline.to_string())
            .bind(&new.name)
            .bind(json(serde_json::to_string(&new.source))?)
            .bind(new.media_type.as_deref())
            .bind(json(serde_json::to_string(&new.metadata))?)
            .bind(content_hash)
            .bind(i64::try_from(bytes).unwrap_or(i64::MAX))
            .bind(self.db.now().as_microsecond())
            .bind(if new.error.is_some() { "failed" } else { "queued" })
            .bind(new.error.as_deref())
            .execute(&mut **tx)
            .await?;
        Ok(())
    }

    async fn remove_document(&self, pipeline: PipelineId, id: DocumentId) -> Result<bool, sqlx::Error> {
        let mut tx = self.db.engine.begin().await?;
        let sql = "DELETE FROM pipeline_documents WHERE pipeline_id = $1 AND id = $2";
        let query = sqlx::query(sql).bind(pipeline.to_string()).bind(id.to_string());
        let deleted = query.execute(&mut *tx).await?.rows_affected() > 0;
        let query = sqlx::query("UPDATE pipelines SET generation = generation + 1 WHERE id = $1");
        query.bind(pipeline.to_string()).execute(&mut *tx).await?;
        audit::store_current_record(&mut tx, &id.to_string()).await?;
        tx.commit().await?;
        Ok(deleted)
    }
}

/// Queues all documents of a pipeline; returns their number.
pub(super) async fn queue_all(
    tx: &mut Transaction<'static, Any>,
    pipeline: PipelineId,
    now: Timestamp,
) -> Result<u64, sqlx::Error> {
    let sql = "UPDATE pipeline_documents SET state = 'queued', error = NULL, node = '', progress_done = NULL, \
               progress_total = NULL, fence = fence + 1, modified_at = $1 WHERE pipeline_id = $2";
    let query = sqlx::query(sql).bind(now.as_microsecond()).bind(pipeline.to_string());
    Ok(query.execute(&mut **tx).await?.rows_affected())
}

/// Tells whether a document that was read or is about to be read is the same as a new one.
fn is_same(earlier: &DocumentInfo, new: &NewDocument, content_hash: Option<&str>) -> bool {
    content_hash.is_some()
        && earlier.state != DocumentState::Failed
        && earlier.content_hash.as_deref() == content_hash
        && earlier.metadata == new.metadata
        && earlier.media_type == new.media_type
        && earlier.source == new.source
}

async fn check_room(tx: &mut Transaction<'static, Any>, pipeline: PipelineId) -> Result<(), StoreError> {
    let query = sqlx::query("SELECT COUNT(*) FROM pipeline_documents WHERE pipeline_id = $1");
    let count = query.bind(pipeline.to_string()).fetch_one(&mut **tx).await;
    let count: i64 = count.and_then(|row| row.try_get(0)).map_err(failed_to(CHANGE))?;
    if count < MAX_DOCUMENTS {
        return Ok(());
    }
    let message = format!(
        "the pipeline has {MAX_DOCUMENTS} documents, which is the limit; delete some, or create another pipeline"
    );
    Err(StoreError::Conflict(message))
}

pub(super) fn document(row: &AnyRow) -> Result<DocumentInfo, sqlx::Error> {
    let count = |column: &str| Ok::<_, sqlx::Error>(row.try_get::<i64, _>(column)?.unsigned_abs());
    let number = |column: &str| {
        let value = row.try_get::<Option<i64>, _>(column)?;
        Ok::<_, sqlx::Error>(value.and_then(|value| u32::try_from(value).ok()))
    };
    let state: &str = row.try_get("state")?;
    let progress = number("progress_done")?.zip(number("progress_total")?);
    Ok(DocumentInfo {
        id: rows::parse_column(row, "id")?,
        name: row.try_get("name")?,
        source: rows::json_column(row, "source")?,
        media_type: row.try_get("media_type")?,
        format: row.try_get("format")?,
        metadata: rows::json_column(row, "metadata")?,
        content_hash: row.try_get("content_hash")?,
        bytes: count("bytes")?,
        state: DocumentState::parse(state)
            .ok_or_else(|| sqlx::Error::Decode(format!("unknown state `{state}`").into()))?,
        error: row.try_get("error")?,
        chunks: count("chunks")?,
        progress: progress.map(|(done, total)| IngestProgress { done, total }),
        created_at: rows::timestamp(row, "created_at")?,
        modified_at: rows::timestamp(row, "modified_at")?,
        ingested_at: rows::optional_timestamp(row, "ingested_at")?,
    })
}
