//! The content of PostgreSQL notifications: which node changed what.

use std::collections::BTreeSet;

use haft_core::id::{ActorId, ApprovalId, BundleId, ToolId};
use haft_core::live::ObjectChange;

/// PostgreSQL rejects payloads of 8,000 bytes or more.
const MAX_PAYLOAD_BYTES: usize = 7_900;

/// The changes that one or more notifications announce.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each says that one kind of thing may have changed")]
pub(crate) struct ChangeSet {
    pub(crate) bundles: BTreeSet<BundleId>,
    pub(crate) tools: BTreeSet<ToolId>,
    pub(crate) tokens: bool,
    /// Whose tokens, if not everybody's; other nodes read it from the database.
    pub(crate) actors: BTreeSet<ActorId>,
    pub(crate) credentials: bool,
    /// There may be calls in the queue, and decisions about approvals.
    pub(crate) queue: bool,
    pub(crate) policies: bool,
    pub(crate) webhooks: bool,
    /// Runs of agents were left or cancelled.
    pub(crate) runs: bool,
    /// Approvals that were requested or decided.
    pub(crate) approvals: BTreeSet<ApprovalId>,
    /// What pages show live of agents, runs, chats, pipelines and artifacts.
    pub(crate) objects: Vec<ObjectChange>,
}

impl ChangeSet {
    pub(crate) fn tokens() -> Self {
        Self { tokens: true, ..Self::default() }
    }

    /// Returns the change of a person or a service account, with tokens and sessions; of everybody if there is none.
    pub(crate) fn access_of(actor: Option<ActorId>) -> Self {
        Self { actors: actor.into_iter().collect(), ..Self::tokens() }
    }

    pub(crate) fn queue() -> Self {
        Self { queue: true, ..Self::default() }
    }

    pub(crate) fn credentials() -> Self {
        Self { credentials: true, ..Self::default() }
    }

    pub(crate) fn policies() -> Self {
        Self { policies: true, ..Self::default() }
    }

    pub(crate) fn webhooks() -> Self {
        Self { webhooks: true, ..Self::default() }
    }

    pub(crate) fn runs() -> Self {
        Self { runs: true, ..Self::default() }
    }

    /// Returns the change of some approvals, and of the queue that approved calls are in.
    pub(crate) fn approvals(ids: impl IntoIterator<Item = ApprovalId>) -> Self {
        Self { approvals: ids.into_iter().collect(), queue: true, ..Self::default() }
    }

    /// Returns as few payloads as possible that announce the changes of a node.
    pub(crate) fn payloads(&self, node: &str) -> Vec<String> {
        let bundles = self.bundles.iter().map(|id| format!(" b:{id}"));
        let tools = self.tools.iter().map(|id| format!(" t:{id}"));
        let approvals = self.approvals.iter().map(|id| format!(" a:{id}"));
        let objects = self.objects.iter().filter_map(object_item);
        let tokens = self.tokens.then(|| " k".to_owned());
        let credentials = self.credentials.then(|| " c".to_owned());
        let queue = self.queue.then(|| " q".to_owned());
        let policies = self.policies.then(|| " p".to_owned());
        let webhooks = self.webhooks.then(|| " w".to_owned());
        let runs = self.runs.then(|| " r".to_owned());
        let flags = tokens.into_iter().chain(credentials).chain(queue).chain(policies).chain(webhooks);
        let flags = flags.chain(runs);
        let mut payloads: Vec<String> = Vec::new();
        for item in bundles.chain(tools).chain(approvals).chain(objects).chain(flags) {
            match payloads.last_mut() {
                Some(last) if last.len() + item.len() <= MAX_PAYLOAD_BYTES => last.push_str(&item),
                _ => payloads.push(format!("{node}{item}")),
            }
        }
        payloads
    }

    /// Adds the changes of a payload, unless this node sent it.
    pub(crate) fn add(&mut self, payload: &str, own_node: &str) {
        let mut items = payload.split(' ');
        if items.next() == Some(own_node) {
            return;
        }
        for item in items {
            match item.split_once(':') {
                Some(("b", id)) => self.bundles.extend(id.parse::<BundleId>()),
                Some(("t", id)) => self.tools.extend(id.parse::<ToolId>()),
                Some(("a", id)) => self.approvals.extend(id.parse::<ApprovalId>()),
                Some(("o", json)) => self.objects.extend(serde_json::from_str(json).ok()),
                _ => {
                    self.tokens |= item == "k";
                    self.credentials |= item == "c";
                    self.queue |= item == "q";
                    self.policies |= item == "p";
                    self.webhooks |= item == "w";
                    self.runs |= item == "r";
                }
            }
        }
    }
}

/// Returns the item of an object: JSON without spaces, which separate items.
fn object_item(change: &ObjectChange) -> Option<String> {
    // In JSON without layout, only strings have spaces.
    let json = serde_json::to_string(change).ok()?.replace(' ', "\\u0020");
    (json.len() < MAX_PAYLOAD_BYTES / 2).then(|| format!(" o:{json}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use haft_core::id::ChatId;
    use haft_core::live::{ChatAction, ChatEvent, ObjectAudience, ObjectEvent};
    use haft_core::name::TenantId;

    use super::*;

    #[test]
    fn many_changes_need_few_payloads_and_are_read_back() {
        let id = |number: u64| uuid::Builder::from_unix_timestamp_millis(number, &[0; 10]).into_uuid();
        let changes = ChangeSet {
            bundles: BTreeSet::from([BundleId(id(1))]),
            tools: (0..1000).map(|number| ToolId(id(number))).collect(),
            tokens: true,
            actors: BTreeSet::new(),
            credentials: false,
            queue: true,
            policies: true,
            webhooks: true,
            runs: true,
            approvals: BTreeSet::from([ApprovalId(id(2))]),
            objects: vec![ObjectChange {
                tenant: TenantId::default_tenant(),
                audience: ObjectAudience::OwnerAndAdmins(Arc::from("a name: with  spaces")),
                event: ObjectEvent::Chat(ChatEvent {
                    change: ChatAction::Message,
                    id: ChatId(id(3)),
                    shared: false,
                    message_id: None,
                }),
            }],
        };
        let payloads = changes.payloads("node-1");
        assert_eq!(payloads.len(), 5);
        assert!(payloads.iter().all(|payload| payload.len() < 8000));
        let (mut other, mut own) = (ChangeSet::default(), ChangeSet::default());
        for payload in &payloads {
            other.add(payload, "node-2");
            own.add(payload, "node-1");
        }
        assert_eq!(other, changes);
        assert_eq!(own, ChangeSet::default());
        assert_eq!(ChangeSet::tokens().payloads("n"), ["n k"]);
    }
}
