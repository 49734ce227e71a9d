//! Resources that are defined by files: `agents/*.yaml`, `pipelines/*.yaml` and `artifacts/*.yaml` in the home folder, for
//! the default tenant.
//!
//! Stat stamps show which files changed. A file may define several agents. If two files define the same slug, the
//! indexed one wins, of two new ones the first by path; the other is reported. A file that becomes invalid keeps its
//! resources as they were, with the error. If a file vanishes, its resources are hidden, and come back with their
//! revisions if it returns in time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;

use haft_core::agent::AgentDefinition;
use haft_core::artifact::ArtifactDefinition;
use haft_core::catalog::StoreError;
use haft_core::live::{ObjectEvent, ResourceAction};
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::resource::Resource;
use haft_core::retrieval::PipelineDefinition;
use haft_core::{Timestamp, hash, problem};
use haft_definition::folder::{FileStamp, ReadError, SymbolicLinks, read_text};
use sqlx::any::AnyRow;
use sqlx::{Any, Row as _};

use super::StoredKind;
use super::read::{any_in, count_change};
use super::write::{NewResource, ResourceWriter};
use crate::audit::{FILE_ACTOR, FileEdit, store_file_edits};
use crate::database::Database;
use crate::engine::failed_to;
use crate::files::stamp::is_recent;
use crate::resources::Resources;
use crate::rows;

const INDEX: &str = "index the files of resources";
const LIST: &str = "list the files of resources";
/// The end of a stamp that cannot be trusted yet, because a file beside the definition changed so recently.
const RECENT: &str = " recent";
const ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];

/// A file that cannot be used, or not wholly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceFileError {
    /// The file, relative to the home folder.
    pub path: String,
    /// Why, with the line if known.
    pub error: String,
    /// When the file was last read.
    pub modified_at: Timestamp,
}

/// Which files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileScope {
    Changed,
    All,
}

/// The result of a sync.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileSync {
    pub(crate) changed: usize,
    /// A file changed so recently that it has to be read again soon.
    pub(crate) repeat: bool,
}

impl<S: StoredKind> Resources<'_, S> {
    /// Returns the files of the kind that cannot be used, by path.
    pub async fn file_errors(&self, tenant: &TenantId) -> Result<Vec<ResourceFileError>, StoreError> {
        let sql = "SELECT path, error, modified_at FROM resource_files \
                   WHERE tenant = $1 AND kind = $2 AND error IS NOT NULL ORDER BY path";
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(S::KIND.as_str());
        let found = query.fetch_all(&self.inner().engine.pool).await;
        let read = found.map_err(failed_to(LIST))?.into_iter().map(|row| {
            Ok(ResourceFileError {
                path: row.try_get("path")?,
                error: row.try_get("error")?,
                modified_at: rows::timestamp(&row, "modified_at")?,
            })
        });
        read.collect::<Result<_, sqlx::Error>>().map_err(failed_to(LIST))
    }
}

/// The definitions of a file, or why they cannot be used.
struct ReadFile<S> {
    path: String,
    stamp: FileStamp,
    definitions: Result<Vec<S>, String>,
}

/// A file when it was last read.
struct KnownFile {
    stamp: FileStamp,
    is_rejected: bool,
}

impl Database {
    /// Brings the resources of all kinds up to date with their files.
    pub(crate) async fn sync_resource_files(&self, scope: FileScope) -> Result<(), StoreError> {
        self.sync_files_of::<AgentDefinition>(scope).await?;
        self.sync_files_of::<PipelineDefinition>(scope).await?;
        self.sync_files_of::<ArtifactDefinition>(scope).await?;
        Ok(())
    }

