//! The live events of a page: what changed in a tenant, as it happens.
//!
//! Every tenant with a listener has a feed: a log of its latest events, which all its streams read at their own pace.
//! A stream that falls behind, or continues after an event that the log no longer has, gets `reset` and loads
//! everything again. Without listeners nothing is kept, and a call costs one load of a counter.

mod event;
mod hub;
mod server_states;
mod sink;

pub use event::{
    ApprovalEvent, BundleEvent, CallEvent, LiveEvent, ServerEvent, ToolEvent, Topic,
    sees_approvals_of_others, sees_calls_of_others,
};
pub use hub::{EventHub, Subscription};
pub use server_states::server_states;
pub use sink::EventSink;
