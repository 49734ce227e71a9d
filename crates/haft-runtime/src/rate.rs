//! Rate limits: a maximum number of calls per period.
//!
//! A [`RateWindow`] holds for *every* interval of the length of the period, wherever it begins; a token bucket would
//! let through nearly twice as many calls. It counts calls in a few batches, so its size does not grow with the rate.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_core::duration;
use haft_core::limit::{CallRate, LimitName, RateStatus};
use haft_core::outcome::CallError;
use serde_json::{Value, json};

use crate::clock;
use crate::concurrency::ConcurrencyLimit;

/// The number of batches in a window. Rates up to this number of calls are counted exactly; above it, a call may
/// count for up to one batch longer than the period.
const BATCHES: u32 = 16;

/// The shortest time between two searches for unused keys: each one visits all keys.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);

/// The number of keys above which those without recent calls are forgotten when their number doubles.
const MIN_KEY_SWEEP: usize = 64;

/// A number of calls per period.
///
/// ```
/// use std::time::Duration;
/// use haft_runtime::rate::Rate;
///
/// let rate = Rate::per_minute(60);
/// assert_eq!((rate.calls(), rate.period()), (60, Duration::from_secs(60)));
/// // At most five at once: five in every five seconds.
/// assert_eq!(rate.burst(5), Rate::new(5, Duration::from_secs(5)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    calls: u32,
    period: Duration,
}

/// An invalid [`Rate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// The number of calls is 0.
    #[error("a rate of 0 calls rejects every call; use 1 or more, or leave the tool out of the set")]
    ZeroCalls,
    /// The period is 0.
    #[error("the period of a rate is 0; use a duration such as `Duration::from_secs(1)`")]
    ZeroPeriod,
}

impl Rate {
    /// Allows this many calls in every interval of this length.
    pub const fn new(calls: u32, period: Duration) -> Self {
        Self { calls, period }
    }

    /// Allows this many calls per second.
    pub const fn per_second(calls: u32) -> Self {
        Self::new(calls, Duration::from_secs(1))
    }

    /// Allows this many calls per minute.
    pub const fn per_minute(calls: u32) -> Self {
        Self::new(calls, Duration::from_mins(1))
    }

    /// Allows this many calls per hour.
    pub const fn per_hour(calls: u32) -> Self {
        Self::new(calls, Duration::from_hours(1))
    }

    /// Allows one call per period.
    pub const fn every(period: Duration) -> Self {
        Self::new(1, period)
    }

    /// Limits bursts to this many calls, at the same average rate. Without it, all calls of a period may come at
    /// once.
    #[must_use]
    pub fn burst(self, calls: u32) -> Self {
        let Some(one) = self.period.checked_div(self.calls) else { return self };
        Self::new(calls, one.saturating_mul(calls))
    }

    /// Returns the number of calls.
    pub const fn calls(self) -> u32 {
        self.calls
    }

    /// Returns the period.
    pub const fn period(self) -> Duration {
        self.period
    }

    /// Returns the rate if it is valid.
    pub fn checked(self) -> Result<Self, RateError> {
        match self {
            Self { calls: 0, .. } => Err(RateError::ZeroCalls),
            Self { period: Duration::ZERO, .. } => Err(RateError::ZeroPeriod),
            rate => Ok(rate),
        }
    }

    /// Returns the error of a call that exceeds this rate. `subject` names what is limited.
    pub(crate) fn exceeded(self, limit: LimitName, subject: &str, wait: Duration) -> CallError {
        let (calls, period) = (self.calls, duration::format(self.period));
        let unit = if calls == 1 { "call" } else { "calls" };
        // Rounded up to whole milliseconds: an earlier retry is rejected again.
        let millis = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let wait = Duration::from_millis(millis);
        let shown = if wait > Duration::from_secs(10) {
            Duration::from_secs(wait.as_nanos().div_ceil(1_000_000_000).try_into().unwrap_or(u64::MAX))
        } else {
            wait
        };
        let shown = duration::format(shown);
        let message =
            format!("rate limit exceeded for {subject}: {calls} {unit} per {period}; retry in {shown}");
        let mut error = limit.refuse(calls.into(), message, Some(wait));
        if let Some(Value::Object(details)) = error.details.as_deref_mut() {
            details.extend([
                ("calls".to_owned(), json!(calls)),
                ("per".to_owned(), json!(period)),
                ("retry_after_ms".to_owned(), json!(millis)),
            ]);
        }
        error
    }
}

