//! Notifies clients that their list of tools has changed.

use std::time::Duration;

use haft_runtime::registry::ChangeCounts;
use rmcp::RoleServer;
use rmcp::service::{Peer, SubscriptionContext};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::client_context::SessionKey;
use super::handler::Shared;

/// How long changes are collected into one notification.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// How often a session without changes is checked for a closed transport.
const POLL_INTERVAL: Duration = Duration::from_mins(1);

/// The changes of one client's list of tools.
pub(super) struct ListChanges {
    registry: watch::Receiver<ChangeCounts>,
    /// The changes of the tenant's tools that the client knows.
    seen: u64,
    list_changed: broadcast::Receiver<SessionKey>,
    owner: SessionKey,
}

impl ListChanges {
    /// Starts to watch the list of `owner`.
    pub(super) fn new(shared: &Shared, owner: SessionKey) -> Self {
        let registry = shared.registry.changes();
        let seen = registry.borrow().seen_by(&owner.tenant);
        Self { registry, seen, list_changed: shared.list_changed.subscribe(), owner }
    }

    /// Waits for the next change and those that follow shortly; `false` where there will be none.
    async fn next(&mut self) -> bool {
        let more = loop {
            tokio::select! {
                changed = self.registry.changed() => match changed {
                    // Changes of other tenants concern nobody else.
                    Ok(()) if self.take_count() => break true,
                    Ok(()) => {}
                    Err(_) => break false,
                },
                changed = self.list_changed.recv() => match changed {
                    Ok(owner) if owner != self.owner => {}
                    // A missed message may have been for this owner.
                    Ok(_) | Err(RecvError::Lagged(_)) => break true,
                    Err(RecvError::Closed) => break false,
                },
            }
        };
        if more {
            tokio::time::sleep(DEBOUNCE).await;
            self.take_count();
        }
        more
    }

    /// Notes the changes so far; returns whether any of them concerns the client's tenant.
    fn take_count(&mut self) -> bool {
        let count = self.registry.borrow_and_update().seen_by(&self.owner.tenant);
        std::mem::replace(&mut self.seen, count) != count
    }

    /// Notifies the client of a session until the session ends.
    pub(super) async fn notify_session(mut self, peer: Peer<RoleServer>) {
        while !peer.is_transport_closed() {
            match tokio::time::timeout(POLL_INTERVAL, self.next()).await {
                Ok(true) if peer.notify_tool_list_changed().await.is_ok() => {}
                Ok(_) => return,
                Err(_) => {}
            }
        }
    }

    /// Notifies a subscriber until the subscription ends or the server stops.
    pub(super) async fn notify_subscriber(
        mut self,
        stopping: &CancellationToken,
        subscription: &SubscriptionContext,
    ) {
        let is_subscribed = subscription.accepted().tools_list_changed == Some(true);
        loop {
            tokio::select! {
                () = subscription.cancelled() => return,
                () = stopping.cancelled() => return,
                more = self.next(), if is_subscribed => if !more { return },
            }
            if subscription.sink().notify_tool_list_changed().await.is_err() {
                return;
            }
        }
    }
}
