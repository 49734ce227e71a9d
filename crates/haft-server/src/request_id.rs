//! Every request has an id: the caller's `X-Request-Id` where it is harmless, else a new one.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName};

/// Where a request and its answer say it.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

tokio::task_local! {
    static CURRENT: String;
}

/// Returns the id of the request that this task handles.
pub(crate) fn current() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Returns the id of a request: the caller's where it is harmless, else a new one.
pub(crate) fn of(headers: &HeaderMap) -> String {
    headers
        .get(HEADER)
        .and_then(|value| value.to_str().ok())
        .filter(|id| (1..=64).contains(&id.len()) && id.bytes().all(harmless))
        .map_or_else(fresh, str::to_owned)
}

/// Runs the handling of a request under its id.
pub(crate) fn scope<F: Future>(id: String, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(id, work)
}

/// Makes an id: one random start per process and a count, as nothing depends on it being secret.
fn fresh() -> String {
    static START: LazyLock<u32> = LazyLock::new(|| getrandom::u32().unwrap_or_default());
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{:08x}-{:x}", *START, COUNT.fetch_add(1, Ordering::Relaxed))
}

fn harmless(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte)
}