    /// Brings the resources of a kind up to date with their files. Costs one listing and one query if nothing changed.
    pub(crate) async fn sync_files_of<S: StoredKind>(
        &self,
        scope: FileScope,
    ) -> Result<FileSync, StoreError> {
        let Some(files) = &self.files else { return Ok(FileSync::default()) };
        let listed = files.run(LIST.into(), list::<S>).await?;
        let known = known_files::<S>(&self.engine.pool).await.map_err(failed_to(INDEX))?;
        let is_same = listed.len() == known.len()
            && listed.iter().all(|(path, stamp)| known.get(path).is_some_and(|known| known.stamp == *stamp));
        if is_same && scope == FileScope::Changed {
            return Ok(FileSync::default());
        }
        let mut tx = self.engine.begin_change().await.map_err(failed_to(INDEX))?;
        // Listed again under the lock: another process may have read newer files meanwhile.
        let listed = files.run(LIST.into(), list::<S>).await?;
        let known = known_files::<S>(&mut *tx).await.map_err(failed_to(INDEX))?;
        let missing: Vec<String> = known.keys().filter(|path| !listed.contains_key(*path)).cloned().collect();
        let differs = |path: &String, stamp: &FileStamp| {
            scope == FileScope::All || known.get(path).is_none_or(|known| known.stamp != *stamp)
        };
        let any_change = !missing.is_empty() || listed.iter().any(|(path, stamp)| differs(path, stamp));
        // After any change, a file that was rejected because of a slug may be the only one now.
        let rejected = |path: &String| any_change && known.get(path).is_some_and(|known| known.is_rejected);
        let due = listed.into_iter().filter(|(path, stamp)| differs(path, stamp) || rejected(path));
        let due: Vec<String> = due.map(|(path, _)| path).collect();
        let read =
            files.run("read the files of resources".into(), move |home| read_all::<S>(home, due)).await?;
        let repeat = read.iter().any(|file| file.stamp.is_unknown());
        let mut pass = FilePass::<S>::new(ResourceWriter::new(self, &mut tx), &read, missing);
        pass.apply(read).await?;
        let FilePass { tenant, edits, writer, .. } = pass;
        let (changed, reports) = (edits.len(), writer.reports);
        store_file_edits(&mut tx, edits, || self.now()).await.map_err(failed_to(INDEX))?;
        if changed > 0 {
            count_change(&mut tx, S::KIND.plural()).await.map_err(failed_to(INDEX))?;
        }
        tx.commit().await.map_err(failed_to(INDEX))?;
        for event in reports {
            self.report_to_tenant(&tenant, event);
        }
        Ok(FileSync { changed, repeat })
    }
}

/// One pass over changed files.
struct FilePass<'a, S: StoredKind> {
    writer: ResourceWriter<'a>,
    tenant: TenantId,
    /// The slugs that each file defines now; a file that is not read, or is invalid, keeps its resources.
    defined: HashMap<String, HashSet<String>>,
    missing: Vec<String>,
    /// Resources that a file of this pass defines.
    claimed: HashSet<S::Id>,
    edits: Vec<FileEdit>,
}

impl<'a, S: StoredKind> FilePass<'a, S> {
    fn new(writer: ResourceWriter<'a>, read: &[ReadFile<S>], missing: Vec<String>) -> Self {
        let mut defined = HashMap::new();
        for file in read {
            if let Ok(definitions) = &file.definitions {
                let slugs = definitions.iter().map(|definition| definition.slug().to_owned()).collect();
                defined.insert(file.path.clone(), slugs);
            }
        }
        let tenant = TenantId::default_tenant();
        Self { writer, tenant, defined, missing, claimed: HashSet::new(), edits: Vec::new() }
    }

