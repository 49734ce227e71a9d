//! The files of tools: written as their authors wrote them where that can be, backed up before they go.

use std::path::Path;

use haft_core::Timestamp;
use haft_core::catalog::{Backup, FileForm, SourceText, StoreError};
use haft_core::id::ToolId;
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_core::tool::Tool;

use super::queries::{Filed, hash};
use crate::engine::fault;
use crate::files::read::ReadFault;
use crate::files::write::{self, Existing, Mode, Undo};
use crate::files::{definition, history, layout, read, stamp::Stamp};
use crate::session::Session;
use crate::store::KnownFile;

/// What the file of a tool is to say.
#[derive(Clone, Copy)]
pub(crate) struct Content<'a> {
    pub(crate) spec: &'a ToolSpec,
    /// The words of its author.
    pub(crate) text: Option<&'a SourceText>,
    pub(crate) enabled: bool,
}

/// The text of a file, and what it says of `enabled`.
struct Rendered {
    text: String,
    enabled: Option<bool>,
}

impl Content<'_> {
    /// Returns the author's text where the file at that path would be read to this very definition, else the
    /// definition written out.
    fn render(&self, path: &str) -> Result<Rendered, StoreError> {
        if let Some(own) = self.own(path)? {
            return Ok(own);
        }
        let enabled = (!self.enabled).then_some(false);
        Ok(Rendered { text: written(self.spec, form_of(path), enabled)?, enabled })
    }

    fn own(&self, path: &str) -> Result<Option<Rendered>, StoreError> {
        let form = form_of(path);
        let Some(author) = self.text.filter(|author| author.form == form) else { return Ok(None) };
        let Ok(reading) = definition::parse(&author.text, form, path) else { return Ok(None) };
        let doing = "compare a definition with its text";
        let same = hash(&reading.spec).map_err(fault(doing))? == hash(self.spec).map_err(fault(doing))?
            && reading.enabled.is_none_or(|enabled| enabled == self.enabled);
        Ok(same.then(|| Rendered { text: author.text.clone(), enabled: reading.enabled }))
    }
}

