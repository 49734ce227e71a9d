//! The domain types of haft and their rules.
//!
//! Everything here is plain data and pure functions: no I/O, no clock, no
//! environment, no async runtime. Interfaces that other crates implement (stores, executors,
//! clocks) are declared here as traits.

pub mod account;
pub mod actor;
pub mod agent;
pub mod application;
pub mod approval;
pub mod artifact;
pub mod audit;
pub mod backoff;
pub mod bundle;
pub mod call;
pub mod callable;
pub mod catalog;
pub mod chat;
pub mod coerce;
pub mod duration;
pub mod encode;
pub mod exact_json;
pub mod example;
pub mod executor;
pub mod finding;
pub mod hash;
pub mod id;
pub mod implementation;
pub mod invocation;
pub mod large_result;
pub mod ledger;
pub mod lifecycle;
pub mod limit;
pub mod live;
pub mod login;
pub mod mapping;
pub mod mcp;
pub mod name;
pub mod outcome;
pub mod output;
pub mod page;
pub mod policy;
pub mod principal;
pub mod problem;
pub mod redact;
pub mod reference;
pub mod render;
pub mod requirement;
pub mod resource;
pub mod retrieval;
pub mod run;
pub mod runnable;
pub mod schema;
pub mod secret;
pub mod spec;
pub mod tenant;
pub mod token;
pub mod tool;
pub mod tool_pattern;
pub mod toolset;
pub mod webhook;
pub mod workspace;

pub use jiff::Timestamp;

use std::future::Future;
use std::pin::Pin;

/// A boxed future, so that the async traits of this crate are object safe and independent of a runtime.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The source of the current time, replaceable in tests.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}
