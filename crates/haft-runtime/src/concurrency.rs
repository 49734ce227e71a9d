//! Concurrency limits: a maximum number of calls that run at once, and a bounded queue for those that wait.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Limits how many holders run at once and how many more may wait, in the order of their arrival.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    max: usize,
    capacity: usize,
    /// One permit for each holder that runs or waits.
    admitted: Arc<Semaphore>,
    /// One permit for each holder that runs.
    running: Arc<Semaphore>,
}

impl ConcurrencyLimit {
    /// Creates a limit of `max` that run and `max_queued` that wait.
    pub fn new(max: usize, max_queued: usize) -> Self {
        let max = max.min(Semaphore::MAX_PERMITS);
        let capacity = max.saturating_add(max_queued).min(Semaphore::MAX_PERMITS);
        let (admitted, running) = (Arc::new(Semaphore::new(capacity)), Arc::new(Semaphore::new(max)));
        Self { max, capacity, admitted, running }
    }

    /// Returns how many holders run at once.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Joins the queue, or returns `None` if it is full.
    pub fn enqueue(&self) -> Option<Ticket> {
        let admitted = Arc::clone(&self.admitted).try_acquire_owned().ok()?;
        Some(Ticket { permit: None, running: Arc::clone(&self.running), _admitted: admitted })
    }

    /// Returns how many holders run or wait.
    pub fn in_use(&self) -> usize {
        self.capacity - self.admitted.available_permits()
    }
}

/// A place in the queue of a limit, then a permit to run. Dropping it releases both.
#[derive(Debug)]
pub struct Ticket {
    permit: Option<OwnedSemaphorePermit>,
    running: Arc<Semaphore>,
    _admitted: OwnedSemaphorePermit,
}

impl Ticket {
    /// Waits for the permit to run.
    pub async fn acquire(&mut self) {
        if self.permit.is_none() {
            // The semaphore is never closed, so this always yields a permit.
            self.permit = Arc::clone(&self.running).acquire_owned().await.ok();
        }
    }
}

type Limits<K> = Arc<Mutex<HashMap<K, ConcurrencyLimit>>>;

/// One [`ConcurrencyLimit`] for each key. A key takes memory only while it is in use.
#[derive(Debug)]
pub struct KeyedConcurrencyLimit<K> {
    max: usize,
    max_queued: usize,
    limits: Limits<K>,
}

impl<K: Clone + Eq + Hash> KeyedConcurrencyLimit<K> {
    /// Creates limits of `max` that run and `max_queued` that wait, for each key.
    pub fn new(max: usize, max_queued: usize) -> Self {
        Self { max, max_queued, limits: Arc::default() }
    }

    /// Sets how many holders of one key may wait.
    pub fn set_max_queued(&mut self, max_queued: usize) {
        self.max_queued = max_queued;
    }

    /// Joins the queue of a key, or returns `None` if it is full.
    pub fn enqueue(&self, key: K) -> Option<KeyedTicket<K>> {
        let ticket = lock(&self.limits)
            .entry(key.clone())
            .or_insert_with(|| ConcurrencyLimit::new(self.max, self.max_queued))
            .enqueue()?;
        Some(KeyedTicket { ticket: Some(ticket), key, limits: Arc::clone(&self.limits) })
    }
}

/// A [`Ticket`] of one key. The last one to be dropped removes the key.
#[derive(Debug)]
pub struct KeyedTicket<K: Eq + Hash> {
    ticket: Option<Ticket>,
    key: K,
    limits: Limits<K>,
}

impl<K: Eq + Hash> KeyedTicket<K> {
    /// Waits for the permit to run.
    pub async fn acquire(&mut self) {
        if let Some(ticket) = &mut self.ticket {
            ticket.acquire().await;
        }
    }
}

impl<K: Eq + Hash> Drop for KeyedTicket<K> {
    fn drop(&mut self) {
        // Released under the lock, so that no new holder joins between the release and the removal.
        let mut limits = lock(&self.limits);
        self.ticket = None;
        if limits.get(&self.key).is_some_and(|limit| limit.in_use() == 0) {
            limits.remove(&self.key);
        }
    }
}

fn lock<K>(limits: &Limits<K>) -> MutexGuard<'_, HashMap<K, ConcurrencyLimit>> {
    limits.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn concurrent_holders_never_exceed_the_limit() {
        for max in [1, 3] {
            let (limit, barrier) = (ConcurrencyLimit::new(max, 0), Barrier::new(4));
            for _ in 0..500 {
                let enqueue = || {
                    barrier.wait();
                    let ticket = limit.enqueue();
                    barrier.wait();
                    ticket.is_some()
                };
                let admitted = std::thread::scope(|scope| {
                    let attempts = [(); 4].map(|()| scope.spawn(enqueue));
                    attempts.map(|attempt| attempt.join().unwrap()).into_iter().filter(|is| *is).count()
                });
                assert_eq!(admitted, max);
                assert_eq!(limit.in_use(), 0);
            }
        }
    }

    #[test]
    fn waiting_holders_run_in_order_and_a_full_queue_rejects() {
        let limit = ConcurrencyLimit::new(1, 2);
        let mut tickets: Vec<_> = (0..3).map(|_| limit.enqueue().unwrap()).collect();
        assert!(limit.enqueue().is_none());
        let (mut third, mut second, mut first) =
            (tickets.pop().unwrap(), tickets.pop().unwrap(), tickets.pop().unwrap());
        assert!(first.acquire().now_or_never().is_some());
        let mut second_runs = Box::pin(second.acquire());
        assert!(second_runs.as_mut().now_or_never().is_none());
        let mut third_runs = Box::pin(third.acquire());
        assert!(third_runs.as_mut().now_or_never().is_none());
        drop(first);
        assert!(third_runs.as_mut().now_or_never().is_none());
        assert!(second_runs.as_mut().now_or_never().is_some());
    }

    #[test]
    fn keys_are_independent_and_removed_with_their_last_ticket() {
        let limit = KeyedConcurrencyLimit::new(1, 0);
        let first = limit.enqueue("a").unwrap();
        assert!(limit.enqueue("a").is_none());
        let second = limit.enqueue("b").unwrap();
        drop(first);
        assert_eq!(lock(&limit.limits).keys().copied().collect::<Vec<_>>(), ["b"]);
        assert!(limit.enqueue("a").is_some());
        drop(second);
        assert!(lock(&limit.limits).is_empty());
    }
}
