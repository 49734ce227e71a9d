//! Reading resources and their revisions.

use std::marker::PhantomData;
use std::sync::Arc;

use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::resource::{Resource, ResourceRevision};
use haft_core::tool::Status;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use super::StoredKind;
use crate::database::Database;
use crate::engine::failed_to;
use crate::rows;

/// The columns of a resource with its newest and its published definition.
const COLUMNS: &str = "r.id AS id, r.tenant AS tenant, r.revision AS revision, \
    r.published_revision AS published_revision, r.status AS status, r.enabled AS enabled, r.path AS path, \
    r.error AS error, r.created_by AS created_by, r.modified_by AS modified_by, r.created_at AS created_at, \
    r.modified_at AS modified_at, r.published_at AS published_at, r.gone_at AS gone_at, n.hash AS hash, \
    n.definition AS definition, \
    p.definition AS published_definition";

const TABLES: &str = "resources r JOIN resource_revisions n ON n.resource_id = r.id AND n.number = r.revision \
    LEFT JOIN resource_revisions p ON p.resource_id = r.id AND p.number = r.published_revision \
        AND r.published_revision <> r.revision";

/// The end of a query for a resource by its id or slug, `$2`. An id takes precedence over a slug that looks like one.
pub(crate) const BY_REFERENCE: &str =
    "AND (r.id = $2 OR r.slug = $2) ORDER BY CASE WHEN r.id = $2 THEN 0 ELSE 1 END LIMIT 1";

/// The names of all resources of a kind, and the state of the counter that grows when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceNames {
    /// The counter.
    pub counter: i64,
    /// The resources.
    pub names: Vec<ResourceName>,
}

/// A resource that other definitions may refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceName {
    /// Its tenant.
    pub tenant: TenantId,
    /// Its id.
    pub id: String,
    /// Its slug.
    pub slug: String,
    /// The number of its newest revision.
    pub revision: u32,
    /// Whether it has a published revision.
    pub is_published: bool,
    /// Whether it is enabled and its file, if it has one, is valid.
    pub is_in_service: bool,
}

/// Which resources are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceQuery {
    /// A part of the slug, the name or the description, in any case.
    pub q: Option<String>,
    /// The status.
    pub status: Option<Status>,
    /// The slug before the first one.
    pub after: Option<String>,
    /// How many further ones are left out.
    pub skip: u32,
    /// The largest number of resources.
    pub limit: u32,
    /// Whether to list the deleted resources that can be restored, instead of the others.
    pub deleted: bool,
    /// Their source.
    pub source: Option<ResourceSource>,
    /// Patterns of slugs, one of which must match; `*` matches any text. `None`: every slug.
    pub slugs: Option<Vec<String>>,
}

/// The source of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceSource {
    /// A file in the home folder.
    File,
    /// The store.
    Store,
}

impl ResourceSource {
    /// Parses the name in requests.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "file" => Some(Self::File),
            "store" => Some(Self::Store),
            _ => None,
        }
    }
}

impl Default for ResourceQuery {
    fn default() -> Self {
        Self {
            q: None,
            status: None,
            after: None,
            skip: 0,
            limit: 100,
            deleted: false,
            source: None,
            slugs: None,
        }
    }
}

/// The resources of one kind.
#[derive(Clone, Copy)]
pub struct Resources<'a, S> {
    pub(super) database: &'a Arc<Database>,
    kind: PhantomData<S>,
}

impl<'a, S: StoredKind> Resources<'a, S> {
    pub(crate) fn new(database: &'a Arc<Database>) -> Self {
        Self { database, kind: PhantomData }
    }
}

