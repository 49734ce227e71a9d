//! Tells clients that their list of tools is another one.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::service::{Peer, SubscriptionContext};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::handler::Shared;
use super::seat::Owner;

/// How long changes are gathered before a client is told: several in a moment are one.
const GATHER: Duration = Duration::from_millis(200);
/// How often it is looked whether a silent client is still there.
const LOOK: Duration = Duration::from_mins(1);

/// What may change the list of a client.
pub(super) struct Changes {
    registry: watch::Receiver<()>,
    grown: broadcast::Receiver<Owner>,
    owner: Owner,
}

impl Changes {
    /// Begins to watch.
    pub(super) fn of(shared: &Shared, owner: Owner) -> Self {
        Self { registry: shared.registry.changes(), grown: shared.grown.subscribe(), owner }
    }

    /// Waits for a change, and those that come with it; `false` where there will be none any more.
    async fn next(&mut self) -> bool {
        let more = loop {
            tokio::select! {
                moved = self.registry.changed() => break moved.is_ok(),
                grown = self.grown.recv() => match grown {
                    Ok(owner) if owner != self.owner => {}
                    // What was missed may have been about this one.
                    Ok(_) | Err(RecvError::Lagged(_)) => break true,
                    Err(RecvError::Closed) => break false,
                },
            }
        };
        if more {
            tokio::time::sleep(GATHER).await;
            self.registry.mark_unchanged();
        }
        more
    }

    /// Tells the client of a session, until that is over.
    pub(super) async fn tell_session(mut self, peer: Peer<RoleServer>) {
        while !peer.is_transport_closed() {
            match tokio::time::timeout(LOOK, self.next()).await {
                Ok(true) if peer.notify_tool_list_changed().await.is_ok() => {}
                Ok(_) => return,
                Err(_) => {}
            }
        }
    }

    /// Tells whoever subscribed, until that is over or the server stops.
    pub(super) async fn tell_subscriber(
        mut self,
        stopping: &CancellationToken,
        subscription: &SubscriptionContext,
    ) {
        let wanted = subscription.accepted().tools_list_changed == Some(true);
        loop {
            tokio::select! {
                () = subscription.cancelled() => return,
                () = stopping.cancelled() => return,
                more = self.next(), if wanted => if !more { return },
            }
            if subscription.sink().notify_tool_list_changed().await.is_err() {
                return;
            }
        }
    }
}
