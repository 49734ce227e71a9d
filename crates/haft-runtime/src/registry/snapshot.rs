//! The registry: persistent maps, so that a change costs what changed and not what exists.

use std::hash::Hash;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};
use foldhash::quality::RandomState;
use haft_core::Timestamp;
use haft_core::bundle::Bundle;
use haft_core::catalog::{Change, ChangeSink, UnreadableFile};
use haft_core::id::{BundleId, ToolId};
use haft_core::name::{BundleSlug, TenantId, ToolName, Version};
use haft_core::tool::Tool;
use rpds::{HashTrieMapSync, RedBlackTreeMapSync};
use tokio::sync::watch;

use crate::executors::Executors;
use crate::registry::entry::{Counter, Entry};

/// Fewer definitions than this are not worth a thread.
const LEAST_SHARE: usize = 200;

/// The order of lists: by name, then bundle, then version.
pub(super) type ListKey = (TenantId, ToolName, BundleSlug, Version, ToolId);

/// Seeded anew in each process, as names may be a stranger's; and quick, as every call looks here.
type Table<K, V> = HashTrieMapSync<K, V, RandomState>;

/// All tools and bundles at one moment.
#[derive(Clone)]
pub struct Snapshot {
    pub(super) tools: Table<ToolId, Arc<Entry>>,
    pub(super) names: Table<ToolName, Arc<[Arc<Entry>]>>,
    order: RedBlackTreeMapSync<ListKey, Arc<Entry>>,
    bundles: Table<BundleId, Arc<Bundle>>,
    /// How many of them are not open.
    closed: usize,
    /// Whether there may be a tool whose bundle is not there.
    strays: bool,
    unreadable: RedBlackTreeMapSync<String, Arc<UnreadableFile>>,
}

impl Default for Snapshot {
    fn default() -> Self {
        Self {
            tools: table(),
            names: table(),
            order: RedBlackTreeMapSync::new_sync(),
            bundles: table(),
            closed: 0,
            strays: false,
            unreadable: RedBlackTreeMapSync::new_sync(),
        }
    }
}

/// A tool at one moment, for a call of it.
#[derive(Clone)]
pub struct ResolvedTool {
    /// The tool.
    pub entry: Arc<Entry>,
    /// Whether its bundle was switched on.
    pub open: bool,
}

fn table<K: Eq + Hash, V>() -> Table<K, V> {
    Table::new_with_hasher_and_ptr_kind(RandomState::default())
}

impl Snapshot {
    /// Finds a tool by id.
    pub fn tool(&self, tenant: &TenantId, id: ToolId) -> Option<&Arc<Entry>> {
        self.tools.get(&id).filter(|entry| entry.tool.tenant == *tenant)
    }

    /// Finds the tool of a name where there is exactly one: the quick way, for the usual case.
    #[inline]
    pub fn only(&self, tenant: &TenantId, name: &str) -> Option<&Arc<Entry>> {
        match &**self.names.get(name)? {
            [entry] if entry.tool.tenant == *tenant => Some(entry),
            _ => None,
        }
    }

    /// Returns the tools of a tenant in the order of lists.
    pub fn tools<'a>(&'a self, tenant: &'a TenantId) -> impl Iterator<Item = &'a Arc<Entry>> {
        self.order.values().filter(move |entry| entry.tool.tenant == *tenant)
    }

    /// Finds a bundle by id.
    pub fn bundle(&self, id: BundleId) -> Option<&Arc<Bundle>> {
        self.bundles.get(&id)
    }

    /// Tells whether the bundle of a tool is switched on.
    #[inline]
    pub fn is_open(&self, entry: &Entry) -> bool {
        // Where all are open, as with a program's own tools, there is nothing to look up.
        self.all_open() || self.bundle(entry.tool.bundle_id).is_some_and(|bundle| bundle.is_open())
    }

    fn all_open(&self) -> bool {
        self.closed == 0 && !self.strays
    }

    /// Returns a tool as a call needs it.
    #[inline]
    pub fn found(&self, entry: &Arc<Entry>) -> ResolvedTool {
        ResolvedTool { entry: Arc::clone(entry), open: self.is_open(entry) }
    }

    /// Returns the bundles of a tenant, in no order.
    pub fn bundles<'a>(&'a self, tenant: &'a TenantId) -> impl Iterator<Item = &'a Arc<Bundle>> {
        self.bundles.values().filter(move |bundle| bundle.tenant == *tenant)
    }

