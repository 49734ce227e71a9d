//! The live events of a page: what changed in a tenant, as it happens.
//!
//! Every tenant with a listener has a feed: a ring of its latest events, which all its streams read at their own pace.
//! A stream that falls behind, or continues after an event that the ring no longer has, gets `reset` and loads
//! everything again. Without listeners nothing is kept, and a call costs one load of a counter.

mod event;
mod hub;
mod sink;
mod stream;

pub(crate) use event::{
    ApprovalEvent, BundleEvent, CallEvent, ServerEvent, ToolEvent, Topic, sees_approvals_of_others,
    sees_calls_of_others,
};
pub(crate) use hub::EventHub;
pub(crate) use sink::EventSink;
pub(crate) use stream::{EventFilter, server_states, stream};
