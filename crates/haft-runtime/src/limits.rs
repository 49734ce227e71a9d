//! Bounds on calls: at once, of the whole server, and of one tool where its definition says so; and of one tool in a
//! time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_core::duration;
use haft_core::outcome::{CallError, ErrorCode};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clock;
use crate::rate::Rate;
use crate::registry::{CompiledTool, Entry};

/// How many calls may wait for their turn of one tool: more would only fill up the server.
const MAX_WAITING: usize = 64;

/// The bound of the whole server.
pub(crate) struct Limits {
    /// As many have it as calls run, and this one.
    place: Arc<()>,
    most: usize,
    /// Who asks for the last place.
    turn: Mutex<()>,
}

impl Limits {
    pub(crate) fn new(most: usize) -> Self {
        Self { place: Arc::default(), most, turn: Mutex::default() }
    }

    /// Gives a call its place, or refuses it before anything has happened.
    #[inline]
    pub(crate) fn admit(&self, entry: &Entry, plan: &CompiledTool) -> Result<Admission, CallError> {
        let place = self.enter().or_else(|| self.enter_in_turn()).ok_or_else(|| {
            let message = format!("{} calls are running already; try again later", self.most);
            CallError::new(ErrorCode::Overloaded, message)
        })?;
        let waiting = match &entry.turns {
            Some(turns) => Some(Waiting::enter(turns).ok_or_else(|| {
                let message = format!("too many calls wait for `{}`; try again later", entry.qualified);
                CallError::new(ErrorCode::Overloaded, message)
            })?),
            None => None,
        };
        // Last, so that only calls that run are counted.
        if let (Some(rate), Some(window)) = (plan.rate, &entry.window) {
            window.take(rate, clock::now()).map_err(|wait| rate_limited(&entry.qualified, rate, wait))?;
        }
        Ok(Admission { waiting, turn: None, _place: place })
    }

    fn enter(&self) -> Option<Arc<()>> {
        let place = Arc::clone(&self.place);
        (self.running() <= self.most).then_some(place)
    }

    /// Two that come in the same moment see one another, and neither takes the last place: one after the other does.
    #[cold]
    fn enter_in_turn(&self) -> Option<Arc<()>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.enter()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running() == 0
    }

    fn running(&self) -> usize {
        Arc::strong_count(&self.place) - 1
    }
}

/// Refuses a call of what has this name, until this time has passed.
pub(crate) fn rate_limited(name: &str, rate: Rate, wait: Duration) -> CallError {
    let (calls, per) = (rate.calls(), duration::format(rate.period()));
    let plural = if calls == 1 { "call" } else { "calls" };
    // Whole milliseconds, rounded up: whoever comes earlier is refused again.
    let millis = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    let wait = Duration::from_millis(millis);
    let shown = if wait > Duration::from_secs(10) {
        Duration::from_secs(wait.as_nanos().div_ceil(1_000_000_000).try_into().unwrap_or(u64::MAX))
    } else {
        wait
    };
    let message =
        format!("`{name}` takes {calls} {plural} in {per}; try again in {}", duration::format(shown));
    let details = json!({"calls": calls, "per": per, "retry_after_ms": millis});
    let mut error = CallError::new(ErrorCode::RateLimited, message).with_details(details);
    error.retry_after = Some(wait);
    error
}

/// The place of a call among the running ones, given back when dropped.
pub(crate) struct Admission {
    waiting: Option<Waiting>,
    turn: Option<OwnedSemaphorePermit>,
    _place: Arc<()>,
}

impl Admission {
    /// Waits until the tool has room.
    pub(crate) async fn turn(&mut self) -> Result<(), CallError> {
        if let Some(waiting) = self.waiting.take() {
            let turn = Arc::clone(&waiting.0.room).acquire_owned().await;
            self.turn = Some(turn.map_err(|error| CallError::internal(error.to_string()))?);
        }
        Ok(())
    }
}

/// The bound of one tool. It outlives changes of the definition.
pub(crate) struct Turns {
    room: Arc<Semaphore>,
    pub(crate) most: u32,
    waiting: AtomicUsize,
}

impl Turns {
    pub(crate) fn new(most: u32) -> Self {
        let permits = usize::try_from(most).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Self { room: Arc::new(Semaphore::new(permits)), most, waiting: AtomicUsize::new(0) }
    }
}

struct Waiting(Arc<Turns>);

impl Waiting {
    fn enter(turns: &Arc<Turns>) -> Option<Self> {
        // The guard comes first: dropping it takes the count back.
        let guard = Self(Arc::clone(turns));
        (turns.waiting.fetch_add(1, Ordering::AcqRel) < MAX_WAITING).then_some(guard)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn the_last_place_is_given_once_also_where_several_come_at_once() {
        for most in [1, 3] {
            let (limits, together) = (Limits::new(most), Barrier::new(4));
            for _ in 0..2_000 {
                let enter = || {
                    together.wait();
                    let place = limits.enter().or_else(|| limits.enter_in_turn());
                    together.wait();
                    place.is_some()
                };
                let given = std::thread::scope(|scope| {
                    let tries = [(); 4].map(|()| scope.spawn(enter));
                    tries.map(|attempt| attempt.join().unwrap()).into_iter().filter(|given| *given).count()
                });
                assert_eq!(given, most);
                assert!(limits.is_idle());
            }
        }
    }
}
