//! A stage that retries calls after transient errors.

use std::sync::Arc;
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::spec::{self, default_backoff};

use crate::pipeline::Call;
use crate::stages::{Next, Stage};
use crate::{clock, retry};

type Rule = Arc<dyn Fn(&Call, &CallError) -> bool + Send + Sync>;

/// Retries the inner stages after retryable errors, with exponential backoff and jitter.
///
/// By default it retries only what cannot have an effect twice: calls rejected before they ran, pure tools, tools whose
/// definition has a `retry`, `http` tools as far as their method allows, and errors that a function marks as
/// retryable. A `retry_after` of the error is respected. There is no retry if the wait would end after the deadline.
#[derive(Clone)]
pub struct Retry {
    policy: spec::Retry,
    rule: Option<Rule>,
}

impl Retry {
    /// Allows this many attempts after the first one.
    pub fn new(attempts: u32) -> Self {
        Self { policy: spec::Retry { attempts, backoff_ms: default_backoff() }, rule: None }
    }

    /// Sets the wait before the second attempt.
    #[must_use]
    pub fn backoff(mut self, wait: Duration) -> Self {
        self.policy.backoff_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Replaces the default rule for which errors are retried.
    #[must_use]
    pub fn only_if(mut self, rule: impl Fn(&Call, &CallError) -> bool + Send + Sync + 'static) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// Returns how long to wait before the next attempt, or `None` if there is none.
    fn wait(&self, call: &Call, error: &CallError, attempt: u32) -> Option<Duration> {
        let wait = match &self.rule {
            Some(rule) if rule(call, error) => {
                retry::wait(&self.policy, &error.clone().retryable(true), attempt, retry::random())
            }
            None if is_safe(call, error) => retry::wait(&self.policy, error, attempt, retry::random()),
            _ => None,
        }?;
        // Waiting past the deadline would replace this error by a timeout, which says less.
        (clock::now() + wait < call.deadline()).then_some(wait)
    }
}

fn is_safe(call: &Call, error: &CallError) -> bool {
    let spec = &call.plan.spec;
    matches!(error.code, ErrorCode::RateLimited | ErrorCode::Overloaded)
        || spec.execution.is_pure
        || retry::may_retry(spec, error)
}

impl Stage for Retry {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let mut attempt = 0;
            loop {
                let error = match next.run(call).await {
                    Ok(value) => return Ok(value),
                    Err(error) => error,
                };
                let Some(wait) = self.wait(call, &error, attempt) else { return Err(error) };
                tokio::time::sleep(wait).await;
                attempt += 1;
            }
        })
    }
}