impl Session<'_> {
    /// Writes the file of a new tool, where there are files.
    pub(crate) async fn write_new(
        &mut self,
        folder: &str,
        form: FileForm,
        content: Content<'_>,
    ) -> Result<Filed, StoreError> {
        let Some(files) = self.inner.files.clone() else { return Ok(Filed::default()) };
        let spec = content.spec;
        let mut candidates = Vec::new();
        for file in layout::candidates(&spec.name, &spec.version, form) {
            let path = format!("{folder}/{file}");
            // Each for itself: what a text leaves out is read from the name of its file.
            let rendered = content.render(&path)?;
            candidates.push((path, rendered));
        }
        let (path, enabled, stamp, undo) = files
            .run(format!("write the definition of `{}`", spec.name), move |home| {
                for (path, Rendered { text, enabled }) in candidates {
                    let file = home.join(&path);
                    match write::write(&file, text.as_bytes(), Existing::Refuse, Mode::New) {
                        Ok(()) => {
                            let undo = Undo::remove(file.clone());
                            return Ok((path, enabled, Stamp::of(&std::fs::symlink_metadata(&file)?), undo));
                        }
                        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                        Err(error) => return Err(error),
                    }
                }
                Err(std::io::Error::other("files of every fitting name are there already"))
            })
            .await?;
        self.undo_with(undo);
        Ok(Filed { path: Some(path), stamp: Some(stamp), enabled })
    }

    /// Replaces the file of a tool and keeps a backup; a file named after its version follows the label.
    pub(crate) async fn replace_file(
        &mut self,
        tool: &Tool,
        path: &str,
        content: Content<'_>,
    ) -> Result<Filed, StoreError> {
        let Some(files) = self.inner.files.clone() else { return Ok(Filed::default()) };
        let target = (tool.spec.version != content.spec.version)
            .then(|| layout::relabelled(path, &tool.spec.version, &content.spec.version))
            .flatten();
        let free = |target: &String| std::fs::symlink_metadata(files.at(target)).is_err();
        let to = target.filter(free).unwrap_or_else(|| path.to_owned());
        let written = self.put_file(path, to, content).await?;
        if written.path.as_deref() != Some(path) {
            self.learn_file(path.to_owned(), None);
        }
        self.know_file(&written, tool.id);
        Ok(written)
    }

    /// Writes a file in the place of another, of which a backup is kept.
    pub(crate) async fn put_file(
        &mut self,
        from: &str,
        to: String,
        content: Content<'_>,
    ) -> Result<Filed, StoreError> {
        let Some(files) = self.inner.files.clone() else { return Ok(Filed::default()) };
        self.inner.refuse_linked(folder_of(from))?;
        let Rendered { text, enabled } = content.render(&to)?;
        let (old, new, now) = (from.to_owned(), to.clone(), self.inner.now());
        let (stamp, undo) = files
            .run(format!("write `{from}`"), move |home| {
                let Taken { mut undo, mode, .. } = take(home, &old, Backup::Keep, None, now)?;
                write::write(&home.join(&new), text.as_bytes(), Existing::Replace, mode)?;
                if new != old {
                    undo.append(Undo::remove(home.join(&new)));
                    write::remove(&home.join(&old))?;
                }
                Ok((Stamp::of(&std::fs::symlink_metadata(home.join(&new))?), undo))
            })
            .await?;
        self.undo_with(undo);
        Ok(Filed { path: Some(to), stamp: Some(stamp), enabled })
    }

    /// Remembers which tool a file has, once the change stands.
    pub(crate) fn know_file(&mut self, filed: &Filed, tool: ToolId) {
        if let (Some(path), Some(stamp)) = (&filed.path, &filed.stamp) {
            self.learn_file(path.clone(), Some(KnownFile { stamp: stamp.clone(), tool: Some(tool) }));
        }
    }

    /// Replaces the file where only the author's words differ: comments, order, layout. That is no revision.
    pub(crate) async fn replace_text(&mut self, tool: &Tool, content: Content<'_>) -> Result<(), StoreError> {
        let (Some(files), Some(path)) = (self.inner.files.clone(), tool.path.clone()) else {
            return Ok(());
        };
        let Some(own) = content.own(&path)? else { return Ok(()) };
        let file = files.at(&path);
        let now = files.run(format!("read `{path}`"), move |_| Ok(read::text(&file))).await?;
        if now.is_ok_and(|(text, _)| text == own.text) {
            return Ok(());
        }
        let replaced = self.replace_file(tool, &path, content).await?;
        self.file_tool(tool.id, &replaced).await.map_err(fault("store the tool"))
    }

    /// Returns the text of a tool's file with another version in it, where that is easily done.
    pub(crate) async fn relabelled_text(
        &mut self,
        tool: &Tool,
        spec: &ToolSpec,
    ) -> Result<Option<SourceText>, StoreError> {
        let (Some(files), Some(path)) = (self.inner.files.clone(), tool.path.clone()) else {
            return Ok(None);
        };
        let (form, file) = (form_of(&path), files.at(&path));
        let Ok((text, _)) = files.run(format!("read `{path}`"), move |_| Ok(read::text(&file))).await? else {
            return Ok(None);
        };
        let text = definition::relabelled(&text, &tool.spec.version, &spec.version);
        Ok(Some(SourceText { form, text }))
    }

    /// Removes the file of a tool; returns where its backup is.
    pub(crate) async fn remove_file(
        &mut self,
        tool: &Tool,
        backup: Backup,
    ) -> Result<Option<String>, StoreError> {
        let (Some(files), Some(path)) = (self.inner.files.clone(), tool.path.clone()) else {
            return Ok(None);
        };
        self.inner.refuse_linked(folder_of(&path))?;
        let last = written(&tool.spec, form_of(&path), None)?;
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

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn form_of(path: &str) -> FileForm {
    layout::form_of(path.rsplit('/').next().unwrap_or(path)).unwrap_or(FileForm::Json)
}

fn written(spec: &ToolSpec, form: FileForm, enabled: Option<bool>) -> Result<String, StoreError> {
    let text = definition::write(spec, form, enabled);
    if text.len() as u64 > read::MAX_BYTES {
        let message = format!("the definition is larger than {} KiB", read::MAX_BYTES / 1024);
        return Err(StoreError::Invalid(vec![Problem::new("", "too_large", message)]));
    }
    Ok(text)
}
