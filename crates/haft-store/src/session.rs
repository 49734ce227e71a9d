//! One change of the catalog: the turn of this process, the lock between processes, the transaction,
//! what to undo on disk if it fails, and what to announce when it is done.

use haft_core::catalog::{Change, StoreError};
use haft_core::id::{BundleId, ToolId};
use haft_core::name::{BundleSlug, TenantId};
use sqlx::{Any, Row as _, Transaction};
use tokio::sync::MutexGuard;

use crate::audit;
use crate::catalog::insert::Waiting;
use crate::engine::fault;
use crate::files::lock::HomeLock;
use crate::files::write::Undo;
use crate::rows;
use crate::store::{Inner, KnownBundle, KnownFile, State};

/// Above this many touched tools, one query for all of them is cheaper than one each.
const ONE_BY_ONE: usize = 200;

/// A change under way. Dropped without [`Session::finish`], it leaves nothing behind.
pub(crate) struct Session<'a> {
    // Dropped in this order: the files are put back before the locks are released.
    undo: Undo,
    pub(crate) tx: Transaction<'static, Any>,
    lock: Option<HomeLock>,
    pub(crate) state: MutexGuard<'a, State>,
    pub(crate) inner: &'a Inner,
    tools: Vec<ToolId>,
    bundles: Vec<BundleId>,
    paths: Vec<String>,
    learned: Vec<Lesson>,
    /// New tools that are not in the tables yet.
    pub(crate) waiting: Vec<Waiting>,
}

/// What this process will know when the change stands.
enum Lesson {
    File(String, Option<KnownFile>),
    Bundle((TenantId, BundleSlug), Option<KnownBundle>),
}

/// Moves the generation, so that other processes see that something changed. Every change passes here, so this is also
/// where its record goes along.
pub(crate) async fn bump(tx: &mut Transaction<'static, Any>, subject: &str) -> Result<i64, sqlx::Error> {
    audit::store_with(tx, subject).await?;
    let row = sqlx::query("UPDATE generation SET value = value + 1 WHERE one = 1 RETURNING value")
        .fetch_one(&mut **tx)
        .await?;
    row.try_get(0)
}

/// Names what a change is about.
fn subject(changes: &[Change]) -> String {
    let named = changes.iter().find_map(|change| match change {
        Change::Tool(tool) => Some(tool.qualified()),
        _ => None,
    });
    let bundle = || {
        changes.iter().find_map(|change| match change {
            Change::Bundle(bundle) => Some(bundle.slug.to_string()),
            _ => None,
        })
    };
    named.or_else(bundle).unwrap_or_default()
}

impl State {
    /// Takes the generation of our own change. A gap says that another process wrote in between; the watcher
    /// sees it and fetches that change.
    pub(crate) fn advance(&mut self, generation: i64) {
        if self.generation + 1 == generation {
            self.generation = generation;
        }
    }

    fn learn(&mut self, lessons: Vec<Lesson>) {
        for lesson in lessons {
            match lesson {
                Lesson::File(path, Some(known)) => drop(self.files.insert(path, known)),
                Lesson::File(path, None) => drop(self.files.remove(&path)),
                Lesson::Bundle(key, Some(known)) => drop(self.bundles.insert(key, known)),
                Lesson::Bundle(key, None) => drop(self.bundles.remove(&key)),
            }
        }
    }
}

impl Inner {
    /// Waits for its turn and begins.
    pub(crate) async fn session(&self) -> Result<Session<'_>, StoreError> {
        let state = self.state.lock().await;
        let lock = match &self.files {
            Some(files) => Some(files.lock().await?),
            None => None,
        };
        let tx = self.engine.begin_change().await.map_err(fault("begin a change of the catalog"))?;
        Ok(Session {
            undo: Undo::default(),
            tx,
            lock,
            state,
            inner: self,
            tools: Vec::new(),
            bundles: Vec::new(),
            paths: Vec::new(),
            learned: Vec::new(),
            waiting: Vec::new(),
        })
    }
}

