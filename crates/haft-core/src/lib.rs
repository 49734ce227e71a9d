//! The vocabulary of haft and its rules.
//!
//! Everything here is plain data and pure functions: no I/O, no clock, no
//! environment, no async runtime. What others implement (stores, executors,
//! clocks) is declared here as traits in plain types.

pub mod audit;
pub mod bundle;
pub mod call;
pub mod catalog;
pub mod coerce;
pub mod duration;
pub mod encode;
pub mod executor;
pub mod hash;
pub mod id;
pub mod implementation;
pub mod ledger;
pub mod mcp;
pub mod name;
pub mod outcome;
pub mod output;
pub mod page;
pub mod problem;
pub mod redact;
pub mod reference;
pub mod runnable;
pub mod schema;
pub mod secret;
pub mod spec;
pub mod token;
pub mod tool;

pub use jiff::Timestamp;

use std::future::Future;
use std::pin::Pin;

/// A boxed future: how the traits of this crate say "this may wait" without naming a runtime.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Tells the time, so that tests can set it.
pub trait Clock: Send + Sync {
    /// Returns the present moment.
    fn now(&self) -> Timestamp;
}