impl From<CallRate> for Rate {
    fn from(rate: CallRate) -> Self {
        Self::new(rate.calls, rate.period)
    }
}

impl From<Rate> for CallRate {
    fn from(rate: Rate) -> Self {
        Self { calls: rate.calls, period: rate.period }
    }
}

/// The recent calls. It is not bound to one rate: when that changes, counted calls stay counted.
#[derive(Debug, Default)]
pub(crate) struct RateWindow(Mutex<Batches>);

#[derive(Debug, Default)]
struct Batches {
    batches: VecDeque<Batch>,
    /// The period of the last rate, after which a batch no longer counts.
    period: Duration,
}

/// Calls that followed each other closely.
#[derive(Debug)]
struct Batch {
    first: Instant,
    /// The whole batch expires with its last call.
    last: Instant,
    calls: u32,
}

impl RateWindow {
    /// Counts a call, or returns how long to wait until the rate allows one.
    pub(crate) fn take(&self, rate: Rate, now: Instant) -> Result<RateStatus, Duration> {
        let mut window = self.lock();
        window.period = rate.period;
        let Batches { batches, .. } = &mut *window;
        remove_expired(batches, rate.period, now);
        let calls = batches.iter().fold(0u32, |sum, batch| sum.saturating_add(batch.calls));
        if calls >= rate.calls {
            // After a rate was lowered, one batch may not be enough; the next attempt returns the rest of the wait.
            let first = batches.front().map_or(now, |batch| batch.last);
            return Err((first + rate.period).saturating_duration_since(now));
        }
        let (max_calls, max_length) = (rate.calls.div_ceil(BATCHES), rate.period / BATCHES);
        match batches.back_mut() {
            Some(batch)
                if batch.calls < max_calls && now.saturating_duration_since(batch.first) < max_length =>
            {
                batch.calls += 1;
                batch.last = batch.last.max(now);
            }
            _ => batches.push_back(Batch { first: now, last: now, calls: 1 }),
        }
        let first = batches.front().map_or(now, |batch| batch.last);
        let reset = (first + rate.period).saturating_duration_since(now);
        Ok(RateStatus { limit: rate.calls, remaining: rate.calls - calls - 1, reset })
    }

    /// Forgets the last counted call, which did not run because of another limit.
    pub(crate) fn refund(&self) {
        let mut window = self.lock();
        if let Some(batch) = window.batches.back_mut() {
            batch.calls -= 1;
            if batch.calls == 0 {
                window.batches.pop_back();
            }
        }
    }

    /// Returns how much of a rate is used.
    pub(crate) fn status(&self, rate: Rate, now: Instant) -> RateStatus {
        let window = self.lock();
        let counts = |batch: &&Batch| now.saturating_duration_since(batch.last) < rate.period;
        let calls = window.batches.iter().filter(counts).fold(0u32, |sum, b| sum.saturating_add(b.calls));
        let first = window.batches.iter().find(counts);
        let reset =
            first.map_or(Duration::ZERO, |batch| (batch.last + rate.period).saturating_duration_since(now));
        RateStatus { limit: rate.calls, remaining: rate.calls.saturating_sub(calls), reset }
    }

