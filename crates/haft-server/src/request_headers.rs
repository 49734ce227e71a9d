//! What clients ask for in headers.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};

use crate::error::ApiError;

/// The longest time that `Prefer: wait` waits for a decision.
const MAX_WAIT: Duration = Duration::from_mins(5);

/// Returns how long the client wants to wait for a decision: `Prefer: wait=30`, in seconds.
pub(crate) fn preferred_wait(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get("prefer")?.to_str().ok()?;
    let wait = value.split(',').find_map(|part| part.trim().strip_prefix("wait="))?;
    wait.parse().ok().map(|seconds: u64| Duration::from_secs(seconds).min(MAX_WAIT))
}

/// Returns the surface that a call came through.
pub(crate) fn surface(headers: &HeaderMap) -> &'static str {
    match headers.get("x-haft-surface").map(HeaderValue::as_bytes) {
        Some(b"cli") => "cli",
        _ => "rest",
    }
}

/// Returns the key of a call that runs only once.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    match value.to_str() {
        Ok(key) if (1..=255).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => Err(ApiError::bad_request(
            "invalid `Idempotency-Key`: expected 1 to 255 visible ASCII characters",
        )),
    }
}
