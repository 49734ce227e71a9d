//! The deadline of a call to a server, which progress of the tool postpones.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_core::executor::{CallContext, CallEvent, EventSink};

use super::config::Scrubber;

/// How far progress can postpone the deadline of a call.
pub(super) const MAX_EXTENSION: Duration = Duration::from_hours(1);

/// The deadline of a call.
pub(super) struct CallTimer {
    /// How long the call may take without progress.
    pub(super) allowed: Duration,
    latest: Instant,
    deadline: Mutex<Instant>,
}

impl CallTimer {
    pub(super) fn new(call: &CallContext) -> Self {
        Self {
            allowed: call.deadline.saturating_duration_since(call.started),
            latest: call.deadline + MAX_EXTENSION,
            deadline: Mutex::new(call.deadline),
        }
    }

    /// Awaits a future until the deadline; `None` where it has passed.
    pub(super) async fn limit<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = self.expired() => None,
        }
    }

    async fn expired(&self) {
        loop {
            let deadline = self.deadline();
            tokio::time::sleep_until(deadline.into()).await;
            if self.deadline() <= deadline {
                return;
            }
        }
    }

    fn deadline(&self) -> Instant {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn restart(&self) {
        let mut deadline = self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        *deadline = (*deadline).max(Instant::now() + self.allowed).min(self.latest);
    }
}

/// Receives the progress of a call: restarts its timer, and forwards it without the secrets of the server.
pub(super) struct ProgressSink {
    pub(super) timer: Arc<CallTimer>,
    pub(super) sink: Option<Arc<dyn EventSink>>,
    pub(super) scrubber: Scrubber,
}

impl EventSink for ProgressSink {
    fn emit(&self, event: CallEvent) {
        let CallEvent::Progress(done, text) = event else { return };
        self.timer.restart();
        if let Some(sink) = &self.sink {
            sink.emit(CallEvent::Progress(done, self.scrubber.clean(text)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn progress_postpones_the_deadline_up_to_a_limit() {
        let now = Instant::now();
        let allowed = Duration::from_secs(30);
        let timer = CallTimer { allowed, latest: now + Duration::from_mins(1), deadline: Mutex::new(now) };
        assert_eq!(timer.limit(std::future::pending::<()>()).await, None);
        assert_eq!(timer.limit(std::future::ready(1)).await, Some(1));
        timer.restart();
        assert!(timer.deadline() >= now + allowed);
        *timer.deadline.lock().unwrap() = now + Duration::from_mins(2);
        timer.restart();
        assert_eq!(timer.deadline(), timer.latest);
    }
}
