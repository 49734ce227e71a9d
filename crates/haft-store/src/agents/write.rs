//! Creating, changing, publishing and deleting agents.

use haft_core::agent::{Agent, AgentDefinition};
use haft_core::catalog::StoreError;
use haft_core::id::AgentId;
use haft_core::live::{AgentAction, AgentEvent, ObjectEvent};
use haft_core::name::{AgentSlug, TenantId};
use haft_core::tool::Status;
use sqlx::{Any, Transaction};

use super::read::{NAMES, find_in};
use super::revisions::NewRevision;
use crate::audit::store_current_record;
use crate::engine::{failed_to, is_conflict};
use crate::pipelines::count_change;
use crate::store::{Inner, Store};
use crate::time;

const CREATE: &str = "create the agent";
const UPDATE: &str = "change the agent";
const DELETE: &str = "delete the agent";

impl Store {
    /// Creates an agent, as a draft. A slug that another agent has is a conflict.
    pub async fn create_agent(
        &self,
        tenant: &TenantId,
        definition: AgentDefinition,
        author: &str,
    ) -> Result<Agent, StoreError> {
        let (tenant, author) = (tenant.clone(), author.to_owned());
        self.run(move |inner| async move { inner.create_agent(&tenant, &definition, &author).await }).await
    }

    /// Changes an agent. Changed content appends a revision; the same content changes nothing. Conflicts are a slug that
    /// another agent has, another newest revision than the expected one, and an agent that a file defines.
    pub async fn update_agent(
        &self,
        tenant: &TenantId,
        id: AgentId,
        update: AgentUpdate,
    ) -> Result<Agent, StoreError> {
        let tenant = tenant.clone();
        self.run(move |inner| async move { inner.update_agent(&tenant, id, &update).await }).await
    }

    /// Publishes the newest revision; a conflict if that is not `expected_revision`, or its file is invalid.
    pub async fn publish_agent(
        &self,
        tenant: &TenantId,
        id: AgentId,
        expected_revision: Option<u32>,
    ) -> Result<Agent, StoreError> {
        let tenant = tenant.clone();
        self.run(move |inner| async move {
            inner.change_agent(&tenant, id, AgentStep::Publish(expected_revision)).await
        })
        .await
    }

    /// Sets the status: `published` publishes the newest revision, `draft` withdraws the published one, `disabled`
    /// disables the agent.
    pub async fn set_agent_status(
        &self,
        tenant: &TenantId,
        id: AgentId,
        status: Status,
    ) -> Result<Agent, StoreError> {
        let tenant = tenant.clone();
        let step = match status {
            Status::Published => AgentStep::Publish(None),
            Status::Draft | Status::Deprecated | Status::Disabled => AgentStep::Status(status),
        };
        self.run(move |inner| async move { inner.change_agent(&tenant, id, step).await }).await
    }

    /// Enables or disables an agent.
    pub async fn set_agent_enabled(
        &self,
        tenant: &TenantId,
        id: AgentId,
        enabled: bool,
    ) -> Result<Agent, StoreError> {
        let tenant = tenant.clone();
        let step = if enabled { AgentStep::Enable } else { AgentStep::Disable };
        self.run(move |inner| async move { inner.change_agent(&tenant, id, step).await }).await
    }

    /// Deletes an agent with its revisions. Its runs stay. An agent that a file defines is a conflict.
    pub async fn delete_agent(&self, tenant: &TenantId, id: AgentId) -> Result<(), StoreError> {
        let tenant = tenant.clone();
        self.run(move |inner| async move { inner.delete_agent(&tenant, id).await }).await
    }
}

/// A changed definition of an agent.
#[derive(Debug, Clone)]
pub struct AgentUpdate {
    /// The definition.
    pub definition: AgentDefinition,
    /// The newest revision that the author knows; `None` replaces any.
    pub expected_revision: Option<u32>,
    /// Who changes it.
    pub author: String,
}

/// A change of an agent that leaves its definition.
#[derive(Clone, Copy)]
enum AgentStep {
    Publish(Option<u32>),
    Status(Status),
    Enable,
    Disable,
}

impl AgentStep {
    fn action(self) -> AgentAction {
        match self {
            Self::Publish(_) => AgentAction::Published,
            Self::Status(Status::Deprecated) => AgentAction::Deprecated,
            Self::Status(Status::Disabled) | Self::Disable => AgentAction::Disabled,
            Self::Status(Status::Draft | Status::Published) => AgentAction::Updated,
            Self::Enable => AgentAction::Enabled,
        }
    }
}

