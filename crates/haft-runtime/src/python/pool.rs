//! Warm interpreters that wait for the next call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use haft_sandbox::{Sandbox, Stream};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::recipe::{Key, Recipe};
use super::server::{Done, Order, Server, ServerError};

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

/// The interpreters for one purpose.
#[derive(Debug)]
struct Lane {
    turns: Arc<Semaphore>,
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
    pub(super) async fn turn(&self, key: &Key) -> Option<tokio::sync::OwnedSemaphorePermit> {
        let turns = Arc::clone(&self.lane(key, &mut self.lock()).turns);
        turns.acquire_owned().await.ok()
    }

    /// Runs one call in a warm interpreter, or in a new one. The caller holds a turn.
    pub(super) async fn call(
        self: &Arc<Self>,
        key: &Key,
        recipe: &Recipe,
        order: Order<'_>,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<Done, ServerError> {
        loop {
            let waiting = self.take(key);
            let fresh = waiting.is_none();
            let mut server = match waiting {
                Some(server) => server,
                None => Server::start(&self.sandbox, recipe).await?,
            };
            match server.call(order, watch).await {
                // It ended while it waited, or could not put its sandbox in order: the call was not begun.
                Err(ServerError::NotTaken) if !fresh => {}
                Ok(done) => {
                    if done.again {
                        self.put(key, server);
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
            waiting: Vec::new(),
        })
    }

    fn take(&self, key: &Key) -> Option<Server> {
        self.lock().get_mut(key)?.waiting.pop().map(|waiting| waiting.server)
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
