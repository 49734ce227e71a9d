//! When to try again, and how long to wait before.

use std::time::Duration;

use haft_core::implementation::Kind;
use haft_core::outcome::CallError;
use haft_core::spec::{Retry, ToolSpec, default_backoff};

/// How often a safe request is tried again where the definition says nothing.
const DEFAULT_ATTEMPTS: u32 = 2;
/// The longest wait between two attempts.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Returns how a tool is repeated.
pub(crate) fn policy(spec: &ToolSpec) -> Retry {
    spec.execution
        .retry
        .clone()
        .unwrap_or(Retry { attempts: DEFAULT_ATTEMPTS, backoff_ms: default_backoff() })
}

/// Tells whether a retryable error of this tool may be repeated at all.
///
/// Without a word in the definition, only the `http` executor knows which of its errors are safe; of other
/// tools only what they mark so against the rule of its code is repeated.
pub(crate) fn may_repeat(spec: &ToolSpec, error: &CallError) -> bool {
    spec.execution.retry.is_some()
        || spec.implementation.kind() == Kind::Http
        || (error.retryable && !error.code.retryable())
}

/// Returns how long to wait before the next attempt, or `None` to give up.
///
/// `random` is a number in `0.0..1.0`; it spreads the waits of many callers between half and the whole of
/// the doubling delay.
pub(crate) fn wait(retry: &Retry, error: &CallError, attempt: u32, random: f64) -> Option<Duration> {
    if !error.retryable || attempt >= retry.attempts {
        return None;
    }
    let doubled = Duration::from_millis(retry.backoff_ms).saturating_mul(1 << attempt.min(16)).min(MAX_WAIT);
    let jittered = doubled.mul_f64(0.5 + random / 2.0);
    Some(error.retry_after.map_or(jittered, |asked| asked.max(jittered)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::outcome::ErrorCode;

    #[test]
    fn waits_double_and_end() {
        let retry = Retry { attempts: 3, backoff_ms: 100 };
        let error = CallError::new(ErrorCode::Network, "x");
        let waits: Vec<_> = (0..4).map(|attempt| wait(&retry, &error, attempt, 1.0)).collect();
        let ms = Duration::from_millis;
        assert_eq!(waits, [Some(ms(100)), Some(ms(200)), Some(ms(400)), None]);
        assert_eq!(wait(&retry, &error, 0, 0.0), Some(ms(50)));
    }

    #[test]
    fn only_what_is_retryable_is_repeated_and_the_other_side_decides_the_wait() {
        let retry = Retry { attempts: 3, backoff_ms: 100 };
        assert_eq!(wait(&retry, &CallError::new(ErrorCode::InvalidArguments, "x"), 0, 0.5), None);
        let mut error = CallError::new(ErrorCode::HttpStatus, "429").retryable(true);
        error.retry_after = Some(Duration::from_secs(7));
        assert_eq!(wait(&retry, &error, 0, 0.5), Some(Duration::from_secs(7)));
        let huge = Retry { attempts: u32::MAX, backoff_ms: u64::MAX };
        assert!(wait(&huge, &error, 4000, 1.0).unwrap() <= MAX_WAIT);
    }
}
