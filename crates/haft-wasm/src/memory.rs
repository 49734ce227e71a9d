//! The memory budget of all guests, and the share of one guest.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The free memory of all guests.
#[derive(Debug)]
pub(crate) struct Budget {
    free: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { free: usize::try_from(bytes).unwrap_or(usize::MAX).into() }
    }
}

/// The memory of one guest; returned to the budget on drop.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    taken: usize,
}

impl Share {
    pub(crate) const fn new(budget: Arc<Budget>) -> Self {
        Self { budget, taken: 0 }
    }

    /// Takes memory from the budget; returns `false` if there is not enough.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        // Only a counter: no other memory depends on its order.
        let rest = |free: usize| free.checked_sub(bytes);
        let is_left = self.budget.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok();
        if is_left {
            self.taken = self.taken.saturating_add(bytes);
        }
        is_left
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.free.fetch_add(self.taken, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_limited_and_returned() {
        let budget = Arc::new(Budget::new(100));
        let (mut one, mut two) = (Share::new(Arc::clone(&budget)), Share::new(Arc::clone(&budget)));
        assert_eq!([one.take(60), two.take(41), two.take(40), one.take(1)], [true, false, true, false]);
        assert!(two.take(0) && !two.take(usize::MAX));
        drop(one);
        assert_eq!(budget.free.load(Ordering::Relaxed), 60);
        drop(two);
        assert_eq!(budget.free.load(Ordering::Relaxed), 100);
    }

    #[test]
    fn concurrent_shares_do_not_exceed_the_budget() {
        let budget = Arc::new(Budget::new(1000));
        let taken: usize = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|_| {
                    let mut share = Share::new(Arc::clone(&budget));
                    scope.spawn(move || {
                        let taken = (0..1000).filter(|_| share.take(1)).count();
                        std::mem::forget(share);
                        taken
                    })
                })
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });
        assert_eq!((taken, budget.free.load(Ordering::Relaxed)), (1000, 0));
    }
}
