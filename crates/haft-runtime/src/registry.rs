//! The registry: an immutable snapshot of all tools, replaced on every change.

mod changes;
mod compiled;
mod entry;
mod offer;
mod snapshot;
mod usage;
mod verifier;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};
use haft_core::Timestamp;
use haft_core::catalog::{Change, ChangeSink};
use haft_core::id::ToolId;
use haft_core::name::TenantId;
use tokio::sync::watch;

pub use self::changes::ChangeCounts;
pub use self::compiled::{CompileResult, CompiledTool, RevisionSelector};
pub use self::entry::Entry;
pub use self::offer::{Audience, Naming, ToolOffer};
pub use self::snapshot::{ResolveError, ResolvedTool, Snapshot};

use self::usage::UsageCounter;
use self::verifier::Verifier;
use crate::executors::Executors;

/// Holds the newest [`Snapshot`]; readers never wait.
///
/// A change is visible at once. Whether a changed tool can run is found out afterwards, because that compiles its
/// definition, which may take long: in the background, or by [`Registry::verified`].
pub struct Registry {
    snapshot: ArcSwap<Snapshot>,
    writer: Mutex<()>,
    executors: Arc<Executors>,
    unsaved: Mutex<Vec<(ToolId, Arc<UsageCounter>)>>,
    changes: watch::Sender<ChangeCounts>,
    verifier: Arc<Verifier>,
}

impl Registry {
    /// Creates an empty registry.
    pub fn new(executors: Executors) -> Self {
        let (executors, changes) = (Arc::new(executors), watch::Sender::default());
        let verifier = Arc::new(Verifier::new(Arc::clone(&executors), changes.clone()));
        Self {
            snapshot: ArcSwap::default(),
            writer: Mutex::default(),
            executors,
            unsaved: Mutex::default(),
            changes,
            verifier,
        }
    }

    /// Returns a receiver that is notified of every change; the counts tell whom it concerns.
    pub fn changes(&self) -> watch::Receiver<ChangeCounts> {
        self.changes.subscribe()
    }

    /// Returns the newest snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Returns the newest snapshot for a short lookup, without `.await`.
    pub fn current(&self) -> Guard<Arc<Snapshot>> {
        self.snapshot.load()
    }

    /// Returns the executors that compile the tools.
    pub fn executors(&self) -> &Arc<Executors> {
        &self.executors
    }

    /// Compiles every definition once to see whether it can run. It blocks the thread.
    pub fn verify(&self) {
        self.verifier.verify(&self.snapshot().entries().cloned().collect::<Vec<_>>());
    }

    /// Waits until it is known whether a tool can run.
    pub async fn verified(&self, entry: &Arc<Entry>) {
        if !entry.needs_verification() {
            return;
        }
        let (verifier, entry) = (Arc::clone(&self.verifier), Arc::clone(entry));
        if let Err(error) = tokio::task::spawn_blocking(move || verifier.verify(&[entry])).await {
            tracing::error!(%error, "verification of a definition failed");
        }
    }

    /// Applies changes and verifies the changed tools on this thread, for callers that may block.
    pub fn apply_verified(&self, changes: Vec<Change>) {
        let (changed, owners) = self.update(changes);
        self.verifier.verify(&changed);
        self.notify(&owners);
    }

    /// Applies changes to the snapshot; returns the changed tools, and the owners of what changed. Nothing is compiled.
    fn update(&self, changes: Vec<Change>) -> (Vec<Arc<Entry>>, HashSet<TenantId>) {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Snapshot::clone(&self.snapshot.load());
        let owners = changes::owners(&next, &changes);
        let mut changed = Vec::new();
        for change in changes {
            if let Change::Tool(tool) = &change {
                changed.push(tool.id);
            }
            next.apply(change, &self.executors);
        }
        let entries = changed.iter().filter_map(|id| next.entry(*id).cloned()).collect();
        self.snapshot.store(Arc::new(next));
        (entries, owners)
    }

    fn notify(&self, owners: &HashSet<TenantId>) {
        self.changes.send_modify(|counts| owners.iter().for_each(|owner| counts.add(owner)));
    }

    /// Counts a call of a tool.
    pub(crate) fn count(&self, entry: &Entry, now: Timestamp) {
        if entry.usage.add(now) {
            let mut unsaved = self.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
            unsaved.push((entry.tool.id, Arc::clone(&entry.usage)));
        }
    }

    /// Takes the calls that were counted since the last time.
    pub fn take_usage(&self) -> Vec<(ToolId, u64, Timestamp)> {
        let listed = std::mem::take(&mut *self.unsaved.lock().unwrap_or_else(PoisonError::into_inner));
        let unsaved = |(id, counter): (ToolId, Arc<UsageCounter>)| {
            counter.take_unsaved().map(|(calls, last)| (id, calls, last))
        };
        listed.into_iter().filter_map(unsaved).collect()
    }
}

impl ChangeSink for Registry {
    fn apply(&self, changes: Vec<Change>) {
        let (changed, owners) = self.update(changes);
        self.notify(&owners);
        self.verifier.enqueue(changed);
    }

    fn replace(&self, everything: Vec<Change>) {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.snapshot.load_full();
        let next = Arc::new(before.replaced(everything, &self.executors));
        self.snapshot.store(Arc::clone(&next));
        self.notify(&changes::owners_between(&before, &next));
    }
}
