//! Whether and when a failed call or request is retried.

use std::time::Duration;

use haft_core::Timestamp;
use haft_core::backoff::Backoff;
use haft_core::implementation::{HttpRequest, Implementation, Kind};
use haft_core::outcome::CallError;
use haft_core::spec::{Retry, ToolSpec, default_backoff};

/// The default number of retries of a safe request.
const DEFAULT_ATTEMPTS: u32 = 2;
/// The maximum wait between two attempts, unless the server requests a longer one.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The maximum `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(10);

/// Returns the retry policy of a tool.
pub fn policy(spec: &ToolSpec) -> Retry {
    spec.execution
        .retry
        .clone()
        .unwrap_or(Retry { attempts: DEFAULT_ATTEMPTS, backoff_ms: default_backoff() })
}

/// Returns whether a second call does no harm, although the first may have had effects.
pub(crate) fn is_repeatable(spec: &ToolSpec) -> bool {
    let idempotent = |request: &HttpRequest| {
        let method = request.method.to_ascii_uppercase();
        // Without a method and a body it is a `GET`.
        if method.is_empty() { request.body.is_none() } else { IDEMPOTENT.contains(&method.as_str()) }
    };
    let is_safe_request = match &spec.implementation {
        Implementation::Http(http) if http.steps.is_empty() => idempotent(&http.request),
        Implementation::Http(http) => http.steps.iter().all(|step| idempotent(&step.request)),
        _ => false,
    };
    let is_retried = spec.execution.retry.as_ref().is_some_and(|retry| retry.attempts > 0);
    spec.execution.is_pure || is_retried || is_safe_request
}

/// The idempotent methods of RFC 9110.
const IDEMPOTENT: [&str; 6] = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

/// Returns whether a call that failed with this error may be repeated.
///
/// Without a `retry` in the definition, only the `http` executor knows which of its errors are safe to retry; errors of
/// other tools are retried only if the tool marked them as retryable although their code is not.
pub(crate) fn may_retry(spec: &ToolSpec, error: &CallError) -> bool {
    spec.execution.retry.is_some()
        || spec.implementation.kind() == Kind::Http
        || (error.retryable && !error.code.retryable())
}

/// Returns how long to wait before the next attempt, or `None` if there is none.
///
/// `random` is a number in `0.0..1.0`; it spreads the waits of many callers between half and all of the exponential
/// backoff.
pub fn wait(retry: &Retry, error: &CallError, attempt: u32, random: f64) -> Option<Duration> {
    if !error.retryable || attempt >= retry.attempts {
        return None;
    }
    let backoff = Backoff::new(Duration::from_millis(retry.backoff_ms), MAX_WAIT).spread(0.5);
    Some(backoff.wait_at_least(error.retry_after, attempt, random))
}

/// Returns a number in `0.0..1.0` for the jitter of waits.
pub fn random() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / (f64::from(u32::MAX) + 1.0)
}

/// Parses a `Retry-After`: seconds or an HTTP date, up to a maximum.
pub fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    let wait = if let Ok(seconds) = text.parse::<u64>() {
        Duration::from_secs(seconds)
    } else {
        let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
        Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO)
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::outcome::ErrorCode;

    #[test]
    fn waits_double_until_the_attempts_are_used_up() {
        let retry = Retry { attempts: 3, backoff_ms: 100 };
        let error = CallError::new(ErrorCode::Network, "x");
        let waits: Vec<_> = (0..4).map(|attempt| wait(&retry, &error, attempt, 1.0)).collect();
        let ms = Duration::from_millis;
        assert_eq!(waits, [Some(ms(100)), Some(ms(200)), Some(ms(400)), None]);
        assert_eq!(wait(&retry, &error, 0, 0.0), Some(ms(50)));
    }

    #[test]
    fn only_retryable_errors_are_retried_after_the_requested_wait() {
        let retry = Retry { attempts: 3, backoff_ms: 100 };
        assert_eq!(wait(&retry, &CallError::new(ErrorCode::InvalidArguments, "x"), 0, 0.5), None);
        let mut error = CallError::new(ErrorCode::HttpStatus, "429").retryable(true);
        error.retry_after = Some(Duration::from_secs(7));
        assert_eq!(wait(&retry, &error, 0, 0.5), Some(Duration::from_secs(7)));
        let huge = Retry { attempts: u32::MAX, backoff_ms: u64::MAX };
        assert!(wait(&huge, &error, 4000, 1.0).unwrap() <= MAX_WAIT);
    }

    #[test]
    fn retry_after() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("3", Some(3)),
            (" 0 ", Some(0)),
            ("99999999", Some(600)),
            ("Sun, 15 Nov 2026 12:00:30 GMT", Some(30)),
            ("Sun, 15 Nov 2026 11:00:00 GMT", Some(0)),
            ("Sun, 15 Nov 2099 11:00:00 GMT", Some(600)),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(parse_retry_after(text, now), expected.map(Duration::from_secs), "{text}");
        }
    }
}
