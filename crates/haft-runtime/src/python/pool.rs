//! Warm interpreters that wait for the next call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use haft_sandbox::{Sandbox, Stream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::recipe::{Key, Recipe};
use super::server::{Done, Next, Order, Server, ServerError};
use crate::process::Turn;

/// How many interpreters there may be.
#[derive(Debug, Clone)]
pub(super) struct PoolSettings {
    /// For the same purpose at once; further calls wait for their turn.
    pub(super) of_a_kind: usize,
    /// Waiting, in all.
    pub(super) waiting: usize,
    /// How long one waits for a call.
    pub(super) patience: Duration,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self { of_a_kind: 16, waiting: 32, patience: Duration::from_mins(1) }
    }
}

/// The interpreters.
#[derive(Debug)]
pub(super) struct Pool {
    sandbox: Sandbox,
    settings: PoolSettings,
    lanes: Mutex<HashMap<Key, Lane>>,
    /// Whether someone minds those who wait.
    minded: Once,
}

/// What a call holds while it runs, and its interpreter until that is ready again.
#[derive(Debug)]
#[expect(dead_code, reason = "held, and dropped")]
pub(super) struct Turns {
    pub(super) of_its_kind: Option<OwnedSemaphorePermit>,
    pub(super) place: Turn,
}

/// One call, with its turns.
pub(super) struct Errand<'a> {
    pub(super) order: Order<'a>,
    pub(super) turns: Turns,
}

/// The interpreters for one purpose.
#[derive(Debug)]
struct Lane {
    turns: Arc<Semaphore>,
    /// How many are about to be ready again, and how many calls wait for one of these.
    coming: usize,
    awaited: usize,
    came: Arc<Notify>,
    /// The one that was used last stands last.
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    server: Server,
    since: Instant,
}

impl Pool {
    /// Makes the pool.
    pub(super) fn new(sandbox: Sandbox, settings: PoolSettings) -> Arc<Self> {
        Arc::new(Self { sandbox, settings, lanes: Mutex::default(), minded: Once::new() })
    }

    /// Waits until there may be one more interpreter of a kind; the turn is over when this is dropped.
    pub(super) async fn turn(&self, key: &Key) -> Option<OwnedSemaphorePermit> {
        let turns = Arc::clone(&self.lane(key, &mut self.lock()).turns);
        turns.acquire_owned().await.ok()
    }

    /// Runs one call in a warm interpreter, or in a new one.
    pub(super) async fn call(
        self: &Arc<Self>,
        key: &Key,
        recipe: &Recipe,
        Errand { order, turns }: Errand<'_>,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<Done, ServerError> {
        loop {
            let waiting = self.take(key).await;
            let fresh = waiting.is_none();
            let mut server = match waiting {
                Some(server) => server,
                None => Server::start(&self.sandbox, recipe).await?,
            };
            match server.call(order, watch).await {
                // It ended while it waited, or could not put its sandbox in order: the call was not begun.
                Err(ServerError::NotTaken) if !fresh => {}
                Ok(done) => {
                    match done.next {
                        Next::Ready => self.put(key, server),
                        Next::Settling => self.settle(key, server, turns),
                        Next::Over => {}
                    }
                    return Ok(done);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lane<'a>(&self, key: &Key, lanes: &'a mut HashMap<Key, Lane>) -> &'a mut Lane {
        lanes.entry(key.clone()).or_insert_with(|| Lane {
            turns: Arc::new(Semaphore::new(self.settings.of_a_kind)),
            coming: 0,
            awaited: 0,
            came: Arc::default(),
            waiting: Vec::new(),
        })
    }

    /// Takes an interpreter that is ready, or about to be: that takes less than to start another one.
    async fn take(&self, key: &Key) -> Option<Server> {
        loop {
            let (came, notified);
            {
                let mut lanes = self.lock();
                let lane = lanes.get_mut(key)?;
                if let Some(waiting) = lane.waiting.pop() {
                    return Some(waiting.server);
                }
                if lane.coming <= lane.awaited {
                    return None;
                }
                lane.awaited += 1;
                came = Arc::clone(&lane.came);
                // Whoever comes from now on is heard.
                notified = came.notified();
            }
            let _awaiting = Awaiting { pool: self, key };
            notified.await;
        }
    }

    /// Sees to it, behind the answer, that an interpreter is ready again; until then its turns are not over.
    fn settle(self: &Arc<Self>, key: &Key, mut server: Server, turns: Turns) {
        self.lane(key, &mut self.lock()).coming += 1;
        let (pool, key) = (Arc::clone(self), key.clone());
        tokio::spawn(async move {
            if server.settle().await {
                pool.put(&key, server);
            } else {
                drop(server);
            }
            let mut lanes = pool.lock();
            let lane = pool.lane(&key, &mut lanes);
            lane.coming = lane.coming.saturating_sub(1);
            lane.came.notify_waiters();
            drop(lanes);
            drop(turns);
        });
    }

    fn put(self: &Arc<Self>, key: &Key, server: Server) {
        self.minded.call_once(|| self.mind());
        let surplus = {
            let mut lanes = self.lock();
            self.lane(key, &mut lanes).waiting.push(Waiting { server, since: Instant::now() });
            let count: usize = lanes.values().map(|lane| lane.waiting.len()).sum();
            if count > self.settings.waiting { oldest(&mut lanes) } else { None }
        };
        // Ending one is done outside of the lock.
        drop(surplus);
    }

    /// Sees to it that nobody waits for ever, as long as there is the pool.
    fn mind(self: &Arc<Self>) {
        let (weak, pause) = (Arc::downgrade(self), self.settings.patience / 4);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let Some(pool) = weak.upgrade() else { return };
                pool.reap();
            }
        });
    }

    /// Ends the interpreters that have waited too long, and forgets the kinds that nobody uses.
    fn reap(&self) {
        let mut over = Vec::new();
        let mut lanes = self.lock();
        lanes.retain(|_, lane| {
            let stay = |waiting: &Waiting| waiting.since.elapsed() < self.settings.patience;
            let keep = lane.waiting.iter().position(stay).unwrap_or(lane.waiting.len());
            over.extend(lane.waiting.drain(..keep));
            !lane.waiting.is_empty() || Arc::strong_count(&lane.turns) > 1
        });
        drop(lanes);
        drop(over);
    }
}

/// Takes out the interpreter that has waited longest.
fn oldest(lanes: &mut HashMap<Key, Lane>) -> Option<Waiting> {
    let first = |lane: &Lane| lane.waiting.first().map(|waiting| waiting.since);
    let lane = lanes.values_mut().filter(|lane| !lane.waiting.is_empty()).min_by_key(|lane| first(lane))?;
    Some(lane.waiting.remove(0))
}

/// A call that waits for an interpreter to be ready.
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
