//! The events of a feed as a stream for one client.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::Event;
use futures_util::{Stream, stream};
use haft_core::mcp::ServerState;
use haft_core::name::{BundleSlug, TenantId};
use haft_core::principal::Principal;

use super::event::{LiveEvent, Topic};
use super::hub::Subscription;
use crate::app::App;

/// How often the states of MCP servers are compared.
const SERVER_INTERVAL: Duration = Duration::from_secs(1);
/// The surface that lists of tools are filtered for.
const SURFACE: &str = "rest";

/// Which events a client gets.
pub(crate) struct EventFilter {
    pub(crate) principal: Arc<Principal>,
    /// Only these topics.
    pub(crate) topics: Vec<Topic>,
}

impl EventFilter {
    fn accepts(&self, app: &App, event: &LiveEvent) -> bool {
        let may_call = |tool: &_| app.policy().handle().may_call(&self.principal, tool, SURFACE);
        self.topics.contains(&event.topic) && event.is_visible_to(&self.principal, may_call)
    }
}

/// Streams events. The first one, `ready`, says that nothing is missed from then on.
pub(crate) fn stream(
    app: Arc<App>,
    subscription: Subscription,
    filter: EventFilter,
) -> impl Stream<Item = Event> + Send {
    let first = Event::default().event("ready").id(subscription.last_id()).data("{}");
    let state = (Some(first), subscription, filter, app);
    stream::unfold(state, async |(first, mut subscription, filter, app)| {
        if let Some(first) = first {
            return Some((first, (None, subscription, filter, app)));
        }
        let event = loop {
            match subscription.next().await {
                None => break Event::default().event("reset").data("{}"),
                Some(event) if filter.accepts(&app, &event) => {
                    break Event::default().event(event.topic.event_name()).data(event.data.clone());
                }
                Some(_) => {}
            }
        };
        let event = event.id(subscription.last_id());
        Some((event, (None, subscription, filter, app)))
    })
}

/// Publishes changes of the states of MCP servers while anybody listens, until dropped.
pub(crate) async fn server_states(app: &App) {
    let hub = app.events();
    let mut known: HashMap<(TenantId, BundleSlug), ServerState> = HashMap::new();
    let mut was_active = false;
    loop {
        tokio::time::sleep(SERVER_INTERVAL).await;
        if !hub.is_active() {
            was_active = false;
            continue;
        }
        let now: HashMap<_, _> = app.mcp_clients().states().into_iter().collect();
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