    async fn apply(&mut self, read: Vec<ReadFile<S>>) -> Result<(), StoreError> {
        for ReadFile { path, stamp, definitions } in read {
            let error = match definitions {
                Ok(definitions) => self.apply_definitions(&path, definitions).await?,
                Err(error) => {
                    self.mark_invalid(&path, &error).await.map_err(failed_to(INDEX))?;
                    Some(error)
                }
            };
            if let Some(error) = &error {
                tracing::warn!(path, error, "cannot use a file of {}", S::KIND.plural());
            }
            self.save_file(&path, &stamp, error.as_deref()).await.map_err(failed_to(INDEX))?;
        }
        for path in std::mem::take(&mut self.missing) {
            self.hide(&path, &HashSet::new()).await.map_err(failed_to(INDEX))?;
            let query = sqlx::query("DELETE FROM resource_files WHERE path = $1").bind(&path);
            query.execute(&mut **self.writer.tx).await.map_err(failed_to(INDEX))?;
        }
        Ok(())
    }

    /// Applies the definitions of a valid file; returns why some of them cannot be used.
    async fn apply_definitions(
        &mut self,
        path: &str,
        definitions: Vec<S>,
    ) -> Result<Option<String>, StoreError> {
        let mut errors = Vec::new();
        for definition in &definitions {
            match self.apply_definition(path, definition).await {
                Ok(()) => {}
                Err(StoreError::Conflict(reason) | StoreError::LimitReached { message: reason, .. }) => {
                    errors.push(reason);
                }
                Err(error) => return Err(error),
            }
        }
        let slugs = definitions.iter().map(|definition| definition.slug().to_owned()).collect();
        self.hide(path, &slugs).await.map_err(failed_to(INDEX))?;
        Ok((!errors.is_empty()).then(|| errors.join("; ")))
    }

    async fn apply_definition(&mut self, path: &str, definition: &S) -> Result<(), StoreError> {
        let slug = definition.slug();
        let Some((stored, is_hidden)) = self.stored(slug).await.map_err(failed_to(INDEX))? else {
            return self.create(path, definition).await;
        };
        let taken = |other: &str| {
            let message = format!("`{slug}` is already defined by `{other}`; change one of the slugs");
            Err(StoreError::Conflict(message))
        };
        match &stored.path {
            Some(other) if self.claimed.contains(&stored.id) => taken(other),
            Some(other) if other != path && !is_hidden && !self.has_released(other, slug) => taken(other),
            Some(_) => self.update((&stored, is_hidden), path, definition).await,
            // A deleted resource releases its slug.
            None if is_hidden => self.create(path, definition).await,
            None => Err(StoreError::Conflict(format!(
                "{} `{slug}` is already stored without a file; delete it or change the slug",
                S::KIND.with_article()
            ))),
        }
    }

    /// Tells whether another file no longer defines a slug.
    fn has_released(&self, other: &str, slug: &str) -> bool {
        self.missing.iter().any(|path| path == other)
            || self.defined.get(other).is_some_and(|slugs| !slugs.contains(slug))
    }

    /// Returns the resource with a slug, and whether it is hidden.
    async fn stored(&mut self, slug: &str) -> Result<Option<(Resource<S>, bool)>, sqlx::Error> {
        let sql = "SELECT id, gone_at FROM resources WHERE tenant = $1 AND kind = $2 AND slug = $3";
        let query = sqlx::query(sql).bind(self.tenant.as_str()).bind(S::KIND.as_str()).bind(slug);
        let Some(row) = query.fetch_optional(&mut **self.writer.tx).await? else { return Ok(None) };
        let is_hidden = row.try_get::<Option<i64>, _>("gone_at")?.is_some();
        let stored = any_in(self.writer.tx, rows::parse_column(&row, "id")?).await?;
        Ok(Some((stored, is_hidden)))
    }

    async fn create(&mut self, path: &str, definition: &S) -> Result<(), StoreError> {
        let new = NewResource { tenant: &self.tenant, definition, author: FILE_ACTOR, path: Some(path) };
        let id = self.writer.create(new).await?;
        self.claimed.insert(id);
        self.note(ResourceAction::Created, definition.slug(), "success");
        self.writer.finish::<S>(&self.tenant, None, id, ResourceAction::Created).await?;
        Ok(())
    }

