//! Chunks: written with their document, read to build an index and to show hits.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::catalog::StoreError;
use haft_core::id::{DocumentId, PipelineId};
use haft_core::retrieval::{ChunkPosition, ChunkRecord};
use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use super::ingest::DocumentChunks;
use crate::engine::{Engine, failed_to};
use crate::pipelines::Documents;
use crate::rows;

const READ: &str = "read the chunks of the pipeline";

/// How many chunks one statement inserts.
const INSERT_ROWS: usize = 50;
const COLUMNS: usize = 11;

/// What has changed in a pipeline since a generation.
#[derive(Debug, Clone)]
pub struct IndexChanges {
    /// The generation that the changes lead to, at least.
    pub generation: i64,
    /// All documents that have chunks.
    pub documents: Vec<IndexedDocument>,
}

/// A document that has chunks.
#[derive(Debug, Clone)]
pub struct IndexedDocument {
    /// Its id.
    pub id: DocumentId,
    /// The generation that its chunks changed in.
    pub generation: i64,
    /// Its metadata.
    pub metadata: BTreeMap<String, Value>,
}

/// A chunk without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredChunk {
    /// Its id.
    pub id: String,
    /// The hash of headings, text and metadata.
    pub hash: String,
    /// Its number in the document.
    pub ordinal: u32,
    /// Where it is.
    pub position: ChunkPosition,
    /// Whether it has a vector.
    pub is_embedded: bool,
}

impl Documents {
    /// Returns which documents of a pipeline have chunks, and when these changed; `None` if the pipeline does not exist.
    pub async fn index_changes(&self, pipeline: PipelineId) -> Result<Option<IndexChanges>, StoreError> {
        // The generation first: what changes meanwhile is read once more the next time.
        let Some(generation) = self.pipeline_generation(pipeline).await? else { return Ok(None) };
        let sql =
            "SELECT id, generation, metadata FROM pipeline_documents WHERE pipeline_id = $1 AND chunks > 0";
        let query = sqlx::query(sql).bind(pipeline.to_string());
        let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        let document = |row: &AnyRow| {
            Ok(IndexedDocument {
                id: rows::parse_column(row, "id")?,
                generation: row.try_get("generation")?,
                metadata: rows::json_column(row, "metadata")?,
            })
        };
        let documents =
            found.iter().map(document).collect::<Result<_, sqlx::Error>>().map_err(failed_to(READ))?;
        Ok(Some(IndexChanges { generation, documents }))
    }

    /// Returns the chunks of a document without their texts.
    pub async fn stored_chunks(&self, document: DocumentId) -> Result<Vec<StoredChunk>, StoreError> {
        let sql = "SELECT id, hash, ordinal, position, CAST(CASE WHEN embedding IS NULL THEN 0 ELSE 1 END AS BIGINT) \
                   AS embedded FROM pipeline_chunks WHERE document_id = $1";
        let query = sqlx::query(sql).bind(document.to_string());
        let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        let chunk = |row: &AnyRow| {
            Ok(StoredChunk {
                id: row.try_get("id")?,
                hash: row.try_get("hash")?,
                ordinal: u32::try_from(row.try_get::<i64, _>("ordinal")?).unwrap_or(u32::MAX),
                position: rows::json_column(row, "position")?,
                is_embedded: rows::boolean(row, "embedded")?,
            })
        };
        found.iter().map(chunk).collect::<Result<_, sqlx::Error>>().map_err(failed_to(READ))
    }

