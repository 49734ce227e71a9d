//! One change of the catalog: the locks within and between processes, the transaction, the undo steps on disk, and the
//! changes to announce.

use std::sync::Arc;

use haft_core::catalog::{Change, StoreError};
use haft_core::id::{BundleId, ToolId};
use haft_core::live::ObjectEvent;
use haft_core::name::{BundleSlug, TenantId};
use sqlx::{Any, Transaction};
use tokio::sync::MutexGuard;

use super::insert::PendingInsert;
use super::state::{CatalogState, FileIndex, IndexedBundle, IndexedFile};
use crate::audit::{self, FileEdit};
use crate::database::{self, Database, Generation};
use crate::engine::failed_to;
use crate::files::lock::HomeLock;
use crate::files::write::Undo;
use crate::notification::ChangeSet;
use crate::rows;

/// Above this number of changed tools, one query for all tools is cheaper than one each.
const BULK_THRESHOLD: usize = 200;

/// A change in progress. If it is dropped without [`Session::finish`], nothing changes.
pub(crate) struct Session<'a> {
    // Dropped in this order: files are restored before the locks are released.
    undo: Undo,
    pub(crate) tx: Transaction<'static, Any>,
    lock: Option<HomeLock>,
    generation: MutexGuard<'a, Generation>,
    pub(crate) index: MutexGuard<'a, FileIndex>,
    pub(crate) db: &'a Database,
    pub(super) catalog: &'a CatalogState,
    /// Who makes the change.
    pub(crate) actor: Option<Arc<str>>,
    tools: Vec<ToolId>,
    bundles: Vec<BundleId>,
    paths: Vec<String>,
    index_updates: Vec<IndexUpdate>,
    /// New tools that are not in the table yet.
    pub(crate) pending_inserts: Vec<PendingInsert>,
    /// The edits of definition files, for the audit log.
    file_edits: Vec<FileEdit>,
    /// The tenant whose data is removed.
    removed_tenant: Option<TenantId>,
    /// Whether policy rules change.
    policies: bool,
    /// Whether resources change, which are not announced one by one.
    others: bool,
    /// What is reported when the change is committed.
    reports: Vec<(TenantId, ObjectEvent)>,
    /// Whether a journal in the home folder undoes the changes of files after a crash.
    journaled: bool,
}

/// An update of [`FileIndex`] when the change is committed.
enum IndexUpdate {
    File(String, Option<IndexedFile>),
    Bundle((TenantId, BundleSlug), Option<IndexedBundle>),
}

/// Returns the name of the changed tool or bundle, for the audit record.
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

impl FileIndex {
    fn apply(&mut self, updates: Vec<IndexUpdate>) {
        for update in updates {
            match update {
                IndexUpdate::File(path, Some(indexed)) => drop(self.files.insert(path, indexed)),
                IndexUpdate::File(path, None) => drop(self.files.remove(&path)),
                IndexUpdate::Bundle(key, Some(indexed)) => drop(self.bundles.insert(key, indexed)),
                IndexUpdate::Bundle(key, None) => drop(self.bundles.remove(&key)),
            }
        }
    }
}

impl CatalogState {
    /// Acquires the locks and begins a change.
    pub(crate) async fn session(&self) -> Result<Session<'_>, StoreError> {
        let generation = self.db.generation.lock().await;
        let index = self.index.lock().await;
        let lock = match &self.db.files {
            Some(files) => Some(files.lock().await?),
            None => None,
        };
        let tx = self.db.engine.begin_change().await.map_err(failed_to("change the catalog"))?;
        let mut session = Session {
            undo: Undo::default(),
            tx,
            lock,
            generation,
            index,
            db: &self.db,
            catalog: self,
            actor: audit::current_actor(),
            tools: Vec::new(),
            bundles: Vec::new(),
            paths: Vec::new(),
            index_updates: Vec::new(),
            pending_inserts: Vec::new(),
            file_edits: Vec::new(),
            removed_tenant: None,
            policies: false,
            others: false,
            reports: Vec::new(),
            journaled: false,
        };
        session.undo_interrupted_change().await?;
        Ok(session)
    }
}

