//! The search index of the server: follows the catalog and ranks the tools of a tenant.
//!
//! Changes are queued by id, so that a write never waits for the index. They are indexed on a blocking thread, one at a
//! time, which the background task of a server or the next search starts. A search waits for the changes before it, so
//! that a written tool is found.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use haft_core::catalog::{Change, ChangeSink};
use haft_core::id::ToolId;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_runtime::registry::{Entry, Registry, Snapshot};
use haft_search::{Document, Hit, Index, Matcher, PreparedDocument, Union};
use tokio::sync::{Semaphore, watch};

use crate::error::ServiceError;

/// How many tools are indexed before searches get their turn.
const BATCH: usize = 64;
/// How long a search waits for changes to be indexed. Then it ranks what is there.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The number of queued ids above which those of tools that came and went are dropped.
const MIN_COMPACTION: usize = 10_000;

/// How the words of a query are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranking {
    /// One or two keywords by tier, longer queries in plain language.
    Keywords,
    /// Always as plain language.
    PlainLanguage,
}

/// A query for the tools of a tenant.
#[derive(Debug)]
pub struct SearchQuery {
    pub tenant: TenantId,
    pub text: String,
    pub ranking: Ranking,
    /// The most tools that are found.
    pub limit: usize,
    /// Which of them are returned.
    pub page: Range<usize>,
}

/// A page of the tools that fit a query, best first.
pub struct Ranked {
    pub tools: Vec<RankedEntry>,
    /// The number of tools on all pages.
    pub total: usize,
    /// Marks the words that the query matches.
    pub matcher: Matcher,
}

/// A tool that was found.
pub struct RankedEntry {
    pub entry: Arc<Entry>,
    pub score: f32,
}

/// The indexes of all tools.
pub struct ToolSearch {
    registry: Arc<Registry>,
    pending: Mutex<Pending>,
    /// Announces changes to the background task.
    queued: watch::Sender<()>,
    /// The number of the last change that is indexed.
    indexed: watch::Sender<u64>,
    /// Limits how many queries are ranked at the same time; more would only slow each other down.
    ranking: Arc<Semaphore>,
    indexes: RwLock<Indexes>,
}

/// The changes that are not indexed yet.
#[derive(Default)]
struct Pending {
    ids: HashSet<ToolId>,
    /// The number of changes so far.
    changes: u64,
    is_indexing: bool,
    /// The number of ids at which the next compaction takes place.
    compact_at: usize,
}

#[derive(Default)]
struct Indexes {
    /// By owner. The global tools have an index of their own, however many tenants there are.
    by_owner: HashMap<TenantId, Index>,
    owners: HashMap<ToolId, TenantId>,
}

