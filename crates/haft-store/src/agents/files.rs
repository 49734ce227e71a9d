//! Agents that are defined by files: `agents/*.yaml` in the home folder, for the default tenant.
//!
//! Stat stamps show which files changed. A file may define several agents. If two files define the same slug, the
//! indexed one wins, of two new ones the first by path; the other is reported. A file that becomes invalid keeps its
//! agents as they were, with the error. If a file vanishes, its agents are hidden, and come back with their revisions
//! if it returns in time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;

use haft_core::Timestamp;
use haft_core::agent::AgentDefinition;
use haft_core::bundle::REAP_AFTER_HOURS;
use haft_core::catalog::StoreError;
use haft_core::id::AgentId;
use haft_core::live::{AgentAction, AgentEvent, ObjectEvent};
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::problem;
use haft_core::tool::Status;
use haft_definition::folder::{FileStamp, ReadError, SymbolicLinks, read_text};
use jiff::SignedDuration;
use sqlx::any::AnyRow;
use sqlx::{Any, Row as _, Transaction};

use super::read::NAMES;
use super::revisions::NewRevision;
use super::write::AgentInsert;
use crate::audit::{FILE_ACTOR, FileEdit, store_file_edits};
use crate::engine::failed_to;
use crate::files::layout::AGENTS;
use crate::files::stamp::is_recent;
use crate::pipelines::count_change;
use crate::rows;
use crate::store::{Inner, Store};
use crate::time;

const INDEX: &str = "index the files of agents";
const LIST: &str = "list the files of agents";
const ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];

/// A file in `agents/` that cannot be used, or not wholly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFileError {
    /// The file, relative to the home folder.
    pub path: String,
    /// Why, with the line if known.
    pub error: String,
    /// When the file was last read.
    pub modified_at: Timestamp,
}

/// Which files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentFileScope {
    Changed,
    All,
}

/// The result of a sync.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AgentSync {
    pub(crate) changed: usize,
    /// A file changed so recently that it has to be read again soon.
    pub(crate) repeat: bool,
}

impl Store {
    /// Returns the files of agents that cannot be used, by path.
    pub async fn agent_file_errors(&self, tenant: &TenantId) -> Result<Vec<AgentFileError>, StoreError> {
        let sql = "SELECT path, error, modified_at FROM agent_files \
                   WHERE tenant = $1 AND error IS NOT NULL ORDER BY path";
        let found = sqlx::query(sql).bind(tenant.as_str()).fetch_all(&self.inner.engine.pool).await;
        let read = found.map_err(failed_to(LIST))?.into_iter().map(|row| {
            Ok(AgentFileError {
                path: row.try_get("path")?,
                error: row.try_get("error")?,
                modified_at: rows::timestamp(&row, "modified_at")?,
            })
        });
        read.collect::<Result<_, sqlx::Error>>().map_err(failed_to(LIST))
    }
}

/// The agents of a file, or why they cannot be used.
struct ReadAgents {
    path: String,
    stamp: FileStamp,
    agents: Result<Vec<AgentDefinition>, String>,
}

/// A file when it was last read.
struct KnownFile {
    stamp: FileStamp,
    is_rejected: bool,
}

/// An agent with a slug, hidden ones included.
struct StoredAgent {
    id: AgentId,
    path: Option<String>,
    is_hidden: bool,
    has_error: bool,
    status: Status,
    enabled: bool,
}

impl Inner {
    /// Brings the agents up to date with their files. Costs one listing and one query if nothing changed.
    pub(crate) async fn sync_agents(&self, scope: AgentFileScope) -> Result<AgentSync, StoreError> {
        let Some(files) = &self.files else { return Ok(AgentSync::default()) };
        let listed = files.run(LIST.into(), list).await?;
        let known = known_files(&self.engine.pool).await.map_err(failed_to(INDEX))?;
        let is_same = listed.len() == known.len()
            && listed.iter().all(|(path, stamp)| known.get(path).is_some_and(|known| known.stamp == *stamp));
        if is_same && scope == AgentFileScope::Changed {
            return Ok(AgentSync::default());
        }
        let mut tx = self.engine.begin_change().await.map_err(failed_to(INDEX))?;
        // Listed again under the lock: another process may have read newer files meanwhile.
        let listed = files.run(LIST.into(), list).await?;
        let known = known_files(&mut *tx).await.map_err(failed_to(INDEX))?;
        let missing: Vec<String> = known.keys().filter(|path| !listed.contains_key(*path)).cloned().collect();
        let differs = |path: &String, stamp: &FileStamp| {
            scope == AgentFileScope::All || known.get(path).is_none_or(|known| known.stamp != *stamp)
        };
        let any_change = !missing.is_empty() || listed.iter().any(|(path, stamp)| differs(path, stamp));
        // After any change, a file that was rejected because of a slug may be the only one now.
        let rejected = |path: &String| any_change && known.get(path).is_some_and(|known| known.is_rejected);
        let due = listed.into_iter().filter(|(path, stamp)| differs(path, stamp) || rejected(path));
        let due: Vec<String> = due.map(|(path, _)| path).collect();
        let read = files.run("read the files of agents".into(), move |home| Ok(read_all(home, due))).await?;
        let repeat = read.iter().any(|file| file.stamp.is_unknown());
        let mut pass = FilePass::new(self, &read, missing);
        pass.apply(&mut tx, read).await.map_err(failed_to(INDEX))?;
        let changed = pass.edits.len();
        store_file_edits(&mut tx, pass.edits, self).await.map_err(failed_to(INDEX))?;
        if changed > 0 {
            count_change(&mut tx, NAMES).await.map_err(failed_to(INDEX))?;
        }
        tx.commit().await.map_err(failed_to(INDEX))?;
        for event in pass.events {
            self.report_to_tenant(&pass.tenant, ObjectEvent::Agent(event));
        }
        Ok(AgentSync { changed, repeat })
    }

