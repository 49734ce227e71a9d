//! The events of a feed as a stream for one client.

use std::sync::Arc;

use axum::response::sse::Event;
use futures_util::{Stream, stream};
use haft_core::principal::Principal;

use haft_platform::Installation;
use haft_platform::events::{LiveEvent, Subscription, Topic};

/// The surface that lists of tools are filtered for.
const SURFACE: &str = "rest";

/// Which events a client gets.
pub(crate) struct EventFilter {
    pub(crate) principal: Arc<Principal>,
    /// Only these topics.
    pub(crate) topics: Vec<Topic>,
}

impl EventFilter {
    fn accepts(&self, app: &Installation, event: &LiveEvent) -> bool {
        let may_call = |tool: &_| app.policy().handle().may_call(&self.principal, tool, SURFACE);
        self.topics.contains(&event.topic) && event.is_visible_to(&self.principal, may_call)
    }
}

/// Streams events. The first one, `ready`, says that nothing is missed from then on.
pub(crate) fn stream(
    app: Arc<Installation>,
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
