//! What stands around every call: stages that log, bound, repeat, keep, and whatever else you write.
//!
//! They are the ones of the server: there is one pipeline. [`Builder::layer`](crate::Builder::layer) and
//! [`Tools::layer`](crate::Tools::layer) put them around calls; the guide is `docs/middleware.md`.
//!
//! ```
//! use std::time::Duration;
//! use haft::middleware::{Call, Logging, Next, Rate, RateLimit, Timeout, from_fn};
//!
//! # fn main() -> Result<(), haft::middleware::StageError> {
//! let logging = Logging::new();
//! let searches = RateLimit::per_tool([("web_search", Rate::every(Duration::from_secs(1)))])?;
//! let timeout = Timeout::new(Duration::from_secs(30))?;
//! let own = from_fn(async |call: &mut Call, next: Next<'_>| {
//!     let outcome = next.run(call).await;
//!     // Here you would count it.
//!     outcome
//! });
//! # drop((logging, searches, timeout, own));
//! # Ok(())
//! # }
//! ```

pub use haft_core::outcome::Outcome;
pub use haft_runtime::pipeline::Call;
pub use haft_runtime::rate::{Rate, RateError};
pub use haft_runtime::stages::{
    Audit, AuditSink, AuditedCall, Cache, Concurrency, Logging, Next, RateLimit, Retry, Stage, StageError,
    Timeout, from_fn, from_fn_with,
};