    /// Removes hidden agents whose file did not come back in time.
    pub(crate) async fn reap_hidden_agents(&self) -> Result<(), sqlx::Error> {
        let latest = self.now() - SignedDuration::from_hours(REAP_AFTER_HOURS);
        let query = sqlx::query("DELETE FROM agents WHERE gone_at <= $1").bind(latest.as_microsecond());
        query.execute(&self.engine.pool).await?;
        Ok(())
    }
}

/// One pass over changed files.
struct FilePass<'a> {
    inner: &'a Inner,
    tenant: TenantId,
    /// The slugs that each file defines now; a file that is not read, or is invalid, keeps its agents.
    defined: HashMap<String, HashSet<String>>,
    missing: Vec<String>,
    /// Agents that a file of this pass defines.
    claimed: HashSet<AgentId>,
    edits: Vec<FileEdit>,
    events: Vec<AgentEvent>,
}

impl<'a> FilePass<'a> {
    fn new(inner: &'a Inner, read: &[ReadAgents], missing: Vec<String>) -> Self {
        let mut defined = HashMap::new();
        for file in read {
            if let Ok(agents) = &file.agents {
                let slugs = agents.iter().map(|agent| agent.slug.to_string()).collect();
                defined.insert(file.path.clone(), slugs);
            }
        }
        let tenant = TenantId::default_tenant();
        Self {
            inner,
            tenant,
            defined,
            missing,
            claimed: HashSet::new(),
            edits: Vec::new(),
            events: Vec::new(),
        }
    }

    async fn apply(
        &mut self,
        tx: &mut Transaction<'static, Any>,
        read: Vec<ReadAgents>,
    ) -> Result<(), sqlx::Error> {
        for ReadAgents { path, stamp, agents } in read {
            let error = match agents {
                Ok(agents) => self.apply_agents(tx, &path, agents).await?,
                Err(error) => {
                    self.mark_invalid(tx, &path, &error).await?;
                    Some(error)
                }
            };
            if let Some(error) = &error {
                tracing::warn!(path, error, "cannot use a file of agents");
            }
            self.save_file(tx, &path, &stamp, error.as_deref()).await?;
        }
        for path in std::mem::take(&mut self.missing) {
            self.hide_agents(tx, &path, &HashSet::new()).await?;
            sqlx::query("DELETE FROM agent_files WHERE path = $1").bind(&path).execute(&mut **tx).await?;
        }
        Ok(())
    }

    /// Applies the agents of a valid file; returns why some of them cannot be used.
    async fn apply_agents(
        &mut self,
        tx: &mut Transaction<'static, Any>,
        path: &str,
        agents: Vec<AgentDefinition>,
    ) -> Result<Option<String>, sqlx::Error> {
        let mut errors = Vec::new();
        for definition in &agents {
            let slug = definition.slug.as_str();
            match self.stored(tx, slug).await? {
                None => self.create(tx, path, definition).await?,
                Some(stored) if self.claimed.contains(&stored.id) => {
                    let other = stored.path.as_deref().unwrap_or_default();
                    errors.push(format!("`{slug}` is already defined by `{other}`; change one of the slugs"));
                }
                Some(stored) => match &stored.path {
                    Some(other) if other != path && !stored.is_hidden && !self.has_released(other, slug) => {
                        errors.push(format!(
                            "`{slug}` is already defined by `{other}`; change one of the slugs"
                        ));
                    }
                    None => errors.push(format!(
                        "an agent `{slug}` is already stored without a file; delete it or change the slug"
                    )),
                    Some(_) => self.update(tx, &stored, path, definition).await?,
                },
            }
        }
        let slugs = agents.iter().map(|agent| agent.slug.to_string()).collect();
        self.hide_agents(tx, path, &slugs).await?;
        Ok((!errors.is_empty()).then(|| errors.join("; ")))
    }

