//! The files of tools. The text of the author is preserved where possible, and backed up before it is replaced.

use std::path::Path;

use futures_util::stream::{self, StreamExt as _};
use haft_core::Timestamp;
use haft_core::catalog::{Backup, FileForm, SourceText, StoreError};
use haft_core::id::ToolId;
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_core::tool::Tool;
use haft_definition::folder::{FileStamp, MAX_BYTES, ReadError, SymbolicLinks, file_form, read_text};

use super::queries::{ToolFile, hash};
use super::session::Session;
use super::state::IndexedFile;
use crate::engine::failed_to;
use crate::files::write::{self, FileMode, IfExists, Undo};
use crate::files::{definition, history, layout};

/// The content of a tool file.
#[derive(Clone, Copy)]
pub(crate) struct Content<'a> {
    pub(crate) spec: &'a ToolSpec,
    /// The text as its author wrote it.
    pub(crate) text: Option<&'a SourceText>,
    pub(crate) enabled: bool,
}

/// The number of files that are written concurrently. Each write waits for a disk sync, so sequential writes are much
/// slower.
const PARALLEL_WRITES: usize = 8;

/// The text of a file, and its value of `enabled`.
#[derive(Clone)]
struct Rendered {
    text: String,
    enabled: Option<bool>,
}

impl Content<'_> {
    /// Returns the text of the author if it parses to this definition at that path, otherwise generated text.
    fn render(&self, path: &str) -> Result<Rendered, StoreError> {
        if let Some(authored) = self.authored(path)? {
            return Ok(authored);
        }
        self.generated(form_of(path))
    }

    fn generated(&self, form: FileForm) -> Result<Rendered, StoreError> {
        let enabled = (!self.enabled).then_some(false);
        Ok(Rendered { text: generate(self.spec, form, enabled)?, enabled })
    }

    fn authored(&self, path: &str) -> Result<Option<Rendered>, StoreError> {
        let form = form_of(path);
        let Some(author) = self.text.filter(|author| author.form == form) else { return Ok(None) };
        let Ok(parsed) = definition::parse(&author.text, form, path) else { return Ok(None) };
        let action = "compare the definition with its text";
        let same = hash(&parsed.spec).map_err(failed_to(action))?
            == hash(self.spec).map_err(failed_to(action))?
            && parsed.enabled.is_none_or(|enabled| enabled == self.enabled);
        Ok(same.then(|| Rendered { text: author.text.clone(), enabled: parsed.enabled }))
    }
}

/// The file of a new tool before it is written.
pub(super) struct NewFile {
    tool: String,
    /// The paths to try in this order, with the text for each.
    candidates: Vec<(String, Rendered)>,
}

