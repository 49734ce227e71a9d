//! Creating, updating, switching and deleting tools.

use std::path::Path;

use haft_core::Timestamp;
use haft_core::catalog::{Backup, Change, FileForm, NewTool, StoreError};
use haft_core::id::ToolId;
use haft_core::name::{ToolName, Version};
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Status, Tool};

use super::bundles::check_open;
use super::queries::{Filed, Fresh, hash};
use crate::engine::{fault, is_conflict};
use crate::files::read::ReadFault;
use crate::files::write::{self, Existing, Mode, Undo};
use crate::files::{definition, history, layout, read, stamp::Stamp};
use crate::session::Session;
use crate::store::{Inner, KnownFile};
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
        let NewTool { spec, form, enabled, source, .. } = new;
        if session.tool_by_pair(bundle.id, &spec.name, &spec.version).await.map_err(fault(LOOK))?.is_some() {
            return Err(taken(&bundle.slug, &spec.name, &spec.version));
        }
        let id = ToolId(time::new_id(&*self.clock));
        let folder = layout::bundle_folder(&bundle.tenant, &bundle.slug);
        let filed = session.write_new(&folder, &spec, form, enabled).await?;
        if let (Some(path), Some(stamp)) = (&filed.path, &filed.stamp) {
            session.learn_file(path.clone(), Some(KnownFile { stamp: stamp.clone(), tool: Some(id) }));
        }
        let at = self.now();
        let fresh =
            Fresh { id, bundle: &bundle, spec: &spec, status: Status::Draft, enabled, source, filed, at };
        session.insert_tool(fresh).await.map_err(|error| {
            if is_conflict(&error) {
                return taken(&bundle.slug, &spec.name, &spec.version);
            }
            fault(STORE)(error)
        })?;
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

    pub(crate) async fn update_tool(&self, id: ToolId, spec: ToolSpec) -> Result<Tool, StoreError> {
        let mut session = self.session().await?;
        let tool = session.writable(id).await?;
        if tool.spec.name != spec.name {
            let message = format!("a tool keeps its name `{}`; create a new tool instead", tool.spec.name);
            return Err(StoreError::Invalid(vec![Problem::new("name", "immutable", message)]));
        }
        session.rewrite(&tool, &spec).await?;
        if session.is_untouched() {
            return Ok(tool);
        }
        announced(session.finish().await?, id)
    }

    pub(crate) async fn enable_tool(&self, id: ToolId, enabled: bool) -> Result<Tool, StoreError> {
        let mut session = self.session().await?;
        let tool = session.tool(id).await?;
        if !tool.built_in {
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
        if tool.built_in {
            return Err(built_in(&tool));
        }
        let kept = session.remove_file(&tool, backup).await?;
        session.remove_tool(id).await.map_err(fault("delete the tool"))?;
        session.finish().await?;
        Ok(kept)
    }
}

