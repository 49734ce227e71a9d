//! Artifacts: create, append a version, list, delete.

use std::sync::Arc;

use haft_core::artifact::{ArtifactContent, ArtifactVersion, CodeArtifact, MAX_VERSIONS};
use haft_core::catalog::StoreError;
use haft_core::hash;
use haft_core::id::ArtifactId;
use haft_core::live::{ArtifactEvent, ObjectAction, ObjectEvent};
use haft_core::name::{ArtifactSlug, TenantId};
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use super::apply::ArtifactHead;
use crate::audit;
use crate::engine::{failed_to, is_conflict};
use crate::list_page::ListPage;
use crate::pipelines::announce;
use crate::rows;
use crate::store::{Inner, Store};
use crate::time;

const READ: &str = "read the artifact";
const CHANGE: &str = "change the artifact";

/// The most artifacts of one tenant.
const MAX_ARTIFACTS: i64 = 10_000;

const ARTIFACT: &str = "SELECT a.id AS id, a.tenant AS tenant, a.slug AS slug, a.created_by AS creator, \
    a.created_at AS first_at, v.version AS version, v.hash AS hash, v.content AS content, v.created_by AS created_by, \
    v.created_at AS created_at FROM code_artifacts a \
    JOIN code_artifact_versions v ON v.artifact_id = a.id AND v.version = a.version";

const VERSION: &str = "SELECT a.id AS id, v.version AS version, v.hash AS hash, v.content AS content, \
    v.created_by AS created_by, v.created_at AS created_at FROM code_artifacts a \
    JOIN code_artifact_versions v ON v.artifact_id = a.id";

/// An artifact to create.
#[derive(Debug, Clone)]
pub struct NewArtifact {
    /// Its slug.
    pub slug: ArtifactSlug,
    /// Its first version, which is valid.
    pub content: ArtifactContent,
}

/// The names of all artifacts, and the state of the counter that grows when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactNames {
    /// The counter.
    pub counter: i64,
    /// Tenant, id, slug and newest version of each.
    pub names: Vec<(TenantId, ArtifactId, String, u32)>,
}

impl Store {
    /// Creates an artifact. A slug that the tenant has already is a conflict.
    pub async fn create_artifact(
        &self,
        tenant: &TenantId,
        new: NewArtifact,
    ) -> Result<CodeArtifact, StoreError> {
        let tenant = tenant.clone();
        self.run(move |inner| async move { inner.create_artifact(&tenant, new).await }).await
    }

    /// Returns an artifact with its newest version, by id or slug.
    pub async fn artifact(
        &self,
        tenant: &TenantId,
        reference: &str,
    ) -> Result<Option<CodeArtifact>, StoreError> {
        self.inner.artifact(tenant, reference).await.map_err(failed_to(READ))
    }

    /// Returns the number of artifacts of a tenant.
    pub async fn artifact_count(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        self.inner.count_of_tenant("code_artifacts", tenant).await.map_err(failed_to(READ))
    }

    /// Lists artifacts of a tenant by slug.
    pub async fn artifacts(
        &self,
        tenant: &TenantId,
        page: &ListPage,
    ) -> Result<Vec<CodeArtifact>, StoreError> {
        let sql = AssertSqlSafe(format!("{ARTIFACT} WHERE a.tenant = $1 {}", page.sql("a.slug")));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(page.start());
        let found = query.fetch_all(&self.inner.engine.pool).await.map_err(failed_to(READ))?;
        found.iter().map(artifact).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Appends a version, unless the content is that of the newest one; `None` if the artifact does not exist.
    pub async fn update_artifact(
        &self,
        tenant: &TenantId,
        id: ArtifactId,
        new: NewArtifact,
    ) -> Result<Option<CodeArtifact>, StoreError> {
        let tenant = tenant.clone();
        self.run(move |inner| async move { inner.update_artifact(&tenant, id, new).await }).await
    }

    /// Deletes an artifact with its versions; returns whether there was one.
    pub async fn delete_artifact(&self, tenant: &TenantId, id: ArtifactId) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        self.run(move |inner| async move {
            inner.delete_artifact(&tenant, id).await.map_err(failed_to("delete the artifact"))
        })
        .await
    }

