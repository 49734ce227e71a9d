//! Events for the states of MCP servers.

use std::collections::HashMap;
use std::time::Duration;

use haft_core::mcp::ServerState;
use haft_core::name::{BundleSlug, TenantId};
use haft_mcp::client::McpClients;

use super::event::LiveEvent;
use super::hub::EventHub;

/// How often the states of MCP servers are compared.
const SERVER_INTERVAL: Duration = Duration::from_secs(1);

/// Publishes changes of the states of MCP servers while anybody listens, until dropped.
pub async fn server_states(hub: &EventHub, clients: &McpClients) {
    let mut known: HashMap<(TenantId, BundleSlug), ServerState> = HashMap::new();
    let mut was_active = false;
    loop {
        tokio::time::sleep(SERVER_INTERVAL).await;
        if !hub.is_active() {
            was_active = false;
            continue;
        }
        let now: HashMap<_, _> = clients.states().into_iter().collect();
        for ((tenant, id), state) in &now {
            // States that changed between the request of the first listener and now were not compared.
            let is_same = was_active
                && known.get(&(tenant.clone(), id.clone())).is_some_and(|old| {
                    old.phase == state.phase && old.tools == state.tools && old.error == state.error
                });
            if !is_same {
                hub.publish(tenant, LiveEvent::of_server(id, state));
            }
        }
        for (tenant, id) in known.keys().filter(|key| !now.contains_key(*key)) {
            hub.publish(tenant, LiveEvent::of_server(id, &ServerState::disconnected()));
        }
        (known, was_active) = (now, true);
    }
}
