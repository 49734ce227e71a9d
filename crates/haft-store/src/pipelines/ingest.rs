//! Documents on their way into the index: claimed by one node, read, stored.

use haft_core::catalog::StoreError;
use haft_core::id::{DocumentId, PipelineId};
use haft_core::live::{DocumentEvent, ObjectAction};
use haft_core::name::TenantId;
use haft_core::retrieval::{ChunkPosition, ChunkRecord, DocumentInfo, DocumentState, IngestProgress};
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use super::chunks;
use super::documents::{self, DOCUMENT};
use crate::claims::{self, Claim, DOCUMENTS, holds};
use crate::engine::failed_to;
use crate::pipelines::Documents;
use crate::rows;

const CLAIM: &str = "claim documents";
const STORE: &str = "store the chunks of a document";
/// The longest error of a document, in characters.
const MAX_ERROR: usize = 1000;

/// A document that this node reads.
#[derive(Debug, Clone)]
pub struct ClaimedDocument {
    /// The document.
    pub info: DocumentInfo,
    /// Its tenant.
    pub tenant: TenantId,
    /// Its pipeline.
    pub pipeline: PipelineId,
    /// The content that its chunks were made from.
    pub ingested_hash: Option<String>,
    /// The revision of the pipeline that its chunks were made with.
    pub ingested_revision: Option<i64>,
    claim: Claim,
}

/// The chunks of a document.
#[derive(Debug, Clone, Default)]
pub struct DocumentChunks {
    /// The detected format.
    pub format: String,
    /// The hash of the content, and its size.
    pub content: (String, u64),
    /// The revision of the pipeline that they were made with.
    pub revision: i64,
    /// New chunks.
    pub add: Vec<ChunkRecord>,
    /// Chunks that stay and have another place or a new vector.
    pub keep: Vec<KeptChunk>,
    /// The ids of chunks that are gone.
    pub remove: Vec<String>,
    /// How many chunks the document has.
    pub total: u64,
    /// How many chunks the pipeline may have.
    pub max_chunks: u64,
}

/// A chunk that stays.
#[derive(Debug, Clone)]
pub struct KeptChunk {
    /// Its id.
    pub id: String,
    /// Its number in the document.
    pub ordinal: u32,
    /// Where it is.
    pub position: ChunkPosition,
    /// Whether it has a vector.
    pub is_embedded: bool,
    /// Its vector, if it had none.
    pub embedding: Option<Vec<f32>>,
}

/// Whether chunks were stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredChunks {
    /// They were.
    Stored,
    /// The document or its pipeline has changed or is gone; it is queued if it exists.
    Superseded,
    /// The pipeline would have more chunks than it may have.
    TooMany {
        /// How many it would have.
        chunks: u64,
    },
}

impl Documents {
    /// Claims queued documents, oldest first. Those of nodes that are gone are queued again before.
    pub async fn claim(&self, max: u32) -> Result<Vec<ClaimedDocument>, StoreError> {
        let this = self.clone();
        let work = async move {
            this.recover_documents().await?;
            this.claim_queued(max).await.map_err(failed_to(CLAIM))
        };
        self.db.complete(work).await
    }

    /// Stores how far the embedding of a document is. [`StoreError::ClaimLost`] if another node reads it now.
    pub async fn record_progress(
        &self,
        claim: &ClaimedDocument,
        done: usize,
        total: usize,
    ) -> Result<(), StoreError> {
        let count = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let progress = IngestProgress { done: count(done), total: count(total) };
        let number = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        let sql = under_claim("progress_done = $1, progress_total = $2", 3);
        let query = sqlx::query(sql).bind(number(done)).bind(number(total)).bind(claim.info.id.to_string());
        let done = claim.claim.bind(query).execute(&self.db.engine.pool).await;
        claims::written(&done.map_err(failed_to(STORE))?)?;
        self.report_ingest(claim, DocumentState::Running, Some(progress));
        Ok(())
    }

    /// Stores the chunks of a claimed document in one step.
    pub async fn store_chunks(
        &self,
        claim: &ClaimedDocument,
        new: DocumentChunks,
    ) -> Result<StoredChunks, StoreError> {
        let (claim, this) = (claim.clone(), self.clone());
        let work = async move {
            let mut tx = this.db.engine.begin().await.map_err(failed_to(STORE))?;
            // The size of the fetched content is only known now.
            let quota = this.db.byte_quota(&mut tx, &claim.tenant).await?;
            let written = this.write_chunks(&mut tx, &claim, &new).await.map_err(failed_to(STORE))?;
            match written {
                None => {
                    drop(tx);
                    this.requeue_document(&claim).await.map_err(failed_to(STORE))
                }
                Some(StoredChunks::Stored) => {
                    quota.check(&mut tx, &claim.tenant).await?;
                    tx.commit().await.map_err(failed_to(STORE))?;
                    this.report_ingest(&claim, DocumentState::Done, None);
                    Ok(StoredChunks::Stored)
                }
                Some(rejected) => Ok(rejected),
            }
        };
        self.db.complete(work).await
    }

