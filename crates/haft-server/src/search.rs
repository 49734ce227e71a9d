//! The search index of the server: follows the catalog and ranks the tools of a tenant.
//!
//! Changes are queued by id and indexed when somebody searches, or earlier by the background task of a server, so that a
//! write never waits for the index and a written tool is always found.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use haft_core::catalog::{Change, ChangeSink};
use haft_core::id::ToolId;
use haft_core::name::TenantId;
use haft_runtime::registry::{Entry, Registry};
use haft_search::{Document, Hit, Index};

/// How many tools are indexed before searches get their turn.
const BATCH: usize = 256;

/// How the words of a query are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ranking {
    /// One or two keywords by tier, longer queries in plain language.
    Keywords,
    /// Always as plain language.
    PlainLanguage,
}

/// A tool that was found.
pub(crate) struct Found {
    pub(crate) entry: Arc<Entry>,
    pub(crate) score: f32,
}

/// The indexes of all tenants.
pub(crate) struct ToolSearch {
    registry: Arc<Registry>,
    pending: Mutex<Vec<ToolId>>,
    indexes: RwLock<Indexes>,
}

#[derive(Default)]
struct Indexes {
    tenants: HashMap<TenantId, Index>,
    owners: HashMap<ToolId, TenantId>,
}

impl ToolSearch {
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        Self { registry, pending: Mutex::default(), indexes: RwLock::default() }
    }

    /// Returns the best tools of a tenant that `accept` lets through, best first.
    pub(crate) fn search(
        &self,
        tenant: &TenantId,
        (query, ranking): (&str, Ranking),
        limit: usize,
        accept: impl Fn(&Entry) -> bool,
    ) -> Vec<Found> {
        self.index_pending();
        let snapshot = self.registry.snapshot();
        let accept = |id| snapshot.tool(tenant, id).is_some_and(|entry| accept(entry));
        let indexes = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        let Some(index) = indexes.tenants.get(tenant) else { return Vec::new() };
        let hits = match ranking {
            Ranking::Keywords => index.search(query, limit, accept),
            Ranking::PlainLanguage => index.rank(query, limit, accept),
        };
        let found =
            |hit: Hit| Some(Found { entry: snapshot.tool(tenant, hit.id).cloned()?, score: hit.score });
        hits.into_iter().filter_map(found).collect()
    }

    /// Returns the stems that a query matches in the catalog of a tenant, for highlights.
    pub(crate) fn query_terms(&self, tenant: &TenantId, query: &str) -> Vec<String> {
        let indexes = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        indexes.tenants.get(tenant).map(|index| index.query_terms(query)).unwrap_or_default()
    }

    /// Indexes the queued changes. It blocks the thread: about 0.1 ms per tool.
    pub(crate) fn index_pending(&self) {
        loop {
            let batch: Vec<ToolId> = {
                let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
                let rest = pending.len().saturating_sub(BATCH);
                pending.split_off(rest)
            };
            if batch.is_empty() {
                return;
            }
            let snapshot = self.registry.snapshot();
            let mut indexes = self.indexes.write().unwrap_or_else(PoisonError::into_inner);
            for id in batch {
                match snapshot.entry(id) {
                    Some(entry) => indexes.put(entry),
                    None => indexes.remove(id),
                }
            }
        }
    }

    fn enqueue(&self, ids: impl IntoIterator<Item = ToolId>) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).extend(ids);
    }
}

impl Indexes {
    fn put(&mut self, entry: &Entry) {
        let tool = &entry.tool;
        self.owners.insert(tool.id, tool.tenant.clone());
        let index = self.tenants.entry(tool.tenant.clone()).or_default();
        index.put(tool.id, &Document::from(&*tool.spec), tool.modified_at);
    }

    fn remove(&mut self, id: ToolId) {
        let index = self.owners.remove(&id).and_then(|tenant| self.tenants.get_mut(&tenant));
        if let Some(index) = index {
            index.remove(id);
        }
    }
}

/// Passes changes on to the registry, then queues them for the index, which reads the registry.
impl ChangeSink for ToolSearch {
    fn apply(&self, changes: Vec<Change>) {
        let ids: Vec<ToolId> = changes.iter().filter_map(tool_id).collect();
        self.registry.apply(changes);
        self.enqueue(ids);
    }

    fn replace(&self, everything: Vec<Change>) {
        let ids: Vec<ToolId> = everything.iter().filter_map(tool_id).collect();
        self.registry.replace(everything);
        // What is not there any more leaves the index, too.
        let known: Vec<ToolId> = {
            let indexes = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
            indexes.owners.keys().copied().collect()
        };
        self.enqueue(known.into_iter().chain(ids));
    }
}

fn tool_id(change: &Change) -> Option<ToolId> {
    match change {
        Change::Tool(tool) => Some(tool.id),
        Change::ToolGone(id) => Some(*id),
        Change::Bundle(_) | Change::BundleGone(_) | Change::Unreadable(_) | Change::UnreadableGone(_) => None,
    }
}
