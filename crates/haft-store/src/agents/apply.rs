//! Agents as part of one change of many things.

use haft_core::agent::{Agent, AgentDefinition};
use haft_core::catalog::StoreError;
use haft_core::id::AgentId;
use haft_core::live::AgentAction;
use haft_core::name::TenantId;
use haft_core::tool::Status;

use super::read::{NAMES, agents_in, find_in};
use super::revisions::NewRevision;
use super::write::{AgentInsert, event_of, free_slug, reject_file, slug_taken};
use crate::engine::failed_to;
use crate::pipelines::count_change;
use crate::session::Session;
use crate::time;

const APPLY: &str = "apply the agents";

/// One change of an agent.
#[derive(Debug, Clone)]
pub enum AgentChange {
    /// A new agent.
    Create {
        /// The definition.
        definition: Box<AgentDefinition>,
        /// Whether it may run.
        enabled: bool,
        /// Its status.
        status: Status,
    },
    /// A changed agent; its slug stays.
    Update {
        /// The agent.
        id: AgentId,
        /// The definition.
        definition: Box<AgentDefinition>,
        /// Whether it may run.
        enabled: bool,
        /// Its status.
        status: Status,
    },
    /// An agent to delete.
    Delete {
        /// The agent.
        id: AgentId,
    },
}

impl Session<'_> {
    /// Returns the agents of a tenant, by slug.
    pub(crate) async fn agents_of(&mut self, tenant: &TenantId) -> Result<Vec<Agent>, sqlx::Error> {
        agents_in(&mut self.tx, tenant).await
    }

    /// Applies one change of an agent.
    pub(crate) async fn apply_agent(
        &mut self,
        tenant: &TenantId,
        change: AgentChange,
        author: &str,
    ) -> Result<(), StoreError> {
        self.touch_agents();
        count_change(&mut self.tx, NAMES).await.map_err(failed_to(APPLY))?;
        let (id, state, action) = match change {
            AgentChange::Create { definition, enabled, status } => {
                let id = AgentId(time::new_id(&*self.inner.clock));
                let now = self.inner.now();
                free_slug(&mut self.tx, tenant, &definition.slug).await.map_err(failed_to(APPLY))?;
                let revision = NewRevision::new(&definition, author, now).map_err(failed_to(APPLY))?;
                let insert = AgentInsert { id, tenant, revision: &revision, path: None };
                insert.insert(&mut self.tx).await.map_err(slug_taken(APPLY, &definition.slug))?;
                (id, (enabled, status), AgentAction::Created)
            }
            AgentChange::Update { id, definition, enabled, status } => {
                let agent = find_in(&mut self.tx, tenant, id).await?;
                if *agent.definition != *definition {
                    reject_file(&agent)?;
                    let now = self.inner.now();
                    let revision = NewRevision::new(&definition, author, now).map_err(failed_to(APPLY))?;
                    let appended = revision.append(&mut self.tx, id).await;
                    appended.map_err(slug_taken(APPLY, &definition.slug))?;
                }
                (id, (enabled, status), AgentAction::Updated)
            }
            AgentChange::Delete { id } => {
                let agent = find_in(&mut self.tx, tenant, id).await?;
                reject_file(&agent)?;
                let query = sqlx::query("DELETE FROM agents WHERE id = $1").bind(id.to_string());
                query.execute(&mut *self.tx).await.map_err(failed_to(APPLY))?;
                self.report_later(tenant, event_of(&agent, AgentAction::Deleted));
                return Ok(());
            }
        };
        self.set_agent_state(tenant, id, state).await?;
        let agent = find_in(&mut self.tx, tenant, id).await?;
        self.report_later(tenant, event_of(&agent, action));
        Ok(())
    }

    /// Sets the status; `published` publishes the newest revision.
    async fn set_agent_state(
        &mut self,
        tenant: &TenantId,
        id: AgentId,
        (enabled, status): (bool, Status),
    ) -> Result<(), StoreError> {
        let agent = find_in(&mut self.tx, tenant, id).await?;
        let now = self.inner.now().as_microsecond();
        let stored = agent.published.as_ref().map(|(number, _)| *number);
        let published = match status {
            Status::Published => Some(agent.revision),
            Status::Draft => None,
            Status::Deprecated | Status::Disabled => stored,
        };
        let at = match (published, agent.published_at) {
            (None, _) => None,
            (Some(_), Some(at)) if published == stored => Some(at.as_microsecond()),
            (Some(_), _) => Some(now),
        };
        let sql = "UPDATE agents SET status = $1, enabled = $2, published_revision = $3, published_at = $4 WHERE id = $5";
        sqlx::query(sql)
            .bind(status.as_str())
            // `status` and `enabled` agree.
            .bind(i64::from(enabled && status != Status::Disabled))
            .bind(published.map(i64::from))
            .bind(at)
            .bind(id.to_string())
            .execute(&mut *self.tx)
            .await
            .map_err(failed_to(APPLY))?;
        Ok(())
    }
}
