//! Counts the changes of each tenant's tools, so that a watcher learns nothing of the changes of others.

use std::collections::{HashMap, HashSet};

use haft_core::catalog::Change;
use haft_core::name::TenantId;
use haft_core::tool::Tool;

use super::snapshot::Snapshot;

/// How often the tools of each tenant have changed.
#[derive(Debug, Default)]
pub struct ChangeCounts {
    /// Changes that concern everybody.
    everybody: u64,
    owners: HashMap<TenantId, u64>,
}

impl ChangeCounts {
    /// Returns how often the tools that a tenant sees have changed: its own and global ones.
    pub fn seen_by(&self, tenant: &TenantId) -> u64 {
        let own = self.owners.get(tenant).copied().unwrap_or_default();
        self.everybody.wrapping_add(own)
    }

    /// Counts a change of what an owner has.
    pub(super) fn add(&mut self, owner: &TenantId) {
        if owner.is_global() {
            return self.add_for_everybody();
        }
        let count = self.owners.entry(owner.clone()).or_default();
        *count = count.wrapping_add(1);
    }

    /// Counts a change that concerns every tenant.
    pub(super) fn add_for_everybody(&mut self) {
        self.everybody = self.everybody.wrapping_add(1);
    }
}

/// Returns the owners of what is about to change in a snapshot.
pub(super) fn owners(snapshot: &Snapshot, changes: &[Change]) -> HashSet<TenantId> {
    let owner = |change: &Change| match change {
        Change::Bundle(bundle) => Some(bundle.tenant.clone()),
        Change::BundleGone(id) => snapshot.bundle(*id).map(|bundle| bundle.tenant.clone()),
        Change::Tool(tool) => Some(tool.tenant.clone()),
        Change::ToolGone(id) => snapshot.entry(*id).map(|entry| entry.tool.tenant.clone()),
        // No tool of a list comes from an unreadable file.
        Change::Unreadable(_) | Change::UnreadableGone(_) => None,
    };
    changes.iter().filter_map(owner).collect()
}

/// Returns the owners of what differs between two snapshots. Counters of calls do not matter.
pub(super) fn owners_between(before: &Snapshot, after: &Snapshot) -> HashSet<TenantId> {
    let is_same = |a: &Tool, b: &Tool| {
        let state = |tool: &Tool| (tool.revision, tool.status, tool.enabled, tool.bundle_id);
        state(a) == state(b) && a.spec == b.spec && a.published == b.published && a.fault == b.fault
    };
    let mut owners = HashSet::new();
    for (one, other) in [(before, after), (after, before)] {
        for entry in one.entries() {
            let tool = &entry.tool;
            if !other.entry(tool.id).is_some_and(|entry| is_same(&entry.tool, tool)) {
                owners.insert(tool.tenant.clone());
            }
        }
        for bundle in one.all_bundles() {
            if other.bundle(bundle.id) != Some(bundle) {
                owners.insert(bundle.tenant.clone());
            }
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_sees_its_own_changes_and_global_ones() {
        let (acme, other) = (TenantId::new("acme").unwrap(), TenantId::new("other").unwrap());
        let mut counts = ChangeCounts::default();
        let mut check = |owner: &TenantId, expected: (u64, u64)| {
            counts.add(owner);
            assert_eq!((counts.seen_by(&acme), counts.seen_by(&other)), expected, "{owner}");
        };
        check(&acme, (1, 0));
        check(&other, (1, 1));
        check(&TenantId::global(), (2, 2));
    }
}
