//! Pipelines: create, change, list, delete.

use std::sync::Arc;

use haft_core::catalog::StoreError;
use haft_core::id::PipelineId;
use haft_core::name::TenantId;
use haft_core::retrieval::{Pipeline, PipelineDefinition, PipelineStatus};
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use crate::audit;
use crate::engine::{failed_to, is_conflict};
use crate::rows;
use crate::store::{Inner, Store};
use crate::time;

const READ: &str = "read the pipeline";
const CHANGE: &str = "change the pipeline";

/// The most pipelines of one tenant.
const MAX_PIPELINES: i64 = 1000;

const PIPELINE: &str = "SELECT p.id AS id, p.tenant AS tenant, p.definition AS definition, p.status AS status, \
    p.revision AS revision, p.generation AS generation, p.created_by AS created_by, \
    p.created_at AS created_at, p.modified_at AS modified_at, \
    (SELECT COUNT(*) FROM pipeline_documents d WHERE d.pipeline_id = p.id) AS documents, \
    (SELECT CAST(COALESCE(SUM(d.chunks), 0) AS BIGINT) FROM pipeline_documents d WHERE d.pipeline_id = p.id) AS chunks, \
    (SELECT CAST(COALESCE(SUM(d.bytes), 0) AS BIGINT) FROM pipeline_documents d WHERE d.pipeline_id = p.id) AS bytes \
    FROM pipelines p";

/// Without what has to be counted.
const UNCOUNTED: &str = "SELECT id, tenant, definition, status, revision, generation, created_by, created_at, modified_at, \
    CAST(0 AS BIGINT) AS documents, CAST(0 AS BIGINT) AS chunks, CAST(0 AS BIGINT) AS bytes FROM pipelines";

/// The names of all pipelines, and the state of the counter that grows when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineNames {
    /// The counter.
    pub counter: i64,
    /// Tenant, id and slug of each.
    pub names: Vec<(TenantId, PipelineId, String)>,
}

impl Store {
    /// Creates a pipeline. A slug that the tenant has already is a conflict.
    pub async fn create_pipeline(
        &self,
        tenant: &TenantId,
        definition: PipelineDefinition,
    ) -> Result<Pipeline, StoreError> {
        let tenant = tenant.clone();
        let created = self.run(move |inner| async move { inner.create_pipeline(&tenant, definition).await });
        created.await
    }

    /// Returns a pipeline by id or slug.
    pub async fn pipeline(&self, tenant: &TenantId, reference: &str) -> Result<Option<Pipeline>, StoreError> {
        self.inner.pipeline(tenant, reference).await.map_err(failed_to(READ))
    }

    /// Returns a pipeline by id or slug, for a query: its documents and chunks are not counted.
    pub async fn queried_pipeline(
        &self,
        tenant: &TenantId,
        reference: &str,
    ) -> Result<Option<Pipeline>, StoreError> {
        let sql = AssertSqlSafe(format!(
            "{UNCOUNTED} WHERE tenant = $1 AND (id = $2 OR slug = $2) \
             ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1"
        ));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(reference);
        let found = query.fetch_optional(&self.inner.engine.pool).await.map_err(failed_to(READ))?;
        found.as_ref().map(pipeline).transpose().map_err(failed_to(READ))
    }

    /// Lists the pipelines of a tenant by slug.
    pub async fn pipelines(&self, tenant: &TenantId) -> Result<Vec<Pipeline>, StoreError> {
        let sql = AssertSqlSafe(format!("{PIPELINE} WHERE p.tenant = $1 ORDER BY p.slug"));
        let query = sqlx::query(sql).bind(tenant.as_str());
        let found = query.fetch_all(&self.inner.engine.pool).await.map_err(failed_to(READ))?;
        found.iter().map(pipeline).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Changes a pipeline; `None` if it does not exist. If its documents are cut or embedded differently from now on,
    /// all of them are queued.
    pub async fn change_pipeline(
        &self,
        tenant: &TenantId,
        id: PipelineId,
        definition: PipelineDefinition,
    ) -> Result<Option<Pipeline>, StoreError> {
        let tenant = tenant.clone();
        self.run(move |inner| async move { inner.change_pipeline(&tenant, id, definition).await }).await
    }

    /// Sets the status of a pipeline; `None` if it does not exist.
    pub async fn set_pipeline_status(
        &self,
        tenant: &TenantId,
        id: PipelineId,
        status: PipelineStatus,
    ) -> Result<Option<Pipeline>, StoreError> {
        let mut tx = self.inner.engine.begin().await.map_err(failed_to(CHANGE))?;
        let sql = "UPDATE pipelines SET status = $1 WHERE tenant = $2 AND id = $3";
        let query = sqlx::query(sql).bind(status.as_str()).bind(tenant.as_str()).bind(id.to_string());
        query.execute(&mut *tx).await.map_err(failed_to(CHANGE))?;
        audit::store_current_record(&mut tx, &id.to_string()).await.map_err(failed_to(CHANGE))?;
        tx.commit().await.map_err(failed_to(CHANGE))?;
        self.pipeline(tenant, &id.to_string()).await
    }

    /// Deletes a pipeline with its documents; returns whether there was one.
    pub async fn delete_pipeline(&self, tenant: &TenantId, id: PipelineId) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        self.run(move |inner| async move {
            inner.delete_pipeline(&tenant, id).await.map_err(failed_to("delete the pipeline"))
        })
        .await
    }

