//! Pipelines: their definitions, which are resources, with the state of their documents.

use std::collections::HashMap;
use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::catalog::StoreError;
use haft_core::id::PipelineId;
use haft_core::live::ObjectEvent;
use haft_core::name::TenantId;
use haft_core::resource::Resource;
use haft_core::retrieval::{Pipeline, PipelineDefinition};
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use super::documents::queue_all;
use crate::database::Database;
use crate::database::reports::many_documents;
use crate::engine::failed_to;
use crate::resources::Resources;
use crate::resources::{BY_REFERENCE, ResourceQuery, read_resource, select_with};
use crate::rows;

const READ: &str = "read the pipeline";

/// How many documents of a deleted pipeline are removed in one transaction.
const DOCUMENTS_PER_TRANSACTION: u64 = 20;

const STATE: &str = ", x.revision AS ingest_revision, x.generation AS generation";
const COUNTS: &str = ", (SELECT COUNT(*) FROM pipeline_documents d WHERE d.pipeline_id = x.id) AS documents, \
    (SELECT CAST(COALESCE(SUM(d.chunks), 0) AS BIGINT) FROM pipeline_documents d WHERE d.pipeline_id = x.id) AS chunks, \
    (SELECT CAST(COALESCE(SUM(d.bytes), 0) AS BIGINT) FROM pipeline_documents d WHERE d.pipeline_id = x.id) AS bytes";
const NO_COUNTS: &str =
    ", CAST(0 AS BIGINT) AS documents, CAST(0 AS BIGINT) AS chunks, CAST(0 AS BIGINT) AS bytes";
const JOIN: &str = " JOIN pipelines x ON x.id = r.id";

/// The documents and chunks of retrieval pipelines.
#[derive(Clone)]
pub struct Documents {
    pub(super) db: Arc<Database>,
}

impl Documents {
    pub(crate) fn new(db: &Arc<Database>) -> Self {
        Self { db: Arc::clone(db) }
    }
}

impl Documents {
    /// Returns a pipeline by id or slug.
    pub async fn pipeline(&self, tenant: &TenantId, reference: &str) -> Result<Option<Pipeline>, StoreError> {
        self.find_pipeline(tenant, reference, COUNTS).await.map_err(failed_to(READ))
    }

    /// Returns a pipeline by id or slug, for a query: its documents and chunks are not counted.
    pub async fn queried_pipeline(
        &self,
        tenant: &TenantId,
        reference: &str,
    ) -> Result<Option<Pipeline>, StoreError> {
        self.find_pipeline(tenant, reference, NO_COUNTS).await.map_err(failed_to(READ))
    }

    /// Adds the state of its documents to a definition.
    pub async fn pipeline_of(&self, resource: Resource<PipelineDefinition>) -> Result<Pipeline, StoreError> {
        let found = self.pipeline(&resource.tenant, &resource.id.to_string()).await?;
        found.ok_or_else(|| StoreError::not_found("pipeline", resource.id))
    }

    /// Lists pipelines by slug, with the number of all that match.
    pub async fn list_pipelines(
        &self,
        tenant: &TenantId,
        query: &ResourceQuery,
    ) -> Result<(Vec<Pipeline>, u64), StoreError> {
        let (found, total) = Resources::<PipelineDefinition>::new(&self.db).list(tenant, query).await?;
        Ok((self.with_documents(tenant, found).await?, total))
    }

    /// Adds the state of their documents to several definitions of a tenant.
    pub async fn with_documents(
        &self,
        tenant: &TenantId,
        found: Vec<Resource<PipelineDefinition>>,
    ) -> Result<Vec<Pipeline>, StoreError> {
        let sql = AssertSqlSafe(format!(
            "SELECT x.id AS id{STATE}{COUNTS} FROM resources r{JOIN} WHERE r.tenant = $1 AND r.kind = 'pipeline'"
        ));
        let states = sqlx::query(sql).bind(tenant.as_str()).fetch_all(&self.db.engine.pool).await;
        let states = states.map_err(failed_to(READ))?;
        let states: Result<HashMap<PipelineId, &AnyRow>, sqlx::Error> =
            states.iter().map(|row| Ok((rows::parse_column(row, "id")?, row))).collect();
        let states = states.map_err(failed_to(READ))?;
        // One that was deleted meanwhile is left out.
        let listed = found.into_iter().filter_map(|resource| Some((*states.get(&resource.id)?, resource)));
        let listed = listed.map(|(row, resource)| with_state(row, resource));
        listed.collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Returns the generation of a pipeline's chunks; `None` if it does not exist.
    pub async fn pipeline_generation(&self, id: PipelineId) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT x.generation FROM pipelines x JOIN resources r ON r.id = x.id \
                   WHERE x.id = $1 AND r.gone_at IS NULL";
        let query = sqlx::query(sql).bind(id.to_string());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        found.map(|row| row.try_get(0)).transpose().map_err(failed_to(READ))
    }