impl Session<'_> {
    /// Marks a tool as changed or removed.
    pub(crate) fn mark_tool_changed(&mut self, id: ToolId) {
        if self.tools.len() > BULK_THRESHOLD || !self.tools.contains(&id) {
            self.tools.push(id);
        }
    }

    /// Marks a bundle as changed or removed.
    pub(crate) fn mark_bundle_changed(&mut self, id: BundleId) {
        if !self.bundles.contains(&id) {
            self.bundles.push(id);
        }
    }

    /// Marks a file whose error changed.
    pub(crate) fn mark_path_changed(&mut self, path: String) {
        if self.paths.len() > BULK_THRESHOLD || !self.paths.contains(&path) {
            self.paths.push(path);
        }
    }

    /// Marks the tenant whose data is removed, tokens and credentials included.
    pub(crate) fn mark_tenant_removed(&mut self, id: TenantId) {
        self.removed_tenant = Some(id);
    }

    /// Marks the policy rules as changed.
    pub(crate) fn mark_policies_changed(&mut self) {
        self.policies = true;
    }

    /// Marks resources as changed.
    pub(crate) fn mark_resources_changed(&mut self) {
        self.others = true;
    }

    /// Reports an event when the change is committed.
    pub(crate) fn report_later(&mut self, tenant: &TenantId, event: ObjectEvent) {
        self.reports.push((tenant.clone(), event));
    }

    /// Removes the journal in the home folder when the change is committed or undone.
    pub(crate) fn set_journaled(&mut self) {
        self.journaled = true;
    }

    /// Notes an edit of a definition file, for the audit log.
    pub(crate) fn note_file_edit(&mut self, edit: FileEdit) {
        self.file_edits.push(edit);
    }

    /// Returns the number of changes to announce.
    pub(crate) fn count_marked(&self) -> usize {
        let flags = [self.removed_tenant.is_some(), self.policies, self.others];
        let flags = flags.into_iter().filter(|flag| *flag).count();
        self.tools.len() + self.bundles.len() + self.paths.len() + flags
    }

    /// Tells whether there is nothing to announce.
    pub(crate) fn is_unmarked(&self) -> bool {
        self.count_marked() == 0
    }

    /// Adds steps that run if the change fails.
    pub(crate) fn add_undo(&mut self, undo: Undo) {
        self.undo.append(undo);
    }

    /// Adds or removes a definition file in [`FileIndex`] when the change is committed.
    pub(crate) fn index_file(&mut self, path: String, indexed: Option<IndexedFile>) {
        self.index_updates.push(IndexUpdate::File(path, indexed));
    }

    /// Adds or removes a bundle in [`FileIndex`] when the change is committed.
    pub(crate) fn index_bundle(
        &mut self,
        tenant: &TenantId,
        slug: &BundleSlug,
        indexed: Option<IndexedBundle>,
    ) {
        self.index_updates.push(IndexUpdate::Bundle((tenant.clone(), slug.clone()), indexed));
    }

    /// Commits and announces the change. Without changes to announce, the generation stays.
    pub(crate) async fn finish(mut self) -> Result<Vec<Change>, StoreError> {
        let action = "store a change of the catalog";
        let silent = self.is_unmarked();
        if silent && self.index_updates.is_empty() {
            return Ok(Vec::new());
        }
        self.flush_inserts().await.map_err(failed_to(action))?;
        let changes = self.catalog.mark_missing_built_ins(self.collect().await.map_err(failed_to(action))?);
        let edits = std::mem::take(&mut self.file_edits);
        audit::store_file_edits(&mut self.tx, edits, || self.db.now()).await.map_err(failed_to(action))?;
        let generation = if silent {
            None
        } else {
            Some(self.advance_generation(&changes).await.map_err(failed_to(action))?)
        };
        let Session {
            mut undo,
            tx,
            lock,
            generation: mut known,
            mut index,
            db,
            catalog,
            index_updates,
            policies,
            reports,
            journaled,
            ..
        } = self;
        if let Err(error) = tx.commit().await {
            drop(undo);
            return Err(failed_to(action)(error));
        }
        undo.disarm();
        if journaled {
            catalog.remove_journal().await;
        }
        if let Some(generation) = generation {
            known.advance(generation);
        }
        index.apply(index_updates);
        drop(lock);
        catalog.announce(&changes);
        for (tenant, event) in reports {
            db.report_to_tenant(&tenant, event);
        }
        if policies {
            catalog.policies.signal_change();
        }
        drop(index);
        drop(known);
        Ok(changes)
    }

    async fn advance_generation(&mut self, changes: &[Change]) -> Result<i64, sqlx::Error> {
        let changed = ChangeSet {
            bundles: self.bundles.iter().copied().collect(),
            tools: self.tools.iter().copied().collect(),
            tokens: self.removed_tenant.is_some(),
            credentials: self.removed_tenant.is_some(),
            policies: self.policies,
            ..ChangeSet::default()
        };
        self.db.engine.notify(&mut self.tx, &self.db.node, &changed).await?;
        let subject = self.removed_tenant.as_ref().map_or_else(|| subject(changes), TenantId::to_string);
        database::advance_generation(&mut self.tx, &subject).await
    }

    async fn collect(&mut self) -> Result<Vec<Change>, sqlx::Error> {
        let (mut changes, mut removed) = (Vec::new(), Vec::new());
        for id in self.bundles.clone() {
            match self.find_bundle(id).await? {
                Some(bundle) => changes.push(Change::Bundle(bundle)),
                None => removed.push(Change::BundleGone(id)),
            }
        }
        self.collect_tools(&mut changes).await?;
        for path in std::mem::take(&mut self.paths) {
            changes.push(match self.unreadable(&path).await? {
                Some(file) => Change::Unreadable(file),
                None => Change::UnreadableGone(path),
            });
        }
        changes.append(&mut removed);
        Ok(changes)
    }

    async fn collect_tools(&mut self, changes: &mut Vec<Change>) -> Result<(), sqlx::Error> {
        if self.tools.len() <= BULK_THRESHOLD {
            for id in self.tools.clone() {
                changes.push(match self.find_tool(id).await? {
                    Some(tool) => Change::Tool(Box::new(tool)),
                    None => Change::ToolGone(id),
                });
            }
            return Ok(());
        }
        let rows = sqlx::query(rows::TOOL).fetch_all(&mut *self.tx).await?;
        let mut remaining: std::collections::HashSet<ToolId> = self.tools.iter().copied().collect();
        for row in &rows {
            let tool = rows::tool(row)?;
            if remaining.remove(&tool.id) {
                changes.push(Change::Tool(Box::new(tool)));
            }
        }
        changes.extend(remaining.into_iter().map(Change::ToolGone));
        Ok(())
    }
}