    /// Returns a version of an artifact by id or slug; without a number, the newest.
    pub async fn artifact_version(
        &self,
        tenant: &TenantId,
        reference: &str,
        number: Option<u32>,
    ) -> Result<Option<(ArtifactId, ArtifactVersion)>, StoreError> {
        let sql = AssertSqlSafe(format!(
            "{VERSION} WHERE a.tenant = $1 AND (a.id = $2 OR a.slug = $2) \
             AND v.version = CASE WHEN $3 = 0 THEN a.version ELSE $3 END \
             ORDER BY CASE WHEN a.id = $2 THEN 0 ELSE 1 END LIMIT 1"
        ));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(reference);
        let found = query.bind(i64::from(number.unwrap_or_default())).fetch_optional(&self.inner.engine.pool);
        let found = found.await.map_err(failed_to(READ))?;
        let read = |row: AnyRow| Ok((rows::parse_column(&row, "id")?, version(&row)?));
        found.map(read).transpose().map_err(failed_to(READ))
    }

    /// Lists versions of an artifact, newest first, before a number.
    pub async fn artifact_versions(
        &self,
        id: ArtifactId,
        before: Option<u32>,
        limit: u32,
    ) -> Result<Vec<ArtifactVersion>, StoreError> {
        let sql = AssertSqlSafe(format!(
            "{VERSION} WHERE a.id = $1 AND v.version < $2 ORDER BY v.version DESC LIMIT $3"
        ));
        let before = i64::from(before.unwrap_or(u32::MAX));
        let query = sqlx::query(sql).bind(id.to_string()).bind(before).bind(i64::from(limit));
        let found = query.fetch_all(&self.inner.engine.pool).await.map_err(failed_to(READ))?;
        found.iter().map(version).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Returns the names of all artifacts, unless the counter still is what it was.
    pub async fn artifact_names(&self, known: Option<i64>) -> Result<Option<ArtifactNames>, StoreError> {
        let counter = self.inner.change_counter("artifacts").await.map_err(failed_to(READ))?;
        if known == Some(counter) {
            return Ok(None);
        }
        let query = sqlx::query("SELECT tenant, id, slug, version FROM code_artifacts");
        let found = query.fetch_all(&self.inner.engine.pool).await.map_err(failed_to(READ))?;
        let name = |row: &AnyRow| {
            let (tenant, id) = (rows::parse_column(row, "tenant")?, rows::parse_column(row, "id")?);
            Ok((tenant, id, row.try_get("slug")?, number(row)?))
        };
        let names = found.iter().map(name).collect::<Result<_, sqlx::Error>>().map_err(failed_to(READ))?;
        Ok(Some(ArtifactNames { counter, names }))
    }
}

impl Inner {
    async fn artifact(
        &self,
        tenant: &TenantId,
        reference: &str,
    ) -> Result<Option<CodeArtifact>, sqlx::Error> {
        // An id takes precedence over a slug that looks like one.
        let sql = AssertSqlSafe(format!(
            "{ARTIFACT} WHERE a.tenant = $1 AND (a.id = $2 OR a.slug = $2) \
             ORDER BY CASE WHEN a.id = $2 THEN 0 ELSE 1 END LIMIT 1"
        ));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(reference);
        query.fetch_optional(&self.engine.pool).await?.as_ref().map(artifact).transpose()
    }

    async fn create_artifact(&self, tenant: &TenantId, new: NewArtifact) -> Result<CodeArtifact, StoreError> {
        let mut tx = self.engine.begin().await.map_err(failed_to(CHANGE))?;
        let created = self.create_artifact_in(&mut tx, tenant, new).await?;
        tx.commit().await.map_err(failed_to(CHANGE))?;
        self.report_to_tenant(tenant, event_of(&created, ObjectAction::Created));
        Ok(created)
    }