impl<S: StoredKind> Resources<'_, S> {
    /// Returns a resource by its id.
    pub async fn get(&self, tenant: &TenantId, id: S::Id) -> Result<Option<Resource<S>>, StoreError> {
        let sql = AssertSqlSafe(format!("{} AND r.id = $2", select::<S>()));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
        let found = query.fetch_optional(&self.inner().engine.pool).await.map_err(read_failed::<S>)?;
        found.as_ref().map(read_resource).transpose().map_err(read_failed::<S>)
    }

    /// Returns a resource by its id or slug.
    pub async fn find(&self, tenant: &TenantId, reference: &str) -> Result<Option<Resource<S>>, StoreError> {
        let sql = AssertSqlSafe(format!("{} {BY_REFERENCE}", select::<S>()));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(reference);
        let found = query.fetch_optional(&self.inner().engine.pool).await.map_err(read_failed::<S>)?;
        found.as_ref().map(read_resource).transpose().map_err(read_failed::<S>)
    }

    /// Lists resources by slug, with the number of all that match on every page.
    pub async fn list(
        &self,
        tenant: &TenantId,
        query: &ResourceQuery,
    ) -> Result<(Vec<Resource<S>>, u64), StoreError> {
        self.read_list(tenant, query).await.map_err(read_failed::<S>)
    }

    /// Returns all revisions of a resource, newest first; none if it does not exist.
    pub async fn revisions(
        &self,
        tenant: &TenantId,
        id: S::Id,
    ) -> Result<Vec<ResourceRevision<S>>, StoreError> {
        self.revisions_before(tenant, id, None, i32::MAX.unsigned_abs()).await
    }

    /// Returns revisions of a resource, newest first, before a number.
    pub async fn revisions_before(
        &self,
        tenant: &TenantId,
        id: S::Id,
        before: Option<u32>,
        limit: u32,
    ) -> Result<Vec<ResourceRevision<S>>, StoreError> {
        let end = "AND r.id = $2 AND v.number < $3 ORDER BY v.number DESC LIMIT $4";
        let sql = AssertSqlSafe(format!("{} {end}", select_revision::<S>()));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
        let query = query.bind(i64::from(before.unwrap_or(u32::MAX))).bind(i64::from(limit));
        let found = query.fetch_all(&self.inner().engine.pool).await.map_err(read_failed::<S>)?;
        let revision = |row: &AnyRow| read_revision(row).map(|(_, revision)| revision);
        found.iter().map(revision).collect::<Result<_, _>>().map_err(read_failed::<S>)
    }

    /// Returns the number of revisions that are kept of a resource.
    pub async fn count_revisions(&self, id: S::Id) -> Result<u64, StoreError> {
        let query = sqlx::query("SELECT COUNT(*) FROM resource_revisions WHERE resource_id = $1");
        let row = query.bind(id.to_string()).fetch_one(&self.inner().engine.pool).await;
        let count: i64 = row.and_then(|row| row.try_get(0)).map_err(read_failed::<S>)?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// Returns one revision of a resource.
    pub async fn revision(
        &self,
        tenant: &TenantId,
        id: S::Id,
        number: u32,
    ) -> Result<Option<ResourceRevision<S>>, StoreError> {
        let found = self.revision_of(tenant, &id.to_string(), RevisionSelector::Number(number)).await?;
        Ok(found.map(|(_, revision)| revision))
    }

    /// Returns the id and a revision of the resource with an id or slug.
    pub async fn revision_of(
        &self,
        tenant: &TenantId,
        reference: &str,
        selector: RevisionSelector,
    ) -> Result<Option<(S::Id, ResourceRevision<S>)>, StoreError> {
        let number = match selector {
            RevisionSelector::Number(number) => i64::from(number),
            RevisionSelector::Newest | RevisionSelector::Published => 0,
        };
        let column = match selector {
            RevisionSelector::Number(_) => "CAST($3 AS BIGINT)",
            RevisionSelector::Newest => "r.revision + $3",
            RevisionSelector::Published => "r.published_revision + $3",
        };
        let sql = AssertSqlSafe(format!("{} AND v.number = {column} {BY_REFERENCE}", select_revision::<S>()));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(reference).bind(number);
        let found = query.fetch_optional(&self.inner().engine.pool).await.map_err(read_failed::<S>)?;
        found.as_ref().map(read_revision).transpose().map_err(read_failed::<S>)
    }

    /// Returns the names of all resources of the kind, unless the counter still is what it was.
    pub async fn names(&self, known: Option<i64>) -> Result<Option<ResourceNames>, StoreError> {
        let counter = self.inner().change_counter(S::KIND.plural()).await.map_err(read_failed::<S>)?;
        if known == Some(counter) {
            return Ok(None);
        }
        let sql = "SELECT tenant, id, slug, revision, published_revision, enabled, error FROM resources \
                   WHERE kind = $1 AND gone_at IS NULL";
        let found = sqlx::query(sql).bind(S::KIND.as_str()).fetch_all(&self.inner().engine.pool).await;
        let name = |row: &AnyRow| {
            Ok(ResourceName {
                tenant: rows::parse_column(row, "tenant")?,
                id: row.try_get("id")?,
                slug: row.try_get("slug")?,
                revision: rows::number(row, "revision")?,
                is_published: row.try_get::<Option<i64>, _>("published_revision")?.is_some(),
                is_in_service: rows::boolean(row, "enabled")?
                    && row.try_get::<Option<&str>, _>("error")?.is_none(),
            })
        };
        let found = found.map_err(read_failed::<S>)?;
        let names = found.iter().map(name).collect::<Result<_, sqlx::Error>>().map_err(read_failed::<S>)?;
        Ok(Some(ResourceNames { counter, names }))
    }

    pub(super) fn inner(&self) -> &Database {
        self.database
    }

    async fn read_list(
        &self,
        tenant: &TenantId,
        query: &ResourceQuery,
    ) -> Result<(Vec<Resource<S>>, u64), sqlx::Error> {
        let matching = "($2 = '' OR r.status = $2) AND ($3 = '' OR r.search LIKE $3 ESCAPE '!')";
        let status = query.status.map(Status::as_str).unwrap_or_default();
        let text = query.q.as_deref().filter(|text| !text.is_empty());
        let pattern = text.map(rows::containing).unwrap_or_default();
        let after_removal = if query.deleted { self.inner().latest_removal().as_microsecond() } else { 0 };
        let engine = &self.inner().engine;
        let slugs = query.slugs.as_deref().unwrap_or_default();
        let bind = |sql| {
            let query = sqlx::query(sql)
                .bind(tenant.to_string())
                .bind(status)
                .bind(pattern.clone())
                .bind(after_removal);
            slugs.iter().fold(query, |query, slug| query.bind(rows::pattern(engine, slug)))
        };
        let pool = &self.inner().engine.pool;
        let listed = if query.deleted {
            deleted_of_tenant::<S>()
        } else {
            format!("{} AND CAST($4 AS BIGINT) = 0", of_tenant::<S>())
        };
        let source = match query.source {
            None => "",
            Some(ResourceSource::File) => " AND r.path IS NOT NULL",
            Some(ResourceSource::Store) => " AND r.path IS NULL",
        };
        let after = slugs.len() + 5;
        let matches: Vec<_> =
            (5..after).map(|parameter| rows::matches(engine, "r.slug", parameter)).collect();
        let visible = match (&query.slugs, matches.is_empty()) {
            (None, _) => String::new(),
            (Some(_), true) => " AND 1 = 0".to_owned(),
            (Some(_), false) => format!(" AND ({})", matches.join(" OR ")),
        };
        let listed = format!("{listed}{source}{visible}");
        let count = AssertSqlSafe(format!("SELECT COUNT(*) FROM resources r {listed} AND {matching}"));
        let total: i64 = bind(count).fetch_one(pool).await?.try_get(0)?;
        let page =
            format!("AND r.slug > ${after} ORDER BY r.slug LIMIT ${} OFFSET ${}", after + 1, after + 2);
        let sql = AssertSqlSafe(format!("SELECT {COLUMNS} FROM {TABLES} {listed} AND {matching} {page}"));
        let found = bind(sql)
            .bind(query.after.as_deref().unwrap_or_default())
            .bind(i64::from(query.limit))
            .bind(i64::from(query.skip))
            .fetch_all(pool)
            .await?;
        let listed = found.iter().map(read_resource).collect::<Result<_, _>>()?;
        Ok((listed, u64::try_from(total).unwrap_or_default()))
    }
}