    /// Returns the files of a tenant that cannot be read, by path.
    pub fn unreadable<'a, 't>(
        &'a self,
        tenant: &'t TenantId,
    ) -> impl Iterator<Item = &'a Arc<UnreadableFile>> + use<'a, 't> {
        self.unreadable.values().filter(move |file| file.tenant == *tenant)
    }

    /// Returns how many tools there are in all.
    pub fn len(&self) -> usize {
        self.tools.size()
    }

    /// Tells whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    fn insert(&mut self, tool: Tool, executors: &Executors) {
        self.strays |= !self.bundles.contains_key(&tool.bundle_id);
        let earlier = self.tools.get(&tool.id).cloned();
        let entry = Arc::new(Entry::new(tool, earlier.as_deref(), executors));
        if let Some(earlier) = earlier {
            self.unlink(&earlier);
        }
        let same = self.names.get(&entry.tool.spec.name);
        let mut all: Vec<_> = same.into_iter().flat_map(|list| list.iter().cloned()).collect();
        all.push(Arc::clone(&entry));
        self.names.insert_mut(entry.tool.spec.name.clone(), all.into());
        self.order.insert_mut(list_key(&entry.tool), Arc::clone(&entry));
        self.tools.insert_mut(entry.tool.id, entry);
    }

    fn remove(&mut self, id: ToolId) {
        if let Some(entry) = self.tools.get(&id).cloned() {
            self.unlink(&entry);
            self.tools.remove_mut(&id);
        }
    }

    fn unlink(&mut self, entry: &Entry) {
        self.order.remove_mut(&list_key(&entry.tool));
        let name = &entry.tool.spec.name;
        let rest: Vec<_> = self
            .names
            .get(name)
            .into_iter()
            .flat_map(|list| list.iter())
            .filter(|other| other.tool.id != entry.tool.id)
            .cloned()
            .collect();
        if rest.is_empty() {
            self.names.remove_mut(name);
        } else {
            self.names.insert_mut(name.clone(), rest.into());
        }
    }

    fn forget(&mut self, bundle: BundleId) {
        self.closed -= usize::from(self.bundle(bundle).is_some_and(|bundle| !bundle.is_open()));
        self.bundles.remove_mut(&bundle);
    }

    fn apply(&mut self, change: Change, executors: &Executors) {
        match change {
            Change::Bundle(bundle) => {
                self.forget(bundle.id);
                self.closed += usize::from(!bundle.is_open());
                self.bundles.insert_mut(bundle.id, Arc::new(bundle));
            }
            Change::BundleGone(id) => {
                self.forget(id);
                self.strays = true;
            }
            Change::Tool(tool) => self.insert(*tool, executors),
            Change::ToolGone(id) => self.remove(id),
            Change::Unreadable(file) => {
                self.unreadable.insert_mut(file.path.clone(), Arc::new(file));
            }
            Change::UnreadableGone(path) => {
                self.unreadable.remove_mut(&path);
            }
        }
    }
}

/// Compiles definitions to see whether they can run; many of them on all cores.
fn verify(entries: &[&Arc<Entry>], executors: &Executors) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut shares = entries.chunks(entries.len().div_ceil(cores).max(LEAST_SHARE));
    let Some(first) = shares.next() else { return };
    let verify = |share: &[&Arc<Entry>]| share.iter().for_each(|entry| entry.verify(executors));
    std::thread::scope(|scope| {
        shares.for_each(|share| drop(scope.spawn(move || verify(share))));
        verify(first);
    });
}

fn list_key(tool: &Tool) -> ListKey {
    let spec = &tool.spec;
    (tool.tenant.clone(), spec.name.clone(), tool.bundle.clone(), spec.version.clone(), tool.id)
}

/// Holds the newest [`Snapshot`]; readers never wait.
pub struct Registry {
    snapshot: ArcSwap<Snapshot>,
    writer: Mutex<()>,
    executors: Executors,
    unsaved: Mutex<Vec<(ToolId, Arc<Counter>)>>,
    /// Moves with every change.
    changes: watch::Sender<()>,
}

impl Registry {
    /// Makes an empty registry.
    pub fn new(executors: Executors) -> Self {
        Self {
            snapshot: ArcSwap::default(),
            writer: Mutex::default(),
            executors,
            unsaved: Mutex::default(),
            changes: watch::Sender::default(),
        }
    }

    /// Tells when anything has changed.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Returns the picture of this moment.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Returns the same to who only looks something up, and does not wait while having it: that costs less.
    #[inline]
    pub fn current(&self) -> Guard<Arc<Snapshot>> {
        self.snapshot.load()
    }

    /// Returns the executors that compile its tools.
    pub fn executors(&self) -> &Executors {
        &self.executors
    }

    /// Looks whether every tool can run. At start this is put off, as it compiles every definition once.
    pub fn verify(&self) {
        for entry in self.snapshot().tools.values() {
            entry.verify(&self.executors);
        }
    }

    /// Counts a call of a tool.
    pub(crate) fn count(&self, entry: &Entry, now: Timestamp) {
        if entry.counter.add(now) {
            let mut unsaved = self.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
            unsaved.push((entry.tool.id, Arc::clone(&entry.counter)));
        }
    }

    /// Takes the calls that were counted since the last time.
    pub fn take_usage(&self) -> Vec<(ToolId, u64, Timestamp)> {
        let listed = std::mem::take(&mut *self.unsaved.lock().unwrap_or_else(PoisonError::into_inner));
        listed
            .into_iter()
            .filter_map(|(id, counter)| {
                // Unlisted first: a call that comes in between lists the counter again.
                counter.listed.store(false, Ordering::Release);
                let calls = counter.unsaved.swap(0, Ordering::AcqRel);
                let last = counter.read().last_called_at?;
                (calls > 0).then_some((id, calls, last))
            })
            .collect()
    }
}

impl ChangeSink for Registry {
    fn apply(&self, changes: Vec<Change>) {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Snapshot::clone(&self.snapshot.load());
        let mut tools = Vec::new();
        for change in changes {
            if let Change::Tool(tool) = &change {
                tools.push(tool.id);
            }
            next.apply(change, &self.executors);
        }
        verify(&tools.iter().filter_map(|id| next.tools.get(id)).collect::<Vec<_>>(), &self.executors);
        self.snapshot.store(Arc::new(next));
        self.changes.send_replace(());
    }

    fn replace(&self, everything: Vec<Change>) {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.snapshot.load_full();
        let mut next = Snapshot::default();
        for change in everything {
            // What is compiled of an unchanged tool survives: its entry is put in first.
            if let Change::Tool(tool) = &change
                && let Some(earlier) = now.tools.get(&tool.id)
            {
                next.tools.insert_mut(tool.id, Arc::clone(earlier));
            }
            next.apply(change, &self.executors);
        }
        self.snapshot.store(Arc::new(next));
        self.changes.send_replace(());
    }
}
