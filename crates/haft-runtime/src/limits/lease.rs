//! Rates that all nodes share: a node draws a few calls at a time from the store and hands them out.
//!
//! What a node has drawn counts as if it were made at the end of its lease, so that no interval of the length of the
//! period has more calls than the rate allows, whatever the nodes do. The price: a call may count for up to a sixteenth of
//! the period longer, and up to a sixteenth of the calls may lie unused on each node. The first draw is one call; a node
//! draws more only while it uses up what it has drawn, and returns the rest with the next draw.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_core::catalog::StoreError;
use haft_core::limit::{DrawRequest, RateStatus, SharedLimits, UnusedCalls};
use tokio::sync::Mutex as AsyncMutex;

use crate::clock;
use crate::rate::Rate;

/// The part of a rate, and of its period, that one draw may take.
const PARTS: u32 = 16;
/// How long a node refuses calls without asking the store again.
const MAX_BLOCK: Duration = Duration::from_secs(1);
/// The number of keys above which unused ones are forgotten when their number doubles.
const MIN_SWEEP: usize = 64;

/// The calls that this node has drawn, by the key of their rate.
pub(crate) struct LeasedRates {
    store: Arc<dyn SharedLimits>,
    leases: Mutex<HashMap<String, Arc<Lease>>>,
}

/// Held while the node draws, so that concurrent calls share a draw.
#[derive(Default)]
struct Lease(AsyncMutex<LeaseState>);

#[derive(Default)]
struct LeaseState {
    drawn: Option<DrawnCalls>,
    /// How many calls the next draw requests.
    next: u32,
    /// The rate is used up until then.
    free_at: Option<Instant>,
    /// Until then the store is not asked again.
    blocked_until: Option<Instant>,
}

struct DrawnCalls {
    batch: i64,
    total: u32,
    left: u32,
    until: Instant,
    /// What was left for all nodes at the time of the draw.
    status: RateStatus,
    drawn_at: Instant,
}

/// Why a shared rate did not admit a call.
#[derive(Debug)]
pub(crate) enum LeaseRejection {
    /// The rate is used up for this long.
    Exceeded(Duration),
    /// The store did not answer.
    Store(StoreError),
}

impl LeasedRates {
    pub(crate) fn new(store: Arc<dyn SharedLimits>) -> Self {
        Self { store, leases: Mutex::default() }
    }

    pub(crate) fn store(&self) -> &Arc<dyn SharedLimits> {
        &self.store
    }

    /// Counts a call of a key.
    pub(crate) async fn take(&self, key: &str, rate: Rate) -> Result<RateStatus, LeaseRejection> {
        let lease = self.lease(key);
        let mut state = lease.0.lock().await;
        let now = clock::now();
        if let Some(status) = state.take_drawn(now) {
            return Ok(status);
        }
        if let (Some(free_at), Some(_)) = (state.free_at, state.blocked_until.filter(|until| now < *until)) {
            return Err(LeaseRejection::Exceeded(free_at.saturating_duration_since(now)));
        }
        let unused = state.unused();
        let calls = state.next.clamp(1, rate.calls().div_ceil(PARTS));
        let lifetime = rate.period() / PARTS;
        let request = DrawRequest { rate: rate.into(), calls, lifetime, unused };
        let draw = self.store.draw(key, request).await.map_err(LeaseRejection::Store)?;
        state.drawn = None;
        if draw.granted == 0 {
            state.free_at = Some(now + draw.status.reset);
            state.blocked_until = Some(now + draw.status.reset.min(MAX_BLOCK));
            return Err(LeaseRejection::Exceeded(draw.status.reset));
        }
        (state.free_at, state.blocked_until) = (None, None);
        state.drawn = Some(DrawnCalls {
            batch: draw.batch,
            total: draw.granted,
            left: draw.granted,
            until: now + lifetime,
            status: draw.status,
            drawn_at: now,
        });
        state.take_drawn(now).ok_or(LeaseRejection::Exceeded(lifetime))
    }

    /// Gives back a call that did not run.
    pub(crate) async fn refund(&self, key: &str) {
        let lease = self.lease(key);
        if let Some(drawn) = &mut lease.0.lock().await.drawn {
            drawn.left = drawn.left.saturating_add(1).min(drawn.total);
        }
    }

    fn lease(&self, key: &str) -> Arc<Lease> {
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lease) = leases.get(key) {
            return Arc::clone(lease);
        }
        if leases.len() >= MIN_SWEEP && leases.len().is_power_of_two() {
            let now = clock::now();
            leases.retain(|_, lease| Arc::strong_count(lease) > 1 || lease.is_used(now));
        }
        Arc::clone(leases.entry(key.to_owned()).or_default())
    }
}

impl Lease {
    fn is_used(&self, now: Instant) -> bool {
        let Ok(state) = self.0.try_lock() else { return true };
        state.drawn.as_ref().is_some_and(|drawn| now < drawn.until)
            || state.blocked_until.is_some_and(|until| now < until)
    }
}

impl LeaseState {
    /// Hands out a drawn call, unless none is left or the lease has ended. Notes how many the next draw should have.
    fn take_drawn(&mut self, now: Instant) -> Option<RateStatus> {
        let drawn = self.drawn.as_mut()?;
        if now >= drawn.until {
            self.next = drawn.total - drawn.left;
            return None;
        }
        if drawn.left == 0 {
            self.next = drawn.total.saturating_mul(2);
            return None;
        }
        drawn.left -= 1;
        let remaining = drawn.status.remaining.saturating_add(drawn.left);
        let reset = drawn.status.reset.saturating_sub(now.saturating_duration_since(drawn.drawn_at));
        Some(RateStatus { remaining, reset, ..drawn.status })
    }

    fn unused(&self) -> Option<UnusedCalls> {
        let drawn = self.drawn.as_ref().filter(|drawn| drawn.left > 0)?;
        Some(UnusedCalls { batch: drawn.batch, calls: drawn.left })
    }
}
