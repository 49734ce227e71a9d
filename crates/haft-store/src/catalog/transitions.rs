//! The lifecycle of a tool: publish, deprecate, relabel.

use haft_core::Timestamp;
use haft_core::catalog::{StoreError, Transition};
use haft_core::id::ToolId;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Status, Tool};

use super::tool_files::Content;
use super::tools::find_announced;
use crate::engine::failed_to;
use crate::session::Session;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn transition(&self, id: ToolId, step: Transition) -> Result<Tool, StoreError> {
        let mut session = self.session().await?;
        let tool = session.editable_tool(id).await?;
        match step {
            Transition::Publish => session.publish(&tool).await?,
            Transition::Deprecate => session.set_status(&tool, Status::Deprecated).await?,
            Transition::Set(status) => session.change_status(&tool, status).await?,
            Transition::Relabel(version) => {
                let spec = ToolSpec { version, ..(*tool.spec).clone() };
                let text = session.text_with_version(&tool, &spec).await?;
                let content = Content { spec: &spec, text: text.as_ref(), enabled: tool.enabled };
                session.rewrite(&tool, content).await?;
            }
        }
        if session.is_untouched() {
            return Ok(tool);
        }
        find_announced(session.finish().await?, id)
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
        let at = tool.published_at.unwrap_or_else(|| self.inner.now());
        sqlx::query(
            "UPDATE tools SET status = $1, published_revision = revision, published_at = $2 WHERE id = $3",
        )
        .bind(Status::Published.as_str())
        .bind(at.as_microsecond())
        .bind(tool.id.to_string())
        .execute(&mut *self.tx)
        .await
        .map_err(failed_to("publish the tool"))?;
        self.touch_tool(tool.id);
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
        sqlx::query("UPDATE tools SET status = $1, published_revision = $2, published_at = $3 WHERE id = $4")
            .bind(status.as_str())
            .bind(published)
            .bind(tool.published_at.map(Timestamp::as_microsecond))
            .bind(tool.id.to_string())
            .execute(&mut *self.tx)
            .await
            .map_err(failed_to("change the status of the tool"))?;
        self.touch_tool(tool.id);
        Ok(())
    }
}
