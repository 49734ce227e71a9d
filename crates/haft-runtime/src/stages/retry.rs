//! What failed in a way that may pass is tried again.

use std::sync::Arc;
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::spec::{self, default_backoff};

use crate::pipeline::Call;
use crate::stages::execute::random;
use crate::stages::{Next, Stage};
use crate::{clock, retry};

type Rule = Arc<dyn Fn(&Call, &CallError) -> bool + Send + Sync>;

/// Runs what is inside again where its error may pass, with a wait that doubles and is spread.
///
/// By itself it repeats only what cannot have an effect twice: what was refused before it ran, pure tools, tools whose
/// definition has a `retry`, `http` tools as far as their method allows, and errors that a function marks as
/// retryable. An error's own `retry_after` is waited for. A wait that would end after the deadline is not begun.
#[derive(Clone)]
pub struct Retry {
    policy: spec::Retry,
    rule: Option<Rule>,
}

impl Retry {
    /// Allows so many attempts after the first one.
    pub fn new(attempts: u32) -> Self {
        Self { policy: spec::Retry { attempts, backoff_ms: default_backoff() }, rule: None }
    }

    /// Sets the wait before the second attempt.
    #[must_use]
    pub fn backoff(mut self, wait: Duration) -> Self {
        self.policy.backoff_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Decides by itself which errors are worth another attempt, instead of the rule that it is safe.
    #[must_use]
    pub fn only_if(mut self, rule: impl Fn(&Call, &CallError) -> bool + Send + Sync + 'static) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// Returns how long to wait before another attempt, if there is to be one.
    fn wait(&self, call: &Call, error: &CallError, attempt: u32) -> Option<Duration> {
        let wait = match &self.rule {
            Some(rule) if rule(call, error) => {
                retry::wait(&self.policy, &error.clone().retryable(true), attempt, random())
            }
            None if is_safe(call, error) => retry::wait(&self.policy, error, attempt, random()),
            _ => None,
        }?;
        // Waiting past the deadline would only replace a clear error by a vague one.
        (clock::now() + wait < call.deadline()).then_some(wait)
    }
}

fn is_safe(call: &Call, error: &CallError) -> bool {
    let spec = &call.plan.spec;
    matches!(error.code, ErrorCode::RateLimited | ErrorCode::Overloaded)
        || spec.execution.is_pure
        || retry::may_repeat(spec, error)
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
