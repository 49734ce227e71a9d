//! Middleware around every call: logging, rate limits, timeouts, retries, caching, auditing, and your own layers.
//!
//! The server uses the same stages. Add them with [`Builder::layer`](crate::Builder::layer) or
//! [`Tools::layer`](crate::Tools::layer); the guide is `docs/middleware.md`.
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
//!     // Count the call here.
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