    async fn update(
        &mut self,
        (stored, is_hidden): (&Resource<S>, bool),
        path: &str,
        definition: &S,
    ) -> Result<(), StoreError> {
        let appended = self.writer.append(stored, definition, FILE_ACTOR).await?;
        let sql = "UPDATE resources SET path = $1, error = NULL, gone_at = NULL WHERE id = $2";
        let query = sqlx::query(sql).bind(path).bind(stored.id.to_string());
        query.execute(&mut **self.writer.tx).await.map_err(failed_to(INDEX))?;
        self.claimed.insert(stored.id);
        if appended || is_hidden || stored.error.is_some() {
            self.note(ResourceAction::Updated, definition.slug(), "success");
            // A hidden resource is deleted as far as anybody can see.
            let (before, action) = if is_hidden {
                (None, ResourceAction::Created)
            } else {
                (Some(stored), ResourceAction::Updated)
            };
            self.writer.finish(&self.tenant, before, stored.id, action).await?;
        }
        Ok(())
    }

    /// Keeps the resources of an invalid file as they were, with the error.
    async fn mark_invalid(&mut self, path: &str, error: &str) -> Result<(), sqlx::Error> {
        let sql = "UPDATE resources SET error = $1 WHERE path = $2 AND gone_at IS NULL AND COALESCE(error, '') <> $1 \
                   RETURNING id";
        let changed = sqlx::query(sql).bind(error).bind(path).fetch_all(&mut **self.writer.tx).await?;
        for row in changed {
            self.report(&row, ResourceAction::Updated, ErrorCode::InvalidDefinition.as_str()).await?;
        }
        Ok(())
    }

    /// Hides the resources of a file that it no longer defines.
    async fn hide(&mut self, path: &str, kept: &HashSet<String>) -> Result<(), sqlx::Error> {
        let sql = "SELECT id, slug FROM resources WHERE path = $1 AND gone_at IS NULL";
        let found = sqlx::query(sql).bind(path).fetch_all(&mut **self.writer.tx).await?;
        for row in found {
            if kept.contains(row.try_get::<&str, _>("slug")?) {
                continue;
            }
            let query = sqlx::query("UPDATE resources SET gone_at = $1 WHERE id = $2");
            let query = query.bind(self.writer.inner.now().as_microsecond());
            query.bind(row.try_get::<&str, _>("id")?).execute(&mut **self.writer.tx).await?;
            self.report(&row, ResourceAction::Deleted, "success").await?;
        }
        Ok(())
    }

    async fn report(
        &mut self,
        row: &AnyRow,
        action: ResourceAction,
        outcome: &'static str,
    ) -> Result<(), sqlx::Error> {
        let found = any_in::<S>(self.writer.tx, rows::parse_column(row, "id")?).await?;
        self.note(action, found.definition.slug(), outcome);
        let event: ObjectEvent = S::event(&found, action);
        self.writer.reports.push(event);
        Ok(())
    }

    async fn save_file(
        &mut self,
        path: &str,
        stamp: &FileStamp,
        error: Option<&str>,
    ) -> Result<(), sqlx::Error> {
        let sql = "INSERT INTO resource_files (path, kind, tenant, stamp, error, modified_at) \
                   VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (path) DO UPDATE SET stamp = excluded.stamp, \
                   error = excluded.error, modified_at = excluded.modified_at";
        sqlx::query(sql)
            .bind(path)
            .bind(S::KIND.as_str())
            .bind(self.tenant.as_str())
            .bind(stamp.as_str())
            .bind(error)
            .bind(self.writer.inner.now().as_microsecond())
            .execute(&mut **self.writer.tx)
            .await?;
        Ok(())
    }

    fn note(&mut self, action: ResourceAction, slug: &str, outcome: &'static str) {
        let (tenant, action) = (self.tenant.clone(), S::KIND.audit_action(action));
        self.edits.push(FileEdit { tenant, action, target: slug.to_owned(), outcome });
    }
}