    /// Creates an artifact as part of a transaction.
    pub(super) async fn create_artifact_in(
        &self,
        tx: &mut Transaction<'static, Any>,
        tenant: &TenantId,
        new: NewArtifact,
    ) -> Result<CodeArtifact, StoreError> {
        let (id, now) = (ArtifactId(time::new_id(&*self.clock)), self.now());
        let newest = self.next_version(1, new.content)?;
        let created = CodeArtifact {
            id,
            tenant: tenant.clone(),
            slug: new.slug,
            created_by: newest.created_by.clone(),
            created_at: now,
            newest,
        };
        let count = sqlx::query("SELECT COUNT(*) FROM code_artifacts WHERE tenant = $1");
        let count = count.bind(created.tenant.as_str()).fetch_one(&mut **tx).await;
        if count.and_then(|row| row.try_get::<i64, _>(0)).map_err(failed_to(CHANGE))? >= MAX_ARTIFACTS {
            let message = format!("the tenant has {MAX_ARTIFACTS} artifacts, which is the limit; delete one");
            return Err(StoreError::Conflict(message));
        }
        let sql = "INSERT INTO code_artifacts (id, tenant, slug, version, created_by, created_at) \
                   VALUES ($1, $2, $3, 1, $4, $5)";
        let inserted = sqlx::query(sql)
            .bind(id.to_string())
            .bind(created.tenant.as_str())
            .bind(created.slug.as_str())
            .bind(created.created_by.as_deref())
            .bind(now.as_microsecond())
            .execute(&mut **tx)
            .await;
        match inserted {
            Err(error) if is_conflict(&error) => return Err(taken(&created.slug)),
            Err(error) => return Err(failed_to(CHANGE)(error)),
            Ok(_) => {}
        }
        insert_version(tx, id, &created.newest).await.map_err(failed_to(CHANGE))?;
        announce(tx, "artifacts", created.slug.as_str()).await.map_err(failed_to(CHANGE))?;
        Ok(created)
    }

    async fn update_artifact(
        &self,
        tenant: &TenantId,
        id: ArtifactId,
        new: NewArtifact,
    ) -> Result<Option<CodeArtifact>, StoreError> {
        // Two updates at once take turns, so that each number is given once.
        let mut tx = self.engine.begin_change().await.map_err(failed_to(CHANGE))?;
        let updated = self.update_artifact_in(&mut tx, tenant, id, new).await?;
        tx.commit().await.map_err(failed_to(CHANGE))?;
        if let Some(updated) = &updated {
            self.report_to_tenant(tenant, event_of(updated, ObjectAction::Updated));
        }
        Ok(updated)
    }

    /// Appends a version as part of a transaction that excludes other changes.
    pub(super) async fn update_artifact_in(
        &self,
        tx: &mut Transaction<'static, Any>,
        tenant: &TenantId,
        id: ArtifactId,
        new: NewArtifact,
    ) -> Result<Option<CodeArtifact>, StoreError> {
        let sql = AssertSqlSafe(format!("{ARTIFACT} WHERE a.tenant = $1 AND a.id = $2"));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
        let found = query.fetch_optional(&mut **tx).await.map_err(failed_to(CHANGE))?;
        let Some(row) = found else { return Ok(None) };
        let earlier = artifact(&row).map_err(failed_to(CHANGE))?;
        let is_new = *earlier.newest.content != new.content;
        let newest = if is_new {
            let number = earlier.newest.version.saturating_add(1);
            if self.version_count(tx, id).await.map_err(failed_to(CHANGE))? >= i64::from(MAX_VERSIONS) {
                let message =
                    format!("the artifact has {MAX_VERSIONS} versions, which is the limit; create another");
                return Err(StoreError::Conflict(message));
            }
            self.next_version(number, new.content)?
        } else {
            earlier.newest.clone()
        };
        let sql = "UPDATE code_artifacts SET slug = $1, version = $2 WHERE id = $3";
        let query = sqlx::query(sql).bind(new.slug.as_str()).bind(i64::from(newest.version));
        match query.bind(id.to_string()).execute(&mut **tx).await {
            Err(error) if is_conflict(&error) => return Err(taken(&new.slug)),
            Err(error) => return Err(failed_to(CHANGE)(error)),
            Ok(_) => {}
        }
        if is_new {
            insert_version(tx, id, &newest).await.map_err(failed_to(CHANGE))?;
        }
        announce(tx, "artifacts", new.slug.as_str()).await.map_err(failed_to(CHANGE))?;
        Ok(Some(CodeArtifact { slug: new.slug, newest, ..earlier }))
    }

    async fn delete_artifact(&self, tenant: &TenantId, id: ArtifactId) -> Result<bool, sqlx::Error> {
        let mut tx = self.engine.begin().await?;
        let deleted = delete_in(&mut tx, tenant, id).await?;
        tx.commit().await?;
        let is_deleted = deleted.is_some();
        if let Some(event) = deleted {
            self.report_to_tenant(tenant, event);
        }
        Ok(is_deleted)
    }

    /// Returns how many versions of an artifact are stored.
    async fn version_count(
        &self,
        tx: &mut Transaction<'static, Any>,
        id: ArtifactId,
    ) -> Result<i64, sqlx::Error> {
        let query = sqlx::query("SELECT COUNT(*) FROM code_artifact_versions WHERE artifact_id = $1");
        query.bind(id.to_string()).fetch_one(&mut **tx).await?.try_get(0)
    }

