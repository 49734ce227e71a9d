//! The revisions of agents: one for each different definition that was saved.

use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::agent::{AgentDefinition, AgentRevision};
use haft_core::catalog::StoreError;
use haft_core::id::AgentId;
use haft_core::name::TenantId;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use crate::engine::failed_to;
use crate::rows;
use crate::store::Store;

const READ: &str = "read the revisions of the agent";
const REVISION: &str = "SELECT r.number AS number, r.hash AS hash, r.definition AS definition, \
    r.created_by AS created_by, r.created_at AS created_at FROM agent_revisions r \
    JOIN agents a ON a.id = r.agent_id WHERE a.gone_at IS NULL AND a.tenant = $1 AND a.id = $2";

impl Store {
    /// Returns all revisions of an agent, newest first; none if the agent does not exist.
    pub async fn agent_revisions(
        &self,
        tenant: &TenantId,
        id: AgentId,
    ) -> Result<Vec<AgentRevision>, StoreError> {
        let sql = AssertSqlSafe(format!("{REVISION} ORDER BY r.number DESC"));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
        let found = query.fetch_all(&self.inner.engine.pool).await.map_err(failed_to(READ))?;
        found.iter().map(revision).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Returns one revision of an agent.
    pub async fn agent_revision(
        &self,
        tenant: &TenantId,
        id: AgentId,
        number: u32,
    ) -> Result<Option<AgentRevision>, StoreError> {
        let sql = AssertSqlSafe(format!("{REVISION} AND r.number = $3"));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string()).bind(i64::from(number));
        let found = query.fetch_optional(&self.inner.engine.pool).await.map_err(failed_to(READ))?;
        found.as_ref().map(revision).transpose().map_err(failed_to(READ))
    }
}

/// A definition with its hash and its text, and who saves it when.
pub(super) struct NewRevision<'a> {
    pub(super) definition: &'a AgentDefinition,
    pub(super) hash: String,
    pub(super) text: String,
    pub(super) author: &'a str,
    pub(super) at: Timestamp,
}

impl<'a> NewRevision<'a> {
    pub(super) fn new(
        definition: &'a AgentDefinition,
        author: &'a str,
        at: Timestamp,
    ) -> Result<Self, sqlx::Error> {
        let encode = |error: serde_json::Error| sqlx::Error::Encode(Box::new(error));
        Ok(Self {
            definition,
            hash: haft_core::hash::of_value(definition).map_err(encode)?,
            text: serde_json::to_string(definition).map_err(encode)?,
            author,
            at,
        })
    }

    /// Returns the text that searches look at.
    pub(super) fn search_text(&self) -> String {
        let AgentDefinition { slug, name, description, .. } = self.definition;
        rows::search_text(&format!("{slug}\n{name}\n{description}"))
    }

    /// Adds the revision with a number.
    pub(super) async fn insert(
        &self,
        tx: &mut Transaction<'static, Any>,
        id: AgentId,
        number: u32,
    ) -> Result<(), sqlx::Error> {
        let sql = "INSERT INTO agent_revisions (agent_id, number, hash, definition, created_by, created_at) \
                   VALUES ($1, $2, $3, $4, $5, $6)";
        sqlx::query(sql)
            .bind(id.to_string())
            .bind(i64::from(number))
            .bind(&self.hash)
            .bind(&self.text)
            .bind(self.author)
            .bind(self.at.as_microsecond())
            .execute(&mut **tx)
            .await?;
        Ok(())
    }

    /// Adds the revision unless the newest one has the same content; returns whether it did.
    pub(super) async fn append(
        &self,
        tx: &mut Transaction<'static, Any>,
        id: AgentId,
    ) -> Result<bool, sqlx::Error> {
        let sql = "SELECT r.hash AS hash, r.number AS number FROM agent_revisions r \
                   JOIN agents a ON a.id = r.agent_id AND a.revision = r.number WHERE a.id = $1";
        let newest = sqlx::query(sql).bind(id.to_string()).fetch_one(&mut **tx).await?;
        if newest.try_get::<&str, _>("hash")? == self.hash {
            return Ok(false);
        }
        let number = rows::number(&newest, "number")?.saturating_add(1);
        self.insert(tx, id, number).await?;
        let sql = "UPDATE agents SET slug = $1, search = $2, revision = $3, modified_by = $4, modified_at = $5 \
                   WHERE id = $6";
        sqlx::query(sql)
            .bind(self.definition.slug.as_str())
            .bind(self.search_text())
            .bind(i64::from(number))
            .bind(self.author)
            .bind(self.at.as_microsecond())
            .bind(id.to_string())
            .execute(&mut **tx)
            .await?;
        Ok(true)
    }
}

fn revision(row: &AnyRow) -> Result<AgentRevision, sqlx::Error> {
    Ok(AgentRevision {
        number: rows::number(row, "number")?,
        hash: row.try_get("hash")?,
        definition: Arc::new(rows::json_column(row, "definition")?),
        created_by: row.try_get::<Option<&str>, _>("created_by")?.map(Arc::from),
        created_at: rows::timestamp(row, "created_at")?,
    })
}
