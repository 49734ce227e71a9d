//! The one way out: every connection that haft itself makes for a tool passes this guard.
//!
//! It checks the scheme, the allow-list, and at connect time the resolved address: private, loopback,
//! link-local and other special ranges are refused unless the configuration names them. Redirects are followed
//! by hand, each hop is checked again, and credentials stay with the origin they were meant for. Proxies of
//! the environment are not used, as they would connect in place of the guard.

mod address;
mod client;
mod guard;
mod pattern;
mod resolve;
mod send;

pub use guard::{Egress, EgressError, EgressRules, RulesError, check_host};
pub(crate) use send::Trail;
pub use send::{OutgoingRequest, SendError};