    /// Returns whether all calls have expired.
    fn is_empty(&self, now: Instant) -> bool {
        let mut window = self.lock();
        let period = window.period;
        remove_expired(&mut window.batches, period, now);
        window.batches.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Batches> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The recent calls of each key: a tenant, a token, a session. The calls of one do not count for another.
#[derive(Debug)]
pub(crate) struct RateWindows<K>(Mutex<HashMap<K, Arc<RateWindow>>>);

impl<K> Default for RateWindows<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> RateWindows<K> {
    /// Returns the window of a key, which stays as long as it counts a call or somebody has it.
    pub(crate) fn window(&self, key: &K, now: Instant) -> Arc<RateWindow> {
        let mut windows = self.lock();
        if let Some(window) = windows.get(key) {
            return Arc::clone(window);
        }
        if windows.len() >= MIN_KEY_SWEEP && windows.len().is_power_of_two() {
            windows.retain(|_, window| Arc::strong_count(window) > 1 || !window.is_empty(now));
        }
        Arc::clone(windows.entry(key.clone()).or_default())
    }

    /// Returns the window of a key, if there is one.
    pub(crate) fn get(&self, key: &K) -> Option<Arc<RateWindow>> {
        self.lock().get(key).cloned()
    }

    /// Returns the number of keys.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<RateWindow>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn remove_expired(batches: &mut VecDeque<Batch>, period: Duration, now: Instant) {
    while batches.front().is_some_and(|batch| now.saturating_duration_since(batch.last) >= period) {
        batches.pop_front();
    }
}

/// A rate limit for each key, with an optional bounded queue of calls that wait.
pub(crate) struct KeyedRateLimit {
    /// How many calls of one key may wait; with 0, excess calls are rejected at once.
    pub(crate) max_queued: usize,
    /// How many keys are counted at a time. A further one is rejected: removing a key that still counts calls would
    /// exceed its rate.
    pub(crate) max_keys: usize,
    keys: Mutex<Keys>,
}

#[derive(Default)]
struct Keys {
    counters: HashMap<String, Arc<RateCounter>>,
    last_sweep: Option<Instant>,
}

struct RateCounter {
    window: RateWindow,
    /// The first of the queue waits for the window, the others for their turn.
    queue: ConcurrencyLimit,
}

/// Why a keyed rate limit rejected a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateRejection {
    /// The rate is exceeded; a retry after this time may succeed.
    Exceeded(Duration),
    /// As many keys as allowed are in use.
    TooManyKeys,
}

impl KeyedRateLimit {
    pub(crate) fn new(max_keys: usize) -> Self {
        Self { max_queued: 0, max_keys, keys: Mutex::default() }
    }

    /// Counts a call of a key; waits for the rate to allow it if there is a queue, but not beyond the deadline.
    pub(crate) async fn acquire(
        &self,
        key: String,
        rate: Rate,
        deadline: Instant,
    ) -> Result<(), RateRejection> {
        // Counted or queued under the lock, so that no sweep removes the counter in between.
        let (counter, mut ticket) = {
            let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            let counter = keys.counter(key, self)?;
            // A call does not overtake those in the queue.
            if counter.queue.in_use() == 0 {
                match counter.window.take(rate, clock::now()) {
                    Ok(_) => return Ok(()),
                    Err(wait) if self.max_queued == 0 => return Err(RateRejection::Exceeded(wait)),
                    Err(_) => {}
                }
            }
            let ticket = counter.queue.enqueue().ok_or(RateRejection::Exceeded(rate.period))?;
            (counter, ticket)
        };
        let turn = tokio::time::timeout_at(deadline.into(), ticket.acquire()).await;
        turn.map_err(|_| RateRejection::Exceeded(rate.period))?;
        while let Err(wait) = counter.window.take(rate, clock::now()) {
            // Waiting past the deadline would end in a timeout, which says less than this error.
            if clock::now() + wait >= deadline {
                return Err(RateRejection::Exceeded(wait));
            }
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }
}

impl Keys {
    fn counter(&mut self, key: String, limit: &KeyedRateLimit) -> Result<Arc<RateCounter>, RateRejection> {
        if let Some(counter) = self.counters.get(&key) {
            return Ok(Arc::clone(counter));
        }
        if self.counters.len() >= limit.max_keys {
            self.sweep();
        }
        if self.counters.len() >= limit.max_keys {
            return Err(RateRejection::TooManyKeys);
        }
        let queue = ConcurrencyLimit::new(1, limit.max_queued.saturating_sub(1));
        let counter = Arc::new(RateCounter { window: RateWindow::default(), queue });
        self.counters.insert(key, Arc::clone(&counter));
        Ok(counter)
    }

