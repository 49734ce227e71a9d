//! The egress guard: every connection that haft itself makes for a tool goes through it.
//!
//! It checks the scheme, the allow-list, and at connect time the resolved address: private, loopback, link-local and
//! other special ranges are denied unless the configuration allows them. Each redirect is checked again, and
//! credentials are not forwarded to another origin. Proxies of the environment are not used, because they would bypass
//! the guard.

mod address;
mod client;
mod guard;
mod pattern;
mod resolve;
mod send;

pub(crate) use client::{roots, tls};
pub use guard::{Egress, EgressError, EgressRules, RulesError, check_host};
pub(crate) use send::RedirectTrail;
pub use send::{OutgoingRequest, SendError};