    /// Writes the chunks of a claimed document; `None` if its pipeline has changed.
    async fn write_chunks(
        &self,
        tx: &mut Transaction<'static, Any>,
        claim: &ClaimedDocument,
        new: &DocumentChunks,
    ) -> Result<Option<StoredChunks>, sqlx::Error> {
        let (document, pipeline) = (claim.info.id.to_string(), claim.pipeline.to_string());
        // Updated first, so that writers of one pipeline wait for each other.
        let is_changed = !new.add.is_empty()
            || !new.remove.is_empty()
            || new.keep.iter().any(|chunk| chunk.embedding.is_some());
        let sql = "UPDATE pipelines SET generation = generation + $1 WHERE id = $2 AND revision = $3";
        let query = sqlx::query(sql).bind(i64::from(is_changed)).bind(&pipeline).bind(new.revision);
        if query.execute(&mut **tx).await?.rows_affected() == 0 {
            return Ok(None);
        }
        let query = sqlx::query("SELECT generation FROM pipelines WHERE id = $1").bind(&pipeline);
        let generation: i64 = query.fetch_one(&mut **tx).await?.try_get(0)?;
        let others = other_chunks(tx, &pipeline, &document).await?;
        let count = others.saturating_add(new.total);
        if count > new.max_chunks {
            return Ok(Some(StoredChunks::TooMany { chunks: count }));
        }
        let sql = under_claim(
            "state = 'done', error = NULL, node = '', progress_done = NULL, progress_total = NULL, format = $1, \
             content_hash = $2, bytes = $3, chunks = $4, generation = CASE WHEN $5 = 1 THEN $6 ELSE generation END, \
             ingested_hash = $2, ingested_revision = $7, ingested_at = $8, modified_at = $8",
            9,
        );
        let query = sqlx::query(sql)
            .bind(&new.format)
            .bind(&new.content.0)
            .bind(i64::try_from(new.content.1).unwrap_or(i64::MAX))
            .bind(i64::try_from(new.total).unwrap_or(i64::MAX))
            .bind(i64::from(is_changed))
            .bind(generation)
            .bind(new.revision)
            .bind(self.db.now().as_microsecond())
            .bind(&document);
        let updated = claim.claim.bind(query).execute(&mut **tx).await?;
        if updated.rows_affected() == 0 {
            return Ok(Some(StoredChunks::Superseded));
        }
        chunks::write(&self.db.engine, tx, (&pipeline, &document, generation), new).await?;
        Ok(Some(StoredChunks::Stored))
    }

    /// Ends a claim whose content is what the stored chunks were made from. [`StoreError::ClaimLost`] if it is lost.
    pub async fn keep_chunks(&self, claim: &ClaimedDocument) -> Result<(), StoreError> {
        let sql = under_claim(
            "state = 'done', error = NULL, node = '', progress_done = NULL, progress_total = NULL, ingested_at = $1",
            2,
        );
        let query = sqlx::query(sql).bind(self.db.now().as_microsecond()).bind(claim.info.id.to_string());
        let done = claim.claim.bind(query).execute(&self.db.engine.pool).await;
        claims::written(&done.map_err(failed_to(STORE))?)?;
        self.report_ingest(claim, DocumentState::Done, None);
        Ok(())
    }

    /// Ends a claim without chunks: with an error, or by queueing the document again. Earlier chunks stay.
    /// [`StoreError::ClaimLost`] if the claim is lost.
    pub async fn fail(&self, claim: &ClaimedDocument, error: Option<&str>) -> Result<(), StoreError> {
        // PostgreSQL stores no NUL.
        let error =
            error.map(|text| text.replace('\0', "\u{fffd}").chars().take(MAX_ERROR).collect::<String>());
        let state = if error.is_some() { DocumentState::Failed } else { DocumentState::Queued };
        let sql = under_claim(
            "state = $1, error = $2, node = '', progress_done = NULL, progress_total = NULL, modified_at = $3",
            4,
        );
        let query = sqlx::query(sql)
            .bind(state.as_str())
            .bind(error)
            .bind(self.db.now().as_microsecond())
            .bind(claim.info.id.to_string());
        let done = claim.claim.bind(query).execute(&self.db.engine.pool).await;
        claims::written(&done.map_err(failed_to(STORE))?)?;
        self.report_ingest(claim, state, None);
        Ok(())
    }
}

