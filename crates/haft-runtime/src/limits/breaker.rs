//! A breaker for sessions that make the same call again and again, as a model in a loop does.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Identical calls count for this long, from the first one on: a client that polls more slowly is never refused.
const PERIOD: Duration = Duration::from_mins(1);
/// How many sessions are remembered.
const MAX_SESSIONS: usize = 65_536;

/// Counts identical calls in a row. Only hashes are kept; two calls with the same hash by chance are no harm.
#[derive(Debug)]
pub(crate) struct IdenticalCalls {
    /// The limit; 0 is unlimited.
    max: u32,
    hasher: RandomState,
    runs: Mutex<HashMap<u64, Run>>,
}

/// The calls of a session since it last made another one.
#[derive(Debug)]
struct Run {
    call: u64,
    count: u32,
    since: Instant,
}

impl IdenticalCalls {
    pub(crate) fn new(max: u32) -> Self {
        Self { max, hasher: RandomState::new(), runs: Mutex::default() }
    }

    pub(crate) fn max(&self) -> u32 {
        self.max
    }

    /// Counts a call of a session, or returns how long the same call is refused.
    pub(crate) fn count(&self, session: impl Hash, call: impl Hash, now: Instant) -> Result<(), Duration> {
        let (session, call) = (self.hasher.hash_one(session), self.hasher.hash_one(call));
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.len() >= MAX_SESSIONS && !runs.contains_key(&session) {
            runs.retain(|_, run| now.saturating_duration_since(run.since) < PERIOD);
            if runs.len() >= MAX_SESSIONS {
                runs.clear();
            }
        }
        let run = runs.entry(session).or_insert(Run { call, count: 0, since: now });
        let age = now.saturating_duration_since(run.since);
        if run.call != call || age >= PERIOD {
            *run = Run { call, count: 0, since: now };
        }
        if run.count >= self.max {
            return Err(PERIOD.saturating_sub(age));
        }
        run.count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_identical_calls_in_a_row_are_refused() {
        let calls = IdenticalCalls::new(3);
        let start = Instant::now();
        let count = |session: &str, call: &str, seconds| {
            calls.count(session, call, start + Duration::from_secs(seconds)).map_err(|wait| wait.as_secs())
        };
        assert_eq!([0, 1, 2, 3].map(|at| count("a", "x", at)), [Ok(()), Ok(()), Ok(()), Err(57)]);
        assert_eq!(count("b", "x", 3), Ok(()), "another session");
        assert_eq!(count("a", "y", 4), Ok(()), "another call");
        assert_eq!(count("a", "x", 5), Ok(()), "the row was interrupted");
        assert_eq!([6, 7, 8].map(|at| count("a", "x", at)), [Ok(()), Ok(()), Err(57)]);
        assert_eq!(count("a", "x", 65), Ok(()), "a minute after the first one");
    }

    #[test]
    fn a_slow_poller_is_never_refused() {
        let (calls, start) = (IdenticalCalls::new(20), Instant::now());
        for number in 0..1000 {
            let now = start + Duration::from_millis(3100 * number);
            assert_eq!(calls.count("a", "x", now), Ok(()), "{number}");
        }
    }

    #[test]
    fn the_number_of_sessions_is_bounded() {
        let (calls, now) = (IdenticalCalls::new(1), Instant::now());
        for session in 0..MAX_SESSIONS + 10 {
            calls.count(session, "x", now).unwrap();
        }
        assert!(calls.runs.lock().unwrap().len() <= MAX_SESSIONS);
    }
}