/// Selects a revision of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevisionSelector {
    /// The newest one.
    Newest,
    /// The published one.
    Published,
    /// The one with this number.
    Number(u32),
}

/// Returns the condition that selects the visible resources of a tenant, `$1`.
fn of_tenant<S: StoredKind>() -> String {
    format!("WHERE r.tenant = $1 AND r.kind = '{}' AND r.gone_at IS NULL", S::KIND.as_str())
}

/// Returns the condition that selects the resources of a tenant, `$1`, that were deleted after a time, `$4`. One whose file
/// is missing comes back with its file only.
fn deleted_of_tenant<S: StoredKind>() -> String {
    format!("WHERE r.tenant = $1 AND r.kind = '{}' AND r.path IS NULL AND r.gone_at > $4", S::KIND.as_str())
}

/// Returns the query for the visible resources of a tenant, `$1`.
pub(super) fn select<S: StoredKind>() -> String {
    select_with::<S>("", "")
}

/// Returns the query for the visible resources of a tenant, `$1`, with more columns from another table.
pub(crate) fn select_with<S: StoredKind>(columns: &str, join: &str) -> String {
    format!("SELECT {COLUMNS}{columns} FROM {TABLES}{join} {}", of_tenant::<S>())
}

fn select_revision<S: StoredKind>() -> String {
    format!(
        "SELECT r.id AS id, v.number AS number, v.hash AS hash, v.definition AS definition, \
         v.created_by AS created_by, v.created_at AS created_at \
         FROM resources r JOIN resource_revisions v ON v.resource_id = r.id {}",
        of_tenant::<S>()
    )
}

