//! Pipelines: create, change, list, delete.

use std::sync::Arc;

use haft_core::catalog::StoreError;
use haft_core::id::PipelineId;
use haft_core::live::{ObjectEvent, PipelineAction, PipelineEvent};
use haft_core::name::TenantId;
use haft_core::retrieval::{Pipeline, PipelineDefinition, PipelineStatus};
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use crate::audit;
use crate::engine::{failed_to, is_conflict};
use crate::list_page::ListPage;
use crate::rows;
use crate::store::{Inner, Store};
use crate::time;
use crate::watch::reports::many_documents;

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

    /// Returns the number of pipelines of a tenant.
    pub async fn pipeline_count(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        self.inner.count_of_tenant("pipelines", tenant).await.map_err(failed_to(READ))
    }

    /// Lists pipelines of a tenant by slug.
    pub async fn pipelines(&self, tenant: &TenantId, page: &ListPage) -> Result<Vec<Pipeline>, StoreError> {
        let sql = AssertSqlSafe(format!("{PIPELINE} WHERE p.tenant = $1 {}", page.sql("p.slug")));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(page.start());
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
        set_status_in(&mut tx, tenant, id, status).await.map_err(failed_to(CHANGE))?;
        audit::store_current_record(&mut tx, &id.to_string()).await.map_err(failed_to(CHANGE))?;
        tx.commit().await.map_err(failed_to(CHANGE))?;
        let changed = self.pipeline(tenant, &id.to_string()).await?;
        if let Some(changed) = &changed {
            let action = match status {
                PipelineStatus::Published => PipelineAction::Published,
                PipelineStatus::Draft => PipelineAction::Updated,
            };
            self.inner.report_to_tenant(tenant, event_of(changed, action));
        }
        Ok(changed)
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
    /// Returns the number of rows of a tenant in a table that is indexed by tenant.
    pub(crate) async fn count_of_tenant(&self, table: &str, tenant: &TenantId) -> Result<u64, sqlx::Error> {
        let sql = AssertSqlSafe(format!("SELECT COUNT(*) FROM {table} WHERE tenant = $1"));
        let counted = sqlx::query(sql).bind(tenant.as_str()).fetch_one(&self.engine.pool).await?;
        Ok(u64::try_from(counted.try_get::<i64, _>(0)?).unwrap_or_default())
    }

    pub(crate) async fn change_counter(&self, name: &str) -> Result<i64, sqlx::Error> {
        let query = sqlx::query("SELECT value FROM change_counters WHERE name = $1").bind(name);
        query.fetch_optional(&self.engine.pool).await?.map_or(Ok(0), |row| row.try_get(0))
    }

    async fn create_pipeline(
        &self,
        tenant: &TenantId,
        definition: PipelineDefinition,
    ) -> Result<Pipeline, StoreError> {
        let mut tx = self.engine.begin().await.map_err(failed_to(CHANGE))?;
        let created = self.create_pipeline_in(&mut tx, tenant, definition, PipelineStatus::Draft).await?;
        tx.commit().await.map_err(failed_to(CHANGE))?;
        self.report_to_tenant(tenant, event_of(&created, PipelineAction::Created));
        Ok(created)
    }

    /// Creates a pipeline as part of a transaction.
    pub(super) async fn create_pipeline_in(
        &self,
        tx: &mut Transaction<'static, Any>,
        tenant: &TenantId,
        definition: PipelineDefinition,
        status: PipelineStatus,
    ) -> Result<Pipeline, StoreError> {
        let now = self.now();
        let created = Pipeline {
            id: PipelineId(time::new_id(&*self.clock)),
            tenant: tenant.clone(),
            status,
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
        let count = sqlx::query("SELECT COUNT(*) FROM pipelines WHERE tenant = $1").bind(tenant.as_str());
        let count = count.fetch_one(&mut **tx).await.and_then(|row| row.try_get::<i64, _>(0));
        if count.map_err(failed_to(CHANGE))? >= MAX_PIPELINES {
            return Err(StoreError::Conflict(format!(
                "the tenant has {MAX_PIPELINES} pipelines, which is the limit; delete one"
            )));
        }
        if let Err(error) = insert(tx, &created).await {
            if is_conflict(&error) {
                return Err(taken(&created.definition));
            }
            return Err(failed_to(CHANGE)(error));
        }
        let subject = created.definition.slug.as_str();
        announce(tx, "pipelines", subject).await.map_err(failed_to(CHANGE))?;
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
        let mut tx = self.engine.begin().await.map_err(failed_to(CHANGE))?;
        self.change_pipeline_in(&mut tx, &earlier, &definition).await?;
        tx.commit().await.map_err(failed_to(CHANGE))?;
        let changed = self.pipeline(tenant, &id.to_string()).await.map_err(failed_to(READ))?;
        if let Some(changed) = &changed {
            self.report_to_tenant(tenant, event_of(changed, PipelineAction::Updated));
            if changed.revision != earlier.revision {
                self.report_document(tenant, many_documents(id));
            }
        }
        Ok(changed)
    }

    /// Changes a pipeline as part of a transaction.
    pub(super) async fn change_pipeline_in(
        &self,
        tx: &mut Transaction<'static, Any>,
        earlier: &Pipeline,
        new: &PipelineDefinition,
    ) -> Result<(), StoreError> {
        let (id, old) = (earlier.id, &earlier.definition);
        let embeds_anew = old.embedding != new.embedding;
        let reads_anew = embeds_anew || old.chunking != new.chunking || old.language != new.language;
        let sql = "UPDATE pipelines SET slug = $1, definition = $2, revision = revision + $3, \
                   generation = generation + $4, modified_at = $5 WHERE tenant = $6 AND id = $7";
        let updated = sqlx::query(sql)
            .bind(new.slug.as_str())
            .bind(serde_json::to_string(new).map_err(|error| StoreError::unavailable(CHANGE, error))?)
            .bind(i64::from(reads_anew))
            .bind(i64::from(embeds_anew))
            .bind(self.now().as_microsecond())
            .bind(earlier.tenant.as_str())
            .bind(id.to_string())
            .execute(&mut **tx)
            .await;
        match updated {
            Err(error) if is_conflict(&error) => return Err(taken(new)),
            Err(error) => return Err(failed_to(CHANGE)(error)),
            Ok(_) => {}
        }
        if embeds_anew {
            // Vectors of two models cannot be compared.
            let sql = "UPDATE pipeline_chunks SET embedding = NULL WHERE pipeline_id = $1";
            sqlx::query(sql).bind(id.to_string()).execute(&mut **tx).await.map_err(failed_to(CHANGE))?;
        }
        if reads_anew {
            self.queue_all(tx, id).await.map_err(failed_to(CHANGE))?;
        }
        announce(tx, "pipelines", new.slug.as_str()).await.map_err(failed_to(CHANGE))
    }

    async fn delete_pipeline(&self, tenant: &TenantId, id: PipelineId) -> Result<bool, sqlx::Error> {
        let found = self.pipeline(tenant, &id.to_string()).await?;
        let mut tx = self.engine.begin().await?;
        let is_deleted = delete_in(&mut tx, tenant, id).await?;
        tx.commit().await?;
        if let Some(found) = found.filter(|_| is_deleted) {
            self.report_to_tenant(tenant, event_of(&found, PipelineAction::Deleted));
        }
        Ok(is_deleted)
    }
}

/// Returns the report of a pipeline.
pub(super) fn event_of(pipeline: &Pipeline, change: PipelineAction) -> ObjectEvent {
    ObjectEvent::Pipeline(PipelineEvent {
        change,
        id: pipeline.id,
        pipeline: pipeline.definition.slug.to_string(),
        status: pipeline.status,
    })
}

/// Deletes a pipeline as part of a transaction; returns whether there was one.
pub(super) async fn delete_in(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    id: PipelineId,
) -> Result<bool, sqlx::Error> {
    // Documents go with their contents and chunks.
    let sql = "DELETE FROM pipeline_documents WHERE tenant = $1 AND pipeline_id = $2";
    sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string()).execute(&mut **tx).await?;
    let query = sqlx::query("DELETE FROM pipelines WHERE tenant = $1 AND id = $2");
    let deleted = query.bind(tenant.as_str()).bind(id.to_string()).execute(&mut **tx).await?;
    announce(tx, "pipelines", &id.to_string()).await?;
    Ok(deleted.rows_affected() > 0)
}