    fn next_version(&self, version: u32, content: ArtifactContent) -> Result<ArtifactVersion, StoreError> {
        let hash = hash::of_value(&content).map_err(|error| StoreError::unavailable(CHANGE, error))?;
        let created_by = audit::current_actor();
        Ok(ArtifactVersion { version, content: Arc::new(content), hash, created_by, created_at: self.now() })
    }
}

/// Returns the report of an artifact.
pub(super) fn event_of(artifact: &CodeArtifact, change: ObjectAction) -> ObjectEvent {
    let (slug, version) = (artifact.slug.to_string(), artifact.newest.version);
    ObjectEvent::Artifact(ArtifactEvent { change, id: artifact.id, artifact: slug, version })
}

/// Deletes an artifact as part of a transaction; returns its report, or `None` if there was none.
pub(super) async fn delete_in(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    id: ArtifactId,
) -> Result<Option<ObjectEvent>, sqlx::Error> {
    let sql = "DELETE FROM code_artifacts WHERE tenant = $1 AND id = $2 RETURNING slug, version";
    let query = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
    let deleted = query.fetch_optional(&mut **tx).await?;
    announce(tx, "artifacts", &id.to_string()).await?;
    let event = |row: AnyRow| {
        let (artifact, version) = (row.try_get("slug")?, number(&row)?);
        Ok(ObjectEvent::Artifact(ArtifactEvent { change: ObjectAction::Deleted, id, artifact, version }))
    };
    deleted.map(event).transpose()
}

/// Returns the artifacts of a tenant by slug without their sources, as a transaction sees them.
pub(super) async fn heads_in(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
) -> Result<Vec<ArtifactHead>, sqlx::Error> {
    let sql = "SELECT a.id AS id, a.slug AS slug, a.version AS version, v.hash AS hash FROM code_artifacts a \
               JOIN code_artifact_versions v ON v.artifact_id = a.id AND v.version = a.version \
               WHERE a.tenant = $1 ORDER BY a.slug";
    let found = sqlx::query(sql).bind(tenant.as_str()).fetch_all(&mut **tx).await?;
    let head = |row: &AnyRow| {
        Ok(ArtifactHead {
            id: rows::parse_column(row, "id")?,
            slug: rows::parse_column(row, "slug")?,
            version: number(row)?,
            hash: row.try_get("hash")?,
        })
    };
    found.iter().map(head).collect()
}

fn taken(slug: &ArtifactSlug) -> StoreError {
    StoreError::Conflict(format!("an artifact with the slug `{slug}` exists already"))
}

async fn insert_version(
    tx: &mut Transaction<'static, Any>,
    id: ArtifactId,
    version: &ArtifactVersion,
) -> Result<(), sqlx::Error> {
    let content =
        serde_json::to_string(&*version.content).map_err(|error| sqlx::Error::Encode(error.into()))?;
    let sql = "INSERT INTO code_artifact_versions (artifact_id, version, hash, content, created_by, created_at) \
               VALUES ($1, $2, $3, $4, $5, $6)";
    sqlx::query(sql)
        .bind(id.to_string())
        .bind(i64::from(version.version))
        .bind(&version.hash)
        .bind(content)
        .bind(version.created_by.as_deref())
        .bind(version.created_at.as_microsecond())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

fn number(row: &AnyRow) -> Result<u32, sqlx::Error> {
    let number: i64 = row.try_get("version")?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

fn version(row: &AnyRow) -> Result<ArtifactVersion, sqlx::Error> {
    Ok(ArtifactVersion {
        version: number(row)?,
        content: Arc::new(rows::json_column(row, "content")?),
        hash: row.try_get("hash")?,
        created_by: row.try_get::<Option<&str>, _>("created_by")?.map(Arc::from),
        created_at: rows::timestamp(row, "created_at")?,
    })
}

fn artifact(row: &AnyRow) -> Result<CodeArtifact, sqlx::Error> {
    Ok(CodeArtifact {
        id: rows::parse_column(row, "id")?,
        tenant: rows::parse_column(row, "tenant")?,
        slug: rows::parse_column(row, "slug")?,
        newest: version(row)?,
        created_by: row.try_get::<Option<&str>, _>("creator")?.map(Arc::from),
        created_at: rows::timestamp(row, "first_at")?,
    })
}
