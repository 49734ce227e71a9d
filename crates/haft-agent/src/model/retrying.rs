//! Sends a request again after temporary errors.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use haft_core::backoff::Backoff;
use haft_runtime::retry::random;

use super::error::ModelError;
use super::event::ModelEvent;
use super::request::ModelRequest;
use super::stream::{EventSource, EventStream, Model, stream_of};

/// The longest wait that the provider did not ask for.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

/// How often a request is sent again, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of retries; 0 turns them off.
    pub attempts: u32,
    /// The wait before the first retry; it doubles with each one.
    pub backoff: Duration,
    /// The maximum wait. If the provider asks for more, the error is returned at once.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 2, backoff: Duration::from_secs(1), max_wait: Duration::from_mins(1) }
    }
}

/// Retries a model: on rate limits, overload, failures of the server and lost connections, as long as no part of an
/// answer was passed on.
pub struct Retrying {
    model: Arc<dyn Model>,
    policy: RetryPolicy,
}

impl Retrying {
    /// Wraps a model.
    pub fn new(model: Arc<dyn Model>, policy: RetryPolicy) -> Self {
        Self { model, policy }
    }
}

impl Model for Retrying {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn stream(&self, request: &ModelRequest) -> EventStream {
        stream_of(Attempts {
            events: self.model.stream(request),
            model: Arc::clone(&self.model),
            request: request.clone(),
            policy: self.policy,
            failed: 0,
            has_started: false,
        })
    }
}

struct Attempts {
    model: Arc<dyn Model>,
    request: ModelRequest,
    policy: RetryPolicy,
    events: EventStream,
    failed: u32,
    has_started: bool,
}

impl Attempts {
    /// Returns how long to wait before the request is sent again; `None` if it is not.
    fn wait(&self, error: &ModelError) -> Option<Duration> {
        if self.has_started || self.failed >= self.policy.attempts || !error.kind.is_temporary() {
            return None;
        }
        let requested = error.retry_after();
        if requested.is_some_and(|wait| wait > self.policy.max_wait) {
            return None;
        }
        let backoff =
            Backoff::new(self.policy.backoff, LONGEST_BACKOFF.min(self.policy.max_wait)).spread(0.5);
        Some(backoff.wait_at_least(requested, self.failed, random()))
    }
}

impl EventSource for Attempts {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            let item = self.events.next().await?;
            let Err(error) = item else {
                self.has_started = true;
                return Some(item);
            };
            let Some(wait) = self.wait(&error) else { return Some(Err(error)) };
            tracing::info!(%error, ?wait, "retrying a request to a model");
            self.failed += 1;
            tokio::time::sleep(wait).await;
            self.events = self.model.stream(&self.request);
        }
    }
}
