//! Who may run a process now: a machine runs only so many at once, and no caller takes them all.
//!
//! One caller holds at most three quarters of the places, so that another one does not wait for its calls to end. A
//! place that comes free goes to whoever of those that wait holds the fewest.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::executor::CallContext;
use haft_core::name::TenantId;
use tokio::sync::oneshot;

/// On whose account a process runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Account {
    /// A caller of a tenant.
    Caller(TenantId, Arc<str>),
    /// The checks of definitions, whoever writes them.
    Checks,
}

impl Account {
    /// Returns who pays for a call.
    pub(crate) fn of(call: &CallContext) -> Self {
        Self::Caller(call.tenant().clone(), Arc::clone(&call.caller().name))
    }
}

/// The places.
#[derive(Debug)]
pub(crate) struct Places {
    /// The most that one account holds.
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Those who hold a place or wait for one.
    accounts: HashMap<Account, Share>,
    /// How many have come to wait, ever.
    tickets: u64,
}

#[derive(Debug, Default)]
struct Share {
    held: usize,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    wake: oneshot::Sender<Turn>,
}

/// A place that is held; it comes free when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    places: Arc<Places>,
    account: Account,
}

impl Places {
    pub(crate) fn new(all: usize) -> Arc<Self> {
        let all = all.max(1);
        let state = State { free: all, accounts: HashMap::new(), tickets: 0 };
        Arc::new(Self { most: all.saturating_mul(3).div_ceil(4), state: Mutex::new(state) })
    }

    /// Waits for a place. Who stops waiting leaves nothing behind.
    pub(crate) async fn turn(self: &Arc<Self>, account: Account) -> Turn {
        loop {
            let granted = {
                let mut state = self.lock();
                let State { free, accounts, tickets } = &mut *state;
                let share = accounts.entry(account.clone()).or_default();
                if *free > 0 && share.held < self.most {
                    *free -= 1;
                    share.held += 1;
                    return Turn { places: Arc::clone(self), account };
                }
                let (wake, granted) = oneshot::channel();
                share.waiting.push_back(Waiting { ticket: *tickets, wake });
                *tickets += 1;
                granted
            };
            // The sender is kept until it grants, so this does not fail.
            if let Ok(turn) = granted.await {
                return turn;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place back, and gives it to the next.
    fn give_back(self: &Arc<Self>, account: &Account) {
        let next = {
            let mut state = self.lock();
            state.free += 1;
            if let Some(share) = state.accounts.get_mut(account) {
                share.held -= 1;
            }
            let next = state.next(self.most);
            state.accounts.retain(|_, share| share.held > 0 || !share.waiting.is_empty());
            next
        };
        // One that has stopped waiting meanwhile drops the turn, which comes back here.
        if let Some((account, wake)) = next {
            drop(wake.send(Turn { places: Arc::clone(self), account }));
        }
    }
}

impl State {
    /// Takes a place for whoever is next: of those that hold the fewest the one that has waited longest.
    fn next(&mut self, most: usize) -> Option<(Account, oneshot::Sender<Turn>)> {
        for share in self.accounts.values_mut() {
            while share.waiting.front().is_some_and(|waiting| waiting.wake.is_closed()) {
                share.waiting.pop_front();
            }
        }
        let first = |share: &Share| share.waiting.front().map(|waiting| waiting.ticket);
        let (account, share) = self
            .accounts
            .iter_mut()
            .filter(|(_, share)| share.held < most && !share.waiting.is_empty())
            .min_by_key(|(_, share)| (share.held, first(share)))?;
        let waiting = share.waiting.pop_front()?;
        share.held += 1;
        self.free -= 1;
        Some((account.clone(), waiting.wake))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.places.give_back(&self.account);
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

    fn ask(places: &Arc<Places>, name: &str) -> BoxFuture<'static, Turn> {
        let (places, account) = (Arc::clone(places), account(name));
        async move { places.turn(account).await }.boxed()
    }

    /// Asks for so many places; returns those that are had at once, and those that are waited for.
    fn asked(places: &Arc<Places>, name: &str, count: usize) -> (Vec<Turn>, Vec<BoxFuture<'static, Turn>>) {
        let (mut held, mut waits) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let mut turn = ask(places, name);
            match turn.as_mut().now_or_never() {
                Some(turn) => held.push(turn),
                None => waits.push(turn),
            }
        }
        (held, waits)
    }

    fn come(waits: &mut Vec<BoxFuture<'static, Turn>>) -> Vec<Turn> {
        let mut held = Vec::new();
        waits.retain_mut(|turn| match turn.as_mut().now_or_never() {
            Some(turn) => {
                held.push(turn);
                false
            }
            None => true,
        });
        held
    }

    #[test]
    fn one_caller_leaves_a_quarter_to_others() {
        for (all, most) in [(1, 1), (2, 2), (4, 3), (64, 48)] {
            let places = Places::new(all);
            let (greedy, waits) = asked(&places, "greedy", 200);
            assert_eq!((greedy.len(), waits.len()), (most, 200 - most));
            assert_eq!(asked(&places, "other", 200).0.len(), all - most);
        }
    }

    #[test]
    fn a_place_goes_to_who_holds_the_fewest() {
        let places = Places::new(4);
        let (mut a, mut a_waits) = asked(&places, "a", 10);
        let (b, mut b_waits) = asked(&places, "b", 3);
        let (c, mut c_waits) = asked(&places, "c", 1);
        assert_eq!((a.len(), b.len(), c.len()), (3, 1, 0));
        drop(a.pop());
        let c = come(&mut c_waits);
        assert_eq!((come(&mut a_waits).len(), come(&mut b_waits).len(), c.len()), (0, 0, 1));
        drop(a.pop());
        assert_eq!(
            (come(&mut a_waits).len(), come(&mut b_waits).len()),
            (1, 0),
            "both held one; a came first"
        );
    }

    #[test]
    fn who_stops_waiting_is_passed_over_and_nothing_is_lost() {
        let places = Places::new(4);
        let (held, waits) = asked(&places, "a", 10);
        let (others, mut other_waits) = asked(&places, "b", 3);
        drop(waits);
        drop(held);
        let came = come(&mut other_waits);
        assert_eq!((others.len(), came.len()), (1, 2));
        // Granted, and never looked at.
        let (more, waits) = asked(&places, "c", 2);
        drop(more);
        drop((others, came));
        drop(waits);
        let state = places.lock();
        assert_eq!((state.free, state.accounts.len()), (4, 0));
    }
}