impl Session<'_> {
    /// Says that a tool is new, different or gone.
    pub(crate) fn touch_tool(&mut self, id: ToolId) {
        if self.tools.len() > ONE_BY_ONE || !self.tools.contains(&id) {
            self.tools.push(id);
        }
    }

    /// Says that a bundle is new, different or gone.
    pub(crate) fn touch_bundle(&mut self, id: BundleId) {
        if !self.bundles.contains(&id) {
            self.bundles.push(id);
        }
    }

    /// Says that a file became unreadable, readable, or is gone.
    pub(crate) fn touch_path(&mut self, path: String) {
        if self.paths.len() > ONE_BY_ONE || !self.paths.contains(&path) {
            self.paths.push(path);
        }
    }

    /// Counts what is to be announced.
    pub(crate) fn touched(&self) -> usize {
        self.tools.len() + self.bundles.len() + self.paths.len()
    }

    /// Tells whether there is nothing to announce.
    pub(crate) fn is_untouched(&self) -> bool {
        self.touched() == 0
    }

    /// Remembers how to put the files back as they were.
    pub(crate) fn undo_with(&mut self, undo: Undo) {
        self.undo.append(undo);
    }

    /// Remembers a definition file, or forgets it, once the change stands.
    pub(crate) fn learn_file(&mut self, path: String, known: Option<KnownFile>) {
        self.learned.push(Lesson::File(path, known));
    }

    /// Remembers a bundle, or forgets it, once the change stands.
    pub(crate) fn learn_bundle(&mut self, tenant: &TenantId, slug: &BundleSlug, known: Option<KnownBundle>) {
        self.learned.push(Lesson::Bundle((tenant.clone(), slug.clone()), known));
    }

    /// Commits and announces. Where there is nothing to announce, others are not disturbed.
    pub(crate) async fn finish(mut self) -> Result<Vec<Change>, StoreError> {
        let doing = "store a change of the catalog";
        let quiet = self.is_untouched();
        if quiet && self.learned.is_empty() {
            return Ok(Vec::new());
        }
        self.insert_waiting().await.map_err(fault(doing))?;
        let changes = self.inner.mark(self.collect().await.map_err(fault(doing))?);
        let generation = if quiet { None } else { Some(self.bump(&changes).await.map_err(fault(doing))?) };
        let Session { mut undo, tx, lock, mut state, inner, learned, .. } = self;
        if let Err(error) = tx.commit().await {
            drop(undo);
            return Err(fault(doing)(error));
        }
        undo.forget();
        if let Some(generation) = generation {
            state.advance(generation);
        }
        state.learn(learned);
        drop(lock);
        inner.announce(&changes);
        drop(state);
        Ok(changes)
    }

    async fn bump(&mut self, changes: &[Change]) -> Result<i64, sqlx::Error> {
        for (kind, id) in self
            .bundles
            .iter()
            .map(|id| ('b', id.to_string()))
            .chain(self.tools.iter().map(|id| ('t', id.to_string())))
        {
            let payload = format!("{} {kind} {id}", self.inner.node);
            self.inner.engine.notify(&mut self.tx, &payload).await?;
        }
        bump(&mut self.tx, &subject(changes)).await
    }

    async fn collect(&mut self) -> Result<Vec<Change>, sqlx::Error> {
        let (mut changes, mut gone) = (Vec::new(), Vec::new());
        for id in self.bundles.clone() {
            match self.find_bundle(id).await? {
                Some(bundle) => changes.push(Change::Bundle(bundle)),
                None => gone.push(Change::BundleGone(id)),
            }
        }
        self.collect_tools(&mut changes).await?;
        for path in std::mem::take(&mut self.paths) {
            changes.push(match self.unreadable(&path).await? {
                Some(file) => Change::Unreadable(file),
                None => Change::UnreadableGone(path),
            });
        }
        changes.append(&mut gone);
        Ok(changes)
    }

    async fn collect_tools(&mut self, changes: &mut Vec<Change>) -> Result<(), sqlx::Error> {
        if self.tools.len() <= ONE_BY_ONE {
            for id in self.tools.clone() {
                changes.push(match self.find_tool(id).await? {
                    Some(tool) => Change::Tool(Box::new(tool)),
                    None => Change::ToolGone(id),
                });
            }
            return Ok(());
        }
        let rows = sqlx::query(rows::TOOL).fetch_all(&mut *self.tx).await?;
        let mut wanted: std::collections::HashSet<ToolId> = self.tools.iter().copied().collect();
        for row in &rows {
            let tool = rows::tool(row)?;
            if wanted.remove(&tool.id) {
                changes.push(Change::Tool(Box::new(tool)));
            }
        }
        changes.extend(wanted.into_iter().map(Change::ToolGone));
        Ok(())
    }
}
