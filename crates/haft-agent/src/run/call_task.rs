//! One call, with the repetitions that the agent allows.

use std::sync::Arc;
use std::time::Duration;

use haft_core::agent::Supervision;
use haft_core::backoff::Backoff;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::run::RunUsage;

use super::host::{RunHost, ToolReply, ToolRequest};

/// The maximum number of repetitions, and the longest pause before one.
const MAX_ATTEMPTS: u32 = 10;
const MAX_PAUSE: Duration = Duration::from_mins(10);

/// A call that can run.
pub(super) struct CallTask {
    pub(super) host: Arc<dyn RunHost>,
    pub(super) request: ToolRequest,
    pub(super) is_pure: bool,
    pub(super) supervision: Option<Supervision>,
}

impl CallTask {
    /// Runs the call. Each repetition has an idempotency key of its own, so that a run that continues passes through the
    /// same attempts and repeats none of them.
    pub(super) async fn run(self) -> Result<ToolReply, CallError> {
        let Self { host, request, is_pure, supervision } = self;
        let attempts = supervision.map_or(0, |supervision| supervision.attempts.min(MAX_ATTEMPTS));
        let first = Duration::from_millis(supervision.map_or(0, |supervision| supervision.backoff_ms));
        let backoff = Backoff::new(first, MAX_PAUSE);
        let mut used = RunUsage::default();
        for attempt in 0.. {
            let mut reply = host.call(with_attempt(&request, attempt)).await;
            if let Ok(ToolReply::Ended(ended)) = &mut reply {
                used.add(&ended.usage);
                ended.usage = used.clone();
            }
            match error_of(&reply) {
                Some(error) if attempt < attempts && may_repeat(error, is_pure) => {
                    let wait = backoff.wait_at_least(error.retry_after, attempt, 0.0);
                    tokio::time::sleep(wait.min(MAX_PAUSE)).await;
                }
                _ => return reply,
            }
        }
        Err(CallError::internal("the attempts of a call have no end"))
    }
}

fn with_attempt(request: &ToolRequest, attempt: u32) -> ToolRequest {
    let mut request = request.clone();
    if let Some(key) = request.idempotency_key.as_mut().filter(|_| attempt > 0) {
        key.push(':');
        key.push_str(&attempt.to_string());
    }
    request
}

fn error_of(reply: &Result<ToolReply, CallError>) -> Option<&CallError> {
    match reply {
        Ok(ToolReply::Ended(ended)) => ended.error.as_ref(),
        Ok(ToolReply::AwaitingApproval { .. }) => None,
        Err(error) => Some(error),
    }
}

/// Returns whether a call that failed may be repeated. One with side effects may only if it did not run, or if the tool
/// itself says so.
fn may_repeat(error: &CallError, is_pure: bool) -> bool {
    let did_not_run = matches!(error.code, ErrorCode::Overloaded | ErrorCode::RateLimited);
    error.retryable && (is_pure || did_not_run || !error.code.retryable())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_with_effects_is_repeated_only_if_that_is_safe() {
        for (code, marked, pure, effects) in [
            (ErrorCode::Timeout, None, true, false),
            (ErrorCode::Network, None, true, false),
            (ErrorCode::RateLimited, None, true, true),
            (ErrorCode::ExecutionFailed, None, false, false),
            (ErrorCode::ExecutionFailed, Some(true), true, true),
            (ErrorCode::RateLimited, Some(false), false, false),
        ] {
            let mut error = CallError::new(code, "x");
            error.retryable = marked.unwrap_or(error.retryable);
            assert_eq!((may_repeat(&error, true), may_repeat(&error, false)), (pure, effects), "{code}");
        }
    }
}