/// A new agent.
pub(super) struct AgentInsert<'a> {
    pub(super) id: AgentId,
    pub(super) tenant: &'a TenantId,
    pub(super) revision: &'a NewRevision<'a>,
    /// The file that defines it.
    pub(super) path: Option<&'a str>,
}

impl AgentInsert<'_> {
    /// Adds the agent with its first revision.
    pub(super) async fn insert(&self, tx: &mut Transaction<'static, Any>) -> Result<(), sqlx::Error> {
        let NewRevision { definition, author, at, .. } = self.revision;
        let sql = "INSERT INTO agents (id, tenant, slug, search, revision, status, enabled, path, created_by, modified_by, \
                   created_at, modified_at) VALUES ($1, $2, $3, $4, 1, $5, 1, $6, $7, $7, $8, $8)";
        sqlx::query(sql)
            .bind(self.id.to_string())
            .bind(self.tenant.as_str())
            .bind(definition.slug.as_str())
            .bind(self.revision.search_text())
            .bind(Status::Draft.as_str())
            .bind(self.path)
            .bind(*author)
            .bind(at.as_microsecond())
            .execute(&mut **tx)
            .await?;
        self.revision.insert(tx, self.id, 1).await
    }
}

impl Inner {
    async fn create_agent(
        &self,
        tenant: &TenantId,
        definition: &AgentDefinition,
        author: &str,
    ) -> Result<Agent, StoreError> {
        let id = AgentId(time::new_id(&*self.clock));
        let mut tx = self.engine.begin_change().await.map_err(failed_to(CREATE))?;
        free_slug(&mut tx, tenant, &definition.slug).await.map_err(failed_to(CREATE))?;
        let revision = NewRevision::new(definition, author, self.now()).map_err(failed_to(CREATE))?;
        let insert = AgentInsert { id, tenant, revision: &revision, path: None };
        insert.insert(&mut tx).await.map_err(slug_taken(CREATE, &definition.slug))?;
        self.commit_agent(tx, (tenant, id), AgentAction::Created).await
    }

    async fn update_agent(
        &self,
        tenant: &TenantId,
        id: AgentId,
        update: &AgentUpdate,
    ) -> Result<Agent, StoreError> {
        let AgentUpdate { definition, expected_revision, author } = update;
        let mut tx = self.engine.begin_change().await.map_err(failed_to(UPDATE))?;
        let agent = find_in(&mut tx, tenant, id).await?;
        reject_file(&agent)?;
        check_revision(&agent, *expected_revision)?;
        if agent.definition.slug != definition.slug {
            free_slug(&mut tx, tenant, &definition.slug).await.map_err(failed_to(UPDATE))?;
        }
        let revision = NewRevision::new(definition, author, self.now()).map_err(failed_to(UPDATE))?;
        let appended = revision.append(&mut tx, id).await;
        if !appended.map_err(slug_taken(UPDATE, &definition.slug))? {
            return Ok(agent);
        }
        self.commit_agent(tx, (tenant, id), AgentAction::Updated).await
    }

    async fn change_agent(
        &self,
        tenant: &TenantId,
        id: AgentId,
        step: AgentStep,
    ) -> Result<Agent, StoreError> {
        let mut tx = self.engine.begin_change().await.map_err(failed_to(UPDATE))?;
        let agent = find_in(&mut tx, tenant, id).await?;
        if let AgentStep::Publish(expected_revision) = step {
            check_revision(&agent, expected_revision)?;
            if let Some(reason) = &agent.error {
                let message = format!("cannot publish: the file of the agent is invalid: {reason}");
                return Err(StoreError::Conflict(message));
            }
        }
        let now = self.now().as_microsecond();
        let was_disabled = agent.status == Status::Disabled;
        // `status` and `enabled` agree: an agent with the status `disabled` is not enabled, one that leaves it is.
        let (status, enabled) = match step {
            AgentStep::Publish(_) => (Status::Published, agent.enabled || was_disabled),
            AgentStep::Status(Status::Disabled) => (Status::Disabled, false),
            AgentStep::Status(status) => (status, agent.enabled || was_disabled),
            AgentStep::Enable if was_disabled && agent.published.is_some() => (Status::Published, true),
            AgentStep::Enable if was_disabled => (Status::Draft, true),
            AgentStep::Enable => (agent.status, true),
            AgentStep::Disable => (agent.status, false),
        };
        let published = match step {
            AgentStep::Publish(_) => Some((agent.revision, now)),
            AgentStep::Status(Status::Draft) => None,
            AgentStep::Status(_) | AgentStep::Enable | AgentStep::Disable => {
                let at = agent.published_at.map_or(now, haft_core::Timestamp::as_microsecond);
                agent.published.as_ref().map(|(number, _)| (*number, at))
            }
        };
        let sql = "UPDATE agents SET status = $1, enabled = $2, published_revision = $3, published_at = $4 WHERE id = $5";
        sqlx::query(sql)
            .bind(status.as_str())
            .bind(i64::from(enabled))
            .bind(published.map(|(number, _)| i64::from(number)))
            .bind(published.map(|(_, at)| at))
            .bind(id.to_string())
            .execute(&mut *tx)
            .await
            .map_err(failed_to(UPDATE))?;
        self.commit_agent(tx, (tenant, id), step.action()).await
    }