/// Documents of deleted pipelines wait until these are restored.
const OF_VISIBLE: &str =
    "AND NOT EXISTS (SELECT 1 FROM resources r WHERE r.id = d.pipeline_id AND r.gone_at IS NOT NULL)";

impl Documents {
    fn report_ingest(&self, claim: &ClaimedDocument, state: DocumentState, progress: Option<IngestProgress>) {
        let event = DocumentEvent {
            change: ObjectAction::Updated,
            pipeline_id: claim.pipeline,
            id: Some(claim.info.id),
            state: Some(state),
            progress,
        };
        self.db.report_document(&claim.tenant, event);
    }

    /// Queues the documents that nodes were reading which are gone.
    async fn recover_documents(&self) -> Result<(), StoreError> {
        self.db.free_claims(&DOCUMENTS, ", state = 'queued'", CLAIM).await?;
        Ok(())
    }

    async fn claim_queued(&self, max: u32) -> Result<Vec<ClaimedDocument>, sqlx::Error> {
        // Without the write lock as long as there is nothing to do.
        let waiting =
            format!("SELECT 1 FROM pipeline_documents d WHERE d.state = 'queued' {OF_VISIBLE} LIMIT 1");
        let waiting = sqlx::query(AssertSqlSafe(waiting));
        if waiting.fetch_optional(&self.db.engine.pool).await?.is_none() {
            return Ok(Vec::new());
        }
        let mut tx = self.db.engine.begin().await?;
        let sql = AssertSqlSafe(format!(
            "SELECT d.id FROM pipeline_documents d WHERE d.state = 'queued' {OF_VISIBLE} \
             ORDER BY d.modified_at, d.id LIMIT $1 {}",
            self.db.engine.skip_locked()
        ));
        let ids = sqlx::query(sql).bind(i64::from(max)).fetch_all(&mut *tx).await?;
        let mut claimed = Vec::with_capacity(ids.len());
        for row in ids {
            let id: DocumentId = rows::parse_column(&row, "id")?;
            let sql = DOCUMENTS
                .claim(", state = 'running', progress_done = NULL, progress_total = NULL", "id = $2");
            let row = sqlx::query(sql).bind(&self.db.node).bind(id.to_string()).fetch_one(&mut *tx).await?;
            claimed.push(read_claim(&mut tx, id, self.db.claimed(&row)?).await?);
        }
        tx.commit().await?;
        for claim in &claimed {
            self.report_ingest(claim, DocumentState::Running, None);
        }
        Ok(claimed)
    }

    /// Queues a document whose pipeline has changed while it was read.
    async fn requeue_document(&self, claim: &ClaimedDocument) -> Result<StoredChunks, sqlx::Error> {
        let query =
            sqlx::query(under_claim("state = 'queued', node = ''", 1)).bind(claim.info.id.to_string());
        let requeued = claim.claim.bind(query).execute(&self.db.engine.pool).await?;
        if requeued.rows_affected() > 0 {
            self.report_ingest(claim, DocumentState::Queued, None);
        }
        Ok(StoredChunks::Superseded)
    }
}

/// Returns the statement that changes a claimed document; its id and the claim are bound from a parameter on.
fn under_claim(set: &str, first: usize) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!(
        "UPDATE pipeline_documents SET {set} WHERE id = ${first} AND state = 'running' AND {}",
        holds(first + 1)
    ))
}

/// Returns the number of chunks of the other documents of a pipeline.
async fn other_chunks(
    tx: &mut Transaction<'static, Any>,
    pipeline: &str,
    document: &str,
) -> Result<u64, sqlx::Error> {
    let sql = "SELECT CAST(COALESCE(SUM(chunks), 0) AS BIGINT) FROM pipeline_documents \
               WHERE pipeline_id = $1 AND id <> $2";
    let row = sqlx::query(sql).bind(pipeline).bind(document).fetch_one(&mut **tx).await?;
    Ok(row.try_get::<i64, _>(0)?.unsigned_abs())
}

async fn read_claim(
    tx: &mut Transaction<'static, Any>,
    id: DocumentId,
    claim: Claim,
) -> Result<ClaimedDocument, sqlx::Error> {
    let columns =
        DOCUMENT.replacen("SELECT ", "SELECT tenant, pipeline_id, ingested_hash, ingested_revision, ", 1);
    let sql = AssertSqlSafe(format!("{columns} WHERE id = $1"));
    let row = sqlx::query(sql).bind(id.to_string()).fetch_one(&mut **tx).await?;
    Ok(ClaimedDocument {
        info: documents::document(&row)?,
        tenant: rows::parse_column(&row, "tenant")?,
        pipeline: rows::parse_column(&row, "pipeline_id")?,
        ingested_hash: row.try_get("ingested_hash")?,
        ingested_revision: row.try_get("ingested_revision")?,
        claim,
    })
}