    /// Tells whether another file no longer defines a slug.
    fn has_released(&self, other: &str, slug: &str) -> bool {
        self.missing.iter().any(|path| path == other)
            || self.defined.get(other).is_some_and(|slugs| !slugs.contains(slug))
    }

    async fn stored(
        &self,
        tx: &mut Transaction<'static, Any>,
        slug: &str,
    ) -> Result<Option<StoredAgent>, sqlx::Error> {
        let sql =
            "SELECT id, path, gone_at, error, status, enabled FROM agents WHERE tenant = $1 AND slug = $2";
        let found = sqlx::query(sql).bind(self.tenant.as_str()).bind(slug).fetch_optional(&mut **tx).await?;
        found
            .map(|row| {
                Ok(StoredAgent {
                    id: rows::parse_column(&row, "id")?,
                    path: row.try_get("path")?,
                    is_hidden: row.try_get::<Option<i64>, _>("gone_at")?.is_some(),
                    has_error: row.try_get::<Option<&str>, _>("error")?.is_some(),
                    status: status(&row)?,
                    enabled: rows::boolean(&row, "enabled")?,
                })
            })
            .transpose()
    }

    async fn create(
        &mut self,
        tx: &mut Transaction<'static, Any>,
        path: &str,
        definition: &AgentDefinition,
    ) -> Result<(), sqlx::Error> {
        let id = AgentId(time::new_id(&*self.inner.clock));
        let revision = NewRevision::new(definition, FILE_ACTOR, self.inner.now())?;
        AgentInsert { id, tenant: &self.tenant, revision: &revision, path: Some(path) }.insert(tx).await?;
        self.claimed.insert(id);
        self.note("agent.create", definition.slug.as_str(), "success");
        self.events.push(AgentEvent {
            change: AgentAction::Created,
            id,
            agent: definition.slug.to_string(),
            status: Status::Draft,
            enabled: true,
        });
        Ok(())
    }

    async fn update(
        &mut self,
        tx: &mut Transaction<'static, Any>,
        stored: &StoredAgent,
        path: &str,
        definition: &AgentDefinition,
    ) -> Result<(), sqlx::Error> {
        let revision = NewRevision::new(definition, FILE_ACTOR, self.inner.now())?;
        let appended = revision.append(tx, stored.id).await?;
        let sql = "UPDATE agents SET path = $1, error = NULL, gone_at = NULL WHERE id = $2";
        sqlx::query(sql).bind(path).bind(stored.id.to_string()).execute(&mut **tx).await?;
        self.claimed.insert(stored.id);
        if appended || stored.is_hidden || stored.has_error {
            self.note("agent.update", definition.slug.as_str(), "success");
            self.events.push(AgentEvent {
                // A hidden agent is deleted as far as anybody can see.
                change: if stored.is_hidden { AgentAction::Created } else { AgentAction::Updated },
                id: stored.id,
                agent: definition.slug.to_string(),
                status: stored.status,
                enabled: stored.enabled,
            });
        }
        Ok(())
    }

    /// Keeps the agents of an invalid file as they were, with the error.
    async fn mark_invalid(
        &mut self,
        tx: &mut Transaction<'static, Any>,
        path: &str,
        error: &str,
    ) -> Result<(), sqlx::Error> {
        let sql = "UPDATE agents SET error = $1 WHERE path = $2 AND gone_at IS NULL AND COALESCE(error, '') <> $1 \
                   RETURNING id, slug, status, enabled";
        for row in sqlx::query(sql).bind(error).bind(path).fetch_all(&mut **tx).await? {
            self.note("agent.update", row.try_get("slug")?, ErrorCode::InvalidDefinition.as_str());
            self.events.push(event(&row, AgentAction::Updated)?);
        }
        Ok(())
    }