    /// Returns the generation of a pipeline's chunks; `None` if it does not exist.
    pub async fn pipeline_generation(&self, id: PipelineId) -> Result<Option<i64>, StoreError> {
        let query = sqlx::query("SELECT generation FROM pipelines WHERE id = $1").bind(id.to_string());
        let found = query.fetch_optional(&self.inner.engine.pool).await.map_err(failed_to(READ))?;
        found.map(|row| row.try_get(0)).transpose().map_err(failed_to(READ))
    }

    /// Returns the names of all pipelines, unless the counter still is what it was.
    pub async fn pipeline_names(&self, known: Option<i64>) -> Result<Option<PipelineNames>, StoreError> {
        let counter = self.inner.change_counter("pipelines").await.map_err(failed_to(READ))?;
        if known == Some(counter) {
            return Ok(None);
        }
        let query = sqlx::query("SELECT tenant, id, slug FROM pipelines");
        let found = query.fetch_all(&self.inner.engine.pool).await.map_err(failed_to(READ))?;
        let name = |row: &AnyRow| {
            Ok((rows::parse_column(row, "tenant")?, rows::parse_column(row, "id")?, row.try_get("slug")?))
        };
        let names = found.iter().map(name).collect::<Result<_, sqlx::Error>>().map_err(failed_to(READ))?;
        Ok(Some(PipelineNames { counter, names }))
    }
}

impl Inner {
    pub(crate) async fn change_counter(&self, name: &str) -> Result<i64, sqlx::Error> {
        let query = sqlx::query("SELECT value FROM change_counters WHERE name = $1").bind(name);
        query.fetch_one(&self.engine.pool).await?.try_get(0)
    }

    async fn create_pipeline(
        &self,
        tenant: &TenantId,
        definition: PipelineDefinition,
    ) -> Result<Pipeline, StoreError> {
        let now = self.now();
        let created = Pipeline {
            id: PipelineId(time::new_id(&*self.clock)),
            tenant: tenant.clone(),
            status: PipelineStatus::Draft,
            revision: 1,
            generation: 1,
            documents: 0,
            chunks: 0,
            bytes: 0,
            created_by: audit::current_actor(),
            created_at: now,
            modified_at: now,
            definition: Arc::new(definition),
        };
        let mut tx = self.engine.begin().await.map_err(failed_to(CHANGE))?;
        let count = sqlx::query("SELECT COUNT(*) FROM pipelines WHERE tenant = $1").bind(tenant.as_str());
        let count = count.fetch_one(&mut *tx).await.and_then(|row| row.try_get::<i64, _>(0));
        if count.map_err(failed_to(CHANGE))? >= MAX_PIPELINES {
            return Err(StoreError::Conflict(format!(
                "the tenant has {MAX_PIPELINES} pipelines, which is the limit; delete one"
            )));
        }
        if let Err(error) = insert(&mut tx, &created).await {
            if is_conflict(&error) {
                return Err(taken(&created.definition));
            }
            return Err(failed_to(CHANGE)(error));
        }
        let subject = created.definition.slug.as_str();
        announce(&mut tx, "pipelines", subject).await.map_err(failed_to(CHANGE))?;
        tx.commit().await.map_err(failed_to(CHANGE))?;
        Ok(created)
    }

    pub(super) async fn pipeline(
        &self,
        tenant: &TenantId,
        reference: &str,
    ) -> Result<Option<Pipeline>, sqlx::Error> {
        // An id takes precedence over a slug that looks like one.
        let sql = AssertSqlSafe(format!(
            "{PIPELINE} WHERE p.tenant = $1 AND (p.id = $2 OR p.slug = $2) \
             ORDER BY CASE WHEN p.id = $2 THEN 0 ELSE 1 END LIMIT 1"
        ));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(reference);
        query.fetch_optional(&self.engine.pool).await?.as_ref().map(pipeline).transpose()
    }