    async fn delete_agent(&self, tenant: &TenantId, id: AgentId) -> Result<(), StoreError> {
        let mut tx = self.engine.begin_change().await.map_err(failed_to(DELETE))?;
        let agent = find_in(&mut tx, tenant, id).await?;
        reject_file(&agent)?;
        let deleted = async {
            sqlx::query("DELETE FROM agents WHERE id = $1").bind(id.to_string()).execute(&mut *tx).await?;
            // A file that was rejected because of the slug is read again.
            sqlx::query("UPDATE agent_files SET stamp = '' WHERE error IS NOT NULL")
                .execute(&mut *tx)
                .await?;
            count_change(&mut tx, NAMES).await?;
            store_current_record(&mut tx, agent.definition.slug.as_str()).await?;
            tx.commit().await
        };
        deleted.await.map_err(failed_to(DELETE))?;
        self.report_to_tenant(tenant, event_of(&agent, AgentAction::Deleted));
        Ok(())
    }

    async fn commit_agent(
        &self,
        mut tx: Transaction<'static, Any>,
        (tenant, id): (&TenantId, AgentId),
        action: AgentAction,
    ) -> Result<Agent, StoreError> {
        let agent = find_in(&mut tx, tenant, id).await?;
        let slug = agent.definition.slug.as_str();
        count_change(&mut tx, NAMES).await.map_err(failed_to(UPDATE))?;
        store_current_record(&mut tx, slug).await.map_err(failed_to(UPDATE))?;
        tx.commit().await.map_err(failed_to(UPDATE))?;
        self.report_to_tenant(tenant, event_of(&agent, action));
        Ok(agent)
    }
}

/// Returns the report of an agent.
pub(super) fn event_of(agent: &Agent, change: AgentAction) -> ObjectEvent {
    ObjectEvent::Agent(AgentEvent {
        change,
        id: agent.id,
        agent: agent.definition.slug.to_string(),
        status: agent.status,
        enabled: agent.enabled,
    })
}

/// Removes a hidden agent that has the slug: its file is gone.
pub(super) async fn free_slug(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    slug: &AgentSlug,
) -> Result<(), sqlx::Error> {
    let sql = "DELETE FROM agents WHERE tenant = $1 AND slug = $2 AND gone_at IS NOT NULL";
    sqlx::query(sql).bind(tenant.as_str()).bind(slug.as_str()).execute(&mut **tx).await?;
    Ok(())
}

pub(super) fn slug_taken<'a>(
    action: &'a str,
    slug: &'a AgentSlug,
) -> impl FnOnce(sqlx::Error) -> StoreError + 'a {
    move |error| {
        if is_conflict(&error) {
            StoreError::Conflict(format!("an agent `{slug}` already exists"))
        } else {
            failed_to(action)(error)
        }
    }
}

pub(super) fn reject_file(agent: &Agent) -> Result<(), StoreError> {
    match &agent.path {
        None => Ok(()),
        Some(path) => Err(StoreError::Conflict(format!(
            "the agent `{}` is defined by the file `{path}`; edit or remove that file",
            agent.definition.slug
        ))),
    }
}

fn check_revision(agent: &Agent, expected: Option<u32>) -> Result<(), StoreError> {
    match expected {
        Some(expected) if expected != agent.revision => Err(StoreError::Conflict(format!(
            "the agent `{}` was changed meanwhile: its newest revision is {}, not {expected}",
            agent.definition.slug, agent.revision
        ))),
        _ => Ok(()),
    }
}