/// Returns the pipelines of a tenant by slug, as a transaction sees them.
pub(super) async fn pipelines_in(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
) -> Result<Vec<Pipeline>, sqlx::Error> {
    let sql = AssertSqlSafe(format!("{PIPELINE} WHERE p.tenant = $1 ORDER BY p.slug"));
    let found = sqlx::query(sql).bind(tenant.as_str()).fetch_all(&mut **tx).await?;
    found.iter().map(pipeline).collect()
}

/// Returns a pipeline as a transaction sees it.
pub(super) async fn find_in(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    id: PipelineId,
) -> Result<Pipeline, StoreError> {
    let sql = AssertSqlSafe(format!("{PIPELINE} WHERE p.tenant = $1 AND p.id = $2"));
    let query = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
    let found = query.fetch_optional(&mut **tx).await.map_err(failed_to(READ))?;
    let found = found.ok_or_else(|| StoreError::not_found("pipeline", id))?;
    pipeline(&found).map_err(failed_to(READ))
}

/// Sets the status of a pipeline as part of a transaction.
pub(super) async fn set_status_in(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    id: PipelineId,
    status: PipelineStatus,
) -> Result<(), sqlx::Error> {
    let sql = "UPDATE pipelines SET status = $1 WHERE tenant = $2 AND id = $3";
    let query = sqlx::query(sql).bind(status.as_str()).bind(tenant.as_str()).bind(id.to_string());
    query.execute(&mut **tx).await.map(drop)
}

/// Advances the counter that makes nodes read a list again, and stores the audit record of the current request.
pub(crate) async fn announce(
    tx: &mut Transaction<'static, Any>,
    counter: &str,
    subject: &str,
) -> Result<(), sqlx::Error> {
    count_change(tx, counter).await?;
    audit::store_current_record(tx, subject).await
}

/// Tells every node that the names of a kind of thing have changed.
pub(crate) async fn count_change(
    tx: &mut Transaction<'static, Any>,
    counter: &str,
) -> Result<(), sqlx::Error> {
    let sql = "INSERT INTO change_counters (name, value) VALUES ($1, 1) \
               ON CONFLICT (name) DO UPDATE SET value = change_counters.value + 1";
    sqlx::query(sql).bind(counter).execute(&mut **tx).await?;
    Ok(())
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