    /// Returns chunks of a document that were added or embedded after a generation, in the order of their ids, after an
    /// id. Their metadata is left empty: it is that of the document.
    pub async fn chunks_after(
        &self,
        document: DocumentId,
        generation: i64,
        after: &str,
        limit: u32,
    ) -> Result<Vec<ChunkRecord>, StoreError> {
        let sql = "SELECT document_id, id, ordinal, hash, headings, text, position, language, embedding \
                   FROM pipeline_chunks WHERE document_id = $1 AND generation > $2 AND id > $3 ORDER BY id LIMIT $4";
        let query = sqlx::query(sql).bind(document.to_string()).bind(generation).bind(after);
        let found = query.bind(i64::from(limit)).fetch_all(&self.db.engine.pool).await;
        let found = found.map_err(failed_to(READ))?;
        found.iter().map(chunk).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Returns chunks by their ids, each with the name of its document. Chunks that are gone are left out.
    pub async fn chunks_by_ids(
        &self,
        pipeline: PipelineId,
        ids: &[String],
    ) -> Result<Vec<(ChunkRecord, String)>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let places: Vec<String> = (2..ids.len() + 2).map(|number| format!("${number}")).collect();
        // The vectors are not needed.
        let sql = AssertSqlSafe(format!(
            "SELECT c.document_id AS document_id, c.id AS id, c.ordinal AS ordinal, c.hash AS hash, \
             c.headings AS headings, c.text AS text, c.position AS position, c.language AS language, \
             NULL AS embedding, d.name AS name, d.metadata AS metadata FROM pipeline_chunks c \
             JOIN pipeline_documents d ON d.id = c.document_id \
             WHERE c.pipeline_id = $1 AND c.id IN ({})",
            places.join(", ")
        ));
        let mut query = sqlx::query(sql).bind(pipeline.to_string());
        for id in ids {
            query = query.bind(id);
        }
        let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        let named = |row: &AnyRow| {
            let metadata = rows::json_column(row, "metadata")?;
            Ok((ChunkRecord { metadata, ..chunk(row)? }, row.try_get("name")?))
        };
        found.iter().map(named).collect::<Result<_, sqlx::Error>>().map_err(failed_to(READ))
    }
}

/// Writes the chunks of a document.
pub(super) async fn write(
    engine: &Engine,
    tx: &mut Transaction<'static, Any>,
    (pipeline, document, generation): (&str, &str, i64),
    new: &DocumentChunks,
) -> Result<(), sqlx::Error> {
    for id in &new.remove {
        let sql = "DELETE FROM pipeline_chunks WHERE document_id = $1 AND id = $2";
        sqlx::query(sql).bind(document).bind(id).execute(&mut **tx).await?;
    }
    for kept in &new.keep {
        let embedding = kept.embedding.as_deref().map(encode_vector);
        let sql = "UPDATE pipeline_chunks SET ordinal = $1, position = $2, embedding = COALESCE($3, embedding), \
                   generation = CASE WHEN $3 IS NULL THEN generation ELSE $4 END WHERE document_id = $5 AND id = $6";
        sqlx::query(sql)
            .bind(i64::from(kept.ordinal))
            .bind(encode_json(&kept.position)?)
            .bind(embedding)
            .bind(generation)
            .bind(document)
            .bind(&kept.id)
            .execute(&mut **tx)
            .await?;
    }
    for rows in new.add.chunks(INSERT_ROWS) {
        let sql = AssertSqlSafe(format!(
            "INSERT INTO pipeline_chunks (document_id, id, pipeline_id, generation, ordinal, hash, headings, text, \
             position, language, embedding) VALUES {}",
            engine.placeholders(rows.len(), COLUMNS)
        ));
        let mut query = sqlx::query(sql);
        for chunk in rows {
            query = query
                .bind(document)
                .bind(&chunk.id)
                .bind(pipeline)
                .bind(generation)
                .bind(i64::from(chunk.ordinal))
                .bind(&chunk.hash)
                .bind(encode_json(&chunk.headings)?)
                // PostgreSQL stores no NUL.
                .bind(chunk.text.replace('\0', "\u{fffd}"))
                .bind(encode_json(&chunk.position)?)
                .bind(&chunk.language)
                .bind(chunk.embedding.as_deref().map(encode_vector));
        }
        query.execute(&mut **tx).await?;
    }
    Ok(())
}

fn encode_json(value: &impl serde::Serialize) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(error.into()))
}

fn encode_vector(vector: &[f32]) -> String {
    let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
    STANDARD.encode(bytes)
}

fn decode_vector(text: &str) -> Result<Vec<f32>, sqlx::Error> {
    let bytes = STANDARD.decode(text).map_err(|error| sqlx::Error::Decode(error.into()))?;
    let (values, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(sqlx::Error::Decode("a vector is cut off".into()));
    }
    Ok(values.iter().map(|value| f32::from_le_bytes(*value)).collect())
}

fn chunk(row: &AnyRow) -> Result<ChunkRecord, sqlx::Error> {
    let ordinal: i64 = row.try_get("ordinal")?;
    Ok(ChunkRecord {
        id: row.try_get("id")?,
        document: rows::parse_column(row, "document_id")?,
        ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
        hash: row.try_get("hash")?,
        headings: rows::json_column(row, "headings")?,
        text: row.try_get("text")?,
        position: rows::json_column(row, "position")?,
        language: row.try_get("language")?,
        metadata: BTreeMap::new(),
        embedding: row.try_get::<Option<&str>, _>("embedding")?.map(decode_vector).transpose()?,
    })
}
