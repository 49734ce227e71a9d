//! How long to wait before the next attempt.

use std::time::Duration;

/// The most doublings: more would only overflow.
const MAX_DOUBLINGS: u32 = 16;

/// Waits that double with every failure, up to a maximum, spread by chance so that many callers do not return at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    spread: f64,
}

impl Backoff {
    /// Creates waits from `first` to `max`, without chance.
    pub const fn new(first: Duration, max: Duration) -> Self {
        Self { first, max, spread: 0.0 }
    }

    /// Lets chance shorten each wait by up to this part of it, in `0.0..=1.0`.
    #[must_use]
    pub const fn spread(self, spread: f64) -> Self {
        Self { spread: spread.clamp(0.0, 1.0), ..self }
    }

    /// Returns the wait after failure number `failure`, counted from 0. `random` is a number in `0.0..1.0`.
    pub fn wait(&self, failure: u32, random: f64) -> Duration {
        let doubled = self.first.saturating_mul(1 << failure.min(MAX_DOUBLINGS)).min(self.max);
        doubled.mul_f64(1.0 - self.spread * (1.0 - random.clamp(0.0, 1.0)))
    }

    /// Returns the wait after failure number `failure`, at least as long as the other side `requested`, however long
    /// that is.
    pub fn wait_at_least(&self, requested: Option<Duration>, failure: u32, random: f64) -> Duration {
        self.wait(failure, random).max(requested.unwrap_or_default())
    }
}

/// A list of waits, each with random jitter so that many deliveries do not arrive at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule<'a> {
    waits: &'a [Duration],
    spread: f64,
}

impl<'a> Schedule<'a> {
    /// Creates the waits; jitter lengthens each by up to the fraction `spread`.
    pub const fn new(waits: &'a [Duration], spread: f64) -> Self {
        Self { waits, spread }
    }

    /// Returns the wait after failure number `failure`, counted from 0; `None` after the last attempt. `random` is a
    /// number in `0.0..1.0`.
    pub fn wait(&self, failure: u32, random: f64) -> Option<Duration> {
        let wait = *self.waits.get(usize::try_from(failure).ok()?)?;
        Some(wait + wait.mul_f64(self.spread * random.clamp(0.0, 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn waits_double_up_to_the_maximum() {
        let backoff = Backoff::new(MS(100), MS(1000));
        let waits: Vec<_> = (0..6).map(|failure| backoff.wait(failure, 0.0)).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000].map(MS));
        assert_eq!(backoff.wait(u32::MAX, 0.5), MS(1000));
        assert_eq!(Backoff::new(Duration::MAX, MS(7)).wait(9, 0.0), MS(7));
        assert_eq!(Backoff::new(MS(0), MS(7)).wait(9, 0.0), MS(0));
    }

    #[test]
    fn chance_shortens_a_wait_by_the_spread() {
        let backoff = Backoff::new(MS(100), MS(1000)).spread(0.5);
        assert_eq!([0.0, 0.5, 1.0, 7.0].map(|random| backoff.wait(1, random)), [100, 150, 200, 200].map(MS));
    }

    #[test]
    fn chance_lengthens_the_waits_of_a_schedule() {
        let waits = [MS(100), MS(1000)];
        let schedule = Schedule::new(&waits, 0.1);
        let found: Vec<_> = [(0, 0.0), (0, 1.0), (1, 0.5), (2, 0.5), (u32::MAX, 0.5)]
            .map(|(failure, random)| schedule.wait(failure, random))
            .into();
        assert_eq!(found, [Some(MS(100)), Some(MS(110)), Some(MS(1050)), None, None]);
    }

    #[test]
    fn a_requested_wait_is_respected() {
        let backoff = Backoff::new(MS(100), MS(1000));
        let waits =
            [None, Some(MS(5)), Some(MS(5000))].map(|requested| backoff.wait_at_least(requested, 0, 0.0));
        assert_eq!(waits, [100, 100, 5000].map(MS));
    }
}
