//! Search over the tools of a set.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::id::ToolId;
use haft_core::name::TenantId;
use haft_runtime::registry::{Entry, Snapshot};
use haft_search::{Document, Hit, Index};

/// A tool that fits a query, as [`Tools::search`](crate::Tools::search) returns it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SearchHit {
    /// The name of the tool.
    pub name: String,
    /// What the tool does.
    pub description: String,
    /// How well it fits; higher is better. Comparable within one query only.
    pub score: f32,
}

/// The index of a set. It is built on the first search and then follows the registry.
#[derive(Default)]
pub(crate) struct SearchIndex(Mutex<State>);

#[derive(Default)]
struct State {
    index: Index,
    /// The snapshot that is indexed.
    snapshot: Option<Arc<Snapshot>>,
    /// The indexed tools; an entry is replaced whenever its tool changes.
    entries: HashMap<ToolId, Arc<Entry>>,
}

impl SearchIndex {
    /// Returns the best tools of a snapshot that `accept` lets through.
    pub(crate) fn search(
        &self,
        snapshot: &Arc<Snapshot>,
        tenant: &TenantId,
        (query, limit): (&str, usize),
        accept: impl Fn(&Entry) -> bool,
    ) -> Vec<(Arc<Entry>, Hit)> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.follow(snapshot, tenant);
        let State { index, entries, .. } = &*state;
        let hits = index.rank(query, limit, |id| entries.get(&id).is_some_and(|entry| accept(entry)));
        hits.into_iter().filter_map(|hit| Some((Arc::clone(entries.get(&hit.id)?), hit))).collect()
    }
}

impl State {
    /// Indexes the tools that differ from those of the indexed snapshot.
    fn follow(&mut self, snapshot: &Arc<Snapshot>, tenant: &TenantId) {
        if self.snapshot.as_ref().is_some_and(|indexed| Arc::ptr_eq(indexed, snapshot)) {
            return;
        }
        let Self { index, entries, .. } = self;
        entries.retain(|id, _| {
            let is_there = snapshot.tool(tenant, *id).is_some();
            if !is_there {
                index.remove(*id);
            }
            is_there
        });
        for entry in snapshot.tools(tenant) {
            let tool = &entry.tool;
            if entries.get(&tool.id).is_none_or(|indexed| !Arc::ptr_eq(indexed, entry)) {
                index.put(tool.id, &Document::from(&*tool.spec), tool.modified_at);
                entries.insert(tool.id, Arc::clone(entry));
            }
        }
        self.snapshot = Some(Arc::clone(snapshot));
    }
}