    /// Removes the keys that count no call.
    fn sweep(&mut self) {
        let now = clock::now();
        if self.last_sweep.is_some_and(|last| now.saturating_duration_since(last) < SWEEP_INTERVAL) {
            return;
        }
        self.last_sweep = Some(now);
        self.counters.retain(|_, counter| counter.queue.in_use() > 0 || !counter.window.is_empty(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::name::TenantId;
    use proptest::prelude::*;

    #[test]
    fn tenants_are_counted_apart_and_forgotten() {
        let (start, rate) = (Instant::now(), Rate::new(1, Duration::from_secs(1)));
        let windows = RateWindows::default();
        let tenant = |number: usize| TenantId::new(&format!("tenant-{number}")).unwrap();
        let take = |number: usize, now| windows.window(&tenant(number), now).take(rate, now);
        assert!(take(0, start).is_ok());
        assert!(take(0, start).is_err());
        assert!(take(1, start).is_ok());
        let mut now = start;
        for number in 0..1000 {
            now += Duration::from_secs(2);
            assert!(take(number, now).is_ok());
        }
        assert!(windows.len() <= MIN_KEY_SWEEP);
    }

    #[test]
    fn a_key_is_forgotten_by_its_own_rate() {
        let (start, windows) = (Instant::now(), RateWindows::default());
        let hourly = Rate::per_hour(1);
        assert!(windows.window(&usize::MAX, start).take(hourly, start).is_ok());
        for number in 0..1000 {
            let now = start + Duration::from_secs(2 * number as u64);
            assert!(windows.window(&number, now).take(Rate::per_second(1), now).is_ok());
        }
        let later = start + Duration::from_mins(50);
        assert!(windows.window(&usize::MAX, later).take(hourly, later).is_err());
    }

    #[test]
    fn a_refunded_call_does_not_count() {
        let (now, rate) = (Instant::now(), Rate::per_minute(2));
        let window = RateWindow::default();
        assert_eq!(window.take(rate, now).unwrap().remaining, 1);
        window.refund();
        assert_eq!(window.status(rate, now).remaining, 2);
        assert_eq!([(); 3].map(|()| window.take(rate, now).is_ok()), [true, true, false]);
        let status = window.status(rate, now + Duration::from_secs(10));
        assert_eq!(status, RateStatus { limit: 2, remaining: 0, reset: Duration::from_secs(50) });
    }

    #[test]
    fn small_rates_are_counted_exactly() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let (window, rate) = (RateWindow::default(), Rate::new(2, Duration::from_secs(1)));
        let taken: Vec<_> = [0, 600, 700, 999, 1000, 1001, 1600, 1600]
            .map(|millis| window.take(rate, at(millis)).map(drop))
            .into();
        let wait = |millis| Err(Duration::from_millis(millis));
        assert_eq!(taken, [Ok(()), Ok(()), wait(300), wait(1), Ok(()), wait(599), Ok(()), wait(400)]);
        assert!(!window.is_empty(at(2599)));
        assert!(window.is_empty(at(2600)));
    }

    #[test]
    fn counted_calls_stay_counted_when_the_rate_changes() {
        let now = Instant::now();
        let window = RateWindow::default();
        for _ in 0..10 {
            window.take(Rate::per_second(10), now).unwrap();
        }
        assert_eq!(window.take(Rate::per_second(5), now), Err(Duration::from_secs(1)));
        assert!(window.take(Rate::per_second(11), now).is_ok());
    }

    #[test]
    fn invalid_rates_are_rejected() {
        for (rate, expected) in [
            (Rate::per_second(0), Err(RateError::ZeroCalls)),
            (Rate::every(Duration::ZERO), Err(RateError::ZeroPeriod)),
            (Rate::per_minute(3).burst(0), Err(RateError::ZeroCalls)),
            (Rate::per_hour(0).burst(3), Err(RateError::ZeroCalls)),
            (Rate::per_second(5), Ok(Rate::per_second(5))),
        ] {
            assert_eq!(rate.checked(), expected, "{rate:?}");
        }
    }

    proptest! {
        #[test]
        fn no_interval_exceeds_the_rate(
            calls in 1u32..200,
            gaps in prop::collection::vec((0u64..400, 1usize..60), 1..60),
        ) {
            let rate = Rate::new(calls, Duration::from_secs(1));
            let window = RateWindow::default();
            let mut now = Instant::now();
            let mut taken: Vec<Instant> = Vec::new();
            for (gap, tries) in gaps {
                now += Duration::from_millis(gap);
                for _ in 0..tries {
                    if window.take(rate, now).is_ok() {
                        taken.push(now);
                    }
                }
            }
            for (index, first) in taken.iter().enumerate() {
                let within = taken[index..].iter().take_while(|at| **at - *first < rate.period()).count();
                prop_assert!(within <= calls as usize, "{within} of {calls}");
            }
            prop_assert!(window.lock().batches.len() <= 2 * BATCHES as usize + 2);
        }

        #[test]
        fn a_call_succeeds_after_the_returned_wait(
            calls in 1u32..100,
            gaps in prop::collection::vec(0u64..200, 1..300),
        ) {
            let rate = Rate::new(calls, Duration::from_secs(1));
            let window = RateWindow::default();
            let mut now = Instant::now();
            for gap in gaps {
                now += Duration::from_millis(gap);
                if let Err(wait) = window.take(rate, now) {
                    prop_assert!(wait <= rate.period() && !wait.is_zero());
                    now += wait;
                    prop_assert!(window.take(rate, now).is_ok());
                }
            }
        }
    }
}