impl ToolSearch {
    pub fn new(registry: Arc<Registry>) -> Self {
        let parallel = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            registry,
            pending: Mutex::default(),
            queued: watch::Sender::default(),
            indexed: watch::Sender::default(),
            ranking: Arc::new(Semaphore::new(parallel)),
            indexes: RwLock::default(),
        }
    }

    /// Returns the best tools of a tenant that `accept` lets through.
    pub async fn search(
        self: &Arc<Self>,
        query: SearchQuery,
        accept: impl Fn(&Snapshot, &Entry) -> bool + Send + 'static,
    ) -> Result<Ranked, ServiceError> {
        self.catch_up().await;
        let permit = Arc::clone(&self.ranking).acquire_owned().await;
        let search = Arc::clone(self);
        // In a large catalog ranking takes milliseconds, too long for a thread that handles requests.
        let ranked = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            search.rank(&query, accept)
        });
        ranked.await.map_err(|error| {
            tracing::error!(%error, "tool search failed");
            ServiceError::new(ErrorCode::Internal, "tool search failed; the log of the server has the reason")
        })
    }

    /// Indexes changes as they come, so that no search has to wait for it.
    pub async fn follow(self: &Arc<Self>) {
        let mut queued = self.queued.subscribe();
        loop {
            self.start_indexing();
            if queued.changed().await.is_err() {
                return;
            }
        }
    }

    fn rank(&self, query: &SearchQuery, accept: impl Fn(&Snapshot, &Entry) -> bool) -> Ranked {
        let SearchQuery { tenant, text, ranking, limit, page } = query;
        let snapshot = self.registry.snapshot();
        let accept = |id| snapshot.tool(tenant, id).is_some_and(|entry| accept(&snapshot, entry));
        let indexes = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        let union = indexes.of(tenant);
        let hits = match ranking {
            Ranking::Keywords => union.search(text, *limit, accept),
            Ranking::PlainLanguage => union.rank(text, *limit, accept),
        };
        let found =
            |hit: Hit| Some(RankedEntry { entry: snapshot.tool(tenant, hit.id).cloned()?, score: hit.score });
        let total = hits.len();
        let selected = hits.into_iter().skip(page.start).take(page.len());
        Ranked { tools: selected.filter_map(found).collect(), total, matcher: union.matcher(text) }
    }

    /// Waits until the changes so far are indexed, at most [`MAX_WAIT`].
    async fn catch_up(self: &Arc<Self>) {
        let mut indexed = self.indexed.subscribe();
        let changes = self.start_indexing();
        if tokio::time::timeout(MAX_WAIT, indexed.wait_for(|number| *number >= changes)).await.is_err() {
            tracing::warn!("a search did not wait for the index any longer: newly added tools are missing");
        }
    }

    /// Starts a thread that indexes the queued changes, unless one does already; returns the number of changes so far.
    fn start_indexing(self: &Arc<Self>) -> u64 {
        let mut pending = self.pending();
        if !pending.ids.is_empty() && !pending.is_indexing {
            pending.is_indexing = true;
            let search = Arc::clone(self);
            tokio::task::spawn_blocking(move || search.index_pending());
        }
        pending.changes
    }

    /// Indexes the queued changes: about 0.1 ms per tool.
    fn index_pending(&self) {
        let _guard = IndexingGuard(self);
        loop {
            let (ids, changes) = {
                let mut pending = self.pending();
                if pending.ids.is_empty() {
                    pending.is_indexing = false;
                    return;
                }
                (std::mem::take(&mut pending.ids), pending.changes)
            };
            let ids: Vec<ToolId> = ids.into_iter().collect();
            for batch in ids.chunks(BATCH) {
                self.index_batch(batch);
                std::thread::yield_now();
            }
            self.indexed.send_replace(changes);
        }
    }

    fn index_batch(&self, batch: &[ToolId]) {
        let snapshot = self.registry.snapshot();
        let prepare = |entry: &Arc<Entry>| {
            let document = PreparedDocument::from(&Document::from(&*entry.tool.spec));
            (Arc::clone(entry), document)
        };
        let batch: Vec<_> = batch.iter().map(|id| (*id, snapshot.entry(*id).map(prepare))).collect();
        let mut indexes = self.indexes.write().unwrap_or_else(PoisonError::into_inner);
        // A tool may have been deleted since.
        let snapshot = self.registry.snapshot();
        for (id, prepared) in batch {
            match prepared.filter(|_| snapshot.entry(id).is_some()) {
                Some((entry, document)) => indexes.put(&entry, document),
                None => indexes.remove(id),
            }
        }
    }

    fn enqueue(&self, ids: impl IntoIterator<Item = ToolId>) {
        let mut pending = self.pending();
        pending.ids.extend(ids);
        pending.changes += 1;
        if pending.ids.len() > pending.compact_at.max(MIN_COMPACTION) {
            // Without a background task, the first search builds the index.
            let snapshot = self.registry.snapshot();
            let indexes = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
            pending.ids.retain(|id| snapshot.entry(*id).is_some() || indexes.owners.contains_key(id));
            pending.compact_at = 2 * pending.ids.len();
        }
        drop(pending);
        self.queued.send_replace(());
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the next search start indexing again if this thread panics.
struct IndexingGuard<'a>(&'a ToolSearch);

impl Drop for IndexingGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.pending().is_indexing = false;
        }
    }
}

impl Indexes {
    /// Returns the tools that a tenant sees.
    fn of(&self, tenant: &TenantId) -> Union<'_> {
        let global = self.by_owner.get(&TenantId::global());
        Union::new(self.by_owner.get(tenant).into_iter().chain(global))
    }

    fn put(&mut self, entry: &Entry, document: PreparedDocument) {
        let tool = &entry.tool;
        self.owners.insert(tool.id, tool.tenant.clone());
        let index = self.by_owner.entry(tool.tenant.clone()).or_default();
        index.put_prepared(tool.id, document, tool.modified_at);
    }

    fn remove(&mut self, id: ToolId) {
        let Some(tenant) = self.owners.remove(&id) else { return };
        if let Some(index) = self.by_owner.get_mut(&tenant) {
            index.remove(id);
            if index.is_empty() {
                self.by_owner.remove(&tenant);
            }
        }
    }
}

/// Passes changes on to the registry, then queues them for the index, which reads the registry.
impl ChangeSink for ToolSearch {
    fn apply(&self, changes: Vec<Change>) {
        let ids: Vec<ToolId> = changes.iter().filter_map(tool_id).collect();
        self.registry.apply(changes);
        if !ids.is_empty() {
            self.enqueue(ids);
        }
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
