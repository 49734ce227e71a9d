//! How many calls in which time, and the count of them.
//!
//! A [`Window`] holds in *every* stretch of time of the length of the rate, wherever it begins; a bucket of tokens
//! would let through nearly twice as many. It remembers calls in a few batches instead of one by one, so its size does
//! not grow with the rate.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// In how many parts a window is remembered. Rates of up to so many calls are exact; with more, a call may count for
/// up to one part of the time longer than it has to.
const PARTS: u32 = 16;

/// How many calls in which time.
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
    per: Duration,
}

/// Why a rate lets no call through, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// No call at all.
    #[error("a rate of 0 calls would let no call through; use 1 or more, or leave the tool out of the set")]
    NoCalls,
    /// No time at all.
    #[error(
        "a rate per 0 seconds bounds nothing; name a time such as `Duration::from_secs(1)`, or leave it out"
    )]
    NoTime,
}

impl Rate {
    /// So many calls in every stretch of this time.
    pub const fn new(calls: u32, per: Duration) -> Self {
        Self { calls, per }
    }

    /// So many calls in a second.
    pub const fn per_second(calls: u32) -> Self {
        Self::new(calls, Duration::from_secs(1))
    }

    /// So many calls in a minute.
    pub const fn per_minute(calls: u32) -> Self {
        Self::new(calls, Duration::from_mins(1))
    }

    /// So many calls in an hour.
    pub const fn per_hour(calls: u32) -> Self {
        Self::new(calls, Duration::from_hours(1))
    }

    /// One call, and the next one when this time has passed.
    pub const fn every(time: Duration) -> Self {
        Self::new(1, time)
    }

    /// The same rate, with at most so many calls at once: so many in every stretch of the time that the rate gives them.
    /// All calls of the rate may be spent at once where this is not said.
    #[must_use]
    pub fn burst(self, calls: u32) -> Self {
        let Some(one) = self.per.checked_div(self.calls) else { return self };
        Self::new(calls, one.saturating_mul(calls))
    }

    /// Returns how many calls.
    pub const fn calls(self) -> u32 {
        self.calls
    }

    /// Returns in which time.
    pub const fn period(self) -> Duration {
        self.per
    }

    /// Returns the rate, if it is one.
    pub fn checked(self) -> Result<Self, RateError> {
        match self {
            Self { calls: 0, .. } => Err(RateError::NoCalls),
            Self { per: Duration::ZERO, .. } => Err(RateError::NoTime),
            rate => Ok(rate),
        }
    }
}

/// The calls of late. It is not bound to one rate: where that changes, what was counted stays counted.
#[derive(Debug, Default)]
pub(crate) struct Window(Mutex<VecDeque<Batch>>);

/// Some calls that followed each other closely.
#[derive(Debug)]
struct Batch {
    first: Instant,
    /// The whole batch counts until its last call does not any more.
    last: Instant,
    calls: u32,
}

impl Window {
    /// Counts a call, or says how long to wait until there is room for one.
    pub(crate) fn take(&self, rate: Rate, now: Instant) -> Result<(), Duration> {
        let mut batches = self.lock();
        forget(&mut batches, rate, now);
        let calls = batches.iter().fold(0u32, |sum, batch| sum.saturating_add(batch.calls));
        if calls >= rate.calls {
            // Where a rate was lowered, the first batch to go may not be enough: the next attempt will tell.
            let first = batches.front().map_or(now, |batch| batch.last);
            return Err((first + rate.per).saturating_duration_since(now));
        }
        let (most, longest) = (rate.calls.div_ceil(PARTS), rate.per / PARTS);
        match batches.back_mut() {
            Some(batch) if batch.calls < most && now.saturating_duration_since(batch.first) < longest => {
                batch.calls += 1;
                batch.last = batch.last.max(now);
            }
            _ => batches.push_back(Batch { first: now, last: now, calls: 1 }),
        }
        Ok(())
    }

    /// Tells whether nothing is counted any more.
    pub(crate) fn is_empty(&self, rate: Rate, now: Instant) -> bool {
        let mut batches = self.lock();
        forget(&mut batches, rate, now);
        batches.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Batch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forget(batches: &mut VecDeque<Batch>, rate: Rate, now: Instant) {
    while batches.front().is_some_and(|batch| now.saturating_duration_since(batch.last) >= rate.per) {
        batches.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_window_is_exact_for_small_rates() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let (window, rate) = (Window::default(), Rate::new(2, Duration::from_secs(1)));
        let taken: Vec<_> =
            [0, 600, 700, 999, 1000, 1001, 1600, 1600].map(|millis| window.take(rate, at(millis))).into();
        let wait = |millis| Err(Duration::from_millis(millis));
        assert_eq!(taken, [Ok(()), Ok(()), wait(300), wait(1), Ok(()), wait(599), Ok(()), wait(400)]);
        assert!(!window.is_empty(rate, at(2599)));
        assert!(window.is_empty(rate, at(2600)));
    }

    #[test]
    fn what_was_counted_stays_counted_where_the_rate_changes() {
        let now = Instant::now();
        let window = Window::default();
        for _ in 0..10 {
            window.take(Rate::per_second(10), now).unwrap();
        }
        assert_eq!(window.take(Rate::per_second(5), now), Err(Duration::from_secs(1)));
        assert_eq!(window.take(Rate::per_second(11), now), Ok(()));
    }

    #[test]
    fn rates_that_are_none() {
        for (rate, expected) in [
            (Rate::per_second(0), Err(RateError::NoCalls)),
            (Rate::every(Duration::ZERO), Err(RateError::NoTime)),
            (Rate::per_minute(3).burst(0), Err(RateError::NoCalls)),
            (Rate::per_hour(0).burst(3), Err(RateError::NoCalls)),
            (Rate::per_second(5), Ok(Rate::per_second(5))),
        ] {
            assert_eq!(rate.checked(), expected, "{rate:?}");
        }
    }

    proptest! {
        #[test]
        fn no_stretch_of_the_time_of_a_rate_has_more_calls_than_it(
            calls in 1u32..200,
            gaps in prop::collection::vec((0u64..400, 1usize..60), 1..60),
        ) {
            let rate = Rate::new(calls, Duration::from_secs(1));
            let window = Window::default();
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
            prop_assert!(window.lock().len() <= 2 * PARTS as usize + 2);
        }

        #[test]
        fn whoever_waits_as_long_as_told_gets_through(
            calls in 1u32..100,
            gaps in prop::collection::vec(0u64..200, 1..300),
        ) {
            let rate = Rate::new(calls, Duration::from_secs(1));
            let window = Window::default();
            let mut now = Instant::now();
            for gap in gaps {
                now += Duration::from_millis(gap);
                if let Err(wait) = window.take(rate, now) {
                    prop_assert!(wait <= rate.period() && !wait.is_zero());
                    now += wait;
                    prop_assert_eq!(window.take(rate, now), Ok(()));
                }
            }
        }
    }
}
