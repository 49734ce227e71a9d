//! Reading agents.

use std::sync::Arc;

use haft_core::agent::{Agent, AgentDefinition};
use haft_core::catalog::StoreError;
use haft_core::id::AgentId;
use haft_core::name::{AgentSlug, TenantId};
use haft_core::tool::Status;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use crate::engine::failed_to;
use crate::rows;
use crate::store::Store;

pub(super) const READ: &str = "read the agent";

/// The columns of an agent with its newest and its published definition; hidden agents are left out.
const AGENT: &str = "SELECT a.id AS id, a.tenant AS tenant, a.revision AS revision, \
    a.published_revision AS published_revision, a.status AS status, a.enabled AS enabled, a.path AS path, \
    a.error AS error, a.created_by AS created_by, a.modified_by AS modified_by, a.created_at AS created_at, \
    a.modified_at AS modified_at, a.published_at AS published_at, r.definition AS definition, \
    p.definition AS published_definition \
    FROM agents a JOIN agent_revisions r ON r.agent_id = a.id AND r.number = a.revision \
    LEFT JOIN agent_revisions p ON p.agent_id = a.id AND p.number = a.published_revision \
        AND a.published_revision <> a.revision \
    WHERE a.gone_at IS NULL";

/// The counter of changes of agents.
pub(super) const NAMES: &str = "agents";

/// The agents of all tenants, and the state of the counter that grows when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentNames {
    /// The counter.
    pub counter: i64,
    /// The agents.
    pub names: Vec<AgentName>,
}

/// An agent that tools may refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentName {
    /// Its tenant.
    pub tenant: TenantId,
    /// Its id.
    pub id: AgentId,
    /// Its slug.
    pub slug: String,
    /// Whether it has a published revision.
    pub is_published: bool,
}

/// Which agents are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentQuery {
    /// A part of the slug, the name or the description, in any case.
    pub q: Option<String>,
    /// The status.
    pub status: Option<Status>,
    /// How many of the first are left out.
    pub skip: u32,
    /// The largest number of agents.
    pub limit: u32,
}

impl Default for AgentQuery {
    fn default() -> Self {
        Self { q: None, status: None, skip: 0, limit: 100 }
    }
}

impl Store {
    /// Returns an agent.
    pub async fn agent(&self, tenant: &TenantId, id: AgentId) -> Result<Option<Agent>, StoreError> {
        let sql = AssertSqlSafe(format!("{AGENT} AND a.tenant = $1 AND a.id = $2"));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
        let found = query.fetch_optional(&self.inner.engine.pool).await.map_err(failed_to(READ))?;
        found.as_ref().map(agent).transpose().map_err(failed_to(READ))
    }

    /// Returns the agent with a slug.
    pub async fn agent_by_slug(
        &self,
        tenant: &TenantId,
        slug: &AgentSlug,
    ) -> Result<Option<Agent>, StoreError> {
        let sql = AssertSqlSafe(format!("{AGENT} AND a.tenant = $1 AND a.slug = $2"));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(slug.as_str());
        let found = query.fetch_optional(&self.inner.engine.pool).await.map_err(failed_to(READ))?;
        found.as_ref().map(agent).transpose().map_err(failed_to(READ))
    }

    /// Lists agents by slug, with the number of all that match.
    pub async fn agents(
        &self,
        tenant: &TenantId,
        query: &AgentQuery,
    ) -> Result<(Vec<Agent>, u64), StoreError> {
        self.list_agents(tenant, query).await.map_err(failed_to("list the agents"))
    }

    /// Returns the names of all agents, unless the counter still is what it was.
    pub async fn agent_names(&self, known: Option<i64>) -> Result<Option<AgentNames>, StoreError> {
        let counter = self.inner.change_counter(NAMES).await.map_err(failed_to(READ))?;
        if known == Some(counter) {
            return Ok(None);
        }
        let query =
            sqlx::query("SELECT tenant, id, slug, published_revision FROM agents WHERE gone_at IS NULL");
        let found = query.fetch_all(&self.inner.engine.pool).await.map_err(failed_to(READ))?;
        let name = |row: &AnyRow| {
            Ok(AgentName {
                tenant: rows::parse_column(row, "tenant")?,
                id: rows::parse_column(row, "id")?,
                slug: row.try_get("slug")?,
                is_published: row.try_get::<Option<i64>, _>("published_revision")?.is_some(),
            })
        };
        let names = found.iter().map(name).collect::<Result<_, sqlx::Error>>().map_err(failed_to(READ))?;
        Ok(Some(AgentNames { counter, names }))
    }

    async fn list_agents(
        &self,
        tenant: &TenantId,
        query: &AgentQuery,
    ) -> Result<(Vec<Agent>, u64), sqlx::Error> {
        let matching =
            "a.tenant = $1 AND ($2 = '' OR a.status = $2) AND ($3 = '' OR a.search LIKE $3 ESCAPE '!')";
        let status = query.status.map(Status::as_str).unwrap_or_default();
        let text = query.q.as_deref().filter(|text| !text.is_empty());
        let pattern = text.map(rows::containing).unwrap_or_default();
        let bind = |sql| sqlx::query(sql).bind(tenant.to_string()).bind(status).bind(pattern.clone());
        let pool = &self.inner.engine.pool;
        let count =
            AssertSqlSafe(format!("SELECT COUNT(*) FROM agents a WHERE a.gone_at IS NULL AND {matching}"));
        let total: i64 = bind(count).fetch_one(pool).await?.try_get(0)?;
        let select = AssertSqlSafe(format!("{AGENT} AND {matching} ORDER BY a.slug LIMIT $4 OFFSET $5"));
        let found = bind(select).bind(i64::from(query.limit)).bind(i64::from(query.skip));
        let found = found.fetch_all(pool).await?;
        let agents = found.iter().map(agent).collect::<Result<_, _>>()?;
        Ok((agents, u64::try_from(total).unwrap_or_default()))
    }
}

/// Returns an agent within a transaction.
pub(super) async fn agent_in(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    id: AgentId,
) -> Result<Option<Agent>, sqlx::Error> {
    let sql = AssertSqlSafe(format!("{AGENT} AND a.tenant = $1 AND a.id = $2"));
    let query = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
    query.fetch_optional(&mut **tx).await?.as_ref().map(agent).transpose()
}

/// Returns an agent within a transaction; a missing one is an error.
pub(super) async fn find_in(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    id: AgentId,
) -> Result<Agent, StoreError> {
    let found = agent_in(tx, tenant, id).await.map_err(failed_to(READ))?;
    found.ok_or_else(|| StoreError::not_found("agent", id))
}

/// Returns all agents of a tenant within a transaction, by slug.
pub(super) async fn agents_in(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
) -> Result<Vec<Agent>, sqlx::Error> {
    let sql = AssertSqlSafe(format!("{AGENT} AND a.tenant = $1 ORDER BY a.slug"));
    let found = sqlx::query(sql).bind(tenant.to_string()).fetch_all(&mut **tx).await?;
    found.iter().map(agent).collect()
}

fn agent(row: &AnyRow) -> Result<Agent, sqlx::Error> {
    let definition: Arc<AgentDefinition> = Arc::new(rows::json_column(row, "definition")?);
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
    Ok(Agent {
        id: rows::parse_column(row, "id")?,
        tenant: rows::parse_column(row, "tenant")?,
        definition,
        revision: rows::number(row, "revision")?,
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
    })
}
