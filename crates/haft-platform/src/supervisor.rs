//! Runs each loop as a task of its own and restarts it with backoff after a panic or an unexpected end.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use haft_core::BoxFuture;
use haft_core::backoff::Backoff;
use metrics::{Counter, Gauge};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// The longest wait before a restart. A loop that ran for this long starts again with the shortest one.
const MAX_WAIT: Duration = Duration::from_mins(1);
/// The waits before restarts.
const WAITS: Backoff = Backoff::new(Duration::from_secs(1), MAX_WAIT);

/// What depends on a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Importance {
    /// Without it revoked access stays in force: the server is not ready while it is down.
    Security,
    /// Without it the server still answers correctly.
    Ordinary,
}

/// A loop: a name, and a function that starts it again and again.
pub struct LoopSpec {
    pub name: &'static str,
    pub importance: Importance,
    /// Cancelled before the loop may end.
    pub stop: CancellationToken,
    pub run: Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
}

/// Which loops run.
#[derive(Default)]
pub struct LoopStates(Mutex<BTreeMap<&'static str, LoopState>>);

#[derive(Debug, Clone, Copy)]
struct LoopState {
    importance: Importance,
    is_up: bool,
}

impl LoopStates {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, LoopState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, name: &'static str, state: LoopState) {
        self.lock().insert(name, state);
    }

    /// Returns the loops that security rests on and that are down.
    pub fn down(&self) -> Vec<&'static str> {
        let is_down = |state: &LoopState| !state.is_up && state.importance == Importance::Security;
        self.lock().iter().filter(|(_, state)| is_down(state)).map(|(name, _)| *name).collect()
    }
}

/// Starts loops and keeps them running.
pub struct Supervisor<'a> {
    pub states: &'a Arc<LoopStates>,
    pub metrics: &'a Metrics,
}

impl Supervisor<'_> {
    /// Starts a loop; the task ends when the loop ends after `stop` was cancelled.
    pub fn start(&self, spec: LoopSpec) -> JoinHandle<()> {
        let (restarts, up) = self.metrics.of_loop(spec.name);
        let supervised = SupervisedLoop { spec, states: Arc::clone(self.states), restarts, up };
        supervised.set_up(true);
        tokio::spawn(supervised.run())
    }
}

struct SupervisedLoop {
    spec: LoopSpec,
    states: Arc<LoopStates>,
    restarts: Counter,
    up: Gauge,
}

impl SupervisedLoop {
    fn set_up(&self, is_up: bool) {
        self.up.set(f64::from(u8::from(is_up)));
        self.states.set(self.spec.name, LoopState { importance: self.spec.importance, is_up });
    }

    async fn run(self) {
        let (name, mut failures) = (self.spec.name, 0_u32);
        loop {
            let started = Instant::now();
            // The function that makes the future may panic as well as the future.
            let attempt = AssertUnwindSafe(async { (self.spec.run)().await }).catch_unwind().await;
            if self.spec.stop.is_cancelled() {
                return;
            }
            if started.elapsed() >= MAX_WAIT {
                failures = 0;
            }
            let wait = WAITS.wait(failures, 0.0);
            self.set_up(false);
            match attempt {
                Ok(()) => tracing::error!(r#loop = name, ?wait, "a maintenance loop ended; restarting it"),
                Err(panic) => {
                    let reason = panic_message(&*panic);
                    tracing::error!(
                        r#loop = name,
                        reason,
                        ?wait,
                        "a maintenance loop panicked; restarting it"
                    );
                }
            }
            tokio::select! {
                () = self.spec.stop.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            failures = failures.saturating_add(1);
            self.restarts.increment(1);
            self.set_up(true);
        }
    }
}

/// Returns the text of a panic.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown")
}

#[cfg(test)]
#[path = "supervisor_tests.rs"]
mod tests;