    /// Hides the agents of a file that it no longer defines.
    async fn hide_agents(
        &mut self,
        tx: &mut Transaction<'static, Any>,
        path: &str,
        kept: &HashSet<String>,
    ) -> Result<(), sqlx::Error> {
        let sql = "SELECT id, slug, status, enabled FROM agents WHERE path = $1 AND gone_at IS NULL";
        for row in sqlx::query(sql).bind(path).fetch_all(&mut **tx).await? {
            let slug: &str = row.try_get("slug")?;
            if kept.contains(slug) {
                continue;
            }
            let sql = "UPDATE agents SET gone_at = $1 WHERE id = $2";
            let now = self.inner.now().as_microsecond();
            sqlx::query(sql).bind(now).bind(row.try_get::<&str, _>("id")?).execute(&mut **tx).await?;
            self.note("agent.delete", slug, "success");
            self.events.push(event(&row, AgentAction::Deleted)?);
        }
        Ok(())
    }

    async fn save_file(
        &self,
        tx: &mut Transaction<'static, Any>,
        path: &str,
        stamp: &FileStamp,
        error: Option<&str>,
    ) -> Result<(), sqlx::Error> {
        let sql = "INSERT INTO agent_files (path, tenant, stamp, error, modified_at) VALUES ($1, $2, $3, $4, $5) \
                   ON CONFLICT (path) DO UPDATE SET stamp = excluded.stamp, error = excluded.error, \
                   modified_at = excluded.modified_at";
        sqlx::query(sql)
            .bind(path)
            .bind(self.tenant.as_str())
            .bind(stamp.as_str())
            .bind(error)
            .bind(self.inner.now().as_microsecond())
            .execute(&mut **tx)
            .await?;
        Ok(())
    }

    fn note(&mut self, action: &'static str, slug: &str, outcome: &'static str) {
        self.edits.push(FileEdit { tenant: self.tenant.clone(), action, target: slug.to_owned(), outcome });
    }
}

/// Returns the report of an agent from its id, slug, status and switch.
fn event(row: &AnyRow, change: AgentAction) -> Result<AgentEvent, sqlx::Error> {
    Ok(AgentEvent {
        change,
        id: rows::parse_column(row, "id")?,
        agent: row.try_get("slug")?,
        status: status(row)?,
        enabled: rows::boolean(row, "enabled")?,
    })
}

fn status(row: &AnyRow) -> Result<Status, sqlx::Error> {
    let status: &str = row.try_get("status")?;
    Status::parse(status).ok_or_else(|| sqlx::Error::Decode(format!("unknown status `{status}`").into()))
}

async fn known_files<'c>(
    executor: impl sqlx::Executor<'c, Database = Any>,
) -> Result<HashMap<String, KnownFile>, sqlx::Error> {
    let found = sqlx::query("SELECT path, stamp, error FROM agent_files").fetch_all(executor).await?;
    let known = found.iter().map(|row| {
        let stamp = FileStamp::from_text(row.try_get("stamp")?);
        let is_rejected = row.try_get::<Option<&str>, _>("error")?.is_some();
        Ok((row.try_get("path")?, KnownFile { stamp, is_rejected }))
    });
    known.collect()
}

/// Lists the files of agents, relative to the home folder, sorted by path.
fn list(home: &Path) -> io::Result<BTreeMap<String, FileStamp>> {
    let mut found = BTreeMap::new();
    let entries = match std::fs::read_dir(home.join(AGENTS)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with('.') || !ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            continue;
        }
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(metadata) => drop(found.insert(format!("{AGENTS}/{name}"), FileStamp::of(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Reads files; one that has vanished meanwhile is left out, and missing in the next pass.
fn read_all(home: &Path, paths: Vec<String>) -> Vec<ReadAgents> {
    let mut read = Vec::with_capacity(paths.len());
    for path in paths {
        match read_text(&home.join(&path), SymbolicLinks::Reject) {
            Ok((text, metadata)) => {
                let stamp =
                    if is_recent(&metadata) { FileStamp::unknown() } else { FileStamp::of(&metadata) };
                let agents = parse(&path, &text);
                read.push(ReadAgents { path, stamp, agents });
            }
            Err(ReadError::NotFound) => {}
            Err(ReadError::Unreadable { message, .. }) => {
                let stamp = std::fs::symlink_metadata(home.join(&path))
                    .map_or_else(|_| FileStamp::unknown(), |metadata| FileStamp::of(&metadata));
                read.push(ReadAgents { agents: Err(message), path, stamp });
            }
        }
    }
    read
}

fn parse(path: &str, text: &str) -> Result<Vec<AgentDefinition>, String> {
    let file = path.rsplit_once('/').map_or(path, |(_, file)| file);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    match haft_definition::agent::read(text, stem) {
        Ok(agents) => {
            for warning in agents.iter().flat_map(|agent| &agent.warnings) {
                tracing::warn!(path, %warning, "definition warning");
            }
            Ok(agents.into_iter().map(|agent| agent.definition).collect())
        }
        Err(problems) => Err(problem::join(&problems).replace('\0', " ")),
    }
}