fn read_failed<S: StoredKind>(error: sqlx::Error) -> StoreError {
    failed_to(&format!("read the {}", S::KIND))(error)
}

/// Returns a resource within a transaction; a missing one is an error.
pub(super) async fn find_in<S: StoredKind>(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    id: S::Id,
) -> Result<Resource<S>, StoreError> {
    let sql = AssertSqlSafe(format!("{} AND r.id = $2", select::<S>()));
    let query = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
    let found = query.fetch_optional(&mut **tx).await.map_err(read_failed::<S>)?;
    let found = found.ok_or_else(|| StoreError::not_found(S::KIND.noun(), id))?;
    read_resource(&found).map_err(read_failed::<S>)
}

/// Returns a resource within a transaction, a hidden one included.
pub(super) async fn any_in<S: StoredKind>(
    tx: &mut Transaction<'static, Any>,
    id: S::Id,
) -> Result<Resource<S>, sqlx::Error> {
    let sql = AssertSqlSafe(format!("SELECT {COLUMNS} FROM {TABLES} WHERE r.id = $1"));
    read_resource(&sqlx::query(sql).bind(id.to_string()).fetch_one(&mut **tx).await?)
}

/// Returns all resources of a tenant within a transaction, by slug.
pub(crate) async fn all_in<S: StoredKind>(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
) -> Result<Vec<Resource<S>>, sqlx::Error> {
    let sql = AssertSqlSafe(format!("{} ORDER BY r.slug", select::<S>()));
    let found = sqlx::query(sql).bind(tenant.as_str()).fetch_all(&mut **tx).await?;
    found.iter().map(read_resource).collect()
}

/// Tells every node that the names of a kind have changed.
pub(crate) async fn count_change(
    tx: &mut Transaction<'static, Any>,
    counter: &str,
) -> Result<(), sqlx::Error> {
    let sql = "INSERT INTO change_counters (name, value) VALUES ($1, 1) \
               ON CONFLICT (name) DO UPDATE SET value = change_counters.value + 1";
    sqlx::query(sql).bind(counter).execute(&mut **tx).await?;
    Ok(())
}

impl Database {
    async fn change_counter(&self, name: &str) -> Result<i64, sqlx::Error> {
        let query = sqlx::query("SELECT value FROM change_counters WHERE name = $1").bind(name);
        query.fetch_optional(&self.engine.pool).await?.map_or(Ok(0), |row| row.try_get(0))
    }
}

fn read_revision<S: StoredKind>(row: &AnyRow) -> Result<(S::Id, ResourceRevision<S>), sqlx::Error> {
    let revision = ResourceRevision {
        number: rows::number(row, "number")?,
        hash: row.try_get("hash")?,
        definition: Arc::new(rows::json_column(row, "definition")?),
        created_by: row.try_get::<Option<&str>, _>("created_by")?.map(Arc::from),
        created_at: rows::timestamp(row, "created_at")?,
    };
    Ok((rows::parse_column(row, "id")?, revision))
}

/// Reads a resource from the columns of [`select_with`].
pub(crate) fn read_resource<S: StoredKind>(row: &AnyRow) -> Result<Resource<S>, sqlx::Error> {
    let definition: Arc<S> = Arc::new(rows::json_column(row, "definition")?);
    let published = if row.try_get::<Option<i64>, _>("published_revision")?.is_some() {
        let published = rows::optional_json_column(row, "published_definition")?;
        let published = published.map_or_else(|| Arc::clone(&definition), Arc::new);
        Some((rows::number(row, "published_revision")?, published))
    } else {
        None
    };
    let name = |column: &str| -> Result<Option<Arc<str>>, sqlx::Error> {
        Ok(row.try_get::<Option<&str>, _>(column)?.map(Arc::from))
    };
    let status: &str = row.try_get("status")?;
    let unknown = || sqlx::Error::Decode(format!("unknown status `{status}`").into());
    Ok(Resource {
        id: rows::parse_column(row, "id")?,
        tenant: rows::parse_column(row, "tenant")?,
        definition,
        revision: rows::number(row, "revision")?,
        hash: row.try_get("hash")?,
        published,
        status: Status::parse(status).ok_or_else(unknown)?,
        enabled: rows::boolean(row, "enabled")?,
        path: row.try_get("path")?,
        error: row.try_get("error")?,
        created_by: name("created_by")?,
        modified_by: name("modified_by")?,
        created_at: rows::timestamp(row, "created_at")?,
        modified_at: rows::timestamp(row, "modified_at")?,
        published_at: rows::optional_timestamp(row, "published_at")?,
        deleted_at: rows::optional_timestamp(row, "gone_at")?,
    })
}
