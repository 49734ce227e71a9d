//! Creating, updating, switching and deleting tools.

use haft_core::catalog::{Backup, Change, FileForm, NewTool, StoreError, ToolChange};
use haft_core::id::ToolId;
use haft_core::name::{ToolName, Version};
use haft_core::problem::Problem;
use haft_core::tool::{Source, Status, Tool};

use super::bundles::check_open;
use super::insert::Fresh;
use super::queries::hash;
use super::tool_files::Content;
use crate::engine::{fault, is_conflict};
use crate::files::layout;
use crate::session::Session;
use crate::store::{Inner, Store};
use crate::time;

const LOOK: &str = "look for the tool";
const STORE: &str = "store the tool";

/// Returns the tool among announced changes.
pub(crate) fn announced(changes: Vec<Change>, id: ToolId) -> Result<Tool, StoreError> {
    changes
        .into_iter()
        .find_map(|change| match change {
            Change::Tool(tool) if tool.id == id => Some(*tool),
            _ => None,
        })
        .ok_or_else(|| StoreError::not_found("tool", id))
}

impl Inner {
    pub(crate) async fn create_tool(&self, new: NewTool) -> Result<Tool, StoreError> {
        self.notice_unread(&new).await?;
        let mut session = self.session().await?;
        let bundle = session.ensure_bundle(&new.tenant, &new.bundle).await?;
        let NewTool { spec, form, text, enabled, source, .. } = new;
        if session.tool_by_pair(bundle.id, &spec.name, &spec.version).await.map_err(fault(LOOK))?.is_some() {
            return Err(taken(&bundle.slug, &spec.name, &spec.version));
        }
        let id = ToolId(time::new_id(&*self.clock));
        let folder = layout::bundle_folder(&bundle.tenant, &bundle.slug);
        let content = Content { spec: &spec, text: text.as_ref(), enabled };
        let filed = session.write_new(&folder, form, content).await?;
        let (status, at) = (Status::Draft, self.now());
        let fresh = Fresh { id, bundle: &bundle, spec: &spec, status, enabled, source, filed, at };
        session.enter_new(fresh).await?;
        announced(session.finish().await?, id)
    }

    /// Makes a tool of a file that could not be read, by writing it anew.
    async fn mend_file(&self, path: &str, change: ToolChange) -> Result<Tool, StoreError> {
        let ToolChange { spec, text, enabled, .. } = change;
        let mut session = self.session().await?;
        let found = session.unreadable(path).await.map_err(fault(LOOK))?;
        let file = found.ok_or_else(|| StoreError::not_found("file that cannot be read", path))?;
        // Written in place, one in an inner folder would be a tool only until the folder is looked at again.
        let inner = path
            .strip_prefix(&layout::bundle_folder(&file.tenant, &file.bundle))
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|rest| rest.contains('/'));
        if inner || layout::form_of(path.rsplit('/').next().unwrap_or(path)).is_none() {
            return Err(StoreError::Conflict(file.error));
        }
        let bundle = session.ensure_bundle(&file.tenant, &file.bundle).await?;
        if session.tool_by_pair(bundle.id, &spec.name, &spec.version).await.map_err(fault(LOOK))?.is_some() {
            return Err(taken(&bundle.slug, &spec.name, &spec.version));
        }
        let enabled = enabled.unwrap_or(true);
        let content = Content { spec: &spec, text: text.as_ref(), enabled };
        let filed = session.put_file(path, path.to_owned(), content).await?;
        session.forget_unreadable(path).await?;
        let id = ToolId(time::new_id(&*self.clock));
        let (status, source, at) = (Status::Draft, Source::User, self.now());
        let fresh = Fresh { id, bundle: &bundle, spec: &spec, status, enabled, source, filed, at };
        session.enter_new(fresh).await?;
        announced(session.finish().await?, id)
    }

    /// A file that nobody has read yet may define the same pair: it was there first.
    async fn notice_unread(&self, new: &NewTool) -> Result<(), StoreError> {
        let Some(files) = &self.files else { return Ok(()) };
        let folder = layout::bundle_folder(&new.tenant, &new.bundle);
        let mut unread = false;
        for form in [FileForm::Skill, FileForm::Yaml, FileForm::Json] {
            for file in layout::candidates(&new.spec.name, &new.spec.version, form) {
                let path = format!("{folder}/{file}");
                let there = std::fs::symlink_metadata(files.at(&path)).is_ok();
                unread |= there && !self.state.lock().await.files.contains_key(&path);
            }
        }
        if unread {
            self.sync().await?;
        }
        Ok(())
    }

    pub(crate) async fn update_tool(&self, id: ToolId, change: ToolChange) -> Result<Tool, StoreError> {
        let ToolChange { spec, text, status, enabled } = change;
        let mut session = self.session().await?;
        let tool = session.writable(id).await?;
        if tool.spec.name != spec.name {
            let message = format!("a tool keeps its name `{}`; create a new tool instead", tool.spec.name);
            return Err(StoreError::Invalid(vec![Problem::new("name", "immutable", message)]));
        }
        let enabled = enabled.unwrap_or(tool.enabled);
        session.rewrite(&tool, Content { spec: &spec, text: text.as_ref(), enabled }).await?;
        if let Some(status) = status.filter(|status| *status != tool.status) {
            session.change_status(&tool, status).await?;
        }
        if enabled != tool.enabled {
            session.set_enabled(id, enabled).await.map_err(fault("switch the tool"))?;
        }
        Ok(announced(session.finish().await?, id).unwrap_or(tool))
    }

    pub(crate) async fn enable_tool(&self, id: ToolId, enabled: bool) -> Result<Tool, StoreError> {
        let mut session = self.session().await?;
        let tool = session.tool(id).await?;
        if check_own(&tool).is_ok() {
            let bundle = session.live_bundle(tool.bundle_id).await?;
            check_open(&bundle)?;
        }
        if tool.enabled == enabled {
            return Ok(tool);
        }
        session.set_enabled(id, enabled).await.map_err(fault("switch the tool"))?;
        announced(session.finish().await?, id)
    }

    pub(crate) async fn delete_tool(&self, id: ToolId, backup: Backup) -> Result<Option<String>, StoreError> {
        let mut session = self.session().await?;
        let tool = session.tool(id).await?;
        check_own(&tool)?;
        let kept = session.remove_file(&tool, backup).await?;
        session.remove_tool(id).await.map_err(fault("delete the tool"))?;
        session.finish().await?;
        Ok(kept)
    }
}

