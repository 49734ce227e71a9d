//! Creating, updating, switching and deleting tools.

use std::collections::HashMap;

use haft_core::catalog::{Backup, Change, FileForm, NewTool, StoreError, ToolChange};
use haft_core::id::ToolId;
use haft_core::name::{ToolName, Version};
use haft_core::problem::Problem;
use haft_core::tool::{Source, Status, Tool};
use haft_definition::folder::file_form;

use super::bundles::check_bundle_editable;
use super::insert::ToolInsert;
use super::queries::hash;
use super::session::Session;
use super::state::{Catalog, CatalogState};
use super::tool_files::Content;
use crate::engine::{failed_to, is_conflict};
use crate::files::layout;
use crate::limits;
use crate::time;

const FIND: &str = "find the tool";
const STORE: &str = "store the tool";

/// Returns a tool from announced changes.
pub(crate) fn find_announced(changes: Vec<Change>, id: ToolId) -> Result<Tool, StoreError> {
    changes
        .into_iter()
        .find_map(|change| match change {
            Change::Tool(tool) if tool.id == id => Some(*tool),
            _ => None,
        })
        .ok_or_else(|| StoreError::not_found("tool", id))
}

/// Returns several tools from announced changes, in the order of their ids.
pub(super) fn find_all_announced(changes: Vec<Change>, ids: Vec<ToolId>) -> Result<Vec<Tool>, StoreError> {
    let mut tools: HashMap<ToolId, Tool> = HashMap::new();
    for change in changes {
        if let Change::Tool(tool) = change {
            tools.insert(tool.id, *tool);
        }
    }
    let find = |id: ToolId| tools.remove(&id).ok_or_else(|| StoreError::not_found("tool", id));
    ids.into_iter().map(find).collect()
}

impl CatalogState {
    pub(crate) async fn create_tool(&self, new: NewTool) -> Result<Tool, StoreError> {
        let name = new.spec.name.clone();
        let created = self.create_tools(vec![new]).await?.pop();
        created.ok_or_else(|| StoreError::not_found("tool", name))
    }

    /// Creates all tools in one transaction, or none.
    pub(crate) async fn create_tools(&self, tools: Vec<NewTool>) -> Result<Vec<Tool>, StoreError> {
        for new in &tools {
            self.sync_unread(new).await?;
        }
        let mut session = self.session().await?;
        let ids = session.create_with_files(tools).await?;
        find_all_announced(session.finish().await?, ids)
    }