impl Session<'_> {
    pub(crate) async fn tool(&mut self, id: ToolId) -> Result<Tool, StoreError> {
        let found = self.find_tool(id).await.map_err(fault(LOOK))?;
        found.ok_or_else(|| StoreError::not_found("tool", id))
    }

    /// Finds a tool whose content may be changed.
    pub(crate) async fn writable(&mut self, id: ToolId) -> Result<Tool, StoreError> {
        let tool = self.tool(id).await?;
        if tool.built_in {
            return Err(built_in(&tool));
        }
        let bundle = self.live_bundle(tool.bundle_id).await?;
        check_open(&bundle)?;
        Ok(tool)
    }

    /// Stores another definition of a tool, in its file and as a revision; the same content changes nothing.
    pub(crate) async fn rewrite(&mut self, tool: &Tool, spec: &ToolSpec) -> Result<(), StoreError> {
        let changed = hash(&tool.spec).map_err(fault(STORE))? != hash(spec).map_err(fault(STORE))?;
        if !changed && tool.fault.is_none() {
            return Ok(());
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
            let filed = self.replace_file(tool, path, spec).await?;
            self.file_tool(tool.id, &filed).await.map_err(fault(STORE))?;
            self.touch_tool(tool.id);
        }
        Ok(())
    }

    /// Writes the file of a new tool, where there are files.
    async fn write_new(
        &mut self,
        folder: &str,
        spec: &ToolSpec,
        form: FileForm,
        enabled: bool,
    ) -> Result<Filed, StoreError> {
        let Some(files) = self.inner.files.clone() else { return Ok(Filed::default()) };
        let said = (!enabled).then_some(false);
        let text = render(spec, form, said)?;
        let paths =
            layout::candidates(&spec.name, &spec.version, form).map(|file| format!("{folder}/{file}"));
        let (path, stamp, undo) = files
            .run(format!("write the definition of `{}`", spec.name), move |home| {
                for path in paths {
                    let file = home.join(&path);
                    match write::write(&file, text.as_bytes(), Existing::Refuse, Mode::New) {
                        Ok(()) => {
                            let undo = Undo::remove(file.clone());
                            return Ok((path, Stamp::of(&std::fs::symlink_metadata(&file)?), undo));
                        }
                        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                        Err(error) => return Err(error),
                    }
                }
                Err(std::io::Error::other("files of every fitting name are there already"))
            })
            .await?;
        self.undo_with(undo);
        Ok(Filed { path: Some(path), stamp: Some(stamp), enabled: said })
    }

    /// Replaces the file of a tool and keeps a backup; a file named after its version follows the label.
    async fn replace_file(&mut self, tool: &Tool, path: &str, spec: &ToolSpec) -> Result<Filed, StoreError> {
        let Some(files) = self.inner.files.clone() else { return Ok(Filed::default()) };
        let said = (!tool.enabled).then_some(false);
        let form = layout::form_of(path.rsplit('/').next().unwrap_or(path)).unwrap_or(FileForm::Json);
        let text = render(spec, form, said)?;
        let target = (tool.spec.version != spec.version)
            .then(|| layout::relabelled(path, &tool.spec.version, &spec.version))
            .flatten();
        let (from, now) = (path.to_owned(), self.inner.now());
        let (to, stamp, undo) = files
            .run(format!("write `{path}`"), move |home| {
                let Taken { mut undo, mode, .. } = take(home, &from, Backup::Keep, None, now)?;
                let free = |target: &String| std::fs::symlink_metadata(home.join(target)).is_err();
                let to = target.filter(free).unwrap_or_else(|| from.clone());
                write::write(&home.join(&to), text.as_bytes(), Existing::Replace, mode)?;
                if to != from {
                    undo.append(Undo::remove(home.join(&to)));
                    write::remove(&home.join(&from))?;
                }
                let stamp = Stamp::of(&std::fs::symlink_metadata(home.join(&to))?);
                Ok((to, stamp, undo))
            })
            .await?;
        self.undo_with(undo);
        if to != path {
            self.learn_file(path.to_owned(), None);
        }
        self.learn_file(to.clone(), Some(KnownFile { stamp: stamp.clone(), tool: Some(tool.id) }));
        Ok(Filed { path: Some(to), stamp: Some(stamp), enabled: said })
    }

    /// Removes the file of a tool; returns where its backup is.
    async fn remove_file(&mut self, tool: &Tool, backup: Backup) -> Result<Option<String>, StoreError> {
        let (Some(files), Some(path)) = (self.inner.files.clone(), tool.path.clone()) else {
            return Ok(None);
        };
        let form = layout::form_of(path.rsplit('/').next().unwrap_or(&path)).unwrap_or(FileForm::Json);
        let last = render(&tool.spec, form, None)?;
        let (from, now) = (path.clone(), self.inner.now());
        let (kept, undo) = files
            .run(format!("remove `{path}`"), move |home| {
                let Taken { kept, undo, .. } = take(home, &from, backup, Some(&last), now)?;
                write::remove(&home.join(&from))?;
                Ok((kept, undo))
            })
            .await?;
        self.undo_with(undo);
        self.learn_file(path, None);
        Ok(kept)
    }
}

/// What was done to a file before it is replaced or removed.
struct Taken {
    /// Where its backup is.
    kept: Option<String>,
    undo: Undo,
    mode: Mode,
}

/// Backs up the file of a tool. One that cannot be read as text is moved away as it is, whatever it is; where
/// that fails, it is not touched. Of one that is gone, the last state that was read is kept.
fn take(
    home: &Path,
    path: &str,
    backup: Backup,
    last: Option<&str>,
    now: Timestamp,
) -> std::io::Result<Taken> {
    let file = home.join(path);
    let keep = |content: &[u8]| match backup {
        Backup::Keep => history::keep(home, path, content, now).map(Some),
        Backup::Discard => Ok(None),
    };
    match read::text(&file) {
        Ok((text, metadata)) => {
            let (kept, mode) = (keep(text.as_bytes())?, Mode::of(&metadata));
            Ok(Taken { kept, undo: Undo::restore(file, text.into_bytes(), mode), mode })
        }
        Err(ReadFault::Gone) => {
            let kept = last.map(|last| keep(last.as_bytes())).transpose()?.flatten();
            Ok(Taken { kept, undo: Undo::remove(file), mode: Mode::New })
        }
        Err(ReadFault::Bad(_)) => {
            let kept = history::keep_unread(home, path, now)?;
            let mut undo = Undo::moved(file.clone(), home.join(&kept));
            undo.append(Undo::remove(file));
            Ok(Taken { kept: Some(kept), undo, mode: Mode::New })
        }
    }
}

fn render(spec: &ToolSpec, form: FileForm, enabled: Option<bool>) -> Result<String, StoreError> {
    let text = definition::write(spec, form, enabled);
    if text.len() as u64 > read::MAX_BYTES {
        let message = format!("the definition is larger than {} KiB", read::MAX_BYTES / 1024);
        return Err(StoreError::Invalid(vec![Problem::new("", "too_large", message)]));
    }
    Ok(text)
}

pub(crate) fn built_in(tool: &Tool) -> StoreError {
    StoreError::ReadOnly(format!("`{}` is built in; only `enabled` can be changed", tool.spec.name))
}

fn taken(bundle: &haft_core::name::BundleSlug, name: &ToolName, version: &Version) -> StoreError {
    StoreError::Conflict(format!("`{bundle}:{name}@{version}` exists already; it is left unchanged"))
}
