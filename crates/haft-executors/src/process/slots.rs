//! The slots for processes: a limit on how many run at once, shared fairly between callers.
//!
//! One caller holds at most three quarters of the slots, so that others need not wait for its calls to end. A released
//! slot goes to the waiting caller that holds the fewest.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::executor::CallContext;
use haft_core::name::TenantId;
use tokio::sync::oneshot;

/// The account on which a process runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Account {
    /// A caller of a tenant, by id.
    Caller(TenantId, Arc<str>),
    /// Checks of definitions, for all callers together.
    Checks,
}

impl Account {
    /// Returns the account of a call.
    pub(crate) fn of(call: &CallContext) -> Self {
        Self::Caller(call.tenant().clone(), call.principal().id())
    }
}

/// The slots of an installation.
#[derive(Debug)]
pub(crate) struct ProcessSlots {
    /// The maximum number of slots of one account.
    max_per_account: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// The accounts that hold or wait for a slot.
    accounts: HashMap<Account, AccountSlots>,
    /// The number of the next waiter.
    next_ticket: u64,
}

#[derive(Debug, Default)]
struct AccountSlots {
    held: usize,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    wake: oneshot::Sender<ProcessSlot>,
}

/// A slot that is held; dropping it releases the slot.
#[derive(Debug)]
pub(crate) struct ProcessSlot {
    slots: Arc<ProcessSlots>,
    account: Account,
}

impl ProcessSlots {
    pub(crate) fn new(all: usize) -> Arc<Self> {
        let all = all.max(1);
        let state = State { free: all, accounts: HashMap::new(), next_ticket: 0 };
        Arc::new(Self { max_per_account: all.saturating_mul(3).div_ceil(4), state: Mutex::new(state) })
    }

    /// Waits for a slot. Dropping the future leaves the queue.
    pub(crate) async fn acquire(self: &Arc<Self>, account: Account) -> ProcessSlot {
        loop {
            let granted = {
                let mut state = self.lock();
                let State { free, accounts, next_ticket } = &mut *state;
                let share = accounts.entry(account.clone()).or_default();
                if *free > 0 && share.held < self.max_per_account {
                    *free -= 1;
                    share.held += 1;
                    return ProcessSlot { slots: Arc::clone(self), account };
                }
                let (wake, granted) = oneshot::channel();
                share.waiting.push_back(Waiter { ticket: *next_ticket, wake });
                *next_ticket += 1;
                granted
            };
            // The sender stays in the queue until it grants a slot, so this does not fail.
            if let Ok(slot) = granted.await {
                return slot;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases a slot and grants it to the next waiter.
    fn release(self: &Arc<Self>, account: &Account) {
        let next = {
            let mut state = self.lock();
            state.free += 1;
            if let Some(share) = state.accounts.get_mut(account) {
                share.held -= 1;
            }
            let next = state.next(self.max_per_account);
            state.accounts.retain(|_, share| share.held > 0 || !share.waiting.is_empty());
            next
        };
        // A waiter that has stopped waiting drops the slot, which releases it again.
        if let Some((account, wake)) = next {
            drop(wake.send(ProcessSlot { slots: Arc::clone(self), account }));
        }
    }
}

impl State {
    /// Takes a slot for the next waiter: of the accounts with the fewest slots, the one that has waited longest.
    fn next(&mut self, max_per_account: usize) -> Option<(Account, oneshot::Sender<ProcessSlot>)> {
        for share in self.accounts.values_mut() {
            while share.waiting.front().is_some_and(|waiting| waiting.wake.is_closed()) {
                share.waiting.pop_front();
            }
        }
        let first = |share: &AccountSlots| share.waiting.front().map(|waiting| waiting.ticket);
        let (account, share) = self
            .accounts
            .iter_mut()
            .filter(|(_, share)| share.held < max_per_account && !share.waiting.is_empty())
            .min_by_key(|(_, share)| (share.held, first(share)))?;
        let waiting = share.waiting.pop_front()?;
        share.held += 1;
        self.free -= 1;
        Some((account.clone(), waiting.wake))
    }
}

impl Drop for ProcessSlot {
    fn drop(&mut self) {
        self.slots.release(&self.account);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::BoxFuture;

    use super::*;

    fn account(name: &str) -> Account {
        Account::Caller(TenantId::new("default").unwrap(), name.into())
    }

    fn acquire(slots: &Arc<ProcessSlots>, name: &str) -> BoxFuture<'static, ProcessSlot> {
        let (slots, account) = (Arc::clone(slots), account(name));
        async move { slots.acquire(account).await }.boxed()
    }

    /// Requests this many slots; returns those that are free at once and the futures of the others.
    fn request(
        slots: &Arc<ProcessSlots>,
        name: &str,
        count: usize,
    ) -> (Vec<ProcessSlot>, Vec<BoxFuture<'static, ProcessSlot>>) {
        let (mut held, mut waits) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let mut slot = acquire(slots, name);
            match slot.as_mut().now_or_never() {
                Some(slot) => held.push(slot),
                None => waits.push(slot),
            }
        }
        (held, waits)
    }

    fn granted(waits: &mut Vec<BoxFuture<'static, ProcessSlot>>) -> Vec<ProcessSlot> {
        let mut held = Vec::new();
        waits.retain_mut(|slot| match slot.as_mut().now_or_never() {
            Some(slot) => {
                held.push(slot);
                false
            }
            None => true,
        });
        held
    }

    #[test]
    fn one_caller_leaves_a_quarter_to_others() {
        for (all, most) in [(1, 1), (2, 2), (4, 3), (64, 48)] {
            let slots = ProcessSlots::new(all);
            let (greedy, waits) = request(&slots, "greedy", 200);
            assert_eq!((greedy.len(), waits.len()), (most, 200 - most));
            assert_eq!(request(&slots, "other", 200).0.len(), all - most);
        }
    }

    #[test]
    fn a_released_slot_goes_to_the_account_with_the_fewest() {
        let slots = ProcessSlots::new(4);
        let (mut a, mut a_waits) = request(&slots, "a", 10);
        let (b, mut b_waits) = request(&slots, "b", 3);
        let (c, mut c_waits) = request(&slots, "c", 1);
        assert_eq!((a.len(), b.len(), c.len()), (3, 1, 0));
        drop(a.pop());
        let c = granted(&mut c_waits);
        assert_eq!((granted(&mut a_waits).len(), granted(&mut b_waits).len(), c.len()), (0, 0, 1));
        drop(a.pop());
        assert_eq!(
            (granted(&mut a_waits).len(), granted(&mut b_waits).len()),
            (1, 0),
            "both held one; a was first"
        );
    }

    #[test]
    fn a_waiter_that_stops_waiting_is_skipped() {
        let slots = ProcessSlots::new(4);
        let (held, waits) = request(&slots, "a", 10);
        let (others, mut other_waits) = request(&slots, "b", 3);
        drop(waits);
        drop(held);
        let late = granted(&mut other_waits);
        assert_eq!((others.len(), late.len()), (1, 2));
        // Granted and never polled.
        let (more, waits) = request(&slots, "c", 2);
        drop(more);
        drop((others, late));
        drop(waits);
        let state = slots.lock();
        assert_eq!((state.free, state.accounts.len()), (4, 0));
    }
}
