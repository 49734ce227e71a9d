//! The lifecycle of a tool: publish, deprecate, disable, relabel.

use haft_core::Timestamp;
use haft_core::catalog::{StoreError, Transition};
use haft_core::id::ToolId;
use haft_core::lifecycle::Deprecation;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Status, Tool};

use super::session::Session;
use super::state::CatalogState;
use super::tool_files::Content;
use super::tools::{find_all_announced, find_announced};
use crate::engine::failed_to;

const CHANGE_STATUS: &str = "change the status of the tool";

impl CatalogState {
    pub(crate) async fn transition(&self, id: ToolId, step: Transition) -> Result<Tool, StoreError> {
        let mut session = self.session().await?;
        let tool = session.editable_tool(id).await?;
        match step {
            Transition::Publish => session.publish(&tool).await?,
            Transition::Deprecate(deprecation) => session.deprecate(&tool, deprecation).await?,
            Transition::Set(status) => session.change_status(&tool, status).await?,
            Transition::Relabel(version) => {
                let spec = ToolSpec { version, ..(*tool.spec).clone() };
                let text = session.text_with_version(&tool, &spec).await?;
                let content = Content { spec: &spec, text: text.as_ref(), enabled: tool.enabled };
                session.rewrite(&tool, content).await?;
            }
        }
        if session.is_unmarked() {
            return Ok(tool);
        }
        find_announced(session.finish().await?, id)
    }

    /// Publishes all tools in one transaction.
    pub(crate) async fn publish_tools(&self, ids: Vec<ToolId>) -> Result<Vec<Tool>, StoreError> {
        let mut session = self.session().await?;
        for id in &ids {
            let tool = session.editable_tool(*id).await?;
            session.publish(&tool).await.map_err(|error| match error {
                StoreError::Conflict(reason) => {
                    StoreError::Conflict(format!("`{}`: {reason}", tool.qualified()))
                }
                other => other,
            })?;
        }
        find_all_announced(session.finish().await?, ids)
    }
}

impl Session<'_> {
    /// Changes the status of a tool.
    pub(crate) async fn change_status(&mut self, tool: &Tool, status: Status) -> Result<(), StoreError> {
        match status {
            Status::Published => self.publish(tool).await,
            Status::Draft | Status::Deprecated | Status::Disabled => self.set_status(tool, status).await,
        }
    }

    async fn publish(&mut self, tool: &Tool) -> Result<(), StoreError> {
        if let Some(reason) = &tool.fault {
            return Err(StoreError::Conflict(format!(
                "cannot publish: the newest definition is invalid: {reason}"
            )));
        }
        let now = self.db.now();
        let first = tool.published_at.unwrap_or(now);
        let action = "publish the tool";
        sqlx::query(
            "UPDATE tools SET status = $1, published_revision = revision, published_at = $2, published_by = $3, \
             deprecation = NULL WHERE id = $4",
        )
        .bind(Status::Published.as_str())
        .bind(first.as_microsecond())
        .bind(self.actor.as_deref())
        .bind(tool.id.to_string())
        .execute(&mut *self.tx)
        .await
        .map_err(failed_to(action))?;
        self.note_publication(tool.id, now).await.map_err(failed_to(action))?;
        self.leave_disabled(tool, Status::Published).await?;
        self.mark_tool_changed(tool.id);
        Ok(())
    }

    /// Notes when and by whom the newest revision was published.
    pub(crate) async fn note_publication(&mut self, id: ToolId, at: Timestamp) -> Result<(), sqlx::Error> {
        sqlx::query(
            "UPDATE revisions SET published_at = $1, published_by = $2 WHERE tool_id = $3 \
             AND number = (SELECT revision FROM tools WHERE id = $4)",
        )
        .bind(at.as_microsecond())
        .bind(self.actor.as_deref())
        .bind(id.to_string())
        .bind(id.to_string())
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    async fn deprecate(&mut self, tool: &Tool, deprecation: Deprecation) -> Result<(), StoreError> {
        self.set_status(tool, Status::Deprecated).await?;
        let deprecation = Deprecation {
            deprecated_at: Some(self.db.now()),
            deprecated_by: self.actor.as_deref().map(str::to_owned),
            ..deprecation
        };
        let text = serde_json::to_string(&deprecation)
            .map_err(|error| StoreError::unavailable("deprecate the tool", error))?;
        sqlx::query("UPDATE tools SET deprecation = $1 WHERE id = $2")
            .bind(text)
            .bind(tool.id.to_string())
            .execute(&mut *self.tx)
            .await
            .map_err(failed_to("deprecate the tool"))?;
        Ok(())
    }

    async fn set_status(&mut self, tool: &Tool, status: Status) -> Result<(), StoreError> {
        // Only `draft` withdraws the published revision.
        let published = match status {
            Status::Draft => None,
            Status::Published | Status::Deprecated | Status::Disabled => {
                tool.published.as_ref().map(|(number, _)| i64::from(*number))
            }
        };
        sqlx::query(
            "UPDATE tools SET status = $1, published_revision = $2, published_at = $3, deprecation = NULL \
             WHERE id = $4",
        )
        .bind(status.as_str())
        .bind(published)
        .bind(tool.published_at.map(Timestamp::as_microsecond))
        .bind(tool.id.to_string())
        .execute(&mut *self.tx)
        .await
        .map_err(failed_to(CHANGE_STATUS))?;
        self.leave_disabled(tool, status).await?;
        self.mark_tool_changed(tool.id);
        Ok(())
    }

    /// Keeps `status` and `enabled` in agreement: a tool with the status `disabled` is not enabled, and one that leaves
    /// this status is.
    async fn leave_disabled(&mut self, tool: &Tool, status: Status) -> Result<(), StoreError> {
        let enabled = match (tool.status, status) {
            (_, Status::Disabled) => false,
            (Status::Disabled, _) => true,
            _ => return Ok(()),
        };
        self.set_enabled(tool.id, enabled).await.map_err(failed_to(CHANGE_STATUS))
    }

    /// Enables or disables a tool. Enabling one with the status `disabled` returns it to the status that it had.
    pub(crate) async fn switch(&mut self, tool: &Tool, enabled: bool) -> Result<(), StoreError> {
        if enabled && tool.status == Status::Disabled {
            let status = if tool.published.is_some() { Status::Published } else { Status::Draft };
            sqlx::query("UPDATE tools SET status = $1 WHERE id = $2")
                .bind(status.as_str())
                .bind(tool.id.to_string())
                .execute(&mut *self.tx)
                .await
                .map_err(failed_to(CHANGE_STATUS))?;
        }
        self.set_enabled(tool.id, enabled).await.map_err(failed_to("enable or disable the tool"))
    }
}
