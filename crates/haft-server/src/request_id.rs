//! Every request has an id: the caller's `X-Request-Id` where it is harmless, else a new one.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::middleware::Next;
use axum::response::Response;

tokio::task_local! {
    static CURRENT: String;
}

/// Returns the id of the request that this task handles.
pub(crate) fn current() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Runs the handling of a request under its id, and puts the id on the answer.
pub(crate) async fn scope(request: Request, next: Next) -> Response {
    let id = request
        .headers()
        .get("x-request-id")
        .and_then(|value| value.to_str().ok())
        .filter(|id| (1..=64).contains(&id.len()) && id.bytes().all(harmless))
        .map_or_else(fresh, str::to_owned);
    let header = HeaderValue::from_str(&id);
    let mut response = CURRENT.scope(id, next.run(request)).await;
    if let Ok(header) = header {
        response.headers_mut().insert("x-request-id", header);
    }
    response
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