    async fn find_pipeline(
        &self,
        tenant: &TenantId,
        reference: &str,
        counts: &str,
    ) -> Result<Option<Pipeline>, sqlx::Error> {
        let select = select_with::<PipelineDefinition>(&format!("{STATE}{counts}"), JOIN);
        let sql = AssertSqlSafe(format!("{select} {BY_REFERENCE}"));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(reference);
        query.fetch_optional(&self.db.engine.pool).await?.as_ref().map(pipeline).transpose()
    }
}

/// Keeps the state of the documents in step with the definition that they are read by. If they are cut or embedded
/// differently from now on, all of them are queued.
pub(crate) async fn definition_changed(
    tx: &mut Transaction<'static, Any>,
    before: Option<&Resource<PipelineDefinition>>,
    after: Option<&Resource<PipelineDefinition>>,
    now: Timestamp,
) -> Result<Option<ObjectEvent>, sqlx::Error> {
    match (before, after) {
        (None, None) => Ok(None),
        (Some(before), None) => {
            // Documents go with their contents and chunks.
            for sql in [
                "DELETE FROM pipeline_documents WHERE pipeline_id = $1",
                "DELETE FROM pipelines WHERE id = $1",
            ] {
                sqlx::query(sql).bind(before.id.to_string()).execute(&mut **tx).await?;
            }
            Ok(None)
        }
        (None, Some(after)) => {
            let sql = "INSERT INTO pipelines (id, revision, generation) VALUES ($1, 1, 1) ON CONFLICT (id) DO NOTHING";
            let inserted = sqlx::query(sql).bind(after.id.to_string()).execute(&mut **tx).await?;
            if inserted.rows_affected() > 0 {
                return Ok(None);
            }
            // The file is back: its definition may differ.
            read_again(tx, after.id, true, now).await.map(Some)
        }
        (Some(before), Some(after)) => {
            let (old, new) = (before.serving(), after.serving());
            let embeds_anew = old.embedding != new.embedding;
            if embeds_anew || old.chunking != new.chunking || old.language != new.language {
                return read_again(tx, after.id, embeds_anew, now).await.map(Some);
            }
            Ok(None)
        }
    }
}

/// Removes some documents of a pipeline with their contents and chunks; returns whether there may be more.
pub(crate) async fn remove_documents(
    tx: &mut Transaction<'static, Any>,
    id: PipelineId,
) -> Result<bool, sqlx::Error> {
    let sql = "DELETE FROM pipeline_documents WHERE id IN \
               (SELECT id FROM pipeline_documents WHERE pipeline_id = $1 LIMIT $2)";
    let query = sqlx::query(sql).bind(id.to_string()).bind(DOCUMENTS_PER_TRANSACTION.cast_signed());
    Ok(query.execute(&mut **tx).await?.rows_affected() == DOCUMENTS_PER_TRANSACTION)
}

async fn read_again(
    tx: &mut Transaction<'static, Any>,
    id: PipelineId,
    embeds_anew: bool,
    now: Timestamp,
) -> Result<ObjectEvent, sqlx::Error> {
    let sql = "UPDATE pipelines SET revision = revision + 1, generation = generation + $1 WHERE id = $2";
    let query = sqlx::query(sql).bind(i64::from(embeds_anew)).bind(id.to_string());
    query.execute(&mut **tx).await?;
    if embeds_anew {
        // Vectors of two models cannot be compared.
        let sql = "UPDATE pipeline_chunks SET embedding = NULL WHERE pipeline_id = $1";
        sqlx::query(sql).bind(id.to_string()).execute(&mut **tx).await?;
    }
    queue_all(tx, id, now).await?;
    Ok(ObjectEvent::Document(many_documents(id)))
}

/// Returns the pipelines of a tenant by slug, as a transaction sees them.
pub(crate) async fn pipelines_in(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
) -> Result<Vec<Pipeline>, sqlx::Error> {
    let select = select_with::<PipelineDefinition>(&format!("{STATE}{COUNTS}"), JOIN);
    let sql = AssertSqlSafe(format!("{select} ORDER BY r.slug"));
    let found = sqlx::query(sql).bind(tenant.as_str()).fetch_all(&mut **tx).await?;
    found.iter().map(pipeline).collect()
}

fn pipeline(row: &AnyRow) -> Result<Pipeline, sqlx::Error> {
    with_state(row, read_resource(row)?)
}

fn with_state(row: &AnyRow, resource: Resource<PipelineDefinition>) -> Result<Pipeline, sqlx::Error> {
    let count = |column: &str| Ok::<_, sqlx::Error>(row.try_get::<i64, _>(column)?.unsigned_abs());
    Ok(Pipeline {
        resource,
        ingest_revision: row.try_get("ingest_revision")?,
        generation: row.try_get("generation")?,
        documents: count("documents")?,
        chunks: count("chunks")?,
        bytes: count("bytes")?,
    })
}
