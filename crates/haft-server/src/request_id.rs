//! Every request has an id: the caller's `X-Request-Id` where it is harmless, else a new one.

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::middleware::Next;
use axum::response::Response;
use uuid::Uuid;

tokio::task_local! {
    static CURRENT: String;
}

/// Returns the id of the request that this task handles.
pub(crate) fn current() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Sets the id for everything that handles the request, and puts it on the answer.
pub(crate) async fn layer(request: Request, next: Next) -> Response {
    let id = request
        .headers()
        .get("x-request-id")
        .and_then(|value| value.to_str().ok())
        .filter(|id| (1..=64).contains(&id.len()) && id.bytes().all(harmless))
        .map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
    let header = HeaderValue::from_str(&id);
    let mut response = CURRENT.scope(id, next.run(request)).await;
    if let Ok(header) = header {
        response.headers_mut().insert("x-request-id", header);
    }
    response
}

fn harmless(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte)
}
