//! The stages around the execution of a call, one per module.
//!
//! Stages are listed outermost first. Each sees the call before and the outcome after the inner stages, which it may
//! run once, several times, or not at all.

mod audit;
mod cache;
mod concurrency;
mod end_guard;
mod error;
mod execute;
mod from_fn;
mod logging;
mod next;
mod output;
mod rate_limit;
mod retry;
mod timeout;

pub use audit::{Audit, AuditSink, AuditedCall};
pub use cache::Cache;
pub use concurrency::Concurrency;
pub use error::StageError;
pub(crate) use execute::execute;
pub use from_fn::{FromFn, FromFnWith, StageFn, StageFnWith, from_fn, from_fn_with};
pub use logging::Logging;
pub use next::{Next, Stage};
pub(crate) use output::fits;
pub use rate_limit::RateLimit;
pub use retry::Retry;
pub use timeout::Timeout;