impl NewFile {
    /// Writes the file to the first free path.
    fn write(self, home: &Path) -> std::io::Result<(ToolFile, Undo)> {
        for (path, Rendered { text, enabled }) in self.candidates {
            let file = home.join(&path);
            match write::write(&file, text.as_bytes(), IfExists::Fail, FileMode::New) {
                Ok(()) => {
                    let stamp = FileStamp::of(&std::fs::symlink_metadata(&file)?);
                    return Ok((
                        ToolFile { path: Some(path), stamp: Some(stamp), enabled },
                        Undo::remove(file),
                    ));
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(std::io::Error::other("all file names for this tool are in use"))
    }
}

impl Session<'_> {
    /// Writes the file of a new tool in an embedded store.
    pub(crate) async fn write_new_file(
        &mut self,
        folder: &str,
        form: FileForm,
        content: Content<'_>,
    ) -> Result<ToolFile, StoreError> {
        let file = self.new_file(folder, form, content)?;
        Ok(self.write_new_files(vec![file]).await?.pop().unwrap_or_default())
    }

    /// Returns the file of a new tool before it is written.
    pub(super) fn new_file(
        &self,
        folder: &str,
        form: FileForm,
        content: Content<'_>,
    ) -> Result<NewFile, StoreError> {
        let spec = content.spec;
        let mut file = NewFile { tool: spec.name.to_string(), candidates: Vec::new() };
        if self.db.files.is_none() {
            return Ok(file);
        }
        let mut generated: Option<Rendered> = None;
        for name in layout::file_names(&spec.name, &spec.version, form) {
            let path = format!("{folder}/{name}");
            // For each name: a text without a name or version takes them from the file name.
            let rendered = match content.authored(&path)? {
                Some(authored) => authored,
                None => match &generated {
                    Some(rendered) => Rendered::clone(rendered),
                    None => generated.insert(content.generated(form)?).clone(),
                },
            };
            file.candidates.push((path, rendered));
        }
        Ok(file)
    }

    /// Writes the files of new tools in an embedded store, several at a time: each of them waits for the disk.
    pub(super) async fn write_new_files(&mut self, new: Vec<NewFile>) -> Result<Vec<ToolFile>, StoreError> {
        let Some(files) = self.db.files.clone() else {
            return Ok(new.iter().map(|_| ToolFile::default()).collect());
        };
        let writes = new.into_iter().map(|file| {
            files.run(format!("write the definition of `{}`", file.tool), move |home| file.write(home))
        });
        let results: Vec<_> = stream::iter(writes).buffered(PARALLEL_WRITES).collect().await;
        let mut written = Vec::with_capacity(results.len());
        let mut failed = None;
        for result in results {
            match result {
                Ok((file, undo)) => {
                    self.add_undo(undo);
                    written.push(file);
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(written), Err)
    }

    /// Replaces and backs up the file of a tool; a version in the file name is updated.
    pub(crate) async fn replace_file(
        &mut self,
        tool: &Tool,
        path: &str,
        content: Content<'_>,
    ) -> Result<ToolFile, StoreError> {
        let Some(files) = self.db.files.clone() else { return Ok(ToolFile::default()) };
        let target = (tool.spec.version != content.spec.version)
            .then(|| layout::path_for_version(path, &tool.spec.version, &content.spec.version))
            .flatten();
        let free = |target: &String| std::fs::symlink_metadata(files.at(target)).is_err();
        let to = target.filter(free).unwrap_or_else(|| path.to_owned());
        let written = self.put_file(path, to, content).await?;
        if written.path.as_deref() != Some(path) {
            self.index_file(path.to_owned(), None);
        }
        self.index_tool_file(&written, tool.id);
        Ok(written)
    }

    /// Replaces and backs up a file.
    pub(crate) async fn put_file(
        &mut self,
        from: &str,
        to: String,
        content: Content<'_>,
    ) -> Result<ToolFile, StoreError> {
        let Some(files) = self.db.files.clone() else { return Ok(ToolFile::default()) };
        self.catalog.reject_symlink(folder_of(from))?;
        let Rendered { text, enabled } = content.render(&to)?;
        let (old, new, now) = (from.to_owned(), to.clone(), self.db.now());
        let (stamp, undo) = files
            .run(format!("write `{from}`"), move |home| {
                let SavedFile { mut undo, mode, .. } = save(home, &old, Backup::Keep, None, now)?;
                write::write(&home.join(&new), text.as_bytes(), IfExists::Replace, mode)?;
                if new != old {
                    undo.append(Undo::remove(home.join(&new)));
                    write::remove(&home.join(&old))?;
                }
                Ok((FileStamp::of(&std::fs::symlink_metadata(home.join(&new))?), undo))
            })
            .await?;
        self.add_undo(undo);
        Ok(ToolFile { path: Some(to), stamp: Some(stamp), enabled })
    }

    /// Indexes the file of a tool when the change is committed.
    pub(crate) fn index_tool_file(&mut self, file: &ToolFile, tool: ToolId) {
        if let (Some(path), Some(stamp)) = (&file.path, &file.stamp) {
            self.index_file(path.clone(), Some(IndexedFile { stamp: stamp.clone(), tool: Some(tool) }));
        }
    }

    /// Replaces the file if only comments, order or layout differ; this is not a revision.
    pub(crate) async fn replace_text(&mut self, tool: &Tool, content: Content<'_>) -> Result<(), StoreError> {
        let (Some(files), Some(path)) = (self.db.files.clone(), tool.path.clone()) else {
            return Ok(());
        };
        let Some(authored) = content.authored(&path)? else { return Ok(()) };
        let file = files.at(&path);
        let now =
            files.run(format!("read `{path}`"), move |_| Ok(read_text(&file, SymbolicLinks::Reject))).await?;
        if now.is_ok_and(|(text, _)| text == authored.text) {
            return Ok(());
        }
        let replaced = self.replace_file(tool, &path, content).await?;
        self.set_tool_file(tool.id, &replaced).await.map_err(failed_to("store the tool"))
    }

    /// Returns the text of a tool file with another version, if it can be replaced in place.
    pub(crate) async fn text_with_version(
        &mut self,
        tool: &Tool,
        spec: &ToolSpec,
    ) -> Result<Option<SourceText>, StoreError> {
        let (Some(files), Some(path)) = (self.db.files.clone(), tool.path.clone()) else {
            return Ok(None);
        };
        let (form, file) = (form_of(&path), files.at(&path));
        let Ok((text, _)) =
            files.run(format!("read `{path}`"), move |_| Ok(read_text(&file, SymbolicLinks::Reject))).await?
        else {
            return Ok(None);
        };
        let text = definition::with_version(&text, &tool.spec.version, &spec.version);
        Ok(Some(SourceText { form, text }))
    }

    /// Removes the file of a tool and returns the path of its backup.
    pub(crate) async fn remove_file(
        &mut self,
        tool: &Tool,
        backup: Backup,
    ) -> Result<Option<String>, StoreError> {
        let (Some(files), Some(path)) = (self.db.files.clone(), tool.path.clone()) else {
            return Ok(None);
        };
        self.catalog.reject_symlink(folder_of(&path))?;
        let last = generate(&tool.spec, form_of(&path), None)?;
        let (from, now) = (path.clone(), self.db.now());
        let (backup_path, undo) = files
            .run(format!("remove `{path}`"), move |home| {
                let SavedFile { backup, undo, .. } = save(home, &from, backup, Some(&last), now)?;
                write::remove(&home.join(&from))?;
                Ok((backup, undo))
            })
            .await?;
        self.add_undo(undo);
        self.index_file(path, None);
        Ok(backup_path)
    }
}

/// The state of a file before it is replaced or removed.
struct SavedFile {
    /// The path of its backup.
    backup: Option<String>,
    undo: Undo,
    mode: FileMode,
}

/// Backs up the file of a tool. An unreadable file or folder is moved to the backups. If the file is missing, its last
/// known text is saved.
fn save(
    home: &Path,
    path: &str,
    backup: Backup,
    last: Option<&str>,
    now: Timestamp,
) -> std::io::Result<SavedFile> {
    let file = home.join(path);
    let back_up = |content: &[u8]| match backup {
        Backup::Keep => history::save(home, path, content, now).map(Some),
        Backup::Discard => Ok(None),
    };
    match read_text(&file, SymbolicLinks::Reject) {
        Ok((text, metadata)) => {
            let (backup, mode) = (back_up(text.as_bytes())?, FileMode::of(&metadata));
            Ok(SavedFile { backup, undo: Undo::restore(file, text.into_bytes(), mode), mode })
        }
        Err(ReadError::NotFound) => {
            let backup = last.map(|last| back_up(last.as_bytes())).transpose()?.flatten();
            Ok(SavedFile { backup, undo: Undo::remove(file), mode: FileMode::New })
        }
        Err(ReadError::Unreadable { .. }) => {
            let backup = history::move_file(home, path, now)?;
            let mut undo = Undo::moved(file.clone(), home.join(&backup));
            undo.append(Undo::remove(file));
            Ok(SavedFile { backup: Some(backup), undo, mode: FileMode::New })
        }
    }
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

pub(super) fn form_of(path: &str) -> FileForm {
    file_form(path.rsplit('/').next().unwrap_or(path)).unwrap_or(FileForm::Json)
}

fn generate(spec: &ToolSpec, form: FileForm, enabled: Option<bool>) -> Result<String, StoreError> {
    let text = definition::write(spec, form, enabled);
    if text.len() as u64 > MAX_BYTES {
        let message = format!("the definition exceeds the limit of {} KiB", MAX_BYTES / 1024);
        return Err(StoreError::Invalid(vec![Problem::new("", "too_large", message)]));
    }
    Ok(text)
}
