//! Every request has an id: the client's `X-Request-Id` if it is valid, otherwise a new one.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderName};

/// The header of requests and responses that carries the id.
pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");

tokio::task_local! {
    static CURRENT: String;
}

/// Returns the id of the request that this task handles.
pub fn current() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Returns the id of a request: the client's if it is valid, otherwise a new one.
pub fn from_headers(headers: &HeaderMap) -> String {
    headers
        .get(HEADER)
        .and_then(|value| value.to_str().ok())
        .filter(|id| (1..=64).contains(&id.len()) && id.bytes().all(is_allowed))
        .map_or_else(generate, str::to_owned)
}

/// Runs the handling of a request under its id.
pub fn scope<F: Future>(id: String, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(id, work)
}

/// Generates an id from a random prefix per process and a counter; ids need not be secret.
fn generate() -> String {
    static PREFIX: LazyLock<u32> = LazyLock::new(|| getrandom::u32().unwrap_or_default());
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{:08x}-{:x}", *PREFIX, COUNT.fetch_add(1, Ordering::Relaxed))
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte)
}