async fn known_files<'c, S: StoredKind>(
    executor: impl sqlx::Executor<'c, Database = Any>,
) -> Result<HashMap<String, KnownFile>, sqlx::Error> {
    let query = sqlx::query("SELECT path, stamp, error FROM resource_files WHERE kind = $1");
    let found = query.bind(S::KIND.as_str()).fetch_all(executor).await?;
    let known = found.iter().map(|row| {
        let stamp = FileStamp::from_text(row.try_get("stamp")?);
        let is_rejected = row.try_get::<Option<&str>, _>("error")?.is_some();
        Ok((row.try_get("path")?, KnownFile { stamp, is_rejected }))
    });
    known.collect()
}

/// Returns the stamps of the files that define resources of a kind, by their paths in the home folder. If they may refer
/// to the files beside them, their stamps change with these.
fn list<S: StoredKind>(home: &Path) -> io::Result<BTreeMap<String, FileStamp>> {
    let (mut found, mut beside, mut any_recent) = (BTreeMap::new(), BTreeMap::new(), false);
    let folder = S::KIND.plural();
    let entries = match std::fs::read_dir(home.join(folder)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_definition = ENDINGS.iter().any(|ending| name.ends_with(ending));
        if name.starts_with('.') || (!is_definition && !S::READS_FILES_BESIDE) {
            continue;
        }
        let metadata = match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => continue,
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let path = format!("{folder}/{name}");
        if is_definition {
            found.insert(path, FileStamp::of(&metadata));
        } else {
            any_recent |= is_recent(&metadata);
            beside.insert(path, FileStamp::of(&metadata));
        }
    }
    if !beside.is_empty() {
        let lines = beside.iter().map(|(path, stamp)| format!("{path}\n{}\n", stamp.as_str()));
        let suffix = hash::of_bytes(lines.collect::<String>().as_bytes());
        let suffix = if any_recent { format!("{suffix}{RECENT}") } else { suffix };
        for stamp in found.values_mut() {
            *stamp = FileStamp::from_text(format!("{} {suffix}", stamp.as_str()));
        }
    }
    Ok(found)
}

/// Reads files; one that has vanished meanwhile is left out, and missing in the next pass.
fn read_all<S: StoredKind>(home: &Path, paths: Vec<String>) -> io::Result<Vec<ReadFile<S>>> {
    // Before the files are read: one that changes afterwards has another stamp.
    let stamps = list::<S>(home)?;
    let mut read = Vec::with_capacity(paths.len());
    for path in paths {
        let listed = stamps.get(&path).cloned().unwrap_or_else(FileStamp::unknown);
        match read_text(&home.join(&path), SymbolicLinks::Reject) {
            Ok((text, metadata)) => {
                let is_same = listed.as_str().starts_with(FileStamp::of(&metadata).as_str());
                let is_settled = !is_recent(&metadata) && !listed.as_str().ends_with(RECENT);
                let stamp = if is_same && is_settled { listed } else { FileStamp::unknown() };
                let definitions = parse::<S>(home, &path, &text);
                read.push(ReadFile { path, stamp, definitions });
            }
            Err(ReadError::NotFound) => {}
            Err(ReadError::Unreadable { message, .. }) => {
                read.push(ReadFile { path, stamp: listed, definitions: Err(message) });
            }
        }
    }
    Ok(read)
}

fn parse<S: StoredKind>(home: &Path, path: &str, text: &str) -> Result<Vec<S>, String> {
    let file = path.rsplit_once('/').map_or(path, |(_, file)| file);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    match S::read_file(&home.join(path), stem, text) {
        Ok((definitions, warnings)) => {
            for warning in warnings {
                tracing::warn!(path, %warning, "definition warning");
            }
            Ok(definitions)
        }
        Err(problems) => Err(problem::join(&problems).replace('\0', " ")),
    }
}
