//! Storing tools from another registry, with their state there.

use haft_core::Timestamp;
use haft_core::catalog::{FileForm, ImportedTool, NewTool, StoreError};
use haft_core::id::ToolId;
use haft_core::name::TenantId;
use haft_core::tool::{Source, Status, Tool};

use super::insert::ToolInsert;
use super::session::Session;
use super::state::CatalogState;
use super::tool_files::Content;
use super::tools::{already_exists, find_all_announced};
use crate::engine::failed_to;
use crate::files::layout;
use crate::time;

const IMPORT: &str = "import the tool";

impl CatalogState {
    /// Stores all tools in one transaction.
    pub(crate) async fn import_tools(
        &self,
        tenant: TenantId,
        tools: Vec<ImportedTool>,
    ) -> Result<Vec<Tool>, StoreError> {
        for tool in tools.iter().filter(|tool| tool.id.is_none()) {
            self.sync_unread(&new_tool(&tenant, tool)).await?;
        }
        let mut session = self.session().await?;
        let mut ids = Vec::with_capacity(tools.len());
        for tool in &tools {
            ids.push(match tool.id {
                Some(id) => session.update_imported(id, tool).await?,
                None => session.insert_imported(&tenant, tool).await?,
            });
        }
        find_all_announced(session.finish().await?, ids)
    }
}

fn new_tool(tenant: &TenantId, tool: &ImportedTool) -> NewTool {
    NewTool {
        tenant: tenant.clone(),
        bundle: tool.bundle.clone(),
        spec: tool.spec.clone(),
        form: FileForm::Json,
        text: None,
        enabled: tool.enabled,
        source: Source::User,
    }
}

impl Session<'_> {
    async fn insert_imported(
        &mut self,
        tenant: &TenantId,
        tool: &ImportedTool,
    ) -> Result<ToolId, StoreError> {
        let ImportedTool { spec, enabled, .. } = tool;
        let bundle = self.ensure_bundle(tenant, &tool.bundle).await?;
        let existing = self.tool_by_key(bundle.id, &spec.name, &spec.version).await;
        if existing.map_err(failed_to(IMPORT))?.is_some() {
            return Err(already_exists(&bundle.slug, &spec.name, &spec.version));
        }
        let id = ToolId(time::new_id(&*self.db.clock));
        let folder = layout::bundle_folder(&bundle.tenant, &bundle.slug);
        let content = Content { spec, text: None, enabled: *enabled };
        let file = self.write_new_file(&folder, FileForm::Json, content).await?;
        let (source, at) = (Source::User, self.db.now());
        let (status, enabled) = (Status::Draft, *enabled);
        self.insert_new(ToolInsert { id, bundle: &bundle, spec, status, enabled, source, file, at }).await?;
        self.set_imported_state(id, tool).await.map_err(failed_to(IMPORT))?;
        Ok(id)
    }

    async fn update_imported(&mut self, id: ToolId, tool: &ImportedTool) -> Result<ToolId, StoreError> {
        let stored = self.editable_tool(id).await?;
        let content = Content { spec: &tool.spec, text: None, enabled: tool.enabled };
        self.rewrite(&stored, content).await?;
        self.set_imported_state(id, tool).await.map_err(failed_to(IMPORT))?;
        Ok(id)
    }

    /// Sets status, publication and legacy fields as the registry has them.
    async fn set_imported_state(&mut self, id: ToolId, tool: &ImportedTool) -> Result<(), sqlx::Error> {
        let legacy = serde_json::to_string(&tool.legacy).map_err(|e| sqlx::Error::Encode(Box::new(e)))?;
        // A deprecated tool still runs in production, and a disabled one runs again when it is enabled.
        let is_published = match tool.status {
            Status::Draft => false,
            Status::Published | Status::Deprecated => true,
            Status::Disabled => tool.published_at.is_some(),
        };
        let now = self.db.now();
        let published_at = is_published.then(|| tool.published_at.unwrap_or(now));
        sqlx::query(
            "UPDATE tools SET status = $1, enabled = $2, legacy = $3, published_at = $4, \
             published_revision = CASE WHEN $5 = 1 THEN revision ELSE NULL END WHERE id = $6",
        )
        .bind(tool.status.as_str())
        .bind(i64::from(tool.enabled))
        .bind(legacy)
        .bind(published_at.map(Timestamp::as_microsecond))
        .bind(i64::from(is_published))
        .bind(id.to_string())
        .execute(&mut *self.tx)
        .await?;
        if is_published {
            self.note_publication(id, now).await?;
        }
        self.mark_tool_changed(id);
        Ok(())
    }
}
