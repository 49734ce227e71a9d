//! Calls at the same time: of a tool, of a tenant. Further calls wait in the order of their arrival.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_core::backoff::Backoff;
use haft_core::catalog::StoreError;
use haft_core::limit::SharedLimits;
use haft_core::name::TenantId;

use crate::concurrency::{ConcurrencyLimit, Ticket};

/// How many calls of one tenant may wait for `limits.max_parallel` on a node.
const MAX_QUEUED: usize = 64;
/// The number of tenants above which those without calls are forgotten when their number doubles.
const MIN_SWEEP: usize = 64;
/// How often a call that waits for another node asks again: first and last.
const POLL_INTERVAL: Backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(200));
/// How often a slot is released again if the store does not answer, and how long to wait in between. A node that is
/// away for longer has lost its lease, and its slots with it.
const RELEASE_ATTEMPTS: u32 = 60;
const RELEASE_DELAY: Duration = Duration::from_secs(1);

/// The calls of each tenant that has a limit.
#[derive(Default)]
pub(crate) struct TenantSlots(Mutex<HashMap<TenantId, Arc<ConcurrencyLimit>>>);

impl TenantSlots {
    /// Joins the queue of a tenant, or returns `None` if it is full.
    pub(super) fn enqueue(&self, tenant: &TenantId, max: u64) -> Option<Ticket> {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let mut limits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limit) = limits.get(tenant).filter(|limit| limit.max() == max) {
            return limit.enqueue();
        }
        if limits.len() >= MIN_SWEEP && limits.len().is_power_of_two() {
            limits.retain(|_, limit| limit.in_use() > 0);
        }
        // A changed limit counts from new; the calls that run leave the old one.
        let limit = Arc::new(ConcurrencyLimit::new(max, MAX_QUEUED));
        let ticket = limit.enqueue();
        limits.insert(tenant.clone(), limit);
        ticket
    }

    /// Returns how many calls of a tenant run or wait on this node.
    pub(super) fn in_use(&self, tenant: &TenantId) -> usize {
        let limits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        limits.get(tenant).map_or(0, |limit| limit.in_use())
    }
}

/// A place among the calls at the same time. Dropping it frees the place.
pub(crate) struct Slot {
    ticket: Ticket,
    shared: Option<SharedSlot>,
}

/// The same place among the calls of all nodes.
struct SharedSlot {
    store: Arc<dyn SharedLimits>,
    key: String,
    max: u64,
    held: Option<HeldSlot>,
}

impl Slot {
    pub(super) fn new(ticket: Ticket, shared: Option<(Arc<dyn SharedLimits>, String, u64)>) -> Self {
        let shared = shared.map(|(store, key, max)| SharedSlot { store, key, max, held: None });
        Self { ticket, shared }
    }

    /// Waits for the permit to run.
    pub(crate) async fn acquire(&mut self) -> Result<(), StoreError> {
        self.ticket.acquire().await;
        match &mut self.shared {
            Some(shared) => shared.acquire().await,
            None => Ok(()),
        }
    }
}

impl SharedSlot {
    async fn acquire(&mut self) -> Result<(), StoreError> {
        let mut polls = 0;
        while self.held.is_none() {
            // In a task, so that a call that is cancelled meanwhile does not leave a slot behind.
            let (store, key, max) = (Arc::clone(&self.store), self.key.clone(), self.max);
            let acquiring = tokio::spawn(async move {
                let acquired = store.acquire(&key, max).await?;
                Ok(acquired.then(|| HeldSlot { store, key }))
            });
            self.held = acquiring.await.unwrap_or_else(|error| {
                Err(StoreError::unavailable("count the calls at the same time", error))
            })?;
            if self.held.is_none() {
                tokio::time::sleep(POLL_INTERVAL.wait(polls, 0.0)).await;
                polls += 1;
            }
        }
        Ok(())
    }
}

/// A slot that is held on all nodes, and released when this is dropped.
struct HeldSlot {
    store: Arc<dyn SharedLimits>,
    key: String,
}

impl Drop for HeldSlot {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (store, key) = (Arc::clone(&self.store), std::mem::take(&mut self.key));
        runtime.spawn(async move {
            for _ in 0..RELEASE_ATTEMPTS {
                match store.release(&key).await {
                    Ok(()) => return,
                    Err(error) => {
                        tracing::warn!(
                            key,
                            error = &error as &dyn std::error::Error,
                            "cannot release a slot"
                        );
                        tokio::time::sleep(RELEASE_DELAY).await;
                    }
                }
            }
        });
    }
}
