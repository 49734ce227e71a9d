//! Turns changes of the store into events.

use std::sync::Arc;

use haft_core::approval::Approval;
use haft_core::call::CallRecord;
use haft_core::catalog::{Change, ChangeSink};
use haft_core::live::ObjectChange;
use haft_core::name::TenantId;
use haft_runtime::registry::Registry;

use super::event::LiveEvent;
use super::hub::EventHub;

/// Passes changes on to the next sink and publishes them.
pub struct EventSink {
    pub hub: Arc<EventHub>,
    /// What is known before a change.
    pub registry: Arc<Registry>,
    pub next: Arc<dyn ChangeSink>,
}

impl EventSink {
    fn events(&self, changes: &[Change]) -> Vec<(TenantId, Option<LiveEvent>)> {
        let before = self.registry.snapshot();
        let event = |change: &Change| match change {
            Change::Tool(new) => {
                let old = before.entry(new.id).map(|entry| &entry.tool);
                Some((new.tenant.clone(), LiveEvent::of_tool(old, Some(new))))
            }
            Change::ToolGone(id) => {
                let old = before.entry(*id)?;
                Some((old.tool.tenant.clone(), LiveEvent::of_tool(Some(&old.tool), None)))
            }
            Change::Bundle(new) => {
                let old = before.bundle(new.id);
                Some((new.tenant.clone(), LiveEvent::of_bundle(old.map(|bundle| &**bundle), Some(new))))
            }
            Change::BundleGone(id) => {
                let old = before.bundle(*id)?;
                Some((old.tenant.clone(), LiveEvent::of_bundle(Some(old), None)))
            }
            Change::Unreadable(_) | Change::UnreadableGone(_) => None,
        };
        changes.iter().filter_map(event).collect()
    }
}

impl ChangeSink for EventSink {
    fn apply(&self, changes: Vec<Change>) {
        if !self.hub.is_active() {
            return self.next.apply(changes);
        }
        let events = self.events(&changes);
        self.next.apply(changes);
        for (tenant, event) in events {
            self.hub.publish(&tenant, event);
        }
    }

    fn replace(&self, everything: Vec<Change>) {
        self.next.replace(everything);
        self.hub.reset_all();
    }

    fn has_followers(&self) -> bool {
        self.hub.is_active()
    }

    fn call_changed(&self, call: &CallRecord) {
        self.hub.publish(call.tenant(), LiveEvent::of_call(call));
    }

    fn approval_changed(&self, approval: &Approval) {
        self.hub.publish(&approval.requested_by.tenant, LiveEvent::of_approval(approval));
    }

    fn object_changed(&self, change: &ObjectChange) {
        self.hub.publish(&change.tenant, LiveEvent::of_object(change));
    }
}
