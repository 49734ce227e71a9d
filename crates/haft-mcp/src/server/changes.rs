//! Notifies clients that their lists of tools, prompts and resources have changed.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use haft_core::toolset::skill_package;
use haft_runtime::registry::ChangeCounts;
use rmcp::RoleServer;
use rmcp::service::{Peer, SubscriptionContext};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::apps;
use super::client_context::{ClientContext, SessionKey};
use super::handler::Shared;

/// How long changes are collected into one notification.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// How often a session without changes is checked for a closed transport.
const POLL_INTERVAL: Duration = Duration::from_mins(1);

/// The changes of one client's lists.
pub(super) struct ListChanges {
    shared: Arc<Shared>,
    registry: watch::Receiver<ChangeCounts>,
    /// The changes of the tenant's tools that the client knows.
    seen: u64,
    /// The skills and pages that the client knows.
    seen_packages: u64,
    list_changed: broadcast::Receiver<SessionKey>,
    client: ClientContext,
    owner: SessionKey,
}

/// The lists that have changed.
struct Changed {
    /// Prompts and resources have changed, too.
    packages: bool,
}

impl ListChanges {
    /// Starts to watch the lists of a client.
    pub(super) fn new(shared: &Arc<Shared>, client: ClientContext) -> Self {
        let owner = client.session_key();
        let registry = shared.registry.changes();
        let seen = registry.borrow().seen_by(&owner.tenant);
        let seen_packages = packages_digest(shared, &client);
        let list_changed = shared.list_changed.subscribe();
        Self { shared: Arc::clone(shared), registry, seen, seen_packages, list_changed, client, owner }
    }

    /// Waits for the next change and those that follow shortly; `None` where there will be none.
    async fn next(&mut self) -> Option<Changed> {
        loop {
            tokio::select! {
                changed = self.registry.changed() => match changed {
                    // Changes of other tenants concern nobody else.
                    Ok(()) if self.take_count() => break,
                    Ok(()) => {}
                    Err(_) => return None,
                },
                changed = self.list_changed.recv() => match changed {
                    Ok(owner) if owner != self.owner => {}
                    // A missed message may have been for this owner.
                    Ok(_) | Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return None,
                },
            }
        }
        tokio::time::sleep(DEBOUNCE).await;
        self.take_count();
        let digest = packages_digest(&self.shared, &self.client);
        let packages = std::mem::replace(&mut self.seen_packages, digest) != digest;
        Some(Changed { packages })
    }

    /// Notes the changes so far; returns whether any of them concerns the client's tenant.
    fn take_count(&mut self) -> bool {
        let count = self.registry.borrow_and_update().seen_by(&self.owner.tenant);
        std::mem::replace(&mut self.seen, count) != count
    }

    /// Notifies the client of a session until the session ends.
    pub(super) async fn notify_session(mut self, peer: Peer<RoleServer>) {
        while !peer.is_transport_closed() {
            let changed = match tokio::time::timeout(POLL_INTERVAL, self.next()).await {
                Ok(Some(changed)) => changed,
                Ok(None) => return,
                Err(_) => continue,
            };
            let mut is_sent = peer.notify_tool_list_changed().await.is_ok();
            if changed.packages {
                is_sent &= peer.notify_prompt_list_changed().await.is_ok();
                is_sent &= peer.notify_resource_list_changed().await.is_ok();
            }
            if !is_sent {
                return;
            }
        }
    }

    /// Notifies a subscriber until the subscription ends or the server stops.
    pub(super) async fn notify_subscriber(
        mut self,
        stopping: &CancellationToken,
        subscription: &SubscriptionContext,
    ) {
        let accepted = subscription.accepted();
        let tools = accepted.tools_list_changed == Some(true);
        let prompts = accepted.prompts_list_changed == Some(true);
        let resources = accepted.resources_list_changed == Some(true);
        let sink = subscription.sink();
        loop {
            let changed = tokio::select! {
                () = subscription.cancelled() => return,
                () = stopping.cancelled() => return,
                changed = self.next(), if tools || prompts || resources => changed,
            };
            let Some(changed) = changed else { return };
            let mut is_sent = !tools || sink.notify_tool_list_changed().await.is_ok();
            if changed.packages {
                is_sent &= !prompts || sink.notify_prompt_list_changed().await.is_ok();
                is_sent &= !resources || sink.notify_resource_list_changed().await.is_ok();
            }
            if !is_sent {
                return;
            }
        }
    }
}

/// Returns a digest of the skills and pages that a client sees.
fn packages_digest(shared: &Shared, client: &ClientContext) -> u64 {
    let mut hasher = DefaultHasher::new();
    if shared.settings.packages.is_some() {
        let snapshot = shared.registry.snapshot();
        for offer in client.offers(&snapshot) {
            let skill = skill_package(&offer.spec);
            let page = apps::page_of(&snapshot, &offer);
            if skill.is_some() || page.is_some() {
                let revision = offer.entry.definition(client.mode.into()).map(|(number, _)| number);
                (&offer.name, revision, skill, page.map(|page| page.uri())).hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}
