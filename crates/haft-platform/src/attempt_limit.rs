//! A limit of failed attempts per principal, such as wrong codes. It counts on this node only.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use haft_core::Timestamp;

/// The most failed attempts of a principal within the period.
const MAX_FAILED: u32 = 20;
/// The period, which begins with the first failed attempt.
const PERIOD: Duration = Duration::from_mins(10);

/// Counts the failed attempts of each principal.
#[derive(Debug, Default)]
pub struct AttemptLimit(Mutex<HashMap<String, Attempts>>);

#[derive(Debug)]
struct Attempts {
    since: Timestamp,
    failed: u32,
}

impl AttemptLimit {
    /// Counts an attempt as failed, unless the principal has failed as often as it may; returns whether it may go on.
    /// Principals without a recent attempt are forgotten, so there is at most one entry per token that has failed within
    /// the period.
    pub fn try_acquire(&self, principal: &str, now: Timestamp) -> bool {
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.retain(|_, one| one.counts(now));
        let own = attempts.entry(principal.to_owned()).or_insert(Attempts { since: now, failed: 0 });
        if own.failed >= MAX_FAILED {
            return false;
        }
        own.failed += 1;
        true
    }

    /// Undoes the count of an attempt that did not fail.
    pub fn release(&self, principal: &str) {
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = attempts.get_mut(principal) else { return };
        own.failed = own.failed.saturating_sub(1);
        if own.failed == 0 {
            attempts.remove(principal);
        }
    }
}

impl Attempts {
    fn counts(&self, now: Timestamp) -> bool {
        now < self.since + PERIOD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_that_fails_often_has_to_wait() {
        let limit = AttemptLimit::default();
        let start: Timestamp = "2026-08-01T10:00:00Z".parse().unwrap();
        for _ in 0..MAX_FAILED {
            assert!(limit.try_acquire("ann", start));
        }
        assert!(!limit.try_acquire("ann", start) && limit.try_acquire("bob", start));
        // An attempt that did not fail makes room for another one.
        limit.release("ann");
        assert!(limit.try_acquire("ann", start) && !limit.try_acquire("ann", start));
        assert!(limit.try_acquire("ann", start + PERIOD));
        limit.release("ann");
        limit.release("nobody");
        assert!(limit.0.lock().unwrap().is_empty());
    }
}