    /// Replaces an unreadable file by a valid definition, which creates the tool.
    async fn mend_file(&self, path: &str, change: ToolChange) -> Result<Tool, StoreError> {
        let ToolChange { spec, text, enabled, .. } = change;
        let mut session = self.session().await?;
        let found = session.unreadable(path).await.map_err(failed_to(FIND))?;
        let unreadable = found.ok_or_else(|| StoreError::not_found("unreadable file", path))?;
        // A file in a subfolder is not loaded: its tool would vanish with the next scan.
        let inner = path
            .strip_prefix(&layout::bundle_folder(&unreadable.tenant, &unreadable.bundle))
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|rest| rest.contains('/'));
        if inner || file_form(path.rsplit('/').next().unwrap_or(path)).is_none() {
            return Err(StoreError::Conflict(unreadable.error));
        }
        let bundle = session.ensure_bundle(&unreadable.tenant, &unreadable.bundle).await?;
        if session.tool_by_key(bundle.id, &spec.name, &spec.version).await.map_err(failed_to(FIND))?.is_some()
        {
            return Err(already_exists(&bundle.slug, &spec.name, &spec.version));
        }
        let enabled = enabled.unwrap_or(true);
        let content = Content { spec: &spec, text: text.as_ref(), enabled };
        let file = session.put_file(path, path.to_owned(), content).await?;
        session.delete_unreadable(path).await?;
        let id = ToolId(time::new_id(&*self.db.clock));
        let (status, source, at) = (Status::Draft, Source::User, self.db.now());
        let insert = ToolInsert { id, bundle: &bundle, spec: &spec, status, enabled, source, file, at };
        session.insert_new(insert).await?;
        find_announced(session.finish().await?, id)
    }

    /// Loads files that could define the same tool and are not indexed yet: an existing file has precedence.
    pub(super) async fn sync_unread(&self, new: &NewTool) -> Result<(), StoreError> {
        let Some(files) = &self.db.files else { return Ok(()) };
        let folder = layout::bundle_folder(&new.tenant, &new.bundle);
        let mut unread = false;
        for form in [FileForm::Skill, FileForm::Yaml, FileForm::Json] {
            for file in layout::file_names(&new.spec.name, &new.spec.version, form) {
                let path = format!("{folder}/{file}");
                let there = std::fs::symlink_metadata(files.at(&path)).is_ok();
                unread |= there && !self.index.lock().await.files.contains_key(&path);
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
        let tool = session.editable_tool(id).await?;
        if tool.spec.name != spec.name {
            let message = format!("cannot rename `{}`; create a new tool instead", tool.spec.name);
            return Err(StoreError::Invalid(vec![Problem::new("name", "immutable", message)]));
        }
        // What changes decides: a client may send back the other field as it was.
        let status = status.filter(|status| *status != tool.status);
        let switched = enabled.filter(|enabled| *enabled != tool.enabled);
        if (status, switched) == (Some(Status::Disabled), Some(true)) {
            let message = "a tool with the status `disabled` cannot be enabled; change one of the two";
            return Err(StoreError::Invalid(vec![Problem::new("enabled", "conflicting_fields", message)]));
        }
        let enabled = match status {
            Some(Status::Disabled) => false,
            Some(_) if tool.status == Status::Disabled => true,
            _ => switched.unwrap_or(tool.enabled),
        };
        session.rewrite(&tool, Content { spec: &spec, text: text.as_ref(), enabled }).await?;
        match status {
            Some(status) => {
                session.change_status(&tool, status).await?;
                if enabled != tool.enabled {
                    session.set_enabled(id, enabled).await.map_err(failed_to(STORE))?;
                }
            }
            None if enabled != tool.enabled => session.switch(&tool, enabled).await?,
            None => {}
        }
        Ok(find_announced(session.finish().await?, id).unwrap_or(tool))
    }

    pub(crate) async fn enable_tool(&self, id: ToolId, enabled: bool) -> Result<Tool, StoreError> {
        let mut session = self.session().await?;
        let tool = session.tool(id).await?;
        if check_editable(&tool).is_ok() {
            let bundle = session.live_bundle(tool.bundle_id).await?;
            check_bundle_editable(&bundle)?;
        }
        if tool.enabled == enabled && !(enabled && tool.status == Status::Disabled) {
            return Ok(tool);
        }
        session.switch(&tool, enabled).await?;
        find_announced(session.finish().await?, id)
    }

    pub(crate) async fn delete_tool(&self, id: ToolId, backup: Backup) -> Result<Option<String>, StoreError> {
        let mut session = self.session().await?;
        let tool = session.tool(id).await?;
        check_editable(&tool)?;
        let backup_path = session.remove_file(&tool, backup).await?;
        session.delete(&tool, backup).await?;
        session.finish().await?;
        Ok(backup_path)
    }
}

impl Catalog {
    /// Replaces an [`UnreadableFile`](haft_core::catalog::UnreadableFile) by a valid definition, which creates the tool;
    /// the old text is backed up.
    pub async fn mend_file(&self, path: String, change: ToolChange) -> Result<Tool, StoreError> {
        self.run(|catalog| async move { catalog.mend_file(&path, change).await }).await
    }
}

impl Session<'_> {
    /// Creates tools. Their files are written together, before the rows.
    async fn create_with_files(&mut self, tools: Vec<NewTool>) -> Result<Vec<ToolId>, StoreError> {
        let (mut bundles, mut files) = (Vec::with_capacity(tools.len()), Vec::with_capacity(tools.len()));
        for new in &tools {
            let NewTool { spec, form, text, enabled, .. } = new;
            let bundle = self.ensure_bundle(&new.tenant, &new.bundle).await?;
            let existing = self.tool_by_key(bundle.id, &spec.name, &spec.version).await;
            if existing.map_err(failed_to(FIND))?.is_some() {
                return Err(already_exists(&bundle.slug, &spec.name, &spec.version));
            }
            let folder = layout::bundle_folder(&bundle.tenant, &bundle.slug);
            let content = Content { spec, text: text.as_ref(), enabled: *enabled };
            files.push(self.new_file(&folder, *form, content)?);
            bundles.push(bundle);
        }
        let files = self.write_new_files(files).await?;
        let mut ids = Vec::with_capacity(tools.len());
        for ((new, bundle), file) in tools.iter().zip(&bundles).zip(files) {
            let NewTool { spec, enabled, source, .. } = new;
            let id = ToolId(time::new_id(&*self.db.clock));
            let (status, at) = (Status::Draft, self.db.now());
            let (enabled, source) = (*enabled, *source);
            self.insert_new(ToolInsert { id, bundle, spec, status, enabled, source, file, at }).await?;
            ids.push(id);
        }
        Ok(ids)
    }

    /// Inserts a new tool whose file has been written.
    pub(super) async fn insert_new(&mut self, insert: ToolInsert<'_>) -> Result<(), StoreError> {
        limits::check_tool_room(&mut self.tx, &insert.bundle.tenant, insert.spec).await?;
        self.index_tool_file(&insert.file, insert.id);
        let (bundle, spec) = (insert.bundle, insert.spec);
        self.delete_missing(bundle.id, &spec.name, &spec.version).await.map_err(failed_to(STORE))?;
        self.insert_tool(insert).await.map_err(|error| {
            if is_conflict(&error) {
                return already_exists(&bundle.slug, &spec.name, &spec.version);
            }
            failed_to(STORE)(error)
        })
    }

    pub(crate) async fn tool(&mut self, id: ToolId) -> Result<Tool, StoreError> {
        let found = self.find_tool(id).await.map_err(failed_to(FIND))?;
        found.ok_or_else(|| StoreError::not_found("tool", id))
    }

    /// Finds a tool that may be edited.
    pub(crate) async fn editable_tool(&mut self, id: ToolId) -> Result<Tool, StoreError> {
        let tool = self.tool(id).await?;
        check_editable(&tool)?;
        let bundle = self.live_bundle(tool.bundle_id).await?;
        check_bundle_editable(&bundle)?;
        Ok(tool)
    }

    /// Stores a changed definition in the file and as a revision. If the content is the same, only the text in the file
    /// changes.
    pub(crate) async fn rewrite(&mut self, tool: &Tool, content: Content<'_>) -> Result<(), StoreError> {
        let spec = content.spec;
        let changed = hash(&tool.spec).map_err(failed_to(STORE))? != hash(spec).map_err(failed_to(STORE))?;
        if !changed && tool.fault.is_none() {
            return self.replace_text(tool, content).await;
        }
        if tool.spec.version != spec.version {
            let other =
                self.tool_by_key(tool.bundle_id, &spec.name, &spec.version).await.map_err(failed_to(FIND))?;
            if other.is_some() {
                return Err(already_exists(&tool.bundle, &spec.name, &spec.version));
            }
        }
        if changed {
            limits::check_revision_room(&mut self.tx, &tool.tenant, spec).await?;
            let now = self.db.now();
            self.append_revision(tool, spec, now).await.map_err(|error| {
                if is_conflict(&error) {
                    return already_exists(&tool.bundle, &spec.name, &spec.version);
                }
                failed_to(STORE)(error)
            })?;
        }
        if let Some(path) = &tool.path {
            let file = self.replace_file(tool, path, content).await?;
            self.set_tool_file(tool.id, &file).await.map_err(failed_to(STORE))?;
            self.mark_tool_changed(tool.id);
        }
        Ok(())
    }
}

/// Rejects changes to built-in tools and tools of MCP servers.
fn check_editable(tool: &Tool) -> Result<(), StoreError> {
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

pub(super) fn already_exists(
    bundle: &haft_core::name::BundleSlug,
    name: &ToolName,
    version: &Version,
) -> StoreError {
    StoreError::Conflict(format!(
        "`{bundle}:{name}@{version}` already exists; change or delete that tool, or choose another name or version"
    ))
}