    async fn change_pipeline(
        &self,
        tenant: &TenantId,
        id: PipelineId,
        definition: PipelineDefinition,
    ) -> Result<Option<Pipeline>, StoreError> {
        let found = self.pipeline(tenant, &id.to_string()).await.map_err(failed_to(READ))?;
        let Some(earlier) = found else { return Ok(None) };
        let (old, new) = (&earlier.definition, &definition);
        let embeds_anew = old.embedding != new.embedding;
        let reads_anew = embeds_anew || old.chunking != new.chunking || old.language != new.language;
        let mut tx = self.engine.begin().await.map_err(failed_to(CHANGE))?;
        let sql = "UPDATE pipelines SET slug = $1, definition = $2, revision = revision + $3, \
                   generation = generation + $4, modified_at = $5 WHERE tenant = $6 AND id = $7";
        let updated = sqlx::query(sql)
            .bind(new.slug.as_str())
            .bind(serde_json::to_string(new).map_err(|error| StoreError::unavailable(CHANGE, error))?)
            .bind(i64::from(reads_anew))
            .bind(i64::from(embeds_anew))
            .bind(self.now().as_microsecond())
            .bind(tenant.as_str())
            .bind(id.to_string())
            .execute(&mut *tx)
            .await;
        match updated {
            Err(error) if is_conflict(&error) => return Err(taken(new)),
            Err(error) => return Err(failed_to(CHANGE)(error)),
            Ok(_) => {}
        }
        if embeds_anew {
            // Vectors of two models cannot be compared.
            let sql = "UPDATE pipeline_chunks SET embedding = NULL WHERE pipeline_id = $1";
            sqlx::query(sql).bind(id.to_string()).execute(&mut *tx).await.map_err(failed_to(CHANGE))?;
        }
        if reads_anew {
            self.queue_all(&mut tx, id).await.map_err(failed_to(CHANGE))?;
        }
        announce(&mut tx, "pipelines", new.slug.as_str()).await.map_err(failed_to(CHANGE))?;
        tx.commit().await.map_err(failed_to(CHANGE))?;
        self.pipeline(tenant, &id.to_string()).await.map_err(failed_to(READ))
    }

    async fn delete_pipeline(&self, tenant: &TenantId, id: PipelineId) -> Result<bool, sqlx::Error> {
        let mut tx = self.engine.begin().await?;
        // Documents go with their contents and chunks.
        let sql = "DELETE FROM pipeline_documents WHERE tenant = $1 AND pipeline_id = $2";
        sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string()).execute(&mut *tx).await?;
        let query = sqlx::query("DELETE FROM pipelines WHERE tenant = $1 AND id = $2");
        let deleted = query.bind(tenant.as_str()).bind(id.to_string()).execute(&mut *tx).await?;
        announce(&mut tx, "pipelines", &id.to_string()).await?;
        tx.commit().await?;
        Ok(deleted.rows_affected() > 0)
    }
}

/// Advances the counter that makes nodes read a list again, and stores the audit record of the current request.
pub(crate) async fn announce(
    tx: &mut Transaction<'static, Any>,
    counter: &str,
    subject: &str,
) -> Result<(), sqlx::Error> {
    let query = sqlx::query("UPDATE change_counters SET value = value + 1 WHERE name = $1").bind(counter);
    query.execute(&mut **tx).await?;
    audit::store_current_record(tx, subject).await
}

fn taken(definition: &PipelineDefinition) -> StoreError {
    StoreError::Conflict(format!("a pipeline with the slug `{}` exists already", definition.slug))
}

async fn insert(tx: &mut Transaction<'static, Any>, pipeline: &Pipeline) -> Result<(), sqlx::Error> {
    let definition =
        serde_json::to_string(&*pipeline.definition).map_err(|error| sqlx::Error::Encode(error.into()))?;
    let sql = "INSERT INTO pipelines (id, tenant, slug, definition, status, revision, generation, \
               created_by, created_at, modified_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)";
    sqlx::query(sql)
        .bind(pipeline.id.to_string())
        .bind(pipeline.tenant.as_str())
        .bind(pipeline.definition.slug.as_str())
        .bind(definition)
        .bind(pipeline.status.as_str())
        .bind(pipeline.revision)
        .bind(pipeline.generation)
        .bind(pipeline.created_by.as_deref())
        .bind(pipeline.created_at.as_microsecond())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

fn pipeline(row: &AnyRow) -> Result<Pipeline, sqlx::Error> {
    let count = |column: &str| Ok::<_, sqlx::Error>(row.try_get::<i64, _>(column)?.unsigned_abs());
    let status: &str = row.try_get("status")?;
    Ok(Pipeline {
        id: rows::parse_column(row, "id")?,
        tenant: rows::parse_column(row, "tenant")?,
        definition: Arc::new(rows::json_column(row, "definition")?),
        status: PipelineStatus::parse(status)
            .ok_or_else(|| sqlx::Error::Decode(format!("unknown status `{status}`").into()))?,
        revision: row.try_get("revision")?,
        generation: row.try_get("generation")?,
        documents: count("documents")?,
        chunks: count("chunks")?,
        bytes: count("bytes")?,
        created_by: row.try_get::<Option<&str>, _>("created_by")?.map(Arc::from),
        created_at: rows::timestamp(row, "created_at")?,
        modified_at: rows::timestamp(row, "modified_at")?,
    })
}
