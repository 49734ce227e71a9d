//! The pool of warm interpreters.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use haft_runtime::concurrency::{KeyedConcurrencyLimit, KeyedTicket};
use haft_sandbox::{Sandbox, Stream};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::recipe::{Key, Recipe};
use super::server::{AfterCall, PythonCall, PythonResult, Server, ServerError};
use crate::process::ProcessSlot;

/// The limits of the pool.
#[derive(Debug, Clone)]
pub(super) struct PoolSettings {
    /// The maximum number of interpreters in use at once for one key; further calls wait.
    pub(super) max_per_key: usize,
    /// The maximum number of idle interpreters.
    pub(super) max_idle: usize,
    /// How long an interpreter stays idle.
    pub(super) idle_timeout: Duration,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self { max_per_key: 16, max_idle: 32, idle_timeout: Duration::from_mins(1) }
    }
}

/// The interpreters.
#[derive(Debug)]
pub(super) struct Pool {
    sandbox: Sandbox,
    settings: PoolSettings,
    limit: KeyedConcurrencyLimit<Key>,
    lanes: Mutex<HashMap<Key, Lane>>,
    reaper: Once,
}

/// The permits that a call holds while it runs, and its interpreter until it is ready again.
#[derive(Debug)]
#[expect(dead_code, reason = "held, and dropped")]
pub(super) struct Permits {
    pub(super) key: Option<KeyedTicket<Key>>,
    pub(super) slot: ProcessSlot,
}

/// The interpreters of one key.
#[derive(Debug, Default)]
struct Lane {
    /// How many interpreters are about to be ready again.
    settling: usize,
    /// How many calls wait for one of these.
    awaited: usize,
    settled: Arc<Notify>,
    /// The idle interpreters; the most recently used one is last.
    idle: Vec<IdleServer>,
}

#[derive(Debug)]
struct IdleServer {
    server: Server,
    since: Instant,
}

impl Pool {
    /// Creates the pool.
    pub(super) fn new(sandbox: Sandbox, settings: PoolSettings) -> Arc<Self> {
        // Calls wait as long as their deadlines allow; the server limits how many there are.
        let limit = KeyedConcurrencyLimit::new(settings.max_per_key, usize::MAX);
        Arc::new(Self { sandbox, settings, limit, lanes: Mutex::default(), reaper: Once::new() })
    }

    /// Waits until one more interpreter of this key may be in use.
    pub(super) async fn acquire(&self, key: &Key) -> Option<KeyedTicket<Key>> {
        let mut ticket = self.limit.enqueue(key.clone())?;
        ticket.acquire().await;
        Some(ticket)
    }

    /// Runs one call in a warm interpreter, or in a new one.
    pub(super) async fn call(
        self: &Arc<Self>,
        key: &Key,
        recipe: &Recipe,
        (call, permits): (PythonCall<'_>, Permits),
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<PythonResult, ServerError> {
        loop {
            let idle = self.take(key).await;
            let fresh = idle.is_none();
            let mut server = match idle {
                Some(server) => server,
                None => Server::start(&self.sandbox, recipe).await?,
            };
            match server.call(call, watch).await {
                // It ended while it was idle, or could not clean its sandbox: the call has not started.
                Err(ServerError::NotAccepted) if !fresh => {}
                Ok(result) => {
                    match result.after {
                        AfterCall::Ready => self.put(key, server),
                        AfterCall::Settling => self.settle(key, server, permits),
                        AfterCall::Ended => {}
                    }
                    return Ok(result);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an idle interpreter, or waits for one that is about to be ready: that is faster than to start another one.
    async fn take(&self, key: &Key) -> Option<Server> {
        loop {
            let (settled, notified);
            {
                let mut lanes = self.lock();
                let lane = lanes.get_mut(key)?;
                if let Some(idle) = lane.idle.pop() {
                    return Some(idle.server);
                }
                if lane.settling <= lane.awaited {
                    return None;
                }
                lane.awaited += 1;
                settled = Arc::clone(&lane.settled);
                // Created under the lock, so that no notification is missed.
                notified = settled.notified();
            }
            let _awaiting = Awaiting { pool: self, key };
            notified.await;
        }
    }

    /// Waits in the background until an interpreter is ready again; until then its permits are held.
    fn settle(self: &Arc<Self>, key: &Key, mut server: Server, permits: Permits) {
        self.lock().entry(key.clone()).or_default().settling += 1;
        let (pool, key) = (Arc::clone(self), key.clone());
        tokio::spawn(async move {
            if server.settle().await {
                pool.put(&key, server);
            } else {
                drop(server);
            }
            let mut lanes = pool.lock();
            let lane = lanes.entry(key).or_default();
            lane.settling = lane.settling.saturating_sub(1);
            lane.settled.notify_waiters();
            drop(lanes);
            drop(permits);
        });
    }

    fn put(self: &Arc<Self>, key: &Key, server: Server) {
        self.reaper.call_once(|| self.start_reaper());
        let surplus = {
            let mut lanes = self.lock();
            lanes.entry(key.clone()).or_default().idle.push(IdleServer { server, since: Instant::now() });
            let count: usize = lanes.values().map(|lane| lane.idle.len()).sum();
            if count > self.settings.max_idle { take_oldest(&mut lanes) } else { None }
        };
        // Ended outside of the lock.
        drop(surplus);
    }

    /// Ends idle interpreters regularly, as long as the pool exists.
    fn start_reaper(self: &Arc<Self>) {
        let (weak, pause) = (Arc::downgrade(self), self.settings.idle_timeout / 4);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let Some(pool) = weak.upgrade() else { return };
                pool.reap();
            }
        });
    }

    /// Ends the interpreters that were idle too long, and removes unused lanes.
    fn reap(&self) {
        let mut expired = Vec::new();
        let mut lanes = self.lock();
        lanes.retain(|_, lane| {
            let is_fresh = |idle: &IdleServer| idle.since.elapsed() < self.settings.idle_timeout;
            let first_fresh = lane.idle.iter().position(is_fresh).unwrap_or(lane.idle.len());
            expired.extend(lane.idle.drain(..first_fresh));
            !lane.idle.is_empty() || lane.settling > 0 || lane.awaited > 0
        });
        drop(lanes);
        drop(expired);
    }
}

/// Removes the interpreter that has been idle longest.
fn take_oldest(lanes: &mut HashMap<Key, Lane>) -> Option<IdleServer> {
    let first = |lane: &Lane| lane.idle.first().map(|idle| idle.since);
    let lane = lanes.values_mut().filter(|lane| !lane.idle.is_empty()).min_by_key(|lane| first(lane))?;
    Some(lane.idle.remove(0))
}

/// A call that waits for an interpreter to be ready again.
struct Awaiting<'a> {
    pool: &'a Pool,
    key: &'a Key,
}

impl Drop for Awaiting<'_> {
    fn drop(&mut self) {
        if let Some(lane) = self.pool.lock().get_mut(self.key) {
            lane.awaited = lane.awaited.saturating_sub(1);
        }
    }
}
