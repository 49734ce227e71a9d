//! What stands around the execution of a call: one stage per module, each an async function of what is next.
//!
//! Stages are given outermost first. Each sees the call on its way in and the outcome on its way out; what is inside
//! of it may run never, once, or several times.

mod audit;
mod cache;
mod concurrency;
mod ending;
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
pub use rate_limit::RateLimit;
pub use retry::Retry;
pub use timeout::Timeout;