impl Store {
    /// Writes the file of an [`UnreadableFile`](haft_core::catalog::Unreadable) anew, which makes it a tool; the text
    /// that could not be read is kept in the history.
    pub async fn mend_file(&self, path: String, change: ToolChange) -> Result<Tool, StoreError> {
        self.run(|inner| async move { inner.mend_file(&path, change).await }).await
    }
}

impl Session<'_> {
    /// Enters a new tool, whose file is written.
    async fn enter_new(&mut self, fresh: Fresh<'_>) -> Result<(), StoreError> {
        self.know_file(&fresh.filed, fresh.id);
        let (bundle, spec) = (fresh.bundle, fresh.spec);
        self.forget_gone(bundle.id, &spec.name, &spec.version).await.map_err(fault(STORE))?;
        self.insert_tool(fresh).await.map_err(|error| {
            if is_conflict(&error) {
                return taken(&bundle.slug, &spec.name, &spec.version);
            }
            fault(STORE)(error)
        })
    }

    pub(crate) async fn tool(&mut self, id: ToolId) -> Result<Tool, StoreError> {
        let found = self.find_tool(id).await.map_err(fault(LOOK))?;
        found.ok_or_else(|| StoreError::not_found("tool", id))
    }

    /// Finds a tool whose content may be changed.
    pub(crate) async fn writable(&mut self, id: ToolId) -> Result<Tool, StoreError> {
        let tool = self.tool(id).await?;
        check_own(&tool)?;
        let bundle = self.live_bundle(tool.bundle_id).await?;
        check_open(&bundle)?;
        Ok(tool)
    }

    /// Stores another definition of a tool, in its file and as a revision. The same content changes nothing but the
    /// author's text of it.
    pub(crate) async fn rewrite(&mut self, tool: &Tool, content: Content<'_>) -> Result<(), StoreError> {
        let spec = content.spec;
        let changed = hash(&tool.spec).map_err(fault(STORE))? != hash(spec).map_err(fault(STORE))?;
        if !changed && tool.fault.is_none() {
            return self.replace_text(tool, content).await;
        }
        if tool.spec.version != spec.version {
            let other =
                self.tool_by_pair(tool.bundle_id, &spec.name, &spec.version).await.map_err(fault(LOOK))?;
            if other.is_some() {
                return Err(taken(&tool.bundle, &spec.name, &spec.version));
            }
        }
        if changed {
            let now = self.inner.now();
            self.append_revision(tool, spec, now).await.map_err(|error| {
                if is_conflict(&error) {
                    return taken(&tool.bundle, &spec.name, &spec.version);
                }
                fault(STORE)(error)
            })?;
        }
        if let Some(path) = &tool.path {
            let filed = self.replace_file(tool, path, content).await?;
            self.file_tool(tool.id, &filed).await.map_err(fault(STORE))?;
            self.touch_tool(tool.id);
        }
        Ok(())
    }
}

/// Refuses to change what comes from elsewhere.
fn check_own(tool: &Tool) -> Result<(), StoreError> {
    let name = &tool.spec.name;
    match tool.source {
        Source::BuiltIn => {
            Err(StoreError::ReadOnly(format!("`{name}` is built in; only `enabled` can be changed")))
        }
        Source::Mcp => Err(StoreError::ReadOnly(format!(
            "`{name}` comes from the MCP server `{}`; only `enabled` can be changed",
            tool.bundle
        ))),
        Source::User | Source::Toolset => Ok(()),
    }
}

fn taken(bundle: &haft_core::name::BundleSlug, name: &ToolName, version: &Version) -> StoreError {
    StoreError::Conflict(format!("`{bundle}:{name}@{version}` exists already; it is left unchanged"))
}
